/* Arrays on devices, made and copied: see include/plateflow/device.h. */
#include <stdio.h>
#include <stdlib.h>

#include "bridge/array_private.h"
#include "bridge/device_private.h"

/* The memory type of an array that the bridge makes on a kind of device. */
static enum pf_memory_type type_on(int kind) {
  if (kind == PF_DEVICE_CUDA)
    return PF_MEM_CUDA;
  return kind == PF_DEVICE_OPENCL ? PF_MEM_OPENCL : PF_MEM_NATIVE;
}

static bool is_host(struct pf_device device) {
  return device.type == PF_DEVICE_HOST || device.type == PF_DEVICE_CUDA_HOST;
}

/* Bytes of a compact array; PF_EINVAL as pf_array_create() has it. */
static int count_bytes(size_t *n_bytes, enum pf_dtype dtype, int ndim,
                       const int64_t *shape, struct pf_error *err) {
  int64_t strides[PF_MAX_NDIM], size = 0, total = 0;
  if ((unsigned)dtype >= PF_N_DTYPES || ndim < 0 || ndim > PF_MAX_NDIM ||
      (ndim && !shape))
    return pf_error_set(err, PF_EINVAL,
                        "cannot make an array without an element type and a "
                        "shape of 0 to %d dimensions",
                        PF_MAX_NDIM);
  if (!pf_compact_strides(&size, strides, ndim, shape) ||
      __builtin_mul_overflow(size, (int64_t)pf_dtype_size(dtype), &total)) {
    char text[PF_ARRAY_TEXT];
    return pf_error_set(
        err, PF_EINVAL,
        "cannot make an array of shape %s: a size is negative or overflows",
        pf_shape_text(text, sizeof(text), ndim, shape));
  }
  *n_bytes = (size_t)total;
  return PF_OK;
}

/* Whoever gets the memory next waits for what it waited for, even if nobody
 * ever uses this array. */
static void note_allocation(struct pf_array *array, struct pf_stream *stream,
                            const struct pf_device_ops *ops) {
  struct pf_event *event = NULL;
  if (ops->event_record(stream, &event, NULL) == PF_OK)
    pf_array_add_use(array, event);
  else
    (void)ops->stream_sync(stream, NULL);
  pf_event_unref(&event);
}

static int create_on_device(struct pf_array **out, struct pf_array_desc *desc,
                            size_t n_bytes, const struct pf_device_ops *ops,
                            struct pf_stream *stream, struct pf_error *err) {
  int index = desc->device.index, code = PF_OK;
  if (!stream && (code = pf_stream_default(&stream, ops, index, err)) != PF_OK)
    return code;
  if (n_bytes)
    code = ops->alloc(index, n_bytes, stream, &desc->data, err);
  if (code != PF_OK)
    return code;
  code = pf_array_of_block(out, desc, desc->device, n_bytes, err);
  if (code == PF_OK && n_bytes)
    note_allocation(*out, stream, ops);
  else if (n_bytes)
    ops->free(index, desc->data, n_bytes, NULL);
  return code;
}

static int create_pinned(struct pf_array **out, struct pf_array_desc *desc,
                         size_t n_bytes, struct pf_error *err) {
  const struct pf_device_ops *ops = pf_device_ops(PF_DEVICE_CUDA);
  int code;
  if (!ops || !ops->pinned_alloc)
    return pf_error_set(err, PF_EMISSING,
                        "there is no pinned memory without CUDA");
  desc->device.type = PF_DEVICE_HOST;
  if (n_bytes &&
      (code = ops->pinned_alloc(n_bytes, &desc->data, err)) != PF_OK)
    return code;
  code = pf_array_of_block(
      out, desc, (struct pf_device){PF_DEVICE_CUDA_HOST, 0}, n_bytes, err);
  if (code != PF_OK && n_bytes)
    ops->pinned_free(desc->data, n_bytes);
  return code;
}

