/*
 * The CUDA device: on a card, or on the stand-in of tests/fakecuda, which also
 * tells what no event orders and fails when it is asked to.
 */
#include <dlpack/dlpack.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "plateflow/bridge.h"
#include "plateflow/device.h"
#include "tests/fakecuda/control.h"
#include "tests/unit/check.h"

/* gcc says it with a macro, clang with a feature. */
#if defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif

static const struct pf_device host = {PF_DEVICE_HOST, 0};
static const struct pf_device gpu = {PF_DEVICE_CUDA, 0};
static const struct pf_device pinned = {PF_DEVICE_CUDA_HOST, 0};
static const struct pf_device_ops *ops;

/* The stand-in's functions; all NULL on a card. */
static struct {
  int (*violations)(void);
  const char *(*violation)(int);
  void (*forget)(void);
  int (*n_allocations)(void), (*n_pinned)(void), (*n_events)(void);
  int (*fail)(int, int);
  void (*lose)(int);
  void (*set_delay)(unsigned, unsigned);
} fake;

static void find_fake(void) {
  const struct {
    const char *name;
    void *at;
  } rows[] = {
      {"fakecuda_violations", &fake.violations},
      {"fakecuda_violation", &fake.violation},
      {"fakecuda_forget", &fake.forget},
      {"fakecuda_n_allocations", &fake.n_allocations},
      {"fakecuda_n_pinned", &fake.n_pinned},
      {"fakecuda_n_events", &fake.n_events},
      {"fakecuda_fail", &fake.fail},
      {"fakecuda_lose", &fake.lose},
      {"fakecuda_set_delay", &fake.set_delay},
  };
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    void *found = library ? dlsym(library, rows[i].name) : NULL;
    memcpy(rows[i].at, &found, sizeof(found));
  }
  if (library)
    (void)dlclose(library);
}

/* So late that nothing is over when the next calls are made, or as usual. */
static void set_late(bool late) {
  if (fake.set_delay)
    fake.set_delay(late ? 20000 : 0, late ? 20000 : 200);
}

/* Everything was ordered; what was not is printed by the stand-in. */
static void check_ordered(void) {
  if (fake.violations)
    CHECK_INT(fake.violations(), 0);
}

/* -- helpers ---------------------------------------------------------------
 */

/* A host array of n uint32: first, first + 1, ... */
static struct pf_array *make_host(uint32_t first, int64_t n) {
  struct pf_array *array = NULL;
  uint32_t *data;
  if (pf_array_create(&array, PF_U32, 1, &n, NULL) != PF_OK)
    return NULL;
  data = pf_array_data(array);
  for (int64_t i = 0; i < n; i++)
    data[i] = first + (uint32_t)i;
  return array;
}

/* Bring the array to the host, if it is not there, and look at the values. */
static bool holds(struct pf_array *array, uint32_t first) {
  struct pf_array *seen = NULL;
  bool is_right =
      pf_array_to_device(&seen, array, host, NULL, NULL) == PF_OK &&
      pf_array_wait(seen, NULL) == PF_OK;
  for (int64_t i = 0; is_right && i < pf_array_size(seen); i++)
    is_right = ((uint32_t *)pf_array_data(seen))[i] == first + (uint32_t)i;
  pf_array_unref(&seen);
  return is_right;
}

static struct pf_array *make_on(struct pf_device device, uint32_t first,
                                int64_t n, struct pf_stream *stream) {
  struct pf_array *from = make_host(first, n), *array = NULL;
  if (from)
    CHECK_INT(pf_array_to_device(&array, from, device, stream, NULL), PF_OK);
  pf_array_unref(&from);
  return array;
}

static const char add_source[] =
    "extern \"C\" __global__ void add(unsigned *to, const unsigned *from,\n"
    "                               unsigned value, unsigned n) {\n"
    "  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) to[i] = from[i] + value;\n"
    "}\n";

/* The kernel's source; for the stand-in what the bridge takes for PTX. Set
 * once, before there are threads. */
static char stand_in_source[4096];
static const char *kernel_source = add_source;

static void choose_source(void) {
  const char *path = getenv("FAKECUDA_KERNELS");
  if (!fake.violations || !path)
    return;
  (void)snprintf(stand_in_source, sizeof(stand_in_source),
                 "// a test\n  .version 8.0\n// FAKECUDA %s\n", path);
  kernel_source = stand_in_source;
}

