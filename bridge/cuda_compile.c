/*
 * CUDA C++ to device code by NVRTC, found at run time: what a program has
 * loaded already, the loader's path, CUDA_HOME, and the packages of the Python
 * environment in use. PLATEFLOW_NVRTC names the file instead.
 */
#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/cuda_private.h"

struct program; /* nvrtcProgram */

/* Functions of NVRTC: name, parameters. All return an int, 0 for success. */
/* clang-format off */
#define FUNCTION_MAP(XX)                                                      \
  XX(nvrtcCreateProgram,                                                      \
     (struct program **program, const char *source, const char *name, int n,  \
      const char *const *headers, const char *const *names))                  \
  XX(nvrtcDestroyProgram, (struct program **program))                         \
  XX(nvrtcCompileProgram,                                                     \
     (struct program *program, int n, const char *const *options))            \
  XX(nvrtcGetCUBINSize, (struct program *program, size_t *size))              \
  XX(nvrtcGetCUBIN, (struct program *program, char *cubin))                   \
  XX(nvrtcGetProgramLogSize, (struct program *program, size_t *size))         \
  XX(nvrtcGetProgramLog, (struct program *program, char *log))
/* clang-format on */

static struct {
#define XX(name, parameters) int(*name) parameters;
  FUNCTION_MAP(XX)
#undef XX
} nvrtc;

struct symbol {
  const char *name;
  void *at;
};
static const struct symbol symbols[] = {
#define XX(name, parameters) {#name, &nvrtc.name},
    FUNCTION_MAP(XX)
#undef XX
};

static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                    "libnvrtc.so.11.2", "libnvrtc.so"};
struct place {
  const char *variable; /* a folder; NULL: none */
  const char *pattern;  /* below it, as glob() has it */
};
static const struct place places[] = {
    {"CUDA_HOME", "lib64/libnvrtc.so.*"},
    {"CUDA_PATH", "lib64/libnvrtc.so.*"},
    {"VIRTUAL_ENV", "lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.*"},
    {"CONDA_PREFIX", "lib/libnvrtc.so.*"},
    {NULL, "/usr/local/cuda/lib64/libnvrtc.so.*"},
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_loaded; /* set once, by load() */

static void *open_first(int flags) {
  void *library = NULL;
  for (size_t i = 0; !library && i < sizeof(names) / sizeof(names[0]); i++)
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | flags);
  return library;
}

static void *open_place(const struct place *place) {
  const char *folder = place->variable ? getenv(place->variable) : "";
  glob_t found = {0};
  char pattern[4096];
  void *library = NULL;
  if (!folder || (place->variable && !*folder) ||
      snprintf(pattern, sizeof(pattern), "%s%s%s", folder, *folder ? "/" : "",
               place->pattern) >= (int)sizeof(pattern))
    return NULL;
  if (glob(pattern, 0, NULL, &found) == 0)
    for (size_t i = found.gl_pathc; !library && i > 0; i--) /* newest first */
      library = dlopen(found.gl_pathv[i - 1], RTLD_NOW | RTLD_LOCAL);
  globfree(&found);
  return library;
}

static void load(void) {
  const char *file = getenv("PLATEFLOW_NVRTC");
  void *library = NULL;
  if (file && *file) {
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  } else {
    library = open_first(RTLD_NOLOAD);
    if (!library)
      library = open_first(0);
    for (size_t i = 0; !library && i < sizeof(places) / sizeof(places[0]); i++)
      library = open_place(&places[i]);
  }
  is_loaded = library != NULL;
  for (size_t i = 0; is_loaded && i < sizeof(symbols) / sizeof(symbols[0]);
       i++) {
    void *found = dlsym(library, symbols[i].name);
    is_loaded = found != NULL;
    memcpy(symbols[i].at, &found, sizeof(found));
  }
}

static int refuse(struct program *program, const char *name, int result,
                  struct pf_error *err) {
  size_t size = 0;
  char *log = NULL;
  if (nvrtc.nvrtcGetProgramLogSize(program, &size) == 0 && size > 1)
    log = calloc(1, size + 1);
  (void)pf_error_set(err, PF_EINVAL,
                     "kernel \"%s\" cannot be compiled for CUDA (NVRTC "
                     "error %d)",
                     name, result);
  if (log && nvrtc.nvrtcGetProgramLog(program, log) == 0)
    pf_error_detail(err, log);
  free(log);
  return PF_EINVAL;
}

static int get_image(char **image, struct program *program,
                     struct pf_error *err) {
  size_t size = 0;
  if (nvrtc.nvrtcGetCUBINSize(program, &size) != 0 || size == 0)
    return pf_error_set(err, PF_EBUG, "NVRTC gives no device code");
  if (!(*image = calloc(1, size + 1)))
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  if (nvrtc.nvrtcGetCUBIN(program, *image) == 0)
    return PF_OK;
  free(*image);
  *image = NULL;
  return pf_error_set(err, PF_EBUG, "NVRTC gives no device code");
}

int pf_cuda_compile(char **image, const char *source, const char *name,
                    int capability, struct pf_error *err) {
  char arch[48];
  /* The same pixels as on the CPU: nothing contracted or approximated. */
  const char *const options[] = {arch, "-fmad=false", "-ftz=false",
                                 "-prec-div=true", "-prec-sqrt=true"};
  struct program *program = NULL;
  int result, code;
  *image = NULL;
  (void)pthread_once(&once, load);
  if (!is_loaded)
    return pf_error_set(err, PF_EMISSING,
                        "kernel \"%s\" must be compiled and libnvrtc.so is "
                        "not found: install it (pip install "
                        "nvidia-cuda-nvrtc) or set CUDA_HOME",
                        name);
  (void)snprintf(arch, sizeof(arch), "--gpu-architecture=sm_%d", capability);
  if (nvrtc.nvrtcCreateProgram(&program, source, name, 0, NULL, NULL) != 0)
    return pf_error_set(err, PF_ENOMEM, "NVRTC cannot take kernel \"%s\"",
                        name);
  result = nvrtc.nvrtcCompileProgram(
      program, (int)(sizeof(options) / sizeof(options[0])), options);
  code = result == 0 ? get_image(image, program, err)
                     : refuse(program, name, result, err);
  (void)nvrtc.nvrtcDestroyProgram(&program);
  return code;
}
