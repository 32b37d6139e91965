/* Modules, which are shared objects of this machine, and launches. */
#include "tests/fakecuda/fakecuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pf_cu_module {
  void *library;
};

static const char mark_word[] = "FAKECUDA ";
static int n_launches, lose_at;

void fakecuda_lose(int n) {
  LOCK();
  n_launches = 0;
  lose_at = n;
  UNLOCK();
}

/* "FAKECUDA path", anywhere in a text: in a comment of PTX, say. */
static void *open_image(const char *image) {
  const char *at = strstr(image, mark_word);
  char path[4096];
  size_t length;
  if (!at)
    return NULL;
  at += sizeof(mark_word) - 1;
  length = strcspn(at, "\n");
  if (length >= sizeof(path))
    return NULL;
  memcpy(path, at, length);
  path[length] = '\0';
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

int cuModuleLoadDataEx(struct pf_cu_module **module, const void *image,
                       unsigned n_options, const int *options, void **values) {
  struct pf_cu_module *loaded = NULL;
  bool fails;
  int result;
  LOCK();
  (void)fake_current(&result);
  fails = fake_fails();
  UNLOCK();
  *module = NULL;
  if (result == PF_CU_SUCCESS &&
      (fails || !(loaded = calloc(1, sizeof(*loaded)))))
    result = PF_CU_OUT_OF_MEMORY;
  if (result == PF_CU_SUCCESS && !(loaded->library = open_image(image))) {
    result = PF_CU_INVALID_IMAGE;
    if (n_options == 2 && options[0] == PF_CU_JIT_ERROR_LOG)
      (void)snprintf(values[0], (size_t)(uintptr_t)values[1],
                     "no stand-in kernel: %.200s", (const char *)image);
  }
  if (result == PF_CU_SUCCESS)
    *module = loaded;
  else
    free(loaded);
  return result;
}

int cuModuleGetFunction(struct pf_cu_function **function,
                        struct pf_cu_module *module, const char *name) {
  char symbol[256];
  (void)snprintf(symbol, sizeof(symbol), "fakecuda_kernel_%s", name);
  *function = dlsym(module->library, symbol);
  return *function ? PF_CU_SUCCESS : PF_CU_NOT_FOUND;
}

/* Every thread of every block, one after the other. */
static void run_late(struct operation *operation) {
  struct fakecuda_thread thread = operation->shape;
  void *arguments[MAX_ARGUMENTS];
  size_t n_blocks = (size_t)thread.grid[0] * thread.grid[1] * thread.grid[2];
  size_t n_threads =
      (size_t)thread.block[0] * thread.block[1] * thread.block[2];
  for (int i = 0; i < MAX_ARGUMENTS; i++)
    arguments[i] = &operation->values[i];
  for (size_t b = 0; b < n_blocks; b++) {
    thread.block_index[0] = (unsigned)(b % thread.grid[0]);
    thread.block_index[1] = (unsigned)(b / thread.grid[0] % thread.grid[1]);
    thread.block_index[2] = (unsigned)(b / thread.grid[0] / thread.grid[1]);
    for (size_t t = 0; t < n_threads; t++) {
      thread.thread_index[0] = (unsigned)(t % thread.block[0]);
      thread.thread_index[1] =
          (unsigned)(t / thread.block[0] % thread.block[1]);
      thread.thread_index[2] =
          (unsigned)(t / thread.block[0] / thread.block[1]);
      operation->kernel->run(&thread, arguments);
    }
  }
}

/* A pointer stands for all of its allocation from there on: nobody knows how
 * far the kernel goes. */
static bool take_pointer(uint64_t *value, struct pf_cu_stream *stream,
                         bool writes) {
  char *at = (char *)(uintptr_t)*value;
  struct region *region = fake_region(at);
  size_t n_bytes =
      region ? region->n_bytes - (size_t)(at - region->address) : 1;
  void *mapped = fake_reach(at, n_bytes);
  *value = (uintptr_t)mapped;
  if (mapped)
    fake_access(stream, at, n_bytes, writes);
  return mapped != NULL;
}

static bool take_arguments(struct operation *operation,
                           struct pf_cu_stream *stream, void **arguments) {
  const char *kinds = operation->kernel->arguments;
  size_t n = strlen(kinds);
  bool is_right = n <= MAX_ARGUMENTS;
  for (size_t i = 0; i < n && is_right; i++) {
    bool is_pointer = kinds[i] == 'r' || kinds[i] == 'w';
    memcpy(&operation->values[i], arguments[i],
           is_pointer ? sizeof(void *) : (size_t)(kinds[i] - '0'));
    if (is_pointer)
      is_right = take_pointer(&operation->values[i], stream, kinds[i] == 'w');
  }
  return is_right;
}

int cuLaunchKernel(struct pf_cu_function *function, unsigned grid_x,
                   unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared,
                   struct pf_cu_stream *stream, void **arguments,
                   void **extra) {
  struct operation operation = {.run = run_late,
                                .kernel =
                                    (const struct fakecuda_kernel *)function,
                                .shape = {.block = {block_x, block_y, block_z},
                                          .grid = {grid_x, grid_y, grid_z}}};
  int result;
  LOCK();
  result = fake_check_stream(stream);
  if (result == PF_CU_SUCCESS &&
      (shared || extra || (size_t)block_x * block_y * block_z > 1024 ||
       !grid_x || !grid_y || !grid_z))
    result = PF_CU_INVALID_VALUE;
  if (result == PF_CU_SUCCESS) {
    fake_tick(stream);
    operation.loses = lose_at && ++n_launches == lose_at;
    if (!take_arguments(&operation, stream, arguments))
      result = PF_CU_INVALID_VALUE;
    else if (!fake_queue(stream, &operation))
      result = PF_CU_OUT_OF_MEMORY;
  }
  UNLOCK();
  return result;
}