/* Queue to = from + value, waiting for nothing. */
static int queue_add(struct pf_array *to, struct pf_array *from,
                     uint32_t value, struct pf_stream *stream,
                     struct pf_error *err) {
  uint32_t n = (uint32_t)pf_array_size(to);
  const size_t global[3] = {n, 1, 1};
  const struct pf_kernel_argument arguments[] = {
      {NULL, 0, to}, {NULL, 0, from}, {&value, 4, NULL}, {&n, 4, NULL}};
  struct pf_kernel *kernel = NULL;
  int code = ops->kernel(pf_array_device(to).index, kernel_source, "add",
                         &kernel, err);
  return code == PF_OK
             ? ops->launch(kernel, stream, global, NULL, arguments, 4, err)
             : code;
}

/* *out = array + value, in the stream, as a step would do it. */
static int add(struct pf_array **out, struct pf_array *array, uint32_t value,
               struct pf_stream *stream, struct pf_error *err) {
  struct pf_event *event = NULL;
  int code = pf_array_create_on(out, pf_array_device(array), PF_U32, 1,
                                pf_array_shape(array), stream, err);
  if (code == PF_OK)
    code = pf_array_order(array, stream, false, err);
  if (code == PF_OK)
    code = queue_add(*out, array, value, stream, err);
  if (code == PF_OK &&
      (code = ops->event_record(stream, &event, err)) != PF_OK)
    (void)ops->stream_sync(stream, NULL);
  if (code == PF_OK) {
    pf_array_set_event(*out, event);
    pf_array_add_use(array, event);
  } else {
    pf_array_unref(out);
  }
  pf_event_unref(&event);
  return code;
}

/* -- tests -----------------------------------------------------------------
 */

static void test_info(void) {
  struct pf_device_info info, last;
  struct pf_memory_info memory;
  int n = ops->count(NULL);
  CHECK(n > 0);
  CHECK_INT(ops->info(0, &info, NULL), PF_OK);
  CHECK(info.name[0] && info.bus[0] && info.total > 0);
  CHECK_STR(info.driver[0] ? "some" : "none", "some");
  CHECK_INT(ops->info(n - 1, &last, NULL), PF_OK);
  CHECK(n == 1 || strcmp(info.bus, last.bus) < 0); /* PCI order */
  CHECK_INT(ops->memory_info(0, &memory, NULL), PF_OK);
  CHECK(memory.free > 0 && memory.free <= memory.total);
  CHECK_INT(ops->info(n, &info, NULL), PF_EMISSING);
  CHECK_INT(ops->memory_info(-1, &memory, NULL), PF_EMISSING);
}

/* Shapes and strides of the views that go there and back. */
static const struct view_case {
  int ndim;
  int64_t shape[3], strides[3], offset; /* of 60 elements */
} view_cases[] = {
    {1, {60}, {1}, 0},
    {3, {3, 4, 5}, {20, 5, 1}, 0},
    {3, {3, 2, 5}, {20, 10, 1}, 5},
    {2, {5, 12}, {1, 5}, 0},
    {1, {30}, {-2}, 59},
    {2, {4, 6}, {-12, -1}, 53},
    {2, {3, 4}, {0, 1}, 8},
    {0, {0}, {0}, 7},
    {2, {0, 4}, {4, 1}, 0},
    {1, {1}, {1}, 59},
};

/* The view's elements, in C order. */
static bool is_like(const struct pf_array *array, const uint32_t *base,
                    const struct view_case *row) {
  const uint32_t *seen = pf_array_data(array);
  int64_t index[3] = {0}, n = pf_array_size(array);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = row->offset;
    for (int d = 0; d < row->ndim; d++)
      at += index[d] * row->strides[d];
    if (seen[i] != base[at])
      return false;
    for (int d = row->ndim - 1; d >= 0 && ++index[d] == row->shape[d]; d--)
      index[d] = 0;
  }
  return true;
}

