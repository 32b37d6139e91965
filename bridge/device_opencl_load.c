/*
 * OpenCL's loader, found at run time, its devices and their contexts.
 *
 * Everything is looked up once. What a process loaded stays loaded: drivers
 * have threads and exit handlers of their own.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/opencl_private.h"

enum { MAX_PLATFORMS = 32, MAX_DEVICES = 64 };

struct pf_cl_functions pf_cl;

/* Filled by load() under `once`, constant from then on. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct pf_cl_device *devices;
static int n_devices;
static char missing[256]; /* why there is none */

/* -- statuses ----------------------------------------------------------- */

struct status_row {
  int32_t value;
  const char *name;
};

static const struct status_row statuses[] = {
#define XX(name, value) {value, "CL_" #name},
    PF_CL_STATUS_MAP(XX)
#undef XX
};

static const char *status_name(int32_t status) {
  for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
    if (statuses[i].value == status)
      return statuses[i].name;
  return "an unknown status";
}

/* CL_OUT_OF_RESOURCES is not here: a kernel that reads where it must not, or
 * needs too many registers, says so too, and no memory would help. */
static bool is_out_of_memory(int32_t status) {
  return status == PF_CL_MEM_OBJECT_ALLOCATION_FAILURE ||
         status == PF_CL_OUT_OF_HOST_MEMORY ||
         status == PF_CL_INVALID_BUFFER_SIZE;
}

static bool is_sticky(int32_t status) {
  return status == PF_CL_DEVICE_NOT_AVAILABLE ||
         status == PF_CL_INVALID_COMMAND_QUEUE ||
         status == PF_CL_CONTEXT_TERMINATED_KHR;
}

int pf_cl_fail(struct pf_cl_device *device, int32_t status, const char *what,
               struct pf_error *err) {
  if (is_sticky(status))
    atomic_store(&device->is_dead, true);
  return pf_error_set(err, is_out_of_memory(status) ? PF_ENOMEM : PF_EBUG,
                      "cannot %s on opencl:%d (%s): %s (%d)", what,
                      device->index, device->info.name, status_name(status),
                      (int)status);
}

/* -- the loader --------------------------------------------------------- */

static bool load_functions(void) {
  void *loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!loader) {
    (void)snprintf(missing, sizeof(missing),
                   "OpenCL's loader libOpenCL.so.1 is not on this machine "
                   "(Debian: ocl-icd-libopencl1)");
    return false;
  }
