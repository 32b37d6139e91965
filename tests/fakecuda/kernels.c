/* Kernels for the tests of the CUDA device. */
#include "tests/fakecuda/kernel.h"

#include <stdint.h>

#include "plateflow/error.h"

static uint32_t index_of(const struct fakecuda_thread *thread) {
  return thread->block_index[0] * thread->block[0] + thread->thread_index[0];
}

/* add(to, from, value, n): to[i] = from[i] + value */
static void run_add(const struct fakecuda_thread *thread,
                    void *const *arguments) {
  uint32_t *to = *(uint32_t *const *)arguments[0];
  const uint32_t *from = *(const uint32_t *const *)arguments[1];
  const uint32_t value = *(const uint32_t *)arguments[2];
  const uint32_t n = *(const uint32_t *)arguments[3], i = index_of(thread);
  if (i < n)
    to[i] = from[i] + value;
}

PF_API const struct fakecuda_kernel fakecuda_kernel_add;
const struct fakecuda_kernel fakecuda_kernel_add = {run_add, "wr44"};
