/*
 * CUDA devices: the driver, found at run time, and its cards. See
 * bridge/cuda_private.h.
 */
#include "bridge/cuda_private.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIVER "libcuda.so.1"

struct pf_cu_functions pf_cu;

static pthread_once_t once = PTHREAD_ONCE_INIT;
/* --- set once, by load() */
static struct pf_cuda_device devices[PF_CUDA_MAX_DEVICES];
static int n_devices;
static int driver_version;
static char why_none[256]; /* the reason for n_devices being 0 */
/* --- */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* opening a card */

struct symbol {
  const char *name;
  size_t at; /* in struct pf_cu_functions */
  bool is_optional;
};
static const struct symbol symbols[] = {
#define XX(name, ending, is_optional, parameters)                             \
  {#name #ending, offsetof(struct pf_cu_functions, name), is_optional},
    PF_CU_FUNCTION_MAP(XX)
#undef XX
};

struct result_row {
  const char *name;
  int value;
  bool is_lost;
};
static const struct result_row results[] = {
#define XX(name, value, is_lost) {"CUDA_ERROR_" #name, value, is_lost},
    PF_CU_RESULT_MAP(XX)
#undef XX
};

static const struct result_row *find_result(int value) {
  for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
    if (results[i].value == value)
      return &results[i];
  return NULL;
}

/* "CUDA_ERROR_X: what the driver says of it". */
static const char *result_text(char *text, size_t size, int value) {
  const struct result_row *row = find_result(value);
  const char *said = NULL;
  if (!pf_cu.cuGetErrorString || pf_cu.cuGetErrorString(value, &said) != 0)
    said = NULL;
  (void)snprintf(text, size, "%s (%d)%s%s", row ? row->name : "CUDA error",
                 value, said ? ": " : "", said ? said : "");
  return text;
}

/* -- the driver ------------------------------------------------------------
 */

static bool find_functions(void *library) {
  char *table = (char *)&pf_cu;
  for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
    void *found = dlsym(library, symbols[i].name);
    if (!found && !symbols[i].is_optional) {
      (void)snprintf(why_none, sizeof(why_none),
                     DRIVER " has no %s; install a newer NVIDIA driver",
                     symbols[i].name);
      return false;
    }
    memcpy(table + symbols[i].at, &found, sizeof(found));
  }
  return true;
}

static bool start_driver(void) {
  char text[160];
  int result = 0;
  /* One number means one card in every framework; what the user says wins. */
  (void)setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  if ((result = pf_cu.cuInit(0)) != PF_CU_SUCCESS ||
      (result = pf_cu.cuDeviceGetCount(&n_devices)) != PF_CU_SUCCESS) {
    (void)snprintf(why_none, sizeof(why_none),
                   "the NVIDIA driver does not start: %s",
                   result_text(text, sizeof(text), result));
    n_devices = 0;
    return false;
  }
  if (n_devices > PF_CUDA_MAX_DEVICES)
    n_devices = PF_CUDA_MAX_DEVICES;
  if (n_devices <= 0)
    (void)snprintf(
        why_none, sizeof(why_none), "the NVIDIA driver shows no card%s",
        getenv("CUDA_VISIBLE_DEVICES") ? " (CUDA_VISIBLE_DEVICES is set)"
                                       : "");
  (void)pf_cu.cuDriverGetVersion(&driver_version);
  return n_devices > 0;
}

static int attribute(const struct pf_cuda_device *device, int which) {
  int value = 0;
  if (pf_cu.cuDeviceGetAttribute(&value, which, device->handle) !=
      PF_CU_SUCCESS)
    return 0;
  return value;
}

static void describe(struct pf_cuda_device *device, int index) {
  device->index = index;
  if (pf_cu.cuDeviceGet(&device->handle, index) != PF_CU_SUCCESS)
    device->handle = index;
  if (pf_cu.cuDeviceGetName(device->name, (int)sizeof(device->name),
                            device->handle) != PF_CU_SUCCESS)
    (void)snprintf(device->name, sizeof(device->name), "unknown");
  device->name[sizeof(device->name) - 1] = '\0';
  device->capability = attribute(device, PF_CU_CAPABILITY_MAJOR) * 10 +
                       attribute(device, PF_CU_CAPABILITY_MINOR);
}

static void load(void) {
  void *library = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    (void)snprintf(why_none, sizeof(why_none),
                   DRIVER " cannot be loaded; install the NVIDIA driver where "
                          "there is a card");
    return;
  }
  if (!find_functions(library) || !start_driver())
    return; /* the library stays: others may use it */
  for (int i = 0; i < n_devices; i++)
    describe(&devices[i], i);
}

static int cuda_count(struct pf_error *err) {
  (void)pthread_once(&once, load);
  if (n_devices == 0)
    (void)pf_error_set(err, PF_EMISSING, "%s", why_none);
  return n_devices;
}

struct pf_cuda_device *pf_cuda_device(int index, struct pf_error *err) {
  int n = cuda_count(err);
  if (index >= 0 && index < n)
    return &devices[index];
  if (n > 0)
    (void)pf_error_set(err, PF_EMISSING,
                       "there is no cuda:%d: this machine has 0 to %d", index,
                       n - 1);
  return NULL;
}

