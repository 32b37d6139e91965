/* Arrays and their storage: see include/plateflow/array.h. */
#include "plateflow/array.h"

#include <stdio.h>
#include <stdlib.h>

#include "bridge/array_private.h"
#include "bridge/host.h"
#include "plateflow/device.h"

/* Bytes that an array may reach to either side: more than any address space
 * has, and small enough that one step further does not overflow. */
#define MAX_REACH ((int64_t)1 << 61)

/* What a shape and its strides come to. */
struct layout {
  int64_t size;     /* elements */
  int64_t n_bytes;  /* size * bytes per element */
  int64_t below;    /* bytes that are reached before the first element */
  int64_t above;    /* bytes that are reached from the first element on */
  bool compact;     /* C order without gaps */
  bool overlapping; /* a stride of 0 repeats elements */
};

const char *pf_shape_text(char *text, size_t size, int ndim,
                          const int64_t *shape) {
  size_t used = 0;
  (void)snprintf(text, size, "%s", ndim ? "" : "()");
  for (int i = 0; i < ndim && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? "x" : "",
                             (long long)shape[i]);
  return text;
}

const char *pf_array_text(char *text, size_t size,
                          const struct pf_array *array) {
  char shape[PF_ARRAY_TEXT];
  pf_shape_text(shape, sizeof(shape), array->ndim, array->dims);
  (void)snprintf(text, size, "%s %s", shape, pf_dtype_name(array->dtype));
  return text;
}

static int refuse_shape(struct pf_error *err, const char *why, int ndim,
                        const int64_t *shape) {
  char text[PF_ARRAY_TEXT];
  return pf_error_set(err, PF_EINVAL, "cannot make an array of shape %s: %s",
                      pf_shape_text(text, sizeof(text), ndim, shape), why);
}

static int check_kind(enum pf_dtype dtype, int ndim, const int64_t *shape,
                      struct pf_error *err) {
  if ((unsigned)dtype >= PF_N_DTYPES)
    return pf_error_set(err, PF_EINVAL,
                        "cannot make an array without an element type");
  if (ndim < 0 || ndim > PF_MAX_NDIM)
    return pf_error_set(err, PF_EINVAL,
                        "cannot make an array of %d dimensions: 0 to %d are "
                        "possible",
                        ndim, PF_MAX_NDIM);
  if (ndim && !shape)
    return pf_error_set(err, PF_EINVAL,
                        "cannot make an array of %d dimensions without a "
                        "shape",
                        ndim);
  for (int i = 0; i < ndim; i++)
    if (shape[i] < 0)
      return refuse_shape(err, "a size is negative", ndim, shape);
  return PF_OK;
}

bool pf_compact_strides(int64_t *size, int64_t *strides, int ndim,
                        const int64_t *shape) {
  int64_t stride = 1;
  bool empty = false;
  for (int i = ndim - 1; i >= 0; i--) {
    strides[i] = stride;
    empty = empty || shape[i] == 0;
    if (shape[i] < 0 ||
        __builtin_mul_overflow(stride, shape[i] ? shape[i] : 1, &stride))
      return false;
  }
  *size = empty ? 0 : stride;
  return true;
}

static int lay_out_compact(struct layout *layout, int64_t *strides,
                           size_t elem, int ndim, const int64_t *shape,
                           struct pf_error *err) {
  *layout = (struct layout){.compact = true};
  if (!pf_compact_strides(&layout->size, strides, ndim, shape) ||
      __builtin_mul_overflow(layout->size, (int64_t)elem, &layout->n_bytes))
    return refuse_shape(err, "its size overflows", ndim, shape);
  layout->above = layout->n_bytes;
  return PF_OK;
}

/* Add what a step of `stride` elements reaches; false if that overflows. */
static bool reach(struct layout *layout, int64_t length, int64_t stride,
                  int64_t elem) {
  int64_t span = 0;
  if (__builtin_mul_overflow(length - 1, stride, &span) ||
      __builtin_mul_overflow(span, elem, &span))
    return false;
  if (span < -MAX_REACH || span > MAX_REACH)
    return false;
  if (span < 0)
    layout->below -= span;
  else
    layout->above += span;
  return layout->below <= MAX_REACH && layout->above <= MAX_REACH;
}

/* `layout` and `compact` come from lay_out_compact(). */
static int lay_out_strided(struct layout *layout, const int64_t *compact,
                           size_t elem, int ndim, const int64_t *shape,
                           const int64_t *strides, struct pf_error *err) {
  if (layout->size == 0)
    return PF_OK;
  layout->below = 0;
  layout->above = (int64_t)elem;
  for (int i = 0; i < ndim; i++) {
    if (shape[i] == 1)
      continue; /* its stride is never used */
    layout->compact = layout->compact && strides[i] == compact[i];
    layout->overlapping = layout->overlapping || strides[i] == 0;
    if (!reach(layout, shape[i], strides[i], (int64_t)elem))
      return refuse_shape(err, "its strides overflow", ndim, shape);
  }
  return PF_OK;
}