int pf_array_create_on(struct pf_array **out, struct pf_device device,
                       enum pf_dtype dtype, int ndim, const int64_t *shape,
                       struct pf_stream *stream, struct pf_error *err) {
  struct pf_array_desc desc = {
      NULL, dtype, ndim, shape, NULL, device, type_on(device.type), false};
  const struct pf_device_ops *ops = NULL;
  size_t n_bytes = 0;
  int code;
  *out = NULL;
  if ((code = pf_device_find(&ops, device, err)) != PF_OK)
    return code;
  if (device.type == PF_DEVICE_HOST)
    return pf_array_create(out, dtype, ndim, shape, err);
  if ((code = count_bytes(&n_bytes, dtype, ndim, shape, err)) != PF_OK)
    return code;
  return device.type == PF_DEVICE_CUDA_HOST
             ? create_pinned(out, &desc, n_bytes, err)
             : create_on_device(out, &desc, n_bytes, ops, stream, err);
}

/* -- copies ----------------------------------------------------------------
 */

/* One copy: what, where to, and the stream that does it. */
struct copy {
  struct pf_array *from, *to;
  const struct pf_device_ops *ops;
  struct pf_stream *stream;
};

/* The stream of a copy: the caller's where it is of that kind of device. */
static int choose_stream(struct copy *copy, struct pf_stream *stream,
                         int index, struct pf_error *err) {
  if (stream && stream->ops == copy->ops) {
    copy->stream = stream;
    return PF_OK;
  }
  return pf_stream_default(&copy->stream, copy->ops, index, err);
}

/* The copy is queued: both arrays know its end. */
static int note_copy(struct copy *copy, struct pf_error *err) {
  struct pf_event *event = NULL;
  int code = copy->ops->event_record(copy->stream, &event, err);
  if (code == PF_OK) {
    pf_array_set_event(copy->to, event);
    pf_array_add_use(copy->from, event);
  } else {
    (void)copy->ops->stream_sync(copy->stream, NULL);
  }
  pf_event_unref(&event);
  return code;
}

static int make_like(struct pf_array **out, const struct pf_array *like,
                     struct pf_device device, struct pf_stream *stream,
                     struct pf_error *err) {
  return pf_array_create_on(out, device, like->dtype, like->ndim, like->dims,
                            stream, err);
}

static int host_to_device(struct copy *copy, struct pf_device device,
                          struct pf_error *err) {
  struct pf_array *compact = NULL, *from = copy->from;
  int code = PF_OK;
  if (!from->compact && (code = pf_array_copy(&compact, from, err)) != PF_OK)
    return code;
  if (compact)
    copy->from = compact;
  if ((code = make_like(&copy->to, copy->from, device, copy->stream, err)) ==
          PF_OK &&
      copy->from->size &&
      (code = pf_array_order(copy->from, copy->stream, false, err)) == PF_OK &&
      (code = copy->ops->to_device(
           device.index, copy->to->data, 0, copy->from->data,
           pf_array_n_bytes(copy->from), copy->stream, err)) == PF_OK)
    code = note_copy(copy, err);
  pf_array_unref(&compact);
  return code;
}

/* Pinned memory copies without the host; where there is none, any. */
static int make_landing(struct pf_array **out, enum pf_dtype dtype, int ndim,
                        const int64_t *shape, const struct copy *copy,
                        struct pf_error *err) {
  if (copy->ops->pinned_alloc &&
      pf_array_create_on(out, (struct pf_device){PF_DEVICE_CUDA_HOST, 0},
                         dtype, ndim, shape, NULL, NULL) == PF_OK)
    return PF_OK;
  return pf_array_create(out, dtype, ndim, shape, err);
}

static int queue_to_host(struct copy *copy, const void *data, uint64_t offset,
                         struct pf_error *err) {
  int code = pf_array_order(copy->from, copy->stream, false, err);
  if (code == PF_OK)
    code = copy->ops->to_host(copy->from->device.index, copy->to->data, data,
                              offset, pf_array_n_bytes(copy->to), copy->stream,
                              err);
  return code == PF_OK ? note_copy(copy, err) : code;
}

static int compact_to_host(struct copy *copy, struct pf_error *err) {
  const struct pf_array *from = copy->from;
  int code =
      make_landing(&copy->to, from->dtype, from->ndim, from->dims, copy, err);
  if (code == PF_OK && from->size)
    code = queue_to_host(copy, from->data, from->offset, err);
  return code;
}

/* Elements from the lowest to the highest that the array reaches, and how many
 * lie before its first. */
