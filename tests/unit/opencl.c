/* bridge/device_opencl*.c, bridge/device_pool.c; on any OpenCL device. */
#include "bridge/opencl.h"
#include "bridge/opencl_private.h"
#include "tests/unit/check.h"

#include <pthread.h>
#include <stdlib.h>

/* Drivers keep what they made until the process ends. */
PF_API const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:libpocl\nleak:libOpenCL\nleak:libLLVM\nleak:libclang\n"
         "leak:libhwloc\n";
}

static const struct pf_device host = {PF_DEVICE_HOST, 0};
static const struct pf_device first = {PF_DEVICE_OPENCL, 0};
static const struct pf_device_ops *ops;

/* A host array with element bytes 0, 1, 2, ... */
static struct pf_array *counting(enum pf_dtype dtype, int64_t depth,
                                 int64_t height, int64_t width) {
  const int64_t shape[3] = {depth, height, width};
  struct pf_array *array = NULL;
  CHECK_INT(pf_array_create(&array, dtype, 3, shape, NULL), PF_OK);
  for (size_t i = 0; i < pf_array_n_bytes(array); i++)
    ((uint8_t *)pf_array_data(array))[i] = (uint8_t)i;
  return array;
}

static bool same_bytes(const struct pf_array *a, const struct pf_array *b) {
  return pf_array_n_bytes(a) == pf_array_n_bytes(b) &&
         memcmp(pf_array_data(a), pf_array_data(b), pf_array_n_bytes(a)) == 0;
}

static struct pf_array *on_device(struct pf_array *array) {
  struct pf_array *there = NULL;
  CHECK_INT(pf_array_to_device(&there, array, first, NULL, NULL), PF_OK);
  return there;
}

/* `array` on the host again equals `expected`. */
static bool comes_back(struct pf_array *array,
                       const struct pf_array *expected) {
  struct pf_array *back = NULL;
  bool same = pf_array_to_device(&back, array, host, NULL, NULL) == PF_OK &&
              pf_array_wait(back, NULL) == PF_OK && same_bytes(back, expected);
  pf_array_unref(&back);
  return same;
}

static void test_info(void) {
  struct pf_device_info info;
  struct pf_memory_info memory;
  struct pf_error err = PF_ERROR_INIT;
  CHECK_INT(ops->info(0, &info, NULL), PF_OK);
  (void)printf("opencl:0 is %s\n", info.name);
  CHECK(info.name[0] && info.driver[0]);
  CHECK(info.total > 0 && info.largest > 0 && info.largest <= info.total);
  CHECK(info.alignment > 0 && info.alignment % 4 == 0);
  CHECK_INT(ops->memory_info(0, &memory, NULL), PF_OK);
  CHECK(memory.free <= memory.total && memory.total == info.total);
  CHECK(!ops->is_dead(0));
  CHECK_INT(ops->info(1000, &info, &err), PF_EMISSING);
  CHECK(strstr(err.message, "opencl:1000"));
  pf_error_clear(&err);
}

static void test_round_trip(void) {
  for (int i = 0; i < PF_N_DTYPES; i++) {
    struct pf_array *array = counting((enum pf_dtype)i, 3, 17, 19);
    struct pf_array *there = on_device(array);
    CHECK_INT(pf_array_memory_type(there), PF_MEM_OPENCL);
    CHECK_INT(pf_array_device(there).type, PF_DEVICE_OPENCL);
    CHECK(comes_back(there, array));
    pf_array_unref(&there);
    pf_array_unref(&array);
  }
}

static void test_empty(void) {
  struct pf_array *array = counting(PF_U16, 3, 0, 19);
  struct pf_array *there = on_device(array);
  CHECK_INT(pf_array_size(there), 0);
  CHECK(comes_back(there, array));
  CHECK(!pf_opencl_can_share(array, 0) && !pf_opencl_can_unstack(there));
  pf_array_unref(&there);
  pf_array_unref(&array);
}

/* -- memory ------------------------------------------------------------- */

