/* Stacks of slices and back: see include/plateflow/bridge.h. */
#include "plateflow/bridge.h"

#include <string.h>

#include "bridge/array_private.h"
#include "bridge/cast_kernels.h"

/* Refuses slice `i`, naming what it is and what the first one is. */
static int refuse_unlike(struct pf_error *err, size_t i,
                         const struct pf_array *slice,
                         const struct pf_array *first) {
  char a[PF_ARRAY_TEXT], b[PF_ARRAY_TEXT];
  return pf_error_set(err, PF_EINVAL,
                      "cannot stack: slice %zu is %s, slice 0 is %s; the "
                      "slices of a stack have one size and one type",
                      i, pf_array_text(a, sizeof(a), slice),
                      pf_array_text(b, sizeof(b), first));
}

static int check_slice(struct pf_array *const *slices, size_t i,
                       enum pf_dtype as, struct pf_error *err) {
  const struct pf_array *slice = slices[i], *first = slices[0];
  char text[PF_ARRAY_TEXT];
  int code;
  if (!slice)
    return pf_error_set(err, PF_EINVAL, "cannot stack: slice %zu is missing",
                        i);
  if (slice->ndim != 2)
    return pf_error_set(err, PF_EINVAL,
                        "cannot stack: slice %zu is %s, not 2D", i,
                        pf_array_text(text, sizeof(text), slice));
  if ((code = pf_array_check_host(slice, "stack", err)) != PF_OK) {
    pf_error_prefix(err, "slice %zu", i);
    return code;
  }
  if (slice->dims[0] != first->dims[0] || slice->dims[1] != first->dims[1] ||
      (as == PF_DTYPE_NONE && slice->dtype != first->dtype))
    return refuse_unlike(err, i, slice, first);
  return PF_OK;
}

static void put_slice(char *to, enum pf_dtype to_type,
                      const struct pf_array *slice) {
  struct pf_cast_stats ignored = {0};
  struct pf_walk walk;
  const void *piece = NULL;
  size_t n = 0;
  if (slice->compact && slice->dtype == to_type) {
    memcpy(to, slice->data, pf_array_n_bytes(slice));
    return;
  }
  pf_walk_start(&walk, slice);
  while ((piece = pf_walk_next(&walk, &n))) {
    pf_cast_run(to, to_type, piece, slice->dtype, n, &ignored);
    to += n * pf_dtype_size(to_type);
  }
}

int pf_stack_slices(struct pf_array **out, struct pf_array *const *slices,
                    size_t n, enum pf_dtype as, struct pf_error *err) {
  struct pf_array *stack = NULL;
  int64_t shape[3];
  size_t plane;
  int code;
  *out = NULL;
  if (n == 0 || n > INT64_MAX)
    return pf_error_set(err, PF_EINVAL, "cannot stack %zu slices", n);
  for (size_t i = 0; i < n; i++)
    if ((code = check_slice(slices, i, as, err)) != PF_OK)
      return code;
  shape[0] = (int64_t)n;
  shape[1] = slices[0]->dims[0];
  shape[2] = slices[0]->dims[1];
  if (as == PF_DTYPE_NONE)
    as = slices[0]->dtype;
  if ((code = pf_array_create(&stack, as, 3, shape, err)) != PF_OK)
    return code;
  stack->memory_type = slices[0]->memory_type;
  plane = pf_array_n_bytes(stack) / n;
  for (size_t i = 0; i < n && plane; i++)
    put_slice((char *)stack->data + i * plane, as, slices[i]);
  *out = stack;
  return PF_OK;
}

int pf_unstack_slices(struct pf_array **slices, size_t n,
                      struct pf_array *stack, struct pf_error *err) {
  char text[PF_ARRAY_TEXT];
  int code = PF_OK;
  size_t done = 0;
  for (size_t i = 0; i < n; i++)
    slices[i] = NULL;
  if (stack->ndim != 3 || (uint64_t)stack->dims[0] != n)
    return pf_error_set(err, PF_EINVAL,
                        "cannot unstack an array that is %s into %zu slices: "
                        "it must be 3D and as deep",
                        pf_array_text(text, sizeof(text), stack), n);
  while (done < n && code == PF_OK)
    if ((code = pf_array_plane(&slices[done], stack, (int64_t)done, err)) ==
        PF_OK)
      done++;
  while (code != PF_OK && done > 0)
    pf_array_unref(&slices[--done]);
  return code;
}