static void check_view(const struct view_case *row, struct pf_array *base,
                       struct pf_device from) {
  struct pf_array_desc desc = {.data = (uint32_t *)pf_array_data(base) +
                                       row->offset,
                               .dtype = PF_U32,
                               .ndim = row->ndim,
                               .shape = row->shape,
                               .strides = row->strides,
                               .device = from,
                               .memory_type = PF_MEM_NATIVE};
  struct pf_array *view = NULL, *there = NULL, *back = NULL;
  const struct pf_device to = from.type == PF_DEVICE_HOST ? gpu : host;
  uint32_t expected[60];
  for (uint32_t i = 0; i < 60; i++)
    expected[i] = i;
  CHECK_INT(pf_array_wait(base, NULL), PF_OK);
  CHECK_INT(pf_array_wrap(&view, &desc, NULL, NULL, NULL), PF_OK);
  CHECK_INT(pf_array_to_device(&there, view, to, NULL, NULL), PF_OK);
  CHECK_INT(pf_array_device(there).type, to.type);
  CHECK(pf_array_is_compact(there));
  CHECK_INT(pf_array_to_device(&back, there, host, NULL, NULL), PF_OK);
  CHECK_INT(pf_array_wait(back, NULL), PF_OK);
  CHECK_INT(pf_array_ndim(back), row->ndim);
  CHECK(is_like(back, expected, row));
  pf_array_unref(&there);
  pf_array_unref(&back);
  pf_array_unref(&view);
}

static void test_round_trips(void) {
  struct pf_array *below = make_host(0, 60);
  struct pf_array *above = make_on(gpu, 0, 60, NULL);
  CHECK_INT(pf_array_memory_type(above), PF_MEM_CUDA);
  for (size_t i = 0; i < sizeof(view_cases) / sizeof(view_cases[0]); i++) {
    check_view(&view_cases[i], below, host);
    check_view(&view_cases[i], above, gpu);
  }
  CHECK_INT(pf_array_wait(above, NULL), PF_OK);
  pf_array_unref(&below);
  pf_array_unref(&above);
  check_ordered();
}

static void test_planes(void) {
  const int64_t shape[] = {3, 4, 5};
  struct pf_array *flat = make_on(gpu, 0, 60, NULL), *stack = NULL;
  struct pf_array *slices[3], *plane = NULL;
  CHECK_INT(pf_array_reshape(&stack, flat, 3, shape, NULL), PF_OK);
  pf_array_unref(&flat);
  CHECK_INT(pf_unstack_slices(slices, 3, stack, NULL), PF_OK);
  CHECK_INT(pf_array_plane(&plane, stack, 3, NULL), PF_EINVAL);
  pf_array_unref(&stack);
  for (uint32_t z = 0; z < 3; z++) {
    CHECK_INT(pf_array_device(slices[z]).type, PF_DEVICE_CUDA);
    CHECK(holds(slices[z], z * 20));
    pf_array_unref(&slices[z]);
  }
  check_ordered();
}

static void get_streams(struct pf_stream **streams, int n, int index) {
  for (int i = 0; i < n; i++)
    CHECK_INT(pf_stream_get(&streams[i],
                            (struct pf_device){PF_DEVICE_CUDA, index}, NULL),
              PF_OK);
}

static void put_streams(struct pf_stream **streams, int n) {
  for (int i = 0; i < n; i++)
    pf_stream_put(&streams[i]);
}

/* Work that goes from stream to stream, each array let go at once. */
static void test_streams(void) {
  struct pf_stream *streams[3];
  struct pf_array *array = NULL, *next = NULL;
  get_streams(streams, 3, 0);
  CHECK(streams[0] != streams[1] && pf_stream_handle(streams[0]));
  array = make_on(gpu, 5, 5000, streams[0]);
  for (uint32_t i = 0; i < 20; i++) {
    CHECK_INT(add(&next, array, 10, streams[(i + 1) % 3], NULL), PF_OK);
    pf_array_unref(&array);
    array = next;
  }
  CHECK(holds(array, 205));
  pf_array_unref(&array);
  put_streams(streams, 3);
  check_ordered();
}

/* One array read by two streams and then written by a third. */
static void test_write_after_reads(void) {
  struct pf_stream *streams[3];
  struct pf_array *array, *a = NULL, *b = NULL;
  struct pf_event *event = NULL;
  get_streams(streams, 3, 0);
  array = make_on(gpu, 1, 3000, streams[0]);
  CHECK_INT(add(&a, array, 1, streams[1], NULL), PF_OK);
  CHECK_INT(add(&b, array, 2, streams[2], NULL), PF_OK);
  CHECK_INT(pf_array_order(array, streams[0], true, NULL), PF_OK);
  CHECK_INT(queue_add(array, array, 100, streams[0], NULL), PF_OK);
  CHECK_INT(ops->event_record(streams[0], &event, NULL), PF_OK);
  pf_array_set_event(array, event);
  pf_event_unref(&event);
  CHECK(holds(array, 101) && holds(a, 2) && holds(b, 3));
  pf_array_unref(&array);
  pf_array_unref(&a);
  pf_array_unref(&b);
  put_streams(streams, 3);
  check_ordered();
}