static void test_pool(void) {
  struct pf_memory_info before, used, after;
  void *a = NULL, *b = NULL;
  ops->clear(0);
  CHECK_INT(ops->memory_info(0, &before, NULL), PF_OK);
  CHECK_INT((int)before.cached, 0);
  CHECK_INT(ops->alloc(0, 1000000, NULL, &a, NULL), PF_OK);
  CHECK_INT(ops->memory_info(0, &used, NULL), PF_OK);
  CHECK(used.used - before.used >= 1000000);
  CHECK(used.used - before.used <= 1000000 + 1000000 / 8);
  ops->free(0, a, 1000000, NULL);
  CHECK_INT(ops->memory_info(0, &after, NULL), PF_OK);
  CHECK(after.used == before.used);
  CHECK(after.cached == used.used - before.used);
  CHECK_INT(ops->alloc(0, 999999, NULL, &b, NULL), PF_OK);
  CHECK(a == b); /* of one class */
  ops->free(0, b, 999999, NULL);
  ops->clear(0);
  CHECK_INT(ops->memory_info(0, &after, NULL), PF_OK);
  CHECK(after.cached == 0);
}

static void test_limit(void) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_memory_info memory;
  void *a = NULL, *b = NULL;
  ops->clear(0);
  pf_device_set_limit(4 << 20);
  CHECK_INT(ops->alloc(0, 3 << 20, NULL, &a, NULL), PF_OK);
  CHECK_INT(ops->alloc(0, 2 << 20, NULL, &b, &err), PF_ENOMEM);
  CHECK(!b);
  CHECK_STR(err.message, "out of memory on opencl:0: asked for 2097152 "
                         "bytes, 1048576 of 4194304 are free");
  pf_error_clear(&err);
  CHECK_INT(ops->memory_info(0, &memory, NULL), PF_OK);
  CHECK_INT((int)memory.limit, 4 << 20);
  CHECK_INT((int)memory.free, 1 << 20);
  ops->free(0, a, 3 << 20, NULL);
  /* What is cached makes room. */
  CHECK_INT(ops->alloc(0, 2 << 20, NULL, &b, NULL), PF_OK);
  ops->free(0, b, 2 << 20, NULL);
  CHECK_INT(ops->alloc(0, 5 << 20, NULL, &b, NULL), PF_ENOMEM);
  pf_device_set_limit(0);
  ops->clear(0);
}

/* More than a device can have at once is memory, not a bug; no wrap-around. */
static void test_too_large(void) {
  static const size_t sizes[] = {(size_t)1 << 45, (size_t)1 << 62, SIZE_MAX};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    void *data = NULL;
    struct pf_error err = PF_ERROR_INIT;
    CHECK_INT(ops->alloc(0, sizes[i], NULL, &data, &err), PF_ENOMEM);
    CHECK(!data && err.message);
    pf_error_clear(&err);
  }
  CHECK(!ops->is_dead(0));
}

struct status_row {
  int32_t status;
  int code;
};

static void test_statuses(void) {
  static const struct status_row rows[] = {
      {PF_CL_MEM_OBJECT_ALLOCATION_FAILURE, PF_ENOMEM},
      {PF_CL_OUT_OF_HOST_MEMORY, PF_ENOMEM},
      {PF_CL_INVALID_BUFFER_SIZE, PF_ENOMEM},
      {PF_CL_OUT_OF_RESOURCES, PF_EBUG},
      {PF_CL_INVALID_VALUE, PF_EBUG},
      {-9999, PF_EBUG},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct pf_error err = PF_ERROR_INIT;
    CHECK_INT(pf_cl_fail(pf_cl_device(0, NULL), rows[i].status, "try", &err),
              rows[i].code);
    CHECK(strstr(err.message, "cannot try on opencl:0 ("));
    pf_error_clear(&err);
  }
}

/* -- copies, streams, events -------------------------------------------- */

