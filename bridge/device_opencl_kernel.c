/* Programs from source, kept in memory, and their launches. */
#include <stdlib.h>
#include <string.h>

#include "bridge/array_private.h"
#include "bridge/opencl_private.h"

/* One kernel of one program, for one context. */
struct pf_kernel {
  /* Set once. */
  struct pf_kernel *next;
  struct pf_cl_device *device;
  struct pf_cl_context *context;
  char *source, *name; /* with the device, the key */
  struct pf_cl_kernel *kernel;
  /* The arguments are the kernel's, not the launch's: held from the first to
   * the launch. */
  pthread_mutex_t lock;
};

static void drop_kernel(struct pf_kernel *kernel) {
  if (!kernel)
    return;
  free(kernel->source);
  free(kernel->name);
  free(kernel);
}

/* The compiler's words become the error's detail. */
static int build_failed(struct pf_cl_device *device,
                        struct pf_cl_program *program, int32_t status,
                        const char *name, struct pf_error *err) {
  char *log = NULL;
  size_t n = 0;
  int code = pf_cl_fail(device, status, "build a kernel", err);
  pf_error_prefix(err, "kernel %s", name);
  if (pf_cl.clGetProgramBuildInfo(program, device->id, PF_CL_PROGRAM_BUILD_LOG,
                                  0, NULL, &n) == PF_CL_SUCCESS &&
      n && (log = calloc(1, n + 1)) &&
      pf_cl.clGetProgramBuildInfo(program, device->id, PF_CL_PROGRAM_BUILD_LOG,
                                  n, log, NULL) == PF_CL_SUCCESS)
    pf_error_detail(err, log);
  free(log);
  return code;
}

static int build(struct pf_kernel *kernel, struct pf_error *err) {
  struct pf_cl_device *device = kernel->device;
  const char *texts[2] = {device->prelude, kernel->source};
  int32_t status = PF_CL_SUCCESS;
  int code = PF_OK;
  struct pf_cl_program *program = pf_cl.clCreateProgramWithSource(
      kernel->context, 2, texts, NULL, &status);
  if (!program)
    return pf_cl_fail(device, status, "make a program", err);
  status = pf_cl.clBuildProgram(program, 1, &device->id, device->options, NULL,
                                NULL);
  if (status != PF_CL_SUCCESS)
    code = build_failed(device, program, status, kernel->name, err);
  else if (!(kernel->kernel =
                 pf_cl.clCreateKernel(program, kernel->name, &status)))
    code = pf_cl_fail(device, status, "find a kernel in its program", err);
  (void)pf_cl.clReleaseProgram(program); /* the kernel holds it */
  return code;
}

static int make_kernel(struct pf_cl_device *device,
                       struct pf_cl_context *context, const char *source,
                       const char *name, struct pf_kernel **out,
                       struct pf_error *err) {
  struct pf_kernel *kernel = calloc(1, sizeof(*kernel));
  int code;
  if (kernel) {
    kernel->source = strdup(source);
    kernel->name = strdup(name);
  }
  if (!kernel || !kernel->source || !kernel->name) {
    drop_kernel(kernel);
    return pf_error_set(err, PF_ENOMEM, "no memory for a kernel");
  }
  kernel->device = device;
  kernel->context = context;
  code = build(kernel, err);
  if (code != PF_OK) {
    drop_kernel(kernel);
    return code;
  }
  (void)pthread_mutex_init(&kernel->lock, NULL);
  *out = kernel;
  return PF_OK;
}

static struct pf_kernel *find_locked(struct pf_cl_device *device,
                                     const struct pf_cl_context *context,
                                     const char *source, const char *name) {
  for (struct pf_kernel *k = device->kernels; k; k = k->next)
    if (k->context == context && strcmp(k->name, name) == 0 &&
        strcmp(k->source, source) == 0)
      return k;
  return NULL;
}

