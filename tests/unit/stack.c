/* bridge/stack.c */
#include "plateflow/bridge.h"
#include "tests/unit/check.h"

#include <stdlib.h>

enum { MAX_SLICES = 4 };

struct slice_spec {
  int ndim;
  enum pf_dtype dtype;
  int64_t shape[3];
  int device; /* 0: host */
  bool transposed;
};

#define SLICE(dtype, h, w)                                                    \
  { 2, PF_##dtype, {h, w}, 0, false }

static const struct stack_case {
  int n;
  struct slice_spec slices[MAX_SLICES];
  enum pf_dtype as;
  const char *refusal; /* NULL: accepted */
} stack_cases[] = {
    {1, {SLICE(U16, 3, 4)}, PF_DTYPE_NONE, NULL},
    {3,
     {SLICE(U16, 3, 4), SLICE(U16, 3, 4), SLICE(U16, 3, 4)},
     PF_DTYPE_NONE,
     NULL},
    {2, {SLICE(U8, 3, 4), SLICE(U16, 3, 4)}, PF_F32, NULL},
    {2, {{2, PF_U16, {3, 4}, 0, true}, SLICE(U16, 3, 4)}, PF_DTYPE_NONE, NULL},
    {2, {SLICE(U8, 0, 4), SLICE(U8, 0, 4)}, PF_U16, NULL},
    {0, {SLICE(U8, 1, 1)}, PF_DTYPE_NONE, "cannot stack 0 slices"},
    {2,
     {SLICE(U16, 10, 10), SLICE(U16, 5, 6)},
     PF_DTYPE_NONE,
     "slice 1 is 5x6 uint16, slice 0 is 10x10 uint16"},
    {4,
     {SLICE(U16, 7, 8), SLICE(U16, 7, 8), SLICE(U16, 7, 8), SLICE(U8, 7, 8)},
     PF_DTYPE_NONE,
     "slice 3 is 7x8 uint8, slice 0 is 7x8 uint16"},
    {2,
     {SLICE(U16, 3, 4), SLICE(U16, 4, 3)},
     PF_F32,
     "slice 1 is 4x3 uint16, slice 0 is 3x4 uint16"},
    {2,
     {SLICE(U16, 3, 4), SLICE(U16, 3, 5)},
     PF_F32,
     "slice 1 is 3x5 uint16, slice 0 is 3x4 uint16"},
    {2,
     {SLICE(U16, 3, 4), SLICE(U16, 2, 4)},
     PF_F32,
     "slice 1 is 2x4 uint16, slice 0 is 3x4 uint16"},
    {2,
     {SLICE(U16, 3, 4), {3, PF_U16, {1, 3, 4}, 0, false}},
     PF_DTYPE_NONE,
     "slice 1 is 1x3x4 uint16, not 2D"},
    {2,
     {SLICE(U16, 3, 4), {2, PF_U16, {3, 4}, 2, false}},
     PF_DTYPE_NONE,
     "slice 1: cannot stack an array on a device of type 2"},
    {2,
     {SLICE(U16, 3, 4), {-1, PF_U16, {0}, 0, false}},
     PF_DTYPE_NONE,
     "slice 1 is missing"},
};

/* Values of all slices: slice * 20 + position, in one buffer per slice. */
static uint16_t buffers[MAX_SLICES][100];

static struct pf_array *make_slice(const struct slice_spec *spec, int i) {
  int64_t columns[2] = {1, spec->shape[0]};
  struct pf_array_desc desc = {buffers[i],
                               spec->dtype,
                               spec->ndim,
                               spec->shape,
                               spec->transposed ? columns : NULL,
                               {spec->device ? spec->device : 1, 0},
                               PF_MEM_NUMPY,
                               true};
  struct pf_error err = PF_ERROR_INIT;
  struct pf_array *slice = NULL;
  if (spec->ndim < 0)
    return NULL;
  for (int k = 0; k < 100; k++)
    if (spec->dtype == PF_U8)
      ((uint8_t *)buffers[i])[k] = (uint8_t)(i * 20 + k);
    else
      buffers[i][k] = (uint16_t)(i * 20 + k);
  CHECK_INT(pf_array_wrap(&slice, &desc, NULL, NULL, &err), PF_OK);
  return slice;
}

static double value(const struct pf_array *stack, int64_t i) {
  const void *data = pf_array_data(stack);
  return pf_array_dtype(stack) == PF_F32   ? (double)((const float *)data)[i]
         : pf_array_dtype(stack) == PF_U16 ? ((const uint16_t *)data)[i]
                                           : ((const uint8_t *)data)[i];
}

static void check_stack(const struct stack_case *row,
                        const struct pf_array *stack) {
  const int64_t *shape = pf_array_shape(stack);
  int64_t h = row->slices[0].shape[0], w = row->slices[0].shape[1];
  CHECK_INT(pf_array_ndim(stack), 3);
  CHECK(shape[0] == row->n && shape[1] == h && shape[2] == w);
  CHECK_INT(pf_array_dtype(stack),
            row->as == PF_DTYPE_NONE ? row->slices[0].dtype : row->as);
  CHECK(pf_array_is_compact(stack) && pf_array_is_writable(stack));
  for (int64_t i = 0; i < pf_array_size(stack); i++) {
    int64_t z = i / (h * w), y = i / w % h, x = i % w;
    int64_t at = row->slices[z].transposed ? x * h + y : y * w + x;
    CHECK(value(stack, i) == (double)(z * 20 + at));
  }
}

static void test_stack(void) {
  for (size_t i = 0; i < sizeof(stack_cases) / sizeof(stack_cases[0]); i++) {
    const struct stack_case *row = &stack_cases[i];
    struct pf_array *slices[MAX_SLICES] = {NULL}, *stack = NULL;
    struct pf_error err = PF_ERROR_INIT;
    for (int k = 0; k < row->n; k++)
      slices[k] = make_slice(&row->slices[k], k);
    CHECK_INT(pf_stack_slices(&stack, slices, (size_t)row->n, row->as, &err),
              row->refusal ? PF_EINVAL : PF_OK);
    CHECK_INT(stack != NULL, !row->refusal);
    if (stack)
      check_stack(row, stack);
    if (row->refusal && !(err.message && strstr(err.message, row->refusal))) {
      check_fail(__FILE__, __LINE__, "the refusal says what is wrong");
      (void)printf("  %s\n  %s\n", row->refusal, err.message);
    }
    pf_error_clear(&err);
    pf_array_unref(&stack);
    for (int k = 0; k < row->n; k++)
      pf_array_unref(&slices[k]);
  }
}

static void test_unstack(void) {
  struct pf_array *stack = NULL, *slices[3] = {NULL}, *again = NULL;
  struct pf_error err = PF_ERROR_INIT;
  int64_t shape[3] = {3, 4, 5};
  uint16_t *data = NULL;
  CHECK_INT(pf_array_create(&stack, PF_U16, 3, shape, &err), PF_OK);
  data = pf_array_data(stack);
  for (int i = 0; i < 60; i++)
    data[i] = (uint16_t)i;
  slices[1] = stack; /* must be overwritten */
  CHECK_INT(pf_unstack_slices(slices, 2, stack, &err), PF_EINVAL);
  CHECK_STR(err.message, "cannot unstack an array that is 3x4x5 uint16 into 2 "
                         "slices: it must be 3D and as deep");
  CHECK(!slices[0] && !slices[1]);
  pf_error_clear(&err);
  CHECK_INT(pf_unstack_slices(slices, 3, stack, &err), PF_OK);
  CHECK(pf_array_data(slices[2]) == data + 40);
  CHECK(!pf_array_is_writable(stack) && !pf_array_is_writable(slices[0]));
  pf_array_unref(&stack);
  CHECK_INT(pf_stack_slices(&again, slices, 3, PF_U8, &err), PF_OK);
  CHECK_INT(((uint8_t *)pf_array_data(again))[59], 59);
  pf_array_unref(&slices[0]);
  pf_array_unref(&slices[1]);
  CHECK(pf_array_is_writable(slices[2]));
  pf_array_unref(&slices[2]);
  pf_array_unref(&again);
}

int main(void) {
  test_stack();
  test_unstack();
  return check_done();
}