static void test_offsets(void) {
  char from[64], to[64] = {0};
  struct pf_stream *stream = NULL;
  void *a = NULL, *b = NULL;
  for (int i = 0; i < 64; i++)
    from[i] = (char)i;
  CHECK_INT(pf_stream_get(&stream, first, NULL), PF_OK);
  CHECK_INT(ops->alloc(0, 64, stream, &a, NULL), PF_OK);
  CHECK_INT(ops->alloc(0, 64, stream, &b, NULL), PF_OK);
  CHECK_INT(ops->to_device(0, a, 16, from, 32, stream, NULL), PF_OK);
  CHECK_INT(ops->within(0, b, 8, a, 20, 16, stream, NULL), PF_OK);
  CHECK_INT(ops->to_host(0, to, b, 10, 8, stream, NULL), PF_OK);
  CHECK_INT(ops->to_host(0, to, b, 0, 0, stream, NULL), PF_OK);
  CHECK_INT(ops->stream_sync(stream, NULL), PF_OK);
  CHECK(memcmp(to, from + 6, 8) == 0 && to[8] == 0);
  ops->free(0, a, 64, NULL);
  ops->free(0, b, 64, NULL);
  pf_stream_put(&stream);
}

static void test_events(void) {
  struct pf_stream *a = NULL, *b = NULL;
  struct pf_event *event = NULL;
  const size_t n = 1 << 20;
  char *from = malloc(n), *to = calloc(1, n);
  void *data = NULL;
  memset(from, 7, n);
  CHECK_INT(pf_stream_get(&a, first, NULL), PF_OK);
  CHECK_INT(pf_stream_get(&b, first, NULL), PF_OK);
  CHECK(a != b && pf_stream_handle(a) != pf_stream_handle(b));
  CHECK_INT(ops->alloc(0, n, a, &data, NULL), PF_OK);
  CHECK_INT(ops->to_device(0, data, 0, from, n, a, NULL), PF_OK);
  CHECK_INT(ops->event_record(a, &event, NULL), PF_OK);
  CHECK_INT(ops->event_wait(b, event, NULL), PF_OK);
  CHECK_INT(ops->to_host(0, to, data, 0, n, b, NULL), PF_OK);
  CHECK_INT(ops->stream_sync(b, NULL), PF_OK);
  CHECK(ops->event_done(event));
  CHECK_INT(ops->event_sync(event, NULL), PF_OK);
  CHECK(memcmp(from, to, n) == 0);
  /* A block is used again behind its last use. */
  ops->free(0, data, n, event);
  CHECK_INT(ops->alloc(0, n, b, &data, NULL), PF_OK);
  ops->free(0, data, n, NULL);
  pf_event_unref(&event);
  pf_stream_put(&a);
  pf_stream_put(&b);
  free(from);
  free(to);
}

/* -- kernels ------------------------------------------------------------ */

static const char twice[] =
    "__kernel void twice(__global const int *in, __global int *out, int n) {\n"
    "  size_t i = get_global_id(0);\n"
    "  if (i < (size_t)n) out[i] = 2 * in[i];\n"
    "}\n";

static int launch_twice(struct pf_array *from, struct pf_array *to,
                        struct pf_stream *stream) {
  const int32_t n = (int32_t)pf_array_size(from);
  const struct pf_kernel_argument arguments[] = {
      {.array = from}, {.array = to}, {.value = &n, .n_bytes = sizeof(n)}};
  const size_t global[3] = {(size_t)n, 1, 1}, local[3] = {64, 1, 1};
  struct pf_kernel *kernel = NULL;
  int code = ops->kernel(0, twice, "twice", &kernel, NULL);
  return code ? code
              : ops->launch(kernel, stream, global, local, arguments, 3, NULL);
}

/* Called by many threads: it counts no checks. */
static bool doubles(struct pf_stream *stream) {
  const int64_t shape[1] = {1000};
  struct pf_array *in = NULL, *a = NULL, *b = NULL, *back = NULL;
  bool right = pf_array_create(&in, PF_I32, 1, shape, NULL) == PF_OK;
  for (int i = 0; i < 1000; i++)
    ((int32_t *)pf_array_data(in))[i] = i * i;
  right =
      right && pf_array_to_device(&a, in, first, stream, NULL) == PF_OK &&
      pf_array_create_on(&b, first, PF_I32, 1, shape, stream, NULL) == PF_OK &&
      launch_twice(a, b, stream) == PF_OK &&
      pf_array_to_device(&back, b, host, stream, NULL) == PF_OK &&
      pf_array_wait(back, NULL) == PF_OK;
  for (int i = 0; right && i < 1000; i++)
    right = ((int32_t *)pf_array_data(back))[i] == 2 * i * i;
  pf_array_unref(&in);
  pf_array_unref(&a);
  pf_array_unref(&b);
  pf_array_unref(&back);
  return right;
}

