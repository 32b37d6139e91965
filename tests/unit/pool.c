/* bridge/device_host.c */
#include "bridge/host.h"
#include "plateflow/bridge.h"
#include "tests/unit/check.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>

#define MIB ((size_t)1 << 20)

PF_API const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "allocator_may_return_null=1";
}
PF_API const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
  return "allocator_may_return_null=1";
}

/* Sizes around the borders of the classes. */
static void test_sizes(void) {
  for (int shift = 0; shift < 25; shift++)
    for (int off = -1; off <= 1; off++) {
      size_t n = ((size_t)1 << shift) + (size_t)off, cached;
      char *block = pf_host_alloc(n);
      CHECK(block && (uintptr_t)block % (n < MIB ? 64 : 4096) == 0);
      if (!block)
        continue;
      if (n) {
        block[0] = 1;
        block[n - 1] = 2; /* the sanitizer watches the end */
      }
      pf_host_pool_clear();
      pf_host_free(block, n);
      cached = pf_host_pool_n_bytes();
      CHECK(cached >= n && cached <= n + n / 8 + 64);
      CHECK(pf_host_alloc(n) == block); /* the same one comes back */
      CHECK_INT(pf_host_pool_n_bytes(), 0);
      pf_host_free(block, n);
    }
  CHECK(!pf_host_alloc(SIZE_MAX));
  CHECK(!pf_host_alloc((size_t)1 << 62));
  pf_host_free(NULL, 5);
  pf_host_pool_clear();
  CHECK_INT(pf_host_pool_n_bytes(), 0);
}

enum { N_BLOCKS = 40 };

static void take_and_free(size_t size, int n) {
  void *blocks[N_BLOCKS];
  for (int i = 0; i < n; i++)
    blocks[i] = pf_host_alloc(size);
  for (int i = 0; i < n; i++)
    pf_host_free(blocks[i], size);
}

static void test_limit(void) {
  void *block = NULL;
  pf_host_pool_set_limit(16 * MIB);
  take_and_free(MIB, N_BLOCKS);
  CHECK_INT(pf_host_pool_n_bytes(), 16 * MIB);
  /* Blocks in use drive out those of a size that nobody wants any more. */
  take_and_free(2 * MIB, 4);
  CHECK_INT(pf_host_pool_n_bytes(), 16 * MIB);
  take_and_free(2 * MIB, 8);
  block = pf_host_alloc(MIB);
  CHECK_INT(pf_host_pool_n_bytes(), 16 * MIB); /* none of 1 MiB is left */
  pf_host_free(block, MIB);
  take_and_free(32 * MIB, 1); /* more than the pool may hold */
  CHECK(pf_host_pool_n_bytes() <= 16 * MIB);
  pf_host_pool_set_limit(0);
  CHECK_INT(pf_host_pool_n_bytes(), 0);
  take_and_free(64, 3);
  CHECK_INT(pf_host_pool_n_bytes(), 0);
  pf_host_pool_set_limit(256 * MIB);
}

static long page_faults(void) {
  struct rusage usage;
  (void)getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/* Planes that come and go in the steady state fault no page in. */
static void test_steady(void) {
  int64_t shape[2] = {1080, 1080};
  long before = 0;
  for (int i = 0; i < 200; i++) {
    struct pf_array *plane = NULL;
    if (pf_array_create(&plane, PF_U16, 2, shape, NULL) != PF_OK)
      abort();
    memset(pf_array_data(plane), i, pf_array_n_bytes(plane));
    pf_array_unref(&plane);
    if (i == 9)
      before = page_faults();
  }
  CHECK(page_faults() - before < 190);
}

static void *churn(void *seed) {
  uint32_t state = *(uint32_t *)seed;
  for (int i = 0; i < 3000; i++) {
    size_t n;
    char *block;
    state = state * 1664525u + 1013904223u;
    n = (state >> 8) % 300000;
    block = pf_host_alloc(n);
    if (!block)
      abort();
    memset(block, i, n < 64 ? n : 64);
    pf_host_free(block, n);
  }
  return NULL;
}

static void test_threads(void) {
  pthread_t threads[4];
  uint32_t seeds[4] = {1, 2, 3, 4};
  pf_host_pool_set_limit(4 * MIB);
  for (int i = 0; i < 4; i++)
    CHECK_INT(pthread_create(&threads[i], NULL, churn, &seeds[i]), 0);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], NULL);
  CHECK(pf_host_pool_n_bytes() <= 4 * MIB);
  pf_host_pool_set_limit(256 * MIB);
}

int main(void) {
  test_sizes();
  test_limit();
  test_steady();
  test_threads();
  return check_done();
}
