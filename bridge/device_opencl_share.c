/* Host memory as OpenCL buffers, buffers as host memory, planes as
 * sub-buffers: see bridge/opencl.h. */
#include <stdlib.h>

#include "bridge/array_private.h"
#include "bridge/opencl_private.h"

/* What a device on the CPU and one beside it need of a pointer that they are
 * to read in place (the latter maps whole pages and whole cache lines). */
enum { CPU_ALIGNMENT = 64, PAGE = 4096, LINE = 64 };

static bool is_host(const struct pf_array *array) {
  const int32_t type = pf_array_device(array).type;
  return type == PF_DEVICE_HOST || type == PF_DEVICE_CUDA_HOST;
}

static bool is_on(const struct pf_array *array) {
  return pf_array_device(array).type == PF_DEVICE_OPENCL;
}

bool pf_opencl_can_share(const struct pf_array *host, int index) {
  const struct pf_cl_device *device = pf_cl_device(index, NULL);
  const uintptr_t at = (uintptr_t)pf_array_data(host);
  const size_t n = pf_array_n_bytes(host);
  if (!device || !device->info.shares_host || !is_host(host) ||
      !pf_array_is_compact(host) || !n || n > device->info.largest)
    return false;
  if (device->info.is_cpu)
    return at % CPU_ALIGNMENT == 0;
  return at % PAGE == 0 && n % LINE == 0;
}

/* A buffer and the array whose memory it is. */
struct shared {
  struct pf_cl_device *device;
  struct pf_cl_mem *buffer;  /* owned, or of `array` while mapped */
  struct pf_array *array;    /* one reference */
  void *mapped;              /* host address, or NULL */
  struct pf_cl_queue *queue; /* it was mapped through; owned where own */
  bool own_queue;
};

static void release_buffer(void *owner) {
  struct shared *shared = owner;
  (void)pf_cl.clReleaseMemObject(shared->buffer);
  pf_array_unref(&shared->array);
  free(shared);
}

/* An array with the layout of `like` at `data`. */
static int wrap_like(struct pf_array **out, const struct pf_array *like,
                     void *data, struct pf_device device,
                     enum pf_memory_type type, bool read_only,
                     void (*release)(void *owner), void *owner,
                     struct pf_error *err) {
  const struct pf_array_desc desc = {.data = data,
                                     .dtype = pf_array_dtype(like),
                                     .ndim = pf_array_ndim(like),
                                     .shape = pf_array_shape(like),
                                     .device = device,
                                     .memory_type = type,
                                     .read_only = read_only};
  return pf_array_wrap(out, &desc, release, owner, err);
}

int pf_opencl_from_host(struct pf_array **out, struct pf_array *host,
                        int index, struct pf_error *err) {
  struct pf_cl_device *device = pf_cl_device(index, err);
  struct pf_cl_context *context = NULL;
  struct shared *shared = NULL;
  const bool read_only = !pf_array_is_writable(host);
  int32_t status = PF_CL_SUCCESS;
  int code;
  *out = NULL;
  if (!device)
    return PF_EMISSING;
  if (!pf_opencl_can_share(host, index))
    return pf_error_set(err, PF_EINVAL,
                        "opencl:%d cannot read this array where it lies",
                        index);
  code = pf_cl_current(device, &context, err);
  if (code != PF_OK)
    return code;
  shared = calloc(1, sizeof(*shared));
  if (!shared)
    return pf_error_set(err, PF_ENOMEM, "no memory for a buffer");
  shared->device = device;
  shared->array = pf_array_ref(host);
  /* READ_WRITE also for what is read-only: some libraries' kernels have no
   * constant arguments; the array says what may be written. */
  shared->buffer = pf_cl.clCreateBuffer(
      context, PF_CL_MEM_READ_WRITE | PF_CL_MEM_USE_HOST_PTR,
      pf_array_n_bytes(host), pf_array_data(host), &status);
  if (!shared->buffer) {
    pf_array_unref(&shared->array);
    free(shared);
    return pf_cl_fail(device, status, "share host memory", err);
  }
  code = wrap_like(out, host, shared->buffer,
                   (struct pf_device){PF_DEVICE_OPENCL, index}, PF_MEM_OPENCL,
                   read_only, release_buffer, shared, err);
  if (code != PF_OK)
    release_buffer(shared);
  return code;
}