/* The address must exist, be aligned, and not wrap around at either end. */
static int check_data(const struct pf_array_desc *desc,
                      const struct layout *layout, struct pf_error *err) {
  uintptr_t at = (uintptr_t)desc->data, end = 0;
  size_t elem = pf_dtype_size(desc->dtype);
  if (layout->size == 0)
    return PF_OK;
  if (!at)
    return refuse_shape(err, "its data pointer is NULL", desc->ndim,
                        desc->shape);
  if (at % elem != 0)
    return refuse_shape(err,
                        "its data is not aligned to its elements; copy "
                        "it first",
                        desc->ndim, desc->shape);
  if (at < (uintptr_t)layout->below ||
      __builtin_add_overflow(at, (uintptr_t)layout->above, &end))
    return refuse_shape(err, "it reaches outside the address space",
                        desc->ndim, desc->shape);
  return PF_OK;
}

/* The struct alone; `storage` is taken over. NULL if memory ran out. */
static struct pf_array *assemble(const struct pf_array_desc *desc,
                                 const struct layout *layout,
                                 const int64_t *strides,
                                 struct pf_storage *storage) {
  size_t n = (size_t)desc->ndim;
  struct pf_array *array =
      malloc(sizeof(*array) + 2 * n * sizeof(array->dims[0]));
  if (!array)
    return NULL;
  atomic_init(&array->n_refs, 1);
  array->storage = storage;
  array->data = desc->data;
  array->offset = 0;
  array->event = NULL;
  array->size = layout->size;
  array->dtype = desc->dtype;
  array->memory_type = desc->memory_type;
  array->device = desc->device;
  array->ndim = desc->ndim;
  array->compact = layout->compact;
  array->read_only = desc->read_only || layout->overlapping;
  for (size_t i = 0; i < n; i++) {
    array->dims[i] = desc->shape[i];
    array->dims[n + i] = strides[i];
  }
  return array;
}

static struct pf_storage *storage_create(void *block, size_t n_bytes,
                                         void (*release)(void *owner),
                                         void *owner) {
  struct pf_storage *storage = malloc(sizeof(*storage));
  if (!storage)
    return NULL;
  atomic_init(&storage->n_refs, 1);
  storage->block = block;
  storage->n_bytes = n_bytes;
  storage->device = (struct pf_device){PF_DEVICE_HOST, 0};
  storage->release = release;
  storage->owner = owner;
  atomic_init(&storage->uses, NULL);
  storage->next = NULL;
  return storage;
}

static void storage_unref(struct pf_storage *storage) {
  if (atomic_fetch_sub_explicit(&storage->n_refs, 1, memory_order_acq_rel) !=
      1)
    return;
  if (atomic_load_explicit(&storage->uses, memory_order_relaxed))
    pf_storage_release_after(storage);
  else
    pf_storage_release(storage, NULL);
}

void pf_storage_release(struct pf_storage *storage, struct pf_event *last) {
  const struct pf_device from = storage->device;
  const struct pf_device_ops *ops = NULL;
  if (!storage->block) {
    if (storage->release)
      storage->release(storage->owner);
  } else if (from.type == PF_DEVICE_HOST) {
    pf_host_free(storage->block, storage->n_bytes);
  } else if (from.type == PF_DEVICE_CUDA_HOST) {
    ops = pf_device_ops(PF_DEVICE_CUDA);
    ops->pinned_free(storage->block, storage->n_bytes);
  } else {
    ops = pf_device_ops((enum pf_device_kind)from.type);
    ops->free(from.index, storage->block, storage->n_bytes, last);
  }
  free(storage);
}

int pf_array_create(struct pf_array **out, enum pf_dtype dtype, int ndim,
                    const int64_t *shape, struct pf_error *err) {
  struct pf_array_desc desc = {NULL, dtype,  ndim,          shape,
                               NULL, {1, 0}, PF_MEM_NATIVE, false};
  struct pf_storage *storage = NULL;
  struct layout layout;
  int64_t strides[PF_MAX_NDIM];
  size_t n_bytes = 0;
  int code;
  *out = NULL;
  if ((code = check_kind(dtype, ndim, shape, err)) != PF_OK ||
      (code = lay_out_compact(&layout, strides, pf_dtype_size(dtype), ndim,
                              shape, err)) != PF_OK)
    return code;
  n_bytes = (size_t)layout.n_bytes;
  desc.data = pf_host_alloc(n_bytes);
  if (desc.data)
    storage = storage_create(desc.data, n_bytes, NULL, NULL);
  if (storage)
    *out = assemble(&desc, &layout, strides, storage);
  if (*out)
    return PF_OK;
  free(storage);
  pf_host_free(desc.data, n_bytes);
  return pf_error_set(err, PF_ENOMEM, "cannot allocate %zu bytes for an array",
                      n_bytes);
}