static int64_t span_elements(const struct pf_array *array, int64_t *below) {
  const int64_t *strides = array->dims + array->ndim;
  int64_t n = 1;
  *below = 0;
  for (int i = 0; i < array->ndim; i++) {
    int64_t reach = (array->dims[i] - 1) * strides[i];
    n += reach < 0 ? -reach : reach;
    *below -= reach < 0 ? reach : 0;
  }
  return n;
}

/* All that a strided array spans goes to the host; the gaps are left there. */
static int strided_to_host(struct copy *copy, struct pf_error *err) {
  struct pf_array *from = copy->from, *seen = NULL;
  const int64_t elem = (int64_t)pf_dtype_size(from->dtype);
  int64_t below = 0, n = span_elements(from, &below);
  int code = make_landing(&copy->to, from->dtype, 1, &n, copy, err);
  if (code == PF_OK)
    code = queue_to_host(copy, (const char *)from->data - below * elem,
                         from->offset, err);
  if (code == PF_OK)
    code =
        pf_array_view(&seen, copy->to, (char *)copy->to->data + below * elem,
                      from->ndim, from->dims, from->dims + from->ndim, err);
  pf_array_unref(&copy->to);
  if (code == PF_OK)
    code = pf_array_copy(&copy->to, seen, err);
  pf_array_unref(&seen);
  return code;
}

static int device_to_host(struct copy *copy, struct pf_error *err) {
  struct pf_array *from = copy->from;
  if (from->compact || from->size == 0)
    return compact_to_host(copy, err);
  if (from->device.type != PF_DEVICE_CUDA)
    return pf_error_set(err, PF_EINVAL,
                        "cannot copy an array from an %s device that is not "
                        "compact",
                        copy->ops->name);
  return strided_to_host(copy, err);
}

static int device_to_peer(struct copy *copy, struct pf_device device,
                          struct pf_error *err) {
  struct pf_array *from = copy->from;
  int code = make_like(&copy->to, from, device, copy->stream, err);
  if (code == PF_OK && from->size &&
      (code = pf_array_order(from, copy->stream, false, err)) == PF_OK &&
      (code = copy->ops->peer(device.index, copy->to->data, from->device.index,
                              from->data, pf_array_n_bytes(from), copy->stream,
                              err)) == PF_OK)
    code = note_copy(copy, err);
  return code;
}

static int over_host(struct pf_array **out, struct pf_array *array,
                     struct pf_device device, struct pf_stream *stream,
                     struct pf_error *err) {
  const struct pf_device host = {PF_DEVICE_HOST, 0};
  struct pf_array *middle = NULL;
  int code = pf_array_to_device(&middle, array, host, stream, err);
  if (code == PF_OK)
    code = pf_array_to_device(out, middle, device, stream, err);
  pf_array_unref(&middle);
  return code;
}

static bool is_same(struct pf_device a, struct pf_device b) {
  return (is_host(a) && is_host(b)) ||
         (a.type == b.type && a.index == b.index);
}

int pf_array_to_device(struct pf_array **out, struct pf_array *array,
                       struct pf_device device, struct pf_stream *stream,
                       struct pf_error *err) {
  const bool from_host = is_host(array->device), to_host = is_host(device);
  const struct pf_device at = from_host ? device : array->device;
  struct copy copy = {.from = array};
  int code;
  *out = NULL;
  if ((code = pf_device_find(&copy.ops, device, err)) != PF_OK)
    return code;
  if (is_same(array->device, device)) {
    *out = pf_array_ref(array);
    return PF_OK;
  }
  if (to_host && (code = pf_device_find(&copy.ops, at, err)) != PF_OK)
    return code;
  if (!from_host && !to_host &&
      (at.type != device.type || !copy.ops->peer || !array->compact))
    return over_host(out, array, device, stream, err);
  code = choose_stream(&copy, stream, to_host ? at.index : device.index, err);
  if (code == PF_OK && to_host)
    code = device_to_host(&copy, err);
  else if (code == PF_OK)
    code = from_host ? host_to_device(&copy, device, err)
                     : device_to_peer(&copy, device, err);
  if (code != PF_OK)
    pf_array_unref(&copy.to);
  *out = copy.to;
  return code;
}
