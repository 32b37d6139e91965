/* bridge/array.c, bridge/array_view.c */
#include "plateflow/array.h"
#include "tests/unit/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Asking for too much must return, as it does without the sanitizer. */
PF_API const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "allocator_may_return_null=1";
}
PF_API const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
  return "allocator_may_return_null=1";
}

#define HUGE_LENGTH ((int64_t)1 << 40)

static const struct create_case {
  int ndim;
  int64_t shape[9];
  enum pf_dtype dtype;
  int code;
  const char *message; /* a part of it */
} create_cases[] = {
    {0, {0}, PF_F64, PF_OK, NULL},
    {2, {3, 4}, PF_U16, PF_OK, NULL},
    {3, {3, 0, 4}, PF_U16, PF_OK, NULL},
    {8, {1, 2, 1, 2, 1, 2, 1, 2}, PF_U8, PF_OK, NULL},
    {9, {1}, PF_U8, PF_EINVAL, "9 dimensions: 0 to 8 are possible"},
    {-1, {1}, PF_U8, PF_EINVAL, "-1 dimensions"},
    {2, {3, -4}, PF_U8, PF_EINVAL, "shape 3x-4: a size is negative"},
    {2, {INT64_MIN, 0}, PF_U8, PF_EINVAL, "a size is negative"},
    {2, {HUGE_LENGTH, HUGE_LENGTH}, PF_U8, PF_EINVAL, "its size overflows"},
    {3, {HUGE_LENGTH, 0, HUGE_LENGTH}, PF_U8, PF_EINVAL, "size overflows"},
    {1, {INT64_MAX}, PF_U16, PF_EINVAL, "its size overflows"},
    {1, {INT64_MAX}, PF_U8, PF_ENOMEM, "cannot allocate 9223372036854775807"},
    {1, {(int64_t)1 << 61}, PF_U8, PF_ENOMEM, "cannot allocate"},
    {1, {1}, PF_DTYPE_NONE, PF_EINVAL, "without an element type"},
};

static void check_message(const struct pf_error *err, const char *part) {
  bool said =
      part ? err->message && strstr(err->message, part) : err->code == PF_OK;
  CHECK(said);
  if (!said)
    (void)printf("  %s\n  %s\n", part ? part : "(none)", err->message);
}

static void test_create(void) {
  for (size_t i = 0; i < sizeof(create_cases) / sizeof(create_cases[0]); i++) {
    const struct create_case *row = &create_cases[i];
    struct pf_error err = PF_ERROR_INIT;
    struct pf_array *array = NULL;
    CHECK_INT(pf_array_create(&array, row->dtype, row->ndim, row->shape, &err),
              row->code);
    check_message(&err, row->message);
    CHECK_INT(array != NULL, row->code == PF_OK);
    if (array) {
      CHECK((uintptr_t)pf_array_data(array) % 64 == 0);
      memset(pf_array_data(array), 1, pf_array_n_bytes(array));
      CHECK(pf_array_is_compact(array) && pf_array_is_writable(array));
      CHECK_INT(pf_array_memory_type(array), PF_MEM_NATIVE);
      CHECK_INT(pf_array_device(array).type, 1);
    }
    pf_error_clear(&err);
    pf_array_unref(&array);
  }
}

static _Alignas(64) uint16_t buffer[64];
static int n_releases;

static void count_release(void *owner) {
  CHECK(owner == buffer);
  n_releases++;
}