static void *double_often(void *failed) {
  struct pf_stream *stream = NULL;
  int code = pf_stream_get(&stream, first, NULL);
  for (int i = 0; code == PF_OK && i < 20; i++)
    code = doubles(stream) ? PF_OK : PF_EBUG;
  pf_stream_put(&stream);
  return code == PF_OK ? NULL : failed;
}

/* Threads share a kernel; its arguments are set and launched together. */
static void test_threads(void) {
  pthread_t threads[3];
  char failed;
  void *outcome;
  for (int i = 0; i < 3; i++)
    CHECK_INT(pthread_create(&threads[i], NULL, double_often, &failed), 0);
  for (int i = 0; i < 3; i++) {
    (void)pthread_join(threads[i], &outcome);
    CHECK(outcome == NULL);
  }
}

static void test_kernel(void) {
  struct pf_kernel *a = NULL, *b = NULL;
  struct pf_error err = PF_ERROR_INIT;
  CHECK_INT(ops->kernel(0, twice, "twice", &a, NULL), PF_OK);
  CHECK_INT(ops->kernel(0, twice, "twice", &b, NULL), PF_OK);
  CHECK(a && a == b); /* built once */
  CHECK_INT(ops->kernel(0, "__kernel void x( { no }", "x", &b, &err), PF_EBUG);
  CHECK(!b && err.detail && strstr(err.detail, "error"));
  pf_error_clear(&err);
  CHECK_INT(ops->kernel(0, twice, "thrice", &b, &err), PF_EBUG);
  CHECK(!b && strstr(err.message, "CL_INVALID_KERNEL_NAME"));
  pf_error_clear(&err);
}

/* a * b + c rounds twice, as on the host: 0 and not 2^-46 below. */
static void test_contraction(void) {
  static const char source[] =
      "__kernel void mad_(__global const float *in, __global float *out) {\n"
      "  out[0] = in[0] * in[1] + in[2];\n"
      "}\n";
  const int64_t shape[1] = {3};
  const size_t one[3] = {1, 1, 1};
  struct pf_array *in = NULL, *a = NULL, *back = NULL;
  struct pf_kernel *kernel = NULL;
  float *values;
  CHECK_INT(pf_array_create(&in, PF_F32, 1, shape, NULL), PF_OK);
  values = pf_array_data(in);
  values[0] = 1 + 0x1p-23f;
  values[1] = 1 - 0x1p-23f;
  values[2] = -1;
  a = on_device(in);
  CHECK_INT(ops->kernel(0, source, "mad_", &kernel, NULL), PF_OK);
  if (kernel) {
    const struct pf_kernel_argument arguments[] = {{.array = a}, {.array = a}};
    CHECK_INT(pf_array_wait(a, NULL), PF_OK);
    CHECK_INT(ops->launch(kernel, NULL, one, NULL, arguments, 2, NULL), PF_OK);
    CHECK_INT(pf_array_to_device(&back, a, host, NULL, NULL), PF_OK);
    CHECK_INT(pf_array_wait(back, NULL), PF_OK);
    CHECK(((float *)pf_array_data(back))[0] == 0);
  }
  pf_array_unref(&back);
  pf_array_unref(&a);
  pf_array_unref(&in);
}

/* -- shared memory ------------------------------------------------------ */

