/*
 * What plateflow uses of OpenCL 1.2, declared here so that neither a build nor
 * a machine needs OpenCL's files: the loader is found at run time.
 *
 * Handles are opaque structs, numbers have OpenCL's own values. Private to
 * bridge/device_opencl*.c.
 */
#ifndef PF_OPENCL_API_H
#define PF_OPENCL_API_H

#include <stddef.h>
#include <stdint.h>

struct pf_cl_platform;
struct pf_cl_device_id;
struct pf_cl_context;
struct pf_cl_queue;
struct pf_cl_mem;
struct pf_cl_event;
struct pf_cl_program;
struct pf_cl_kernel;

struct pf_cl_region { /* cl_buffer_region */
  size_t origin, size;
};

struct pf_cl_pci_info { /* cl_device_pci_bus_info_khr */
  uint32_t domain, bus, device, function;
};

/* Status: value, name. What follows PF_CL_STATUS_MAP's rows is the spec's. */
#define PF_CL_STATUS_MAP(XX)                                                  \
  XX(SUCCESS, 0)                                                              \
  XX(DEVICE_NOT_FOUND, -1)                                                    \
  XX(DEVICE_NOT_AVAILABLE, -2)                                                \
  XX(COMPILER_NOT_AVAILABLE, -3)                                              \
  XX(MEM_OBJECT_ALLOCATION_FAILURE, -4)                                       \
  XX(OUT_OF_RESOURCES, -5)                                                    \
  XX(OUT_OF_HOST_MEMORY, -6)                                                  \
  XX(MEM_COPY_OVERLAP, -8)                                                    \
  XX(BUILD_PROGRAM_FAILURE, -11)                                              \
  XX(MAP_FAILURE, -12)                                                        \
  XX(MISALIGNED_SUB_BUFFER_OFFSET, -13)                                       \
  XX(EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, -14)                          \
  XX(INVALID_VALUE, -30)                                                      \
  XX(INVALID_DEVICE, -33)                                                     \
  XX(INVALID_CONTEXT, -34)                                                    \
  XX(INVALID_COMMAND_QUEUE, -36)                                              \
  XX(INVALID_HOST_PTR, -37)                                                   \
  XX(INVALID_MEM_OBJECT, -38)                                                 \
  XX(INVALID_BUILD_OPTIONS, -43)                                              \
  XX(INVALID_PROGRAM_EXECUTABLE, -45)                                         \
  XX(INVALID_KERNEL_NAME, -46)                                                \
  XX(INVALID_ARG_INDEX, -49)                                                  \
  XX(INVALID_ARG_VALUE, -50)                                                  \
  XX(INVALID_ARG_SIZE, -51)                                                   \
  XX(INVALID_KERNEL_ARGS, -52)                                                \
  XX(INVALID_WORK_GROUP_SIZE, -54)                                            \
  XX(INVALID_WORK_ITEM_SIZE, -55)                                             \
  XX(INVALID_EVENT_WAIT_LIST, -57)                                            \
  XX(INVALID_BUFFER_SIZE, -61)                                                \
  XX(INVALID_GLOBAL_WORK_SIZE, -63)                                           \
  XX(PLATFORM_NOT_FOUND_KHR, -1001)                                           \
  XX(CONTEXT_TERMINATED_KHR, -1121)

enum pf_cl_status {
#define XX(name, value) PF_CL_##name = value,
  PF_CL_STATUS_MAP(XX)
#undef XX
};