/* Unmapped before the release returns: who takes the buffer next finds it as
 * the host left it. */
static void release_view(void *owner) {
  struct shared *shared = owner;
  if (shared->mapped && pf_cl.clEnqueueUnmapMemObject(
                            shared->queue, shared->buffer, shared->mapped, 0,
                            NULL, NULL) == PF_CL_SUCCESS)
    (void)pf_cl.clFinish(shared->queue);
  if (shared->own_queue)
    (void)pf_cl.clReleaseCommandQueue(shared->queue);
  pf_array_unref(&shared->array);
  free(shared);
}

static int map_buffer(struct shared *shared, bool read_only,
                      struct pf_error *err) {
  struct pf_cl_context *here = NULL, *there = pf_cl_context_of(shared->buffer);
  int32_t status = PF_CL_SUCCESS;
  int code = pf_cl_current(shared->device, &here, err);
  if (code == PF_OK && !there)
    code = pf_error_set(err, PF_EINVAL, "the array is no OpenCL buffer");
  if (code == PF_OK && here == there) {
    code = pf_cl_queue_of(shared->device, NULL, &shared->queue, err);
  } else if (code == PF_OK) {
    code = pf_cl_make_queue(shared->device, there, &shared->queue, err);
    shared->own_queue = code == PF_OK;
  }
  if (code != PF_OK)
    return code;
  shared->mapped = pf_cl.clEnqueueMapBuffer(
      shared->queue, shared->buffer, 1,
      PF_CL_MAP_READ | (read_only ? 0 : PF_CL_MAP_WRITE),
      shared->array->offset, pf_array_n_bytes(shared->array), 0, NULL, NULL,
      &status);
  return shared->mapped
             ? PF_OK
             : pf_cl_fail(shared->device, status, "map a buffer", err);
}

int pf_opencl_to_host_view(struct pf_array **out, struct pf_array *array,
                           struct pf_error *err) {
  const int index = pf_array_device(array).index;
  const bool read_only = !pf_array_is_writable(array);
  struct pf_cl_device *device = NULL;
  struct shared *shared = NULL;
  int code;
  *out = NULL;
  if (!is_on(array))
    return pf_error_set(err, PF_EINVAL, "the array is on no OpenCL device");
  device = pf_cl_device(index, err);
  if (!device)
    return PF_EMISSING;
  if (!device->info.shares_host || !pf_array_is_compact(array) ||
      !pf_array_n_bytes(array))
    return pf_error_set(err, PF_EINVAL,
                        "the memory of opencl:%d is not the host's", index);
  code = pf_array_wait(array, err);
  if (code != PF_OK)
    return code;
  shared = calloc(1, sizeof(*shared));
  if (!shared)
    return pf_error_set(err, PF_ENOMEM, "no memory for a view");
  shared->device = device;
  shared->buffer = pf_array_data(array);
  shared->array = pf_array_ref(array);
  code = map_buffer(shared, read_only, err);
  if (code == PF_OK)
    code = wrap_like(out, array, shared->mapped,
                     (struct pf_device){PF_DEVICE_HOST, 0}, PF_MEM_NATIVE,
                     read_only, release_view, shared, err);
  if (code != PF_OK)
    release_view(shared);
  return code;
}

/* -- planes ------------------------------------------------------------- */

static size_t plane_bytes(const struct pf_array *stack) {
  const int64_t *shape = pf_array_shape(stack);
  return (size_t)(shape[1] * shape[2]) * pf_dtype_size(pf_array_dtype(stack));
}

static bool is_stack(const struct pf_array *stack) {
  return is_on(stack) && pf_array_ndim(stack) == 3 &&
         pf_array_is_compact(stack) && pf_array_size(stack) > 0;
}