/* What goes wrong on purpose in test_violations(). */
enum fault { NO_WAIT_FOR_EVENT, NO_WAIT_FOR_READER, FREED_IN_USE, N_FAULTS };

static void commit_fault(enum fault fault, struct pf_stream *const *streams) {
  const size_t n_bytes = 16384;
  struct pf_array *array = make_on(gpu, 0, 4096, streams[0]), *other = NULL;
  struct pf_event *event = NULL;
  void *data = NULL;
  if (fault == NO_WAIT_FOR_EVENT) {
    CHECK_INT(queue_add(array, array, 1, streams[1], NULL), PF_OK);
  } else if (fault == NO_WAIT_FOR_READER) {
    CHECK_INT(add(&other, array, 1, streams[1], NULL), PF_OK);
    CHECK_INT(queue_add(array, array, 1, streams[0], NULL), PF_OK);
  } else {
    CHECK_INT(ops->alloc(0, n_bytes, streams[0], &data, NULL), PF_OK);
    CHECK_INT(ops->within(0, data, 0, pf_array_data(array), 0, n_bytes,
                          streams[0], NULL),
              PF_OK);
    ops->free(0, data, n_bytes, NULL);
    CHECK_INT(ops->alloc(0, n_bytes, streams[1], &data, NULL), PF_OK);
    CHECK_INT(ops->to_device(0, data, 0, "late", 4, streams[1], NULL), PF_OK);
    CHECK_INT(ops->event_record(streams[1], &event, NULL), PF_OK);
    ops->free(0, data, n_bytes, event);
    pf_event_unref(&event);
  }
  for (int i = 0; i < 2; i++)
    CHECK_INT(ops->stream_sync(streams[i], NULL), PF_OK);
  pf_array_unref(&array);
  pf_array_unref(&other);
}

static void test_violations(void) {
  struct pf_stream *streams[2];
#ifdef WITH_TSAN
  return; /* it would find them too */
#endif
  if (!fake.violations)
    return;
  get_streams(streams, 2, 0);
  set_late(true);
  for (int fault = 0; fault < N_FAULTS; fault++) {
    const char *said = NULL;
    commit_fault((enum fault)fault, streams);
    said = fake.violation(0);
    CHECK(said && strstr(said, "does not wait"));
    fake.forget();
  }
  set_late(false);
  put_streams(streams, 2);
}

/* A freed block comes back for another stream, ordered by its event. */
static void test_reuse(void) {
  struct pf_stream *streams[2];
  struct pf_event *event = NULL;
  struct pf_memory_info before, after;
  void *first = NULL, *second = NULL;
  const uint32_t one = 1, two = 2;
  uint32_t seen = 0;
  get_streams(streams, 2, 0);
  CHECK_INT(ops->memory_info(0, &before, NULL), PF_OK);
  CHECK_INT(ops->alloc(0, 5000, streams[0], &first, NULL), PF_OK);
  CHECK_INT(ops->to_device(0, first, 0, &one, 4, streams[0], NULL), PF_OK);
  CHECK_INT(ops->event_record(streams[0], &event, NULL), PF_OK);
  ops->free(0, first, 5000, event);
  pf_event_unref(&event);
  CHECK_INT(ops->memory_info(0, &after, NULL), PF_OK);
  CHECK(after.used == before.used && after.cached >= 5000);
  CHECK_INT(ops->alloc(0, 4990, streams[1], &second, NULL), PF_OK);
  CHECK(first == second);
  CHECK_INT(ops->to_device(0, second, 0, &two, 4, streams[1], NULL), PF_OK);
  CHECK_INT(ops->to_host(0, &seen, second, 0, 4, streams[1], NULL), PF_OK);
  CHECK_INT(ops->stream_sync(streams[1], NULL), PF_OK);
  CHECK_INT(seen, two);
  ops->free(0, second, 4990, NULL);
  ops->clear(0);
  CHECK_INT(ops->memory_info(0, &after, NULL), PF_OK);
  CHECK_INT(after.cached, 0);
  put_streams(streams, 2);
  check_ordered();
}

/* Memory that two streams still read, and memory that nobody used since it
 * came from the pool, go on to a third stream. */