/* Questions (cl_*_info). */
enum {
  PF_CL_DEVICE_TYPE = 0x1000,
  PF_CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
  PF_CL_DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019, /* in bits */
  PF_CL_DEVICE_SINGLE_FP_CONFIG = 0x101b,
  PF_CL_DEVICE_GLOBAL_MEM_SIZE = 0x101f,
  PF_CL_DEVICE_NAME = 0x102b,
  PF_CL_DRIVER_VERSION = 0x102d,
  PF_CL_DEVICE_VERSION = 0x102f,
  PF_CL_DEVICE_EXTENSIONS = 0x1030,
  PF_CL_DEVICE_DOUBLE_FP_CONFIG = 0x1032,
  PF_CL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035,
  PF_CL_DEVICE_PCI_BUS_INFO_KHR = 0x410f,
  PF_CL_CONTEXT_DEVICES = 0x1081,
  PF_CL_MEM_SIZE = 0x1102,
  PF_CL_MEM_CONTEXT = 0x1106,
  PF_CL_MEM_ASSOCIATED_MEMOBJECT = 0x1107,
  PF_CL_MEM_OFFSET = 0x1108,
  PF_CL_PROGRAM_BUILD_LOG = 0x1183,
  PF_CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11d3
};

/* Flags and kinds. */
#define PF_CL_DEVICE_TYPE_ALL ((uint64_t)0xffffffff)
enum {
  PF_CL_DEVICE_TYPE_CPU = 1 << 1,
  PF_CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 1 << 7,
  PF_CL_MEM_READ_WRITE = 1 << 0,
  PF_CL_MEM_READ_ONLY = 1 << 2,
  PF_CL_MEM_USE_HOST_PTR = 1 << 3,
  PF_CL_MAP_READ = 1 << 0,
  PF_CL_MAP_WRITE = 1 << 1,
  PF_CL_BUFFER_CREATE_TYPE_REGION = 0x1220,
  PF_CL_COMPLETE = 0
};

#define PF_CL_WAITS                                                           \
  uint32_t n_waits, struct pf_cl_event *const *waits, struct pf_cl_event **done