bool pf_opencl_can_unstack(const struct pf_array *stack) {
  const struct pf_cl_device *device = NULL;
  if (!is_stack(stack))
    return false;
  device = pf_cl_device(pf_array_device(stack).index, NULL);
  return device && device->info.alignment &&
         (pf_array_shape(stack)[0] == 1 ||
          plane_bytes(stack) % device->info.alignment == 0) &&
         stack->offset % device->info.alignment == 0;
}

/* A sub-buffer has no sub-buffers: *origin is within its own buffer. */
static struct pf_cl_mem *root_of(struct pf_cl_mem *buffer, size_t *origin) {
  struct pf_cl_mem *root = NULL;
  size_t offset = 0;
  if (pf_cl.clGetMemObjectInfo(buffer, PF_CL_MEM_ASSOCIATED_MEMOBJECT,
                               sizeof(root), &root, NULL) != PF_CL_SUCCESS ||
      !root ||
      pf_cl.clGetMemObjectInfo(buffer, PF_CL_MEM_OFFSET, sizeof(offset),
                               &offset, NULL) != PF_CL_SUCCESS)
    return buffer;
  *origin += offset;
  return root;
}

/* The new buffer in *out's owner holds the stack. */
static int wrap_plane(struct pf_array **out, struct pf_cl_device *device,
                      struct pf_array *stack, struct pf_cl_mem *buffer,
                      struct pf_error *err) {
  const struct pf_array_desc desc = {
      .data = buffer,
      .dtype = pf_array_dtype(stack),
      .ndim = 2,
      .shape = pf_array_shape(stack) + 1,
      .device = pf_array_device(stack),
      .memory_type = pf_array_memory_type(stack),
      .read_only = pf_array_is_read_only(stack)};
  struct shared *shared = calloc(1, sizeof(*shared));
  int code;
  if (!shared) {
    (void)pf_cl.clReleaseMemObject(buffer);
    return pf_error_set(err, PF_ENOMEM, "no memory for a plane");
  }
  shared->device = device;
  shared->buffer = buffer;
  shared->array = pf_array_ref(stack);
  code = pf_array_wrap(out, &desc, release_buffer, shared, err);
  if (code != PF_OK)
    release_buffer(shared);
  else
    pf_array_set_event(*out, pf_array_event(stack));
  return code;
}

int pf_opencl_plane(struct pf_array **out, struct pf_array *stack, int64_t z,
                    struct pf_error *err) {
  char text[PF_ARRAY_TEXT];
  struct pf_cl_region region = {0, 0};
  struct pf_cl_mem *root = NULL, *buffer = NULL;
  struct pf_cl_device *device = NULL;
  int32_t status = PF_CL_SUCCESS;
  *out = NULL;
  if (!is_stack(stack) || z < 0 || z >= pf_array_shape(stack)[0])
    return pf_error_set(
        err, PF_EINVAL, "cannot take plane %lld of an array that is %s",
        (long long)z, pf_array_text(text, sizeof(text), stack));
  device = pf_cl_device(pf_array_device(stack).index, err);
  if (!device)
    return PF_EMISSING;
  region.size = plane_bytes(stack);
  region.origin = (size_t)stack->offset + (size_t)z * region.size;
  root = root_of(pf_array_data(stack), &region.origin);
  if (!device->info.alignment || region.origin % device->info.alignment)
    return pf_error_set(err, PF_EINVAL,
                        "plane %lld begins at byte %zu, and a view on "
                        "opencl:%d at a multiple of %u: copy it",
                        (long long)z, region.origin, device->index,
                        device->info.alignment);
  buffer = pf_cl.clCreateSubBuffer(root, 0, PF_CL_BUFFER_CREATE_TYPE_REGION,
                                   &region, &status);
  if (!buffer)
    return pf_cl_fail(device, status, "make a view", err);
  return wrap_plane(out, device, stack, buffer, err);
}