static void test_handed_on(void) {
  struct pf_stream *streams[3];
  struct pf_array *array, *a = NULL, *b = NULL, *unused = NULL, *next = NULL;
  const void *data = NULL;
  get_streams(streams, 3, 0);
  ops->clear(0);
  array = make_on(gpu, 1, 3000, streams[0]);
  data = pf_array_data(array);
  set_late(true);
  CHECK_INT(add(&a, array, 1, streams[1], NULL), PF_OK);
  CHECK_INT(add(&b, array, 2, streams[2], NULL), PF_OK);
  pf_array_unref(&array);
  CHECK_INT(pf_array_create_on(&unused, gpu, PF_U32, 1, pf_array_shape(a),
                               streams[1], NULL),
            PF_OK);
  CHECK(pf_array_data(unused) == data);
  pf_array_unref(&unused);
  next = make_on(gpu, 50, 3000, streams[0]);
  CHECK(pf_array_data(next) == data);
  set_late(false);
  CHECK(holds(a, 2) && holds(b, 3) && holds(next, 50));
  pf_array_unref(&a);
  pf_array_unref(&b);
  pf_array_unref(&next);
  put_streams(streams, 3);
  check_ordered();
}

static void count_release(void *owner) {
  ++*(int *)owner;
}

/* Somebody else's memory goes back when the work on it is over. */
static void test_foreign(void) {
  int n_released = 0;
  const int64_t n = 3000;
  struct pf_stream *streams[1];
  struct pf_array *ours, *foreign = NULL, *sum = NULL;
  struct pf_array_desc desc = {.dtype = PF_U32,
                               .ndim = 1,
                               .shape = &n,
                               .device = gpu,
                               .memory_type = PF_MEM_CUDA};
  get_streams(streams, 1, 0);
  ours = make_on(gpu, 3, n, NULL);
  CHECK_INT(pf_array_wait(ours, NULL), PF_OK);
  desc.data = pf_array_data(ours);
  CHECK_INT(pf_array_wrap(&foreign, &desc, count_release, &n_released, NULL),
            PF_OK);
  set_late(true);
  CHECK_INT(add(&sum, foreign, 4, streams[0], NULL), PF_OK);
  pf_array_unref(&foreign);
  if (fake.set_delay)
    CHECK_INT(n_released, 0);
  CHECK_INT(ops->stream_sync(streams[0], NULL), PF_OK);
  set_late(false);
  (void)pf_deferred_drain();
  CHECK_INT(n_released, 1);
  CHECK(holds(sum, 7));
  pf_array_unref(&sum);
  pf_array_unref(&ours);
  put_streams(streams, 1);
  check_ordered();
}

/* The host may not write what a card still reads. */
static void test_writable(void) {
  struct pf_array *array = make_host(1, 100000), *there = NULL;
  CHECK(pf_array_is_writable(array));
  set_late(true);
  CHECK_INT(pf_array_to_device(&there, array, gpu, NULL, NULL), PF_OK);
  if (fake.set_delay)
    CHECK(!pf_array_is_writable(array));
  CHECK_INT(pf_array_wait(there, NULL), PF_OK);
  CHECK(pf_array_is_writable(array));
  set_late(false);
  memset(pf_array_data(array), 0, 4);
  CHECK(holds(there, 1));
  pf_array_unref(&array);
  pf_array_unref(&there);
  check_ordered();
}

static void test_pinned(void) {
  struct pf_array *array = NULL, *there = NULL;
  struct pf_memory_info memory;
  const int64_t n = 10000;
  uint32_t *data = NULL;
  void *first = NULL, *second = NULL;
  CHECK_INT(pf_array_create_on(&array, pinned, PF_U32, 1, &n, NULL, NULL),
            PF_OK);
  CHECK_INT(pf_array_device(array).type, PF_DEVICE_HOST);
  CHECK(pf_array_is_writable(array));
  data = pf_array_data(array);
  for (uint32_t i = 0; i < n; i++)
    data[i] = i + 9;
  CHECK_INT(pf_array_to_device(&there, array, gpu, NULL, NULL), PF_OK);
  pf_array_unref(&array); /* its memory stays until it was read */
  CHECK_INT(ops->pinned_alloc((size_t)n * 4, &first, NULL), PF_OK);
  memset(first, 0, (size_t)n * 4);
  CHECK(holds(there, 9));
  ops->pinned_free(first, (size_t)n * 4);
  CHECK_INT(ops->pinned_alloc((size_t)n * 4, &second, NULL), PF_OK);
  CHECK(first == second);
  ops->pinned_free(second, (size_t)n * 4);
  CHECK_INT(ops->pinned_alloc(SIZE_MAX - 1, &first, NULL), PF_ENOMEM);
  CHECK_INT(ops->pinned_alloc((size_t)1 << 60, &first, NULL), PF_ENOMEM);
  CHECK_INT(ops->memory_info(0, &memory, NULL), PF_OK);
  pf_array_unref(&there);
  check_ordered();
}