static const struct wrap_case {
  void *data;
  int ndim;
  int64_t shape[3], strides[3];
  bool strided;
  const char *refusal; /* a part of it; NULL: accepted */
  bool compact, writable;
} wrap_cases[] = {
    {buffer, 2, {4, 5}, {0}, false, NULL, true, true},
    {buffer, 2, {4, 5}, {5, 1}, true, NULL, true, true},
    {buffer, 2, {4, 5}, {6, 1}, true, NULL, false, true},
    {buffer, 2, {4, 5}, {1, 4}, true, NULL, false, true},
    {buffer, 3, {1, 4, 5}, {-77, 5, 1}, true, NULL, true, true},
    {buffer + 19, 2, {4, 5}, {-5, -1}, true, NULL, false, true},
    {buffer, 2, {4, 5}, {0, 1}, true, NULL, false, false},
    {NULL, 2, {0, 5}, {INT64_MAX, INT64_MIN}, true, NULL, true, true},
    {buffer, 0, {0}, {0}, true, NULL, true, true},
    {NULL, 2, {4, 5}, {0}, false, "its data pointer is NULL", false, false},
    {(char *)buffer + 1, 2, {4, 5}, {0}, false, "not aligned", false, false},
    {buffer,
     2,
     {4, 5},
     {INT64_MAX, 1},
     true,
     "strides overflow",
     false,
     false},
    {buffer,
     2,
     {4, 5},
     {1, INT64_MIN},
     true,
     "strides overflow",
     false,
     false},
    {buffer,
     1,
     {2},
     {(int64_t)1 << 62},
     true,
     "strides overflow",
     false,
     false},
    {buffer,
     1,
     {2},
     {-((int64_t)1 << 59)},
     true,
     "outside the address space",
     false,
     false},
    {(void *)(UINTPTR_MAX - 1),
     1,
     {2},
     {0},
     false,
     "address space",
     false,
     false},
    {buffer, 1, {INT64_MAX}, {0}, true, "size overflows", false, false},
};

static void test_wrap(void) {
  int expected = 0;
  for (size_t i = 0; i < sizeof(wrap_cases) / sizeof(wrap_cases[0]); i++) {
    const struct wrap_case *row = &wrap_cases[i];
    struct pf_array_desc desc = {row->data,
                                 PF_U16,
                                 row->ndim,
                                 row->shape,
                                 row->strided ? row->strides : NULL,
                                 {1, 0},
                                 PF_MEM_TORCH,
                                 false};
    struct pf_error err = PF_ERROR_INIT;
    struct pf_array *array = NULL;
    CHECK_INT(pf_array_wrap(&array, &desc, count_release, buffer, &err),
              row->refusal ? PF_EINVAL : PF_OK);
    check_message(&err, row->refusal);
    if (array) {
      CHECK_INT(pf_array_is_compact(array), row->compact);
      CHECK_INT(pf_array_is_writable(array), row->writable);
      CHECK(pf_array_data(array) == row->data);
      expected++;
    }
    pf_error_clear(&err);
    pf_array_unref(&array);
    CHECK_INT(n_releases, expected);
  }
}

static void test_references(void) {
  struct pf_array *stack = NULL, *plane = NULL, *flat = NULL, *second = NULL;
  struct pf_array *none = NULL;
  struct pf_error err = PF_ERROR_INIT;
  int64_t shape[3] = {2, 3, 4}, flat_shape[1] = {24}, wrong[1] = {23};
  char text[PF_ARRAY_TEXT];
  CHECK_INT(pf_array_create(&stack, PF_U16, 3, shape, &err), PF_OK);
  CHECK_STR(pf_array_text(text, sizeof(text), stack), "2x3x4 uint16");
  CHECK_STR(pf_array_text(text, 6, stack), "2x3x4");
  second = pf_array_ref(stack);
  CHECK(!pf_array_is_writable(stack));
  pf_array_unref(&second);
  CHECK(!second && pf_array_is_writable(stack));

  CHECK_INT(pf_array_plane(&plane, stack, 1, &err), PF_OK);
  CHECK(pf_array_data(plane) == (uint16_t *)pf_array_data(stack) + 12);
  CHECK_INT(pf_array_ndim(plane), 2);
  CHECK_INT(pf_array_shape(plane)[1], 4);
  CHECK_INT(pf_array_strides(plane)[0], 4);
  CHECK(!pf_array_is_writable(stack) && !pf_array_is_writable(plane));
  CHECK(pf_array_overlaps(stack, plane));
  CHECK_INT(pf_array_reshape(&flat, stack, 1, wrong, &err), PF_EINVAL);
  CHECK_STR(err.message, "cannot see an array that is 2x3x4 uint16 as 23: the "
                         "number of elements differs");
  pf_error_clear(&err);
  CHECK_INT(pf_array_reshape(&flat, stack, 9, flat_shape, &err), PF_EINVAL);
  pf_error_clear(&err);
  CHECK_INT(pf_array_reshape(&flat, stack, 1, flat_shape, &err), PF_OK);
  pf_array_unref(&stack);
  CHECK(!pf_array_is_writable(plane));
  pf_array_unref(&flat);
  CHECK(pf_array_is_writable(plane));
  pf_array_set_read_only(plane);
  CHECK(pf_array_is_read_only(plane) && !pf_array_is_writable(plane));

  CHECK_INT(pf_array_plane(&none, plane, 0, &err), PF_EINVAL);
  check_message(&err, "3x4 uint16: it is not 3D");
  pf_error_clear(&err);
  CHECK(!none);
  pf_array_unref(&plane);
  pf_array_unref(&none);
  pf_array_unref(NULL);
}