/* One thread builds at a time, so that none builds what another does. */
int pf_cl_kernel(int index, const char *source, const char *name,
                 struct pf_kernel **out, struct pf_error *err) {
  struct pf_cl_device *device = pf_cl_device(index, err);
  struct pf_cl_context *context = NULL;
  int code;
  *out = NULL;
  if (!device)
    return PF_EMISSING;
  code = pf_cl_current(device, &context, err);
  if (code != PF_OK)
    return code;
  (void)pthread_mutex_lock(&device->lock);
  *out = find_locked(device, context, source, name);
  if (!*out) {
    code = make_kernel(device, context, source, name, out, err);
    if (code == PF_OK) {
      (*out)->next = device->kernels;
      device->kernels = *out;
    }
  }
  (void)pthread_mutex_unlock(&device->lock);
  return code;
}

static int set_argument(struct pf_kernel *kernel, uint32_t i,
                        const struct pf_kernel_argument *argument,
                        struct pf_error *err) {
  struct pf_cl_mem *buffer = NULL;
  const void *value = argument->value;
  size_t n_bytes = argument->n_bytes;
  int32_t status;
  int code;
  if (argument->array) {
    buffer = argument->array->data;
    if (argument->array->offset)
      return pf_error_set(err, PF_EINVAL,
                          "argument %u of kernel %s begins within its "
                          "buffer: copy it first",
                          i, kernel->name);
    if (pf_cl_context_of(buffer) != kernel->context)
      return pf_error_set(err, PF_EINVAL,
                          "argument %u of kernel %s is of another OpenCL "
                          "context: copy it to the device again",
                          i, kernel->name);
    value = &buffer;
    n_bytes = sizeof(buffer);
  }
  status = pf_cl.clSetKernelArg(kernel->kernel, i, n_bytes, value);
  if (status == PF_CL_SUCCESS)
    return PF_OK;
  code = pf_cl_fail(kernel->device, status, "set an argument", err);
  pf_error_prefix(err, "kernel %s, argument %u", kernel->name, i);
  return code;
}

static int launch_locked(struct pf_kernel *kernel, struct pf_cl_queue *queue,
                         const size_t *global, const size_t *local,
                         const struct pf_kernel_argument *arguments, size_t n,
                         struct pf_error *err) {
  int32_t status;
  for (size_t i = 0; i < n; i++) {
    int code = set_argument(kernel, (uint32_t)i, &arguments[i], err);
    if (code != PF_OK)
      return code;
  }
  status = pf_cl.clEnqueueNDRangeKernel(queue, kernel->kernel, 3, NULL, global,
                                        local, 0, NULL, NULL);
  if (status == PF_CL_SUCCESS)
    status = pf_cl.clFlush(queue);
  if (status == PF_CL_SUCCESS)
    return PF_OK;
  pf_cl_fail(kernel->device, status, "launch a kernel", err);
  pf_error_prefix(err, "kernel %s", kernel->name);
  return err ? (int)err->code : PF_EBUG;
}

int pf_cl_launch(struct pf_kernel *kernel, struct pf_stream *stream,
                 const size_t global[3], const size_t local[3],
                 const struct pf_kernel_argument *arguments, size_t n,
                 struct pf_error *err) {
  struct pf_cl_queue *queue = NULL;
  size_t rounded[3];
  int code = pf_cl_queue_of(kernel->device, stream, &queue, err);
  if (code != PF_OK)
    return code;
  for (int i = 0; i < 3; i++) {
    const size_t group = local && local[i] ? local[i] : 1;
    if (!global[i])
      return PF_OK; /* nothing to do */
    rounded[i] = (global[i] + group - 1) / group * group;
  }
  (void)pthread_mutex_lock(&kernel->lock);
  code = launch_locked(kernel, queue, rounded, local, arguments, n, err);
  (void)pthread_mutex_unlock(&kernel->lock);
  return code;
}