static void test_share(void) {
  struct pf_array *array = counting(PF_U16, 5, 64, 64), *there = NULL;
  struct pf_array *view = NULL;
  void *data = pf_array_data(array);
  CHECK(pf_opencl_can_share(array, 0));
  CHECK_INT(pf_opencl_from_host(&there, array, 0, NULL), PF_OK);
  CHECK(comes_back(there, array));
  CHECK(!pf_array_is_writable(array) && !pf_array_is_read_only(there));
  pf_array_unref(&array); /* the buffer holds it */
  CHECK_INT(pf_opencl_to_host_view(&view, there, NULL), PF_OK);
  CHECK(view && pf_array_data(view) == data);
  pf_array_unref(&there);
  if (view)
    CHECK_INT(((uint8_t *)pf_array_data(view))[258], 2);
  pf_array_unref(&view);
}

/* What the host wrote through a view, the device reads, and back. */
static void test_view(void) {
  struct pf_array *array = counting(PF_U8, 2, 8, 64), *view = NULL;
  struct pf_array *there = on_device(array);
  CHECK_INT(pf_opencl_to_host_view(&view, there, NULL), PF_OK);
  CHECK(!pf_array_is_read_only(view));
  CHECK(same_bytes(view, array));
  ((uint8_t *)pf_array_data(view))[3] = 77;
  ((uint8_t *)pf_array_data(array))[3] = 77;
  pf_array_unref(&view);
  CHECK(comes_back(there, array));
  pf_array_unref(&there);
  CHECK_INT(pf_opencl_to_host_view(&view, array, NULL), PF_EINVAL);
  pf_array_unref(&array);
}

static void test_cannot_share(void) {
  const int64_t shape[2] = {4, 4}, strides[2] = {5, 1};
  struct pf_array *array = counting(PF_U8, 1, 8, 64), *odd = NULL, *out = NULL;
  struct pf_array_desc desc = {.data = (char *)pf_array_data(array) + 1,
                               .dtype = PF_U8,
                               .ndim = 2,
                               .shape = shape,
                               .device = {PF_DEVICE_HOST, 0},
                               .memory_type = PF_MEM_NATIVE};
  CHECK_INT(pf_array_wrap(&odd, &desc, NULL, NULL, NULL), PF_OK);
  CHECK(!pf_opencl_can_share(odd, 0));
  CHECK_INT(pf_opencl_from_host(&out, odd, 0, NULL), PF_EINVAL);
  pf_array_unref(&odd);
  desc.data = pf_array_data(array);
  desc.strides = strides;
  CHECK_INT(pf_array_wrap(&odd, &desc, NULL, NULL, NULL), PF_OK);
  CHECK(!pf_opencl_can_share(odd, 0));
  pf_array_unref(&odd);
  CHECK(!pf_opencl_can_share(array, 1000));
  pf_array_unref(&array);
}

static void test_planes(void) {
  struct pf_device_info info;
  struct pf_array *array, *there, *plane = NULL, *part = NULL, *back = NULL;
  CHECK_INT(ops->info(0, &info, NULL), PF_OK);
  array = counting(PF_U8, 3, 4, info.alignment);
  there = on_device(array);
  CHECK_INT(pf_array_wait(there, NULL), PF_OK);
  CHECK(pf_opencl_can_unstack(there));
  CHECK_INT(pf_opencl_plane(&plane, there, 2, NULL), PF_OK);
  CHECK_INT(pf_array_ndim(plane), 2);
  CHECK_INT(pf_opencl_plane(&part, there, 3, NULL), PF_EINVAL);
  pf_array_unref(&there); /* the plane holds it */
  CHECK_INT(pf_array_to_device(&back, plane, host, NULL, NULL), PF_OK);
  CHECK_INT(pf_array_wait(back, NULL), PF_OK);
  CHECK(memcmp(pf_array_data(back),
               (char *)pf_array_data(array) + (size_t)8 * info.alignment,
               (size_t)4 * info.alignment) == 0);
  pf_array_unref(&back);
  pf_array_unref(&plane);
  pf_array_unref(&array);
}