#define XX(type, name, arguments)                                             \
  *(void **)&pf_cl.name = dlsym(loader, #name);                               \
  if (!pf_cl.name) {                                                          \
    (void)snprintf(missing, sizeof(missing),                                  \
                   "libOpenCL.so.1 has no function %s: OpenCL 1.2 is needed", \
                   #name);                                                    \
    return false;                                                             \
  }
  PF_CL_FUNCTION_MAP(XX)
#undef XX
  return true;
}

static void get_text(struct pf_cl_device_id *id, uint32_t what, char *text,
                     size_t size) {
  size_t n = 0;
  text[0] = '\0';
  if (pf_cl.clGetDeviceInfo(id, what, size, text, &n) != PF_CL_SUCCESS) {
    char *whole = NULL; /* longer than there is room: cut it */
    if (pf_cl.clGetDeviceInfo(id, what, 0, NULL, &n) == PF_CL_SUCCESS &&
        (whole = calloc(1, n + 1)) &&
        pf_cl.clGetDeviceInfo(id, what, n, whole, NULL) == PF_CL_SUCCESS)
      (void)snprintf(text, size, "%s", whole);
    free(whole);
  }
  text[size - 1] = '\0';
}

/* A number of `size` bytes; 0 where the device does not know it. */
static uint64_t get_number(struct pf_cl_device_id *id, uint32_t what,
                           size_t size) {
  uint32_t small = 0;
  uint64_t large = 0;
  void *at = size == sizeof(small) ? (void *)&small : (void *)&large;
  if (pf_cl.clGetDeviceInfo(id, what, size, at, NULL) != PF_CL_SUCCESS)
    return 0;
  return size == sizeof(small) ? small : large;
}

static void get_bus(struct pf_cl_device_id *id, char *text, size_t size) {
  struct pf_cl_pci_info pci = {0};
  char extensions[8192];
  get_text(id, PF_CL_DEVICE_EXTENSIONS, extensions, sizeof(extensions));
  if (strstr(extensions, "cl_khr_pci_bus_info") &&
      pf_cl.clGetDeviceInfo(id, PF_CL_DEVICE_PCI_BUS_INFO_KHR, sizeof(pci),
                            &pci, NULL) == PF_CL_SUCCESS)
    (void)snprintf(text, size, "%08x:%02x:%02x.%x", pci.domain, pci.bus,
                   pci.device, pci.function);
}

static void get_info(struct pf_cl_device_id *id, struct pf_device_info *info) {
  const uint64_t type = get_number(id, PF_CL_DEVICE_TYPE, 8);
  get_text(id, PF_CL_DEVICE_NAME, info->name, sizeof(info->name));
  get_text(id, PF_CL_DRIVER_VERSION, info->driver, sizeof(info->driver));
  get_bus(id, info->bus, sizeof(info->bus));
  info->total = get_number(id, PF_CL_DEVICE_GLOBAL_MEM_SIZE, 8);
  info->largest = get_number(id, PF_CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8);
  info->is_cpu = (type & PF_CL_DEVICE_TYPE_CPU) != 0;
  info->shares_host =
      info->is_cpu || get_number(id, PF_CL_DEVICE_HOST_UNIFIED_MEMORY, 4) != 0;
  info->alignment =
      (uint32_t)get_number(id, PF_CL_DEVICE_MEM_BASE_ADDR_ALIGN, 4) / 8;
}

static int take_memory(int index, size_t n_bytes, void **data,
                       struct pf_error *err) {
  struct pf_cl_device *device = &devices[index];
  struct pf_cl_context *context = NULL;
  int32_t status = PF_CL_SUCCESS;
  int code = pf_cl_current(device, &context, err);
  if (code != PF_OK)
    return code;
  *data = pf_cl.clCreateBuffer(context, PF_CL_MEM_READ_WRITE, n_bytes, NULL,
                               &status);
  if (*data)
    return PF_OK;
  code = pf_cl_fail(device, status, "allocate", err);
  pf_error_prefix(err, "asked for %zu bytes, the largest is %llu", n_bytes,
                  (unsigned long long)device->info.largest);
  return code;
}

static void give_memory(int index, void *data, size_t n_bytes) {
  (void)index;
  (void)n_bytes;
  (void)pf_cl.clReleaseMemObject(data);
}

/* No contraction: a sum rounds after each operation, as on the host. */
static const char *const preludes[] = {
    "#pragma OPENCL FP_CONTRACT OFF\n#line 1\n",
    "#pragma OPENCL FP_CONTRACT OFF\n"
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
    "#define PF_HAS_DOUBLE 1\n#line 1\n"};

static void set_device(struct pf_cl_device *device, int index,
                       struct pf_cl_device_id *id) {
  const uint64_t rounding = PF_CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
  device->index = index;
  device->id = id;
  get_info(id, &device->info);
  device->has_double = get_number(id, PF_CL_DEVICE_DOUBLE_FP_CONFIG, 8) != 0;
  device->prelude = preludes[device->has_double];
  (void)snprintf(device->options, sizeof(device->options), "-cl-std=CL1.2%s",
                 get_number(id, PF_CL_DEVICE_SINGLE_FP_CONFIG, 8) & rounding
                     ? " -cl-fp32-correctly-rounded-divide-sqrt"
                     : "");
  device->pool.ops = &pf_device_opencl_ops;
  device->pool.index = index;
  device->pool.take = take_memory;
  device->pool.give = give_memory;
  /* Where the device's memory is the host's, a large pool would be taken from
   * everybody else. */
  device->pool.total = device->info.total;
  device->pool.keep =
      device->info.shares_host ? (uint64_t)256 << 20 : device->info.total / 2;
  (void)pthread_mutex_init(&device->pool.lock, NULL);
  (void)pthread_mutex_init(&device->lock, NULL);
  atomic_init(&device->is_dead, false);
}

static uint32_t list_devices(struct pf_cl_device_id **ids) {
  struct pf_cl_platform *platforms[MAX_PLATFORMS];
  uint32_t n_platforms = 0, n = 0;
  if (pf_cl.clGetPlatformIDs(MAX_PLATFORMS, platforms, &n_platforms) !=
      PF_CL_SUCCESS)
    return 0; /* CL_PLATFORM_NOT_FOUND_KHR, mostly */
  if (n_platforms > MAX_PLATFORMS)
    n_platforms = MAX_PLATFORMS;
  for (uint32_t i = 0; i < n_platforms && n < MAX_DEVICES; i++) {
    uint32_t more = 0;
    if (pf_cl.clGetDeviceIDs(platforms[i], PF_CL_DEVICE_TYPE_ALL,
                             MAX_DEVICES - n, ids + n, &more) != PF_CL_SUCCESS)
      continue; /* a platform without devices */
    n += more < MAX_DEVICES - n ? more : MAX_DEVICES - n;
  }
  return n;
}

static void load(void) {
  struct pf_cl_device_id *ids[MAX_DEVICES];
  uint32_t n;
  if (!load_functions())
    return;
  n = list_devices(ids);
  if (n)
    devices = calloc(n, sizeof(*devices));
  if (!devices) {
    (void)snprintf(missing, sizeof(missing),
                   "OpenCL finds no device: install a driver's ICD "
                   "(for the CPU, Debian: pocl-opencl-icd)");
    return;
  }
  for (uint32_t i = 0; i < n; i++)
    set_device(&devices[i], (int)i, ids[i]);
  n_devices = (int)n;
}

int pf_cl_count(struct pf_error *err) {
  (void)pthread_once(&once, load);
  if (!n_devices)
    (void)pf_error_set(err, PF_EMISSING, "%s", missing);
  return n_devices;
}

struct pf_cl_device *pf_cl_device(int index, struct pf_error *err) {
  const int n = pf_cl_count(err);
  if (n && index >= 0 && index < n)
    return &devices[index];
  if (n)
    (void)pf_error_set(err, PF_EMISSING,
                       "there is no device opencl:%d: there are %d, "
                       "from opencl:0 on",
                       index, n);
  return NULL;
}

/* -- contexts ----------------------------------------------------------- */

int pf_cl_make_queue(struct pf_cl_device *device,
                     struct pf_cl_context *context, struct pf_cl_queue **out,
                     struct pf_error *err) {
  int32_t status = PF_CL_SUCCESS;
  *out = pf_cl.clCreateCommandQueue(context, device->id, 0, &status);
  return *out ? PF_OK : pf_cl_fail(device, status, "make a queue", err);
}

static int make_context(struct pf_cl_device *device, struct pf_error *err) {
  int32_t status = PF_CL_SUCCESS;
  struct pf_cl_context *context =
      pf_cl.clCreateContext(NULL, 1, &device->id, NULL, NULL, &status);
  if (!context)
    return pf_cl_fail(device, status, "make a context", err);
  device->context = context;
  return PF_OK;
}

int pf_cl_current(struct pf_cl_device *device, struct pf_cl_context **context,
                  struct pf_error *err) {
  int code = PF_OK;
  (void)pthread_mutex_lock(&device->lock);
  if (!device->context)
    code = make_context(device, err);
  *context = device->context;
  (void)pthread_mutex_unlock(&device->lock);
  return code;
}

/* The context is retained for ever: arrays of it may outlive its maker. The
 * kernels of the one before stay for those that use them now. */
static void adopt(struct pf_cl_device *device, struct pf_cl_context *context) {
  bool changes;
  (void)pthread_mutex_lock(&device->lock);
  changes = device->context != context;
  if (changes) {
    (void)pf_cl.clRetainContext(context);
    device->context = context;
  }
  (void)pthread_mutex_unlock(&device->lock);
  if (changes)
    pf_device_pool_clear(&device->pool);
}

int pf_opencl_adopt(void *cl_mem, int *index, struct pf_error *err) {
  struct pf_cl_device_id *ids[MAX_DEVICES];
  struct pf_cl_context *context = NULL;
  size_t size = 0;
  *index = -1;
  if (!pf_cl_count(err))
    return PF_EMISSING;
  context = cl_mem ? pf_cl_context_of(cl_mem) : NULL;
  if (!context ||
      pf_cl.clGetContextInfo(context, PF_CL_CONTEXT_DEVICES, sizeof(ids), ids,
                             &size) != PF_CL_SUCCESS)
    return pf_error_set(err, PF_EINVAL,
                        "cannot take a context from what is no OpenCL buffer");
  for (size_t k = 0; k < size / sizeof(ids[0]); k++)
    for (int i = 0; i < n_devices; i++)
      if (devices[i].id == ids[k]) {
        adopt(&devices[i], context);
        *index = *index < 0 ? i : *index;
      }
  if (*index < 0)
    return pf_error_set(err, PF_EMISSING,
                        "the buffer's device is none of OpenCL's loader");
  return PF_OK;
}

bool pf_opencl_has_double(int index) {
  const struct pf_cl_device *device = pf_cl_device(index, NULL);
  return device && device->has_double;
}