static void test_peers(void) {
  const struct pf_device second = {PF_DEVICE_CUDA, 1};
  struct pf_stream *streams[2];
  struct pf_array *array, *there = NULL, *back = NULL, *sum = NULL;
  if (ops->count(NULL) < 2)
    return;
  get_streams(&streams[0], 1, 0);
  get_streams(&streams[1], 1, 1);
  array = make_on(gpu, 30, 7000, streams[0]);
  for (int i = 0; i < 2; i++) { /* a stream of either card */
    CHECK_INT(pf_array_to_device(&there, array, second, streams[i], NULL),
              PF_OK);
    CHECK_INT(pf_array_device(there).index, 1);
    CHECK_INT(add(&sum, there, 1, streams[1], NULL), PF_OK);
    pf_array_unref(&there);
    CHECK_INT(pf_array_to_device(&back, sum, gpu, NULL, NULL), PF_OK);
    pf_array_unref(&sum);
    CHECK(holds(back, 31));
    pf_array_unref(&back);
  }
  CHECK_INT(queue_add(array, array, 1, streams[1], NULL), PF_EBUG);
  pf_array_unref(&array);
  put_streams(streams, 2);
  check_ordered();
}

static int64_t shape_of_dlpack[] = {500};

static void count_deleted(DLManagedTensorVersioned *tensor) {
  ++*(int *)tensor->manager_ctx;
}

/* Memory of the card goes in and out as DLPack; nobody reads it here. */
static void test_dlpack(void) {
  int n_deleted = 0;
  struct pf_array *ours = make_on(gpu, 11, 510, NULL), *taken = NULL;
  struct DLManagedTensorVersioned tensor = {
      .version = {1, 3},
      .manager_ctx = &n_deleted,
      .deleter = count_deleted,
      .dl_tensor = {.device = {kDLCUDA, 0},
                    .ndim = 1,
                    .dtype = {kDLUInt, 32, 1},
                    .shape = shape_of_dlpack,
                    .byte_offset = 40}};
  struct DLManagedTensorVersioned *given = NULL;
  struct pf_error err = PF_ERROR_INIT;
  tensor.dl_tensor.data = pf_array_data(ours);
  CHECK_INT(pf_array_wait(ours, NULL), PF_OK);
  CHECK_INT(pf_array_from_dlpack(&taken, &tensor, PF_MEM_CUPY, NULL), PF_OK);
  CHECK_INT(pf_array_device(taken).type, PF_DEVICE_CUDA);
  given = pf_array_to_dlpack(taken);
  CHECK_INT(given->dl_tensor.device.device_type, kDLCUDA);
  CHECK((char *)given->dl_tensor.data == (char *)pf_array_data(ours) + 40);
  given->deleter(given);
  CHECK(holds(taken, 21));
  pf_array_unref(&taken);
  (void)pf_deferred_drain();
  CHECK_INT(n_deleted, 1);
  tensor.dl_tensor.device.device_id = 64;
  CHECK_INT(pf_array_from_dlpack(&taken, &tensor, PF_MEM_CUPY, &err),
            PF_EINVAL);
  CHECK(err.message && strstr(err.message, "there is no cuda device 64"));
  pf_error_clear(&err);
  pf_array_unref(&ours);
  check_ordered();
}