int pf_array_of_block(struct pf_array **out, const struct pf_array_desc *desc,
                      struct pf_device from, size_t n_bytes,
                      struct pf_error *err) {
  struct pf_storage *storage = NULL;
  struct layout layout;
  int64_t strides[PF_MAX_NDIM];
  int code = lay_out_compact(&layout, strides, pf_dtype_size(desc->dtype),
                             desc->ndim, desc->shape, err);
  *out = NULL;
  if (code != PF_OK)
    return code;
  storage = storage_create(desc->data, n_bytes, NULL, NULL);
  if (storage) {
    storage->device = from;
    *out = assemble(desc, &layout, strides, storage);
  }
  if (*out)
    return PF_OK;
  free(storage);
  return pf_error_set(err, PF_ENOMEM, "out of memory");
}

int pf_array_wrap(struct pf_array **out, const struct pf_array_desc *desc,
                  void (*release)(void *owner), void *owner,
                  struct pf_error *err) {
  struct pf_storage *storage = NULL;
  struct layout layout;
  int64_t compact[PF_MAX_NDIM];
  size_t elem = pf_dtype_size(desc->dtype);
  int code;
  *out = NULL;
  if ((code = check_kind(desc->dtype, desc->ndim, desc->shape, err)) ||
      (code = lay_out_compact(&layout, compact, elem, desc->ndim, desc->shape,
                              err)) ||
      (desc->strides &&
       (code = lay_out_strided(&layout, compact, elem, desc->ndim, desc->shape,
                               desc->strides, err))) ||
      (code = check_data(desc, &layout, err)))
    return code;
  storage = storage_create(NULL, 0, release, owner);
  if (storage)
    *out = assemble(desc, &layout, desc->strides ? desc->strides : compact,
                    storage);
  if (*out)
    return PF_OK;
  free(storage);
  return pf_error_set(err, PF_ENOMEM, "out of memory");
}

int pf_array_view(struct pf_array **out, struct pf_array *base, void *data,
                  int ndim, const int64_t *shape, const int64_t *strides,
                  struct pf_error *err) {
  struct pf_array_desc desc = {
      data,         base->dtype,       ndim,           shape, strides,
      base->device, base->memory_type, base->read_only};
  struct layout layout;
  int64_t compact[PF_MAX_NDIM];
  size_t elem = pf_dtype_size(base->dtype);
  int code;
  *out = NULL;
  if ((code = lay_out_compact(&layout, compact, elem, ndim, shape, err)) ||
      (code =
           lay_out_strided(&layout, compact, elem, ndim, shape, strides, err)))
    return code;
  *out = assemble(&desc, &layout, strides, base->storage);
  if (!*out)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  atomic_fetch_add_explicit(&base->storage->n_refs, 1, memory_order_relaxed);
  (*out)->offset = base->offset;
  (*out)->event = pf_event_ref(base->event);
  return PF_OK;
}

struct pf_array *pf_array_ref(struct pf_array *array) {
  atomic_fetch_add_explicit(&array->n_refs, 1, memory_order_relaxed);
  return array;
}

void pf_array_unref(struct pf_array **array) {
  struct pf_array *last = array ? *array : NULL;
  if (!last)
    return;
  *array = NULL;
  if (atomic_fetch_sub_explicit(&last->n_refs, 1, memory_order_acq_rel) != 1)
    return;
  pf_event_unref(&last->event);
  storage_unref(last->storage);
  free(last);
}

void *pf_array_data(const struct pf_array *array) {
  return array->data;
}

enum pf_dtype pf_array_dtype(const struct pf_array *array) {
  return array->dtype;
}

int pf_array_ndim(const struct pf_array *array) {
  return array->ndim;
}

const int64_t *pf_array_shape(const struct pf_array *array) {
  return array->dims;
}

const int64_t *pf_array_strides(const struct pf_array *array) {
  return array->dims + array->ndim;
}

struct pf_device pf_array_device(const struct pf_array *array) {
  return array->device;
}

enum pf_memory_type pf_array_memory_type(const struct pf_array *array) {
  return array->memory_type;
}

void pf_array_set_memory_type(struct pf_array *array,
                              enum pf_memory_type type) {
  array->memory_type = type;
}

int64_t pf_array_size(const struct pf_array *array) {
  return array->size;
}

size_t pf_array_n_bytes(const struct pf_array *array) {
  return (size_t)array->size * pf_dtype_size(array->dtype);
}

bool pf_array_is_compact(const struct pf_array *array) {
  return array->compact;
}

bool pf_array_is_read_only(const struct pf_array *array) {
  return array->read_only;
}

void pf_array_set_read_only(struct pf_array *array) {
  array->read_only = true;
}

/* The host writes at once; a device's streams can be made to wait for those
 * who still read. */
static bool is_host(const struct pf_array *array) {
  return array->device.type == PF_DEVICE_HOST ||
         array->device.type == PF_DEVICE_CUDA_HOST;
}

bool pf_array_is_writable(const struct pf_array *array) {
  /* Acquire: what other holders wrote before they let go is seen. */
  return !array->read_only &&
         atomic_load_explicit(&array->n_refs, memory_order_acquire) == 1 &&
         atomic_load_explicit(&array->storage->n_refs, memory_order_acquire) ==
             1 &&
         !(is_host(array) && pf_array_in_use(array));
}
