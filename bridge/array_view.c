/* Views of arrays, walks over their elements, and copies. */
#include "plateflow/array.h"

#include <string.h>

#include "bridge/array_private.h"
#include "plateflow/device.h"

int pf_array_check_host(const struct pf_array *array, const char *what,
                        struct pf_error *err) {
  int type = array->device.type;
  if (type == PF_DEVICE_HOST || type == PF_DEVICE_CUDA_HOST)
    return array->event ? pf_array_wait(array, err) : PF_OK;
  return pf_error_set(err, PF_EINVAL,
                      "cannot %s an array on a device of type %d: only host "
                      "memory can be read here",
                      what, type);
}

/* First byte and end of what the array reaches; equal for an empty one. */
static void span(const struct pf_array *array, uintptr_t *first,
                 uintptr_t *end) {
  const int64_t *strides = array->dims + array->ndim;
  int64_t elem = (int64_t)pf_dtype_size(array->dtype);
  *first = *end = (uintptr_t)array->data;
  if (array->size == 0)
    return;
  *end += (uintptr_t)elem;
  for (int i = 0; i < array->ndim; i++) {
    int64_t reach = (array->dims[i] - 1) * strides[i] * elem;
    if (reach < 0)
      *first -= (uintptr_t)-reach;
    else
      *end += (uintptr_t)reach;
  }
}

bool pf_array_overlaps(const struct pf_array *a, const struct pf_array *b) {
  uintptr_t a_first, a_end, b_first, b_end;
  span(a, &a_first, &a_end);
  span(b, &b_first, &b_end);
  return a_first < a_end && b_first < b_end && a_first < b_end &&
         b_first < a_end;
}

int pf_array_plane(struct pf_array **out, struct pf_array *stack, int64_t z,
                   struct pf_error *err) {
  const int64_t *shape = stack->dims, *strides = stack->dims + stack->ndim;
  char text[PF_ARRAY_TEXT], *data = stack->data;
  int code;
  *out = NULL;
  if (stack->ndim != 3)
    return pf_error_set(err, PF_EINVAL,
                        "cannot take a plane of an array that is %s: it is "
                        "not 3D",
                        pf_array_text(text, sizeof(text), stack));
  if (z < 0 || z >= shape[0])
    return pf_error_set(
        err, PF_EINVAL, "cannot take plane %lld of a stack that is %s",
        (long long)z, pf_array_text(text, sizeof(text), stack));
  /* What is an address can be reached by adding to it, on a GPU too. */
  if (stack->device.type != PF_DEVICE_CUDA &&
      (code = pf_array_check_host(stack, "take a plane of", err)) != PF_OK)
    return code;
  if (stack->size)
    data += z * strides[0] * (int64_t)pf_dtype_size(stack->dtype);
  return pf_array_view(out, stack, data, 2, shape + 1, strides + 1, err);
}

int pf_array_reshape(struct pf_array **out, struct pf_array *array, int ndim,
                     const int64_t *shape, struct pf_error *err) {
  int64_t strides[PF_MAX_NDIM], size = 0;
  char from[PF_ARRAY_TEXT], to[PF_ARRAY_TEXT];
  bool fits = ndim >= 0 && ndim <= PF_MAX_NDIM &&
              pf_compact_strides(&size, strides, ndim, shape) &&
              size == array->size;
  *out = NULL;
  if (fits && array->compact)
    return pf_array_view(out, array, array->data, ndim, shape, strides, err);
  return pf_error_set(
      err, PF_EINVAL, "cannot see an array that is %s as %s: %s",
      pf_array_text(from, sizeof(from), array),
      ndim >= 0 && ndim <= PF_MAX_NDIM
          ? pf_shape_text(to, sizeof(to), ndim, shape)
          : "a shape of too many dimensions",
      fits ? "it is not compact" : "the number of elements differs");
}