static int cuda_info(int index, struct pf_device_info *out,
                     struct pf_error *err) {
  struct pf_cuda_device *device = pf_cuda_device(index, err);
  size_t total = 0;
  memset(out, 0, sizeof(*out));
  if (!device)
    return PF_EMISSING;
  (void)pf_cu.cuDeviceTotalMem(&total, device->handle);
  (void)pf_cu.cuDeviceGetPCIBusId(out->bus, (int)sizeof(out->bus),
                                  device->handle);
  (void)snprintf(out->name, sizeof(out->name), "%s", device->name);
  (void)snprintf(out->driver, sizeof(out->driver), "CUDA %d.%d",
                 driver_version / 1000, driver_version % 1000 / 10);
  out->total = out->largest = total;
  out->shares_host = attribute(device, PF_CU_INTEGRATED) != 0;
  out->alignment = 1;
  return PF_OK;
}

/* -- contexts and errors ---------------------------------------------------
 */

int pf_cuda_check(struct pf_cuda_device *device, int result, size_t n_bytes,
                  const char *what, struct pf_error *err) {
  const struct result_row *row = find_result(result);
  size_t n_free = 0, total = 0;
  char text[160];
  if (result == PF_CU_SUCCESS)
    return PF_OK;
  if (result == PF_CU_OUT_OF_MEMORY) {
    if (pf_cu.cuMemGetInfo(&n_free, &total) != PF_CU_SUCCESS)
      n_free = total = 0;
    return pf_error_set(err, PF_ENOMEM,
                        "out of memory on cuda:%d: cannot %s, asked for %zu "
                        "bytes, %zu of %zu are free",
                        device->index, what, n_bytes, n_free, total);
  }
  if (row && row->is_lost)
    atomic_store(&device->is_dead, true);
  return pf_error_set(
      err, PF_EBUG, "cannot %s on cuda:%d (%s): %s%s", what, device->index,
      device->name, result_text(text, sizeof(text), result),
      row && row->is_lost ? "; the card is lost to this process, start again"
                          : "");
}

static int open_locked(struct pf_cuda_device *device, struct pf_error *err) {
  struct pf_cu_context *ignored = NULL;
  int result =
      pf_cu.cuDevicePrimaryCtxRetain(&device->context, device->handle);
  if (result == PF_CU_SUCCESS)
    result = pf_cu.cuCtxPushCurrent(device->context);
  if (result != PF_CU_SUCCESS)
    return pf_cuda_check(device, result, 0, "open the context", err);
  pf_cuda_memory_open(device);
  (void)pf_cu.cuCtxPopCurrent(&ignored);
  atomic_store_explicit(&device->is_open, true, memory_order_release);
  return PF_OK;
}

static int open_device(struct pf_cuda_device *device, struct pf_error *err) {
  int code = PF_OK;
  if (atomic_load_explicit(&device->is_open, memory_order_acquire))
    return PF_OK;
  (void)pthread_mutex_lock(&lock);
  if (!atomic_load_explicit(&device->is_open, memory_order_relaxed))
    code = open_locked(device, err);
  (void)pthread_mutex_unlock(&lock);
  return code;
}

int pf_cuda_enter(struct pf_cuda_scope *scope, int index,
                  struct pf_error *err) {
  struct pf_cuda_device *device = pf_cuda_device(index, err);
  struct pf_cu_context *current = NULL;
  int code = PF_OK;
  *scope = (struct pf_cuda_scope){.device = device};
  if (!device)
    return PF_EMISSING;
  if (atomic_load(&device->is_dead))
    return pf_error_set(err, PF_EBUG,
                        "cuda:%d (%s) is lost to this process since an "
                        "earlier error; start again",
                        index, device->name);
  if ((code = open_device(device, err)) != PF_OK)
    return code;
  if (pf_cu.cuCtxGetCurrent(&current) == PF_CU_SUCCESS &&
      current == device->context)
    return PF_OK;
  code = pf_cuda_check(device, pf_cu.cuCtxPushCurrent(device->context), 0,
                       "use the context", err);
  scope->is_pushed = code == PF_OK;
  return code;
}

void pf_cuda_leave(struct pf_cuda_scope *scope) {
  struct pf_cu_context *ours = NULL;
  if (scope->is_pushed)
    (void)pf_cu.cuCtxPopCurrent(&ours);
  scope->is_pushed = false;
}

static bool cuda_is_dead(int index) {
  struct pf_cuda_device *device = pf_cuda_device(index, NULL);
  return device && atomic_load(&device->is_dead);
}

const struct pf_device_ops pf_device_cuda_ops = {
    .name = "cuda",
    .kind = PF_DEVICE_CUDA,
    .count = cuda_count,
    .info = cuda_info,
    .memory_info = pf_cuda_memory_info,
    .alloc = pf_cuda_alloc,
    .free = pf_cuda_free,
    .clear = pf_cuda_clear,
    .to_device = pf_cuda_to_device,
    .to_host = pf_cuda_to_host,
    .within = pf_cuda_within,
    .peer = pf_cuda_peer,
    .stream_create = pf_cuda_stream_create,
    .stream_sync = pf_cuda_stream_sync,
    .event_record = pf_cuda_event_record,
    .event_wait = pf_cuda_event_wait,
    .event_sync = pf_cuda_event_sync,
    .event_done = pf_cuda_event_done,
    .pinned_alloc = pf_cuda_pinned_alloc,
    .pinned_free = pf_cuda_pinned_free,
    .kernel = pf_cuda_kernel,
    .launch = pf_cuda_launch,
    .is_dead = cuda_is_dead,
};