static void test_kernels(void) {
  struct pf_kernel *kernel = NULL, *again = NULL;
  struct pf_error err = PF_ERROR_INIT;
  struct pf_array *below = make_host(0, 4);
  const size_t none[3] = {0, 1, 1}, few[3] = {4, 1, 1}, big[3] = {4096, 1, 1};
  const struct pf_kernel_argument argument = {NULL, 0, below};
  CHECK_INT(ops->kernel(0, kernel_source, "add", &kernel, NULL), PF_OK);
  CHECK_INT(ops->kernel(0, kernel_source, "add", &again, NULL), PF_OK);
  CHECK(kernel && kernel == again);
  CHECK_INT(ops->launch(kernel, NULL, none, NULL, &argument, 1, NULL), PF_OK);
  CHECK_INT(ops->launch(kernel, NULL, few, NULL, &argument, 1, &err),
            PF_EINVAL);
  CHECK(strstr(err.message, "argument 0 is not on cuda:0"));
  pf_error_clear(&err);
  CHECK_INT(ops->launch(kernel, NULL, few, big, &argument, 1, NULL),
            PF_EINVAL);
  CHECK_INT(ops->launch(kernel, NULL, few, NULL, &argument, 33, NULL),
            PF_EINVAL);
  CHECK_INT(ops->kernel(0, kernel_source, "sub", &kernel, &err), PF_EBUG);
  CHECK(!kernel && strstr(err.message, "kernel \"sub\""));
  pf_error_clear(&err);
  CHECK_INT(ops->kernel(0, ".version 8.0\nnonsense", "x", &kernel, &err),
            PF_EBUG);
  CHECK(!kernel && strstr(err.message, "cuda:0"));
  pf_error_clear(&err);
  pf_array_unref(&below);
  check_ordered();
}

static void test_limits(void) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_memory_info memory;
  struct pf_array *array = NULL, *small = NULL;
  const int64_t much = 16 << 20, little = 1 << 20, most = INT64_MAX / 8;
  CHECK_INT(pf_array_create_on(&array, gpu, PF_U8, 1, &most, NULL, &err),
            PF_ENOMEM);
  CHECK(strstr(err.message, "asked for") && strstr(err.message, "free"));
  pf_error_clear(&err);
  ops->clear(0);
  pf_device_set_limit(8 << 20);
  CHECK_INT(pf_array_create_on(&array, gpu, PF_U8, 1, &much, NULL, &err),
            PF_ENOMEM);
  CHECK(strstr(err.message, "16777216") && strstr(err.message, "free"));
  pf_error_clear(&err);
  CHECK_INT(pf_array_create_on(&small, gpu, PF_U8, 1, &little, NULL, NULL),
            PF_OK);
  CHECK_INT(ops->memory_info(0, &memory, NULL), PF_OK);
  CHECK(memory.limit == 8 << 20 && memory.free <= 7 << 20 &&
        memory.used >= 1 << 20);
  pf_device_set_limit(0);
  CHECK_INT(pf_array_create_on(&array, gpu, PF_U8, 1, &much, NULL, NULL),
            PF_OK);
  pf_array_unref(&array);
  pf_array_unref(&small);
  check_ordered();
}

/* What a step does with memory: up, compute, between cards, down. */
static int scenario(struct pf_error *err) {
  const struct pf_device second = {PF_DEVICE_CUDA, ops->count(NULL) > 1};
  struct pf_array *array = make_host(1, 40000), *there = NULL, *sum = NULL;
  struct pf_array *peer = NULL, *back = NULL;
  struct pf_stream *stream = NULL;
  int code = pf_stream_get(&stream, gpu, err);
  if (code == PF_OK)
    code = pf_array_to_device(&there, array, gpu, stream, err);
  if (code == PF_OK)
    code = add(&sum, there, 1, stream, err);
  if (code == PF_OK)
    code = pf_array_to_device(&peer, sum, second, NULL, err);
  if (code == PF_OK)
    code = pf_array_to_device(&back, peer, host, NULL, err);
  if (code == PF_OK)
    CHECK(holds(back, 2));
  pf_array_unref(&there);
  pf_array_unref(&sum);
  pf_array_unref(&peer);
  pf_array_unref(&back);
  pf_array_unref(&array);
  pf_stream_put(&stream);
  return code;
}

/* All that is queued has run, and all memory is given back. */
static void settle(void) {
  struct pf_stream *stream = NULL;
  for (int i = 0; i < 2; i++) {
    ops->clear(i);
    if (pf_stream_get(&stream, (struct pf_device){PF_DEVICE_CUDA, i}, NULL) ==
        PF_OK)
      (void)ops->stream_sync(stream, NULL);
    pf_stream_put(&stream);
  }
  for (int tries = 0;
       tries < 1000 && (fake.n_pinned() > 0 || fake.n_events() > 0); tries++) {
    (void)pf_deferred_drain();
    ops->clear(0);
  }
}