void pf_walk_start(struct pf_walk *walk, const struct pf_array *array) {
  const int64_t *strides = array->dims + array->ndim;
  int64_t elem = (int64_t)pf_dtype_size(array->dtype);
  int n = 0;
  walk->at = array->data;
  walk->n_left = array->size;
  walk->elem = (size_t)elem;
  for (int i = 0; i < array->ndim && array->size; i++) {
    int64_t stride = strides[i] * elem;
    if (array->dims[i] == 1)
      continue;
    if (n && walk->strides[n - 1] == array->dims[i] * stride) {
      walk->shape[n - 1] *= array->dims[i];
      walk->strides[n - 1] = stride;
    } else {
      walk->shape[n] = array->dims[i];
      walk->strides[n++] = stride;
    }
  }
  if (n == 0) { /* one element */
    walk->shape[0] = 1;
    walk->strides[n++] = elem;
  }
  walk->ndim = n;
  memset(walk->index, 0, sizeof(walk->index));
}

/* Go on by `n` elements that do not leave the innermost dimension. */
static void advance(struct pf_walk *walk, int64_t n) {
  int i = walk->ndim - 1;
  walk->n_left -= n;
  walk->index[i] += n;
  walk->at += n * walk->strides[i];
  while (i > 0 && walk->index[i] == walk->shape[i]) {
    walk->at -= walk->shape[i] * walk->strides[i];
    walk->index[i] = 0;
    i--;
    walk->index[i]++;
    walk->at += walk->strides[i];
  }
}

/* Copy `n` elements that lie `stride` bytes apart; one loop per size, so that
 * each is a plain load and store. */
static void gather(char *to, const char *from, int64_t stride, size_t elem,
                   size_t n) {
#define GATHER(size)                                                          \
  case size:                                                                  \
    for (size_t i = 0; i < n; i++, from += stride)                            \
      memcpy(to + i * (size), from, size);                                    \
    break
  switch (elem) {
    GATHER(1);
    GATHER(2);
    GATHER(4);
    GATHER(8);
  default:
    break;
  }
#undef GATHER
}

const void *pf_walk_next(struct pf_walk *walk, size_t *n) {
  int inner = walk->ndim - 1;
  int64_t stride = walk->strides[inner], filled = 0;
  *n = 0;
  if (walk->n_left == 0)
    return NULL;
  while (filled < PF_WALK_ELEMS && walk->n_left) {
    int64_t run = walk->shape[inner] - walk->index[inner];
    const char *from = walk->at;
    if (run > PF_WALK_ELEMS - filled)
      run = PF_WALK_ELEMS - filled;
    /* Whole rows go out where they lie; short ones are gathered, because a
     * piece has a price of its own. */
    if (stride == (int64_t)walk->elem && filled == 0 &&
        (run >= PF_WALK_ELEMS / 16 || run == walk->n_left)) {
      advance(walk, run);
      *n = (size_t)run;
      return from;
    }
    gather(walk->buffer + (size_t)filled * walk->elem, from, stride,
           walk->elem, (size_t)run);
    advance(walk, run);
    filled += run;
  }
  *n = (size_t)filled;
  return walk->buffer;
}

int pf_array_copy(struct pf_array **out, const struct pf_array *array,
                  struct pf_error *err) {
  struct pf_walk walk;
  const void *piece = NULL;
  char *to = NULL;
  size_t n = 0;
  int code;
  *out = NULL;
  if ((code = pf_array_check_host(array, "copy", err)) != PF_OK ||
      (code = pf_array_create(out, array->dtype, array->ndim, array->dims,
                              err)) != PF_OK)
    return code;
  (*out)->memory_type = array->memory_type;
  to = (*out)->data;
  if (array->compact) {
    if (array->size)
      memcpy(to, array->data, pf_array_n_bytes(array));
    return PF_OK;
  }
  pf_walk_start(&walk, array);
  while ((piece = pf_walk_next(&walk, &n))) {
    memcpy(to, piece, n * walk.elem);
    to += n * walk.elem;
  }
  return PF_OK;
}