static void test_planes(void) {
  static const int64_t bad[] = {-1, 2, INT64_MAX, INT64_MIN};
  struct pf_array *stack = NULL, *a = NULL, *b = NULL, *empty = NULL;
  struct pf_error err = PF_ERROR_INIT;
  int64_t shape[3] = {2, 3, 4}, no_shape[2] = {0, 4};
  CHECK_INT(pf_array_create(&stack, PF_F32, 3, shape, &err), PF_OK);
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    CHECK_INT(pf_array_plane(&a, stack, bad[i], &err), PF_EINVAL);
    CHECK(!a);
    pf_error_clear(&err);
  }
  CHECK_INT(pf_array_plane(&a, stack, 0, &err), PF_OK);
  CHECK_INT(pf_array_plane(&b, stack, 1, &err), PF_OK);
  CHECK_INT(pf_array_create(&empty, PF_F32, 2, no_shape, &err), PF_OK);
  CHECK(!pf_array_overlaps(a, b));
  CHECK(pf_array_overlaps(b, stack));
  CHECK(!pf_array_overlaps(empty, empty));
  pf_array_unref(&a);
  pf_array_unref(&b);
  pf_array_unref(&stack);
  pf_array_unref(&empty);
}

enum { N_THREADS = 4, N_ROUNDS = 2000 };

static void *drop_views(void *arg) {
  struct pf_array *stack = arg;
  for (int i = 0; i < N_ROUNDS; i++) {
    struct pf_array *plane = NULL, *own = NULL;
    int64_t shape[1] = {100 + i};
    if (pf_array_plane(&plane, stack, i % 4, NULL) != PF_OK ||
        pf_array_create(&own, PF_U8, 1, shape, NULL) != PF_OK)
      abort();
    memset(pf_array_data(own), i, pf_array_n_bytes(own));
    pf_array_unref(&plane);
    pf_array_unref(&own);
  }
  /* The last thread to get here releases what all of them read. */
  pf_array_unref(&stack);
  return NULL;
}

static void free_owner(void *owner) {
  free(owner);
  n_releases++;
}

static void test_threads(void) {
  pthread_t threads[N_THREADS];
  struct pf_array *stack = NULL;
  struct pf_error err = PF_ERROR_INIT;
  int64_t shape[3] = {4, 8, 8};
  void *data = calloc(4, 64);
  struct pf_array_desc desc = {data,   PF_U8,        3,    shape, NULL,
                               {1, 0}, PF_MEM_NUMPY, false};
  n_releases = 0;
  CHECK_INT(pf_array_wrap(&stack, &desc, free_owner, data, &err), PF_OK);
  for (int i = 0; i < N_THREADS; i++)
    CHECK_INT(
        pthread_create(&threads[i], NULL, drop_views, pf_array_ref(stack)), 0);
  pf_array_unref(&stack);
  for (int i = 0; i < N_THREADS; i++)
    pthread_join(threads[i], NULL);
  CHECK_INT(n_releases, 1);
}

int main(void) {
  test_create();
  test_wrap();
  test_references();
  test_planes();
  test_threads();
  return check_done();
}
