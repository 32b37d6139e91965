/* Devices as all kinds have them, tried on the host. */
#include "plateflow/device.h"

#include <stdlib.h>

#include "plateflow/bridge.h"
#include "tests/unit/check.h"

static const struct pf_device host = {PF_DEVICE_HOST, 0};

static const struct size_case {
  const char *text;
  bool is_size;
  uint64_t n_bytes;
} size_cases[] = {
    {"0", true, 0},
    {"100000", true, 100000},
    {"512MiB", true, 512ull << 20},
    {"2GiB", true, 2ull << 30},
    {"2 GiB", true, 2ull << 30},
    {"1.5K", true, 1536},
    {"1e9", true, 1000000000},
    {"3GB", true, 3000000000},
    {"7B", true, 7},
    {"8000T", true, 8000ull << 40},
    {"", false, 0},
    {"MiB", false, 0},
    {"-1", false, 0},
    {"+1", false, 0},
    {" 1", false, 0},
    {"1 GiB ", false, 0},
    {"1Gib", false, 0},
    {"0x10", false, 0},
    {"inf", false, 0},
    {"nan", false, 0},
    {"1e400", false, 0},
    {"9e18", true, 9000000000000000000ull},
    {"1e19", false, 0},
    {"9000000T", false, 0},
};

static void test_sizes(void) {
  for (size_t i = 0; i < sizeof(size_cases) / sizeof(size_cases[0]); i++) {
    const struct size_case *row = &size_cases[i];
    struct pf_error err = PF_ERROR_INIT;
    uint64_t n_bytes = 1;
    CHECK_INT(pf_parse_size(row->text, &n_bytes, &err),
              row->is_size ? PF_OK : PF_EINVAL);
    CHECK(n_bytes == row->n_bytes);
    CHECK((err.message != NULL) == !row->is_size);
    pf_error_clear(&err);
  }
}

static void test_kinds(void) {
  const struct pf_device_ops *ops = pf_device_ops(PF_DEVICE_HOST);
  struct pf_device_info info;
  struct pf_memory_info memory;
  CHECK_STR(ops->name, "host");
  CHECK(pf_device_ops(PF_DEVICE_CUDA_HOST) == ops);
  CHECK(!pf_device_ops((enum pf_device_kind)8));
  CHECK_INT(ops->count(NULL), 1);
  CHECK_INT(ops->info(0, &info, NULL), PF_OK);
  CHECK(info.total > 0 && info.shares_host && info.name[0]);
  CHECK_INT(ops->memory_info(0, &memory, NULL), PF_OK);
  CHECK(memory.total == info.total && memory.free <= memory.total);
  CHECK(!ops->is_dead(0));
}

/* Without a driver there is a reason, and nothing else changes. */
static void test_missing(void) {
  const struct pf_device_ops *ops = pf_device_ops(PF_DEVICE_CUDA);
  const struct pf_device cards[] = {
      {PF_DEVICE_CUDA, 99}, {PF_DEVICE_CUDA, -1}, {PF_DEVICE_HOST, 1}};
  const int64_t shape[] = {4};
  struct pf_error err = PF_ERROR_INIT;
  struct pf_array *array = NULL;
  if (ops->count(&err) == 0) {
    CHECK_INT(err.code, PF_EMISSING);
    CHECK(err.message && strstr(err.message, "libcuda"));
    pf_error_clear(&err);
    CHECK_INT(pf_array_create_on(&array,
                                 (struct pf_device){PF_DEVICE_CUDA_HOST, 0},
                                 PF_U8, 1, shape, NULL, &err),
              PF_EMISSING);
  }
  pf_error_clear(&err);
  for (size_t i = 0; i < sizeof(cards) / sizeof(cards[0]); i++) {
    CHECK_INT(
        pf_array_create_on(&array, cards[i], PF_U8, 1, shape, NULL, &err),
        PF_EMISSING);
    CHECK(!array && err.message);
    pf_error_clear(&err);
  }
}

static void test_arrays(void) {
  const int64_t shape[] = {2, 3}, bad[] = {-1, 3};
  struct pf_array *array = NULL, *same = NULL, *copy = NULL;
  struct pf_event *event = NULL;
  struct pf_stream *stream = NULL;
  const struct pf_device_ops *ops = pf_device_ops(PF_DEVICE_HOST);
  CHECK_INT(pf_array_create_on(&array, host, PF_U16, 2, bad, NULL, NULL),
            PF_EINVAL);
  CHECK_INT(pf_array_create_on(&array, host, PF_U16, 2, shape, NULL, NULL),
            PF_OK);
  CHECK_INT(pf_array_to_device(&same, array, host, NULL, NULL), PF_OK);
  CHECK(same == array);
  pf_array_unref(&same);
  CHECK_INT(pf_stream_get(&stream, host, NULL), PF_OK);
  CHECK_INT(pf_stream_device(stream).type, PF_DEVICE_HOST);
  CHECK_INT(ops->event_record(stream, &event, NULL), PF_OK);
  CHECK(!pf_array_event(array));
  pf_array_set_event(array, event);
  CHECK(pf_array_event(array) == event);
  pf_event_unref(&event);
  CHECK_INT(pf_array_wait(array, NULL), PF_OK);
  CHECK_INT(pf_array_order(array, stream, true, NULL), PF_OK);
  CHECK(pf_array_is_writable(array));
  memset(pf_array_data(array), 7, pf_array_n_bytes(array));
  CHECK_INT(pf_array_copy(&copy, array, NULL), PF_OK);
  CHECK(memcmp(pf_array_data(copy), pf_array_data(array), 12) == 0);
  pf_array_unref(&copy);
  pf_array_set_event(array, NULL);
  CHECK(!pf_array_event(array));
  pf_array_unref(&array);
  pf_stream_put(&stream);
}

static void test_streams(void) {
  struct pf_stream *a = NULL, *b = NULL, *again = NULL;
  CHECK_INT(pf_stream_get(&a, host, NULL), PF_OK);
  CHECK_INT(pf_stream_get(&b, host, NULL), PF_OK);
  CHECK(a != b);
  again = a;
  pf_stream_put(&a);
  CHECK(!a);
  CHECK_INT(pf_stream_get(&a, host, NULL), PF_OK);
  CHECK(a == again);
  pf_stream_put(&a);
  pf_stream_put(&b);
  pf_stream_put(&b);
  pf_stream_put(NULL);
  pf_event_unref(NULL);
}

static void test_limit(void) {
  CHECK(pf_device_limit() == 3u << 20);
  pf_device_set_limit(1 << 20);
  CHECK(pf_device_limit() == 1 << 20);
  pf_device_set_limit(0);
  CHECK(pf_device_limit() == 0);
}

int main(void) {
  (void)setenv("PLATEFLOW_DEVICE_LIMIT", "3MiB", 1);
  test_sizes();
  test_kinds();
  test_missing();
  test_arrays();
  test_streams();
  test_limit();
  return check_done();
}
