/*
 * Kernels for the stand-in driver: a shared object exports one struct
 * fakecuda_kernel named fakecuda_kernel_NAME for each kernel NAME.
 */
#ifndef FAKECUDA_KERNEL_H
#define FAKECUDA_KERNEL_H

#ifdef __cplusplus
extern "C" {
#endif

/* Where a thread is: blockIdx, threadIdx, blockDim, gridDim. */
struct fakecuda_thread {
  unsigned block_index[3], thread_index[3], block[3], grid[3];
};

struct fakecuda_kernel {
  /* Called for each thread, one after the other. */
  void (*run)(const struct fakecuda_thread *thread, void *const *arguments);
  /* One letter per argument: "r" a pointer that is read, "w" one that is
   * written (and read), "1" "2" "4" "8" a value of so many bytes. */
  const char *arguments;
};

#ifdef __cplusplus
}
#endif
#endif