/* Result, name, arguments of each function of the loader. */
#define PF_CL_FUNCTION_MAP(XX)                                                \
  XX(int32_t, clGetPlatformIDs,                                               \
     (uint32_t n, struct pf_cl_platform * *ids, uint32_t * n_all))            \
  XX(int32_t, clGetDeviceIDs,                                                 \
     (struct pf_cl_platform * platform, uint64_t type, uint32_t n,            \
      struct pf_cl_device_id * *ids, uint32_t * n_all))                       \
  XX(int32_t, clGetDeviceInfo,                                                \
     (struct pf_cl_device_id * device, uint32_t what, size_t n, void *value,  \
      size_t *n_all))                                                         \
  XX(struct pf_cl_context *, clCreateContext,                                 \
     (const intptr_t *properties, uint32_t n_devices,                         \
      struct pf_cl_device_id *const *devices,                                 \
      void (*notify)(const char *, const void *, size_t, void *), void *user, \
      int32_t *status))                                                       \
  XX(int32_t, clRetainContext, (struct pf_cl_context * context))              \
  XX(int32_t, clGetContextInfo,                                               \
     (struct pf_cl_context * context, uint32_t what, size_t n, void *value,   \
      size_t *n_all))                                                         \
  XX(struct pf_cl_queue *, clCreateCommandQueue,                              \
     (struct pf_cl_context * context, struct pf_cl_device_id * device,        \
      uint64_t properties, int32_t * status))                                 \
  XX(int32_t, clReleaseCommandQueue, (struct pf_cl_queue * queue))            \
  XX(int32_t, clFlush, (struct pf_cl_queue * queue))                          \
  XX(int32_t, clFinish, (struct pf_cl_queue * queue))                         \
  XX(struct pf_cl_mem *, clCreateBuffer,                                      \
     (struct pf_cl_context * context, uint64_t flags, size_t n_bytes,         \
      void *host, int32_t *status))                                           \
  XX(struct pf_cl_mem *, clCreateSubBuffer,                                   \
     (struct pf_cl_mem * buffer, uint64_t flags, uint32_t kind,               \
      const struct pf_cl_region *region, int32_t *status))                    \
  XX(int32_t, clReleaseMemObject, (struct pf_cl_mem * buffer))                \
  XX(int32_t, clGetMemObjectInfo,                                             \
     (struct pf_cl_mem * buffer, uint32_t what, size_t n, void *value,        \
      size_t *n_all))                                                         \
  XX(int32_t, clEnqueueReadBuffer,                                            \
     (struct pf_cl_queue * queue, struct pf_cl_mem * from, uint32_t blocking, \
      size_t offset, size_t n_bytes, void *to, PF_CL_WAITS))                  \
  XX(int32_t, clEnqueueWriteBuffer,                                           \
     (struct pf_cl_queue * queue, struct pf_cl_mem * to, uint32_t blocking,   \
      size_t offset, size_t n_bytes, const void *from, PF_CL_WAITS))          \
  XX(int32_t, clEnqueueCopyBuffer,                                            \
     (struct pf_cl_queue * queue, struct pf_cl_mem * from,                    \
      struct pf_cl_mem * to, size_t from_offset, size_t to_offset,            \
      size_t n_bytes, PF_CL_WAITS))                                           \
  XX(void *, clEnqueueMapBuffer,                                              \
     (struct pf_cl_queue * queue, struct pf_cl_mem * buffer,                  \
      uint32_t blocking, uint64_t flags, size_t offset, size_t n_bytes,       \
      PF_CL_WAITS, int32_t * status))                                         \
  XX(int32_t, clEnqueueUnmapMemObject,                                        \
     (struct pf_cl_queue * queue, struct pf_cl_mem * buffer, void *mapped,    \
      PF_CL_WAITS))                                                           \
  XX(int32_t, clEnqueueMarkerWithWaitList,                                    \
     (struct pf_cl_queue * queue, PF_CL_WAITS))                               \
  XX(int32_t, clEnqueueBarrierWithWaitList,                                   \
     (struct pf_cl_queue * queue, PF_CL_WAITS))                               \
  XX(int32_t, clWaitForEvents,                                                \
     (uint32_t n, struct pf_cl_event *const *events))                         \
  XX(int32_t, clGetEventInfo,                                                 \
     (struct pf_cl_event * event, uint32_t what, size_t n, void *value,       \
      size_t *n_all))                                                         \
  XX(int32_t, clReleaseEvent, (struct pf_cl_event * event))                   \
  XX(struct pf_cl_program *, clCreateProgramWithSource,                       \
     (struct pf_cl_context * context, uint32_t n, const char **texts,         \
      const size_t *lengths, int32_t *status))                                \
  XX(int32_t, clBuildProgram,                                                 \
     (struct pf_cl_program * program, uint32_t n_devices,                     \
      struct pf_cl_device_id *const *devices, const char *options,            \
      void (*notify)(struct pf_cl_program *, void *), void *user))            \
  XX(int32_t, clGetProgramBuildInfo,                                          \
     (struct pf_cl_program * program, struct pf_cl_device_id * device,        \
      uint32_t what, size_t n, void *value, size_t *n_all))                   \
  XX(int32_t, clReleaseProgram, (struct pf_cl_program * program))             \
  XX(struct pf_cl_kernel *, clCreateKernel,                                   \
     (struct pf_cl_program * program, const char *name, int32_t *status))     \
  XX(int32_t, clSetKernelArg,                                                 \
     (struct pf_cl_kernel * kernel, uint32_t index, size_t n,                 \
      const void *value))                                                     \
  XX(int32_t, clEnqueueNDRangeKernel,                                         \
     (struct pf_cl_queue * queue, struct pf_cl_kernel * kernel,               \
      uint32_t n_dims, const size_t *offset, const size_t *global,            \
      const size_t *local, PF_CL_WAITS))

/* The loader's functions, all set once it is loaded. */
struct pf_cl_functions {
#define XX(type, name, arguments) type(*name) arguments;
  PF_CL_FUNCTION_MAP(XX)
#undef XX
};

#endif