static void test_out_of_memory(void) {
  int code = PF_ENOMEM, n = 0;
  if (!fake.fail)
    return;
  CHECK_INT(scenario(NULL), PF_OK);
  settle();
  CHECK_INT(fake.n_allocations(), 0);
  CHECK_INT(fake.n_pinned(), 0);
  for (n = 1; n < 100 && code == PF_ENOMEM; n++) {
    struct pf_error err = PF_ERROR_INIT;
    (void)fake.fail(n, 1);
    code = scenario(&err);
    CHECK(code == PF_OK || code == PF_ENOMEM);
    CHECK(code == PF_OK || (err.message && strstr(err.message, "asked for") &&
                            strstr(err.message, "free")));
    pf_error_clear(&err);
    (void)fake.fail(0, 0);
    settle();
    CHECK_INT(fake.n_allocations(), 0);
    CHECK_INT(fake.n_pinned(), 0);
    CHECK_INT(fake.n_events(), 0);
  }
  CHECK(code == PF_OK && n > 5);
  check_ordered();
}

/* The third card's context is lost; the first goes on. */
static void test_lost(void) {
  const struct pf_device third = {PF_DEVICE_CUDA, 2};
  struct pf_error err = PF_ERROR_INIT;
  struct pf_array *array, *sum = NULL, *more = NULL;
  struct pf_stream *streams[1];
  if (!fake.lose || ops->count(NULL) < 3)
    return;
  get_streams(streams, 1, 2);
  array = make_on(third, 1, 1000, streams[0]);
  CHECK(!ops->is_dead(2));
  fake.lose(1);
  CHECK_INT(add(&sum, array, 1, streams[0], NULL), PF_OK);
  CHECK_INT(pf_array_wait(sum, &err), PF_EBUG);
  CHECK(strstr(err.message, "lost") && strstr(err.message, "cuda:2"));
  pf_error_clear(&err);
  CHECK(ops->is_dead(2));
  CHECK_INT(add(&more, array, 1, streams[0], &err), PF_EBUG);
  CHECK(strstr(err.message, "start again"));
  pf_error_clear(&err);
  pf_array_unref(&sum);
  pf_array_unref(&array);
  ops->clear(2);
  pf_stream_put(&streams[0]);
  CHECK(!ops->is_dead(0));
  array = make_on(gpu, 1, 1000, NULL);
  CHECK(holds(array, 1));
  pf_array_unref(&array);
  check_ordered();
}

/* Threads that hand arrays to each other through one place. */
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pf_array *shared; /* protected by shared_lock */

static void *hand_over(void *unused) {
  struct pf_stream *stream = NULL;
  int code = pf_stream_get(&stream, gpu, NULL);
  for (int i = 0; code == PF_OK && i < 25; i++) {
    struct pf_array *mine = NULL, *sum = NULL, *old = NULL;
    (void)pthread_mutex_lock(&shared_lock);
    mine = pf_array_ref(shared);
    (void)pthread_mutex_unlock(&shared_lock);
    code = add(&sum, mine, 0, stream, NULL);
    if (code == PF_OK) {
      (void)pthread_mutex_lock(&shared_lock);
      old = shared;
      shared = pf_array_ref(sum);
      (void)pthread_mutex_unlock(&shared_lock);
    }
    pf_array_unref(&old);
    pf_array_unref(&mine);
    pf_array_unref(&sum);
  }
  pf_stream_put(&stream);
  return code == PF_OK ? unused : &shared;
}

static void test_threads(void) {
  pthread_t threads[4];
  shared = make_on(gpu, 77, 900, NULL);
  for (int i = 0; i < 4; i++)
    CHECK_INT(pthread_create(&threads[i], NULL, hand_over, NULL), 0);
  for (int i = 0; i < 4; i++) {
    void *failed = NULL;
    CHECK_INT(pthread_join(threads[i], &failed), 0);
    CHECK(!failed);
  }
  CHECK(holds(shared, 77));
  pf_array_unref(&shared);
  check_ordered();
}

int main(void) {
  struct pf_error err = PF_ERROR_INIT;
  ops = pf_device_ops(PF_DEVICE_CUDA);
  if (ops->count(&err) == 0) {
    (void)printf("skipped: %s\n", err.message);
    pf_error_clear(&err);
    return 0;
  }
  find_fake();
  choose_source();
  test_info();
  test_round_trips();
  test_planes();
  test_streams();
  test_write_after_reads();
  test_violations();
  test_reuse();
  test_handed_on();
  test_foreign();
  test_writable();
  test_pinned();
  test_peers();
  test_dlpack();
  test_kernels();
  test_limits();
  test_out_of_memory();
  test_lost();
  test_threads();
  return check_done();
}
