/*
 * Kernels of CUDA cards: built once per card and source, kept to the end.
 *
 * What is given as source is PTX, a cubin or a fatbin, which the driver takes
 * as it is, or CUDA C++, which is compiled first (cuda_compile.c). Binary
 * images are told apart by their address: they must be constant.
 */
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/cuda_private.h"

enum { MAX_ARGUMENTS = 32, LOG_SIZE = 4096, DEFAULT_LOCAL = 128 };

/* One built source on one card, and its kernels. */
struct module {
  struct module *next;
  int index;
  const void *image; /* the address of a binary image, or NULL */
  char *source;      /* else a copy of the text */
  struct pf_cu_module *handle;
};

struct pf_kernel {
  struct pf_kernel *next;
  const struct module *module;
  char *name;
  struct pf_cu_function *handle;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* --- protected by `lock`; what is in the lists is constant */
static struct module *modules;
static struct pf_kernel *kernels;
/* --- */

static bool is_binary(const char *source) {
  static const char fatbin[] = {0x50, (char)0xed, 0x55, (char)0xba};
  return strncmp(source, "\177ELF", 4) == 0 ||
         strncmp(source, fatbin, sizeof(fatbin)) == 0;
}

/* PTX begins with its version, after comments. */
static bool is_ptx(const char *source) {
  for (;;) {
    while (isspace((unsigned char)*source))
      source++;
    if (strncmp(source, "//", 2) != 0)
      return strncmp(source, ".version", 8) == 0;
    source += strcspn(source, "\n");
  }
}

static bool is_module(const struct module *module, int index,
                      const char *source) {
  if (module->index != index)
    return false;
  return module->image ? module->image == source
                       : strcmp(module->source, source) == 0;
}

static int refuse_image(struct pf_cuda_device *device, int result,
                        const char *name, const char *log,
                        struct pf_error *err) {
  int code = pf_cuda_check(device, result, 0, "load a kernel", err);
  pf_error_prefix(err, "kernel \"%s\"", name);
  if (*log)
    pf_error_detail(err, log);
  return code;
}

static int load_image(struct pf_cuda_device *device, const char *image,
                      const char *name, struct pf_cu_module **out,
                      struct pf_error *err) {
  char log[LOG_SIZE] = "";
  const int options[] = {PF_CU_JIT_ERROR_LOG, PF_CU_JIT_ERROR_LOG_SIZE};
  void *values[] = {log, (void *)(uintptr_t)(LOG_SIZE - 1)};
  int result = pf_cu.cuModuleLoadDataEx(out, image, 2, options, values);
  if (result == PF_CU_SUCCESS)
    return PF_OK;
  log[LOG_SIZE - 1] = '\0';
  return refuse_image(device, result, name, log, err);
}

static void free_module(struct module *module) {
  if (module)
    free(module->source);
  free(module);
}

static int build_locked(struct module **out, struct pf_cuda_device *device,
                        const char *source, const char *name,
                        struct pf_error *err) {
  const bool binary = is_binary(source);
  struct module *module = calloc(1, sizeof(*module));
  char *compiled = NULL;
  int code = PF_OK;
  *out = NULL;
  if (!module || (!binary && !(module->source = strdup(source)))) {
    free_module(module);
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  }
  module->index = device->index;
  module->image = binary ? source : NULL;
  if (!binary && !is_ptx(source))
    code = pf_cuda_compile(&compiled, source, name, device->capability, err);
  if (code == PF_OK)
    code = load_image(device, compiled ? compiled : source, name,
                      &module->handle, err);
  free(compiled);
  if (code != PF_OK) {
    free_module(module);
    return code;
  }
  module->next = modules;
  *out = modules = module;
  return PF_OK;
}

static int find_module_locked(struct module **out,
                              struct pf_cuda_device *device,
                              const char *source, const char *name,
                              struct pf_error *err) {
  struct module *module = modules;
  while (module && !is_module(module, device->index, source))
    module = module->next;
  *out = module;
  return module ? PF_OK : build_locked(out, device, source, name, err);
}

static int find_kernel_locked(struct pf_kernel **out,
                              struct pf_cuda_device *device,
                              const struct module *module, const char *name,
                              struct pf_error *err) {
  struct pf_kernel *kernel = kernels;
  int result;
  while (kernel &&
         (kernel->module != module || strcmp(kernel->name, name) != 0))
    kernel = kernel->next;
  *out = kernel;
  if (kernel)
    return PF_OK;
  kernel = calloc(1, sizeof(*kernel));
  if (!kernel || !(kernel->name = strdup(name))) {
    free(kernel);
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  }
  result = pf_cu.cuModuleGetFunction(&kernel->handle, module->handle, name);
  if (result != PF_CU_SUCCESS) {
    free(kernel->name);
    free(kernel);
    return refuse_image(device, result, name, "", err);
  }
  kernel->module = module;
  kernel->next = kernels;
  *out = kernels = kernel;
  return PF_OK;
}

int pf_cuda_kernel(int index, const char *source, const char *name,
                   struct pf_kernel **out, struct pf_error *err) {
  struct pf_cuda_scope scope;
  struct module *module = NULL;
  int code = pf_cuda_enter(&scope, index, err);
  *out = NULL;
  if (code != PF_OK)
    return code;
  (void)pthread_mutex_lock(&lock);
  code = find_module_locked(&module, scope.device, source, name, err);
  if (code == PF_OK)
    code = find_kernel_locked(out, scope.device, module, name, err);
  (void)pthread_mutex_unlock(&lock);
  pf_cuda_leave(&scope);
  return code;
}

/* -- launch ----------------------------------------------------------------
 */

/* Blocks and threads, in the driver's order x, y, z. */
struct shape {
  unsigned grid[3], block[3];
};

/* `local` NULL: rows of one size. False: more than a card can take. */
static bool find_shape(struct shape *shape, const size_t global[3],
                       const size_t local[3]) {
  for (int i = 0; i < 3; i++) {
    size_t block = local ? local[i] : i == 0 ? DEFAULT_LOCAL : 1, grid;
    if (block == 0 || block > 1024)
      return false;
    grid = (global[i] - 1) / block + 1;
    if (grid > (i == 0 ? 0x7fffffff : 0xffff))
      return false;
    shape->grid[i] = (unsigned)grid;
    shape->block[i] = (unsigned)block;
  }
  return true;
}

/* The driver copies the values while it queues the launch. */
struct arguments {
  void *addresses[MAX_ARGUMENTS]; /* of arrays */
  void *values[MAX_ARGUMENTS];
};

static int list_arguments(struct arguments *list,
                          const struct pf_kernel *kernel,
                          const struct pf_kernel_argument *arguments, size_t n,
                          struct pf_error *err) {
  if (n > MAX_ARGUMENTS)
    return pf_error_set(err, PF_EINVAL,
                        "kernel \"%s\": %zu arguments, at most %d are "
                        "possible",
                        kernel->name, n, MAX_ARGUMENTS);
  for (size_t i = 0; i < n; i++) {
    const struct pf_array *array = arguments[i].array;
    const struct pf_device at =
        array ? pf_array_device(array) : (struct pf_device){0, 0};
    if (array &&
        (at.type != PF_DEVICE_CUDA || at.index != kernel->module->index))
      return pf_error_set(err, PF_EINVAL,
                          "kernel \"%s\": argument %zu is not on cuda:%d",
                          kernel->name, i, kernel->module->index);
    list->addresses[i] = array ? pf_array_data(array) : NULL;
    list->values[i] =
        array ? &list->addresses[i] : (void *)(uintptr_t)arguments[i].value;
  }
  return PF_OK;
}

int pf_cuda_launch(struct pf_kernel *kernel, struct pf_stream *stream,
                   const size_t global[3], const size_t local[3],
                   const struct pf_kernel_argument *arguments, size_t n,
                   struct pf_error *err) {
  struct pf_cuda_scope scope;
  struct arguments list;
  struct shape shape;
  int index = kernel->module->index, code;
  if (global[0] == 0 || global[1] == 0 || global[2] == 0)
    return PF_OK;
  if (!find_shape(&shape, global, local))
    return pf_error_set(err, PF_EINVAL,
                        "kernel \"%s\": cannot launch %zux%zux%zu threads",
                        kernel->name, global[0], global[1], global[2]);
  if ((code = list_arguments(&list, kernel, arguments, n, err)) != PF_OK ||
      (!stream && (code = pf_stream_default(&stream, &pf_device_cuda_ops,
                                            index, err)) != PF_OK) ||
      (code = pf_cuda_enter(&scope, index, err)) != PF_OK)
    return code;
  code = pf_cuda_check(scope.device,
                       pf_cu.cuLaunchKernel(kernel->handle, shape.grid[0],
                                            shape.grid[1], shape.grid[2],
                                            shape.block[0], shape.block[1],
                                            shape.block[2], 0, stream->handle,
                                            list.values, NULL),
                       0, "launch a kernel", err);
  pf_cuda_leave(&scope);
  return code;
}