static void test_misaligned_planes(void) {
  struct pf_array *array = counting(PF_U8, 3, 5, 7), *plane = NULL;
  struct pf_array *there = on_device(array);
  struct pf_error err = PF_ERROR_INIT;
  CHECK(!pf_opencl_can_unstack(there));
  CHECK_INT(pf_opencl_plane(&plane, there, 0, NULL), PF_OK);
  pf_array_unref(&plane);
  CHECK_INT(pf_opencl_plane(&plane, there, 1, &err), PF_EINVAL);
  CHECK(strstr(err.message, "begins at byte 35"));
  pf_error_clear(&err);
  pf_array_unref(&there);
  pf_array_unref(&array);
}

/* -- another library's context ------------------------------------------ */

static struct pf_cl_mem *foreign_buffer(struct pf_cl_context **context) {
  struct pf_cl_device_id *id = pf_cl_device(0, NULL)->id;
  struct pf_cl_mem *buffer;
  int32_t status = -1;
  *context = pf_cl.clCreateContext(NULL, 1, &id, NULL, NULL, &status);
  CHECK_INT(status, PF_CL_SUCCESS);
  buffer = pf_cl.clCreateBuffer(*context, PF_CL_MEM_READ_WRITE, 4096, NULL,
                                &status);
  CHECK_INT(status, PF_CL_SUCCESS);
  return buffer;
}

/* Arrays and streams from before go on; new work is in the new context. */
static void test_adopt(void) {
  struct pf_cl_context *theirs = NULL;
  struct pf_array *array = counting(PF_U16, 2, 32, 32);
  struct pf_array *before = on_device(array), *after = NULL;
  struct pf_stream *stream = NULL;
  struct pf_cl_mem *buffer;
  struct pf_event *event = NULL;
  int index = -1;
  CHECK_INT(pf_stream_get(&stream, first, NULL), PF_OK);
  CHECK(doubles(stream));
  CHECK_INT(ops->event_record(stream, &event, NULL), PF_OK);
  buffer = foreign_buffer(&theirs);
  CHECK_INT(pf_opencl_adopt(buffer, &index, NULL), PF_OK);
  CHECK_INT(index, 0);
  after = on_device(array);
  CHECK(pf_cl_context_of(pf_array_data(after)) == theirs);
  CHECK(pf_cl_context_of(pf_array_data(before)) != theirs);
  CHECK_INT(ops->event_wait(stream, event, NULL), PF_OK);
  CHECK(doubles(stream));
  CHECK(doubles(NULL));
  CHECK(comes_back(before, array) && comes_back(after, array));
  memset(pf_array_data(array), 9, pf_array_n_bytes(array));
  CHECK_INT(ops->to_device(0, pf_array_data(before), 0, pf_array_data(array),
                           pf_array_n_bytes(array), stream, NULL),
            PF_OK);
  CHECK_INT(ops->within(0, pf_array_data(after), 0, pf_array_data(before), 0,
                        pf_array_n_bytes(array), stream, NULL),
            PF_OK);
  CHECK(comes_back(after, array));
  CHECK_INT(pf_opencl_adopt(buffer, &index, NULL), PF_OK); /* again: nothing */
  CHECK_INT(pf_opencl_adopt(NULL, &index, NULL), PF_EINVAL);
  pf_event_unref(&event);
  pf_stream_put(&stream);
  pf_array_unref(&before);
  pf_array_unref(&after);
  pf_array_unref(&array);
  (void)pf_cl.clReleaseMemObject(buffer);
}

int main(void) {
  struct pf_error err = PF_ERROR_INIT;
  ops = pf_device_ops(PF_DEVICE_OPENCL);
  CHECK(ops != NULL);
  if (!ops || ops->count(&err) < 1) {
    (void)printf("skipped: %s\n", err.message ? err.message : "no OpenCL");
    pf_error_clear(&err);
    return check_done();
  }
  test_info();
  test_round_trip();
  test_empty();
  test_pool();
  test_limit();
  test_too_large();
  test_statuses();
  test_offsets();
  test_events();
  test_kernel();
  test_contraction();
  CHECK(doubles(NULL));
  test_threads();
  if (pf_cl_device(0, NULL)->info.shares_host) {
    test_share();
    test_view();
    test_cannot_share();
  }
  test_planes();
  test_misaligned_planes();
  test_adopt();
  return check_done();
}
