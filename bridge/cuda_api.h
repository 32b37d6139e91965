/*
 * What plateflow uses of the CUDA driver's interface, declared here so that
 * neither a build nor a machine needs CUDA's files: the driver is found at run
 * time. Handles are opaque structs, numbers have CUDA's own values.
 *
 * Private to bridge/device_cuda*.c and to what stands in for the driver in
 * tests/fakecuda.
 */
#ifndef PF_CUDA_API_H
#define PF_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

struct pf_cu_context;
struct pf_cu_stream;
struct pf_cu_event;
struct pf_cu_mempool;
struct pf_cu_module;
struct pf_cu_function;

typedef uint64_t pf_cu_address; /* of device memory */

struct pf_cu_access { /* CUmemAccessDesc: who may reach a pool's memory */
  int location_type, location_id, flags;
};

/* Results: value, name, whether the context is lost with it. */
#define PF_CU_RESULT_MAP(XX)                                                  \
  XX(SUCCESS, 0, 0)                                                           \
  XX(INVALID_VALUE, 1, 0)                                                     \
  XX(OUT_OF_MEMORY, 2, 0)                                                     \
  XX(NOT_INITIALIZED, 3, 0)                                                   \
  XX(DEINITIALIZED, 4, 1)                                                     \
  XX(STUB_LIBRARY, 34, 0)                                                     \
  XX(NO_DEVICE, 100, 0)                                                       \
  XX(INVALID_DEVICE, 101, 0)                                                  \
  XX(INVALID_IMAGE, 200, 0)                                                   \
  XX(INVALID_CONTEXT, 201, 0)                                                 \
  XX(NO_BINARY_FOR_GPU, 209, 0)                                               \
  XX(ECC_UNCORRECTABLE, 214, 1)                                               \
  XX(INVALID_PTX, 218, 0)                                                     \
  XX(NVLINK_UNCORRECTABLE, 220, 1)                                            \
  XX(UNSUPPORTED_PTX_VERSION, 222, 0)                                         \
  XX(CONTAINED, 226, 1)                                                       \
  XX(SHARED_OBJECT_INIT_FAILED, 303, 0)                                       \
  XX(INVALID_HANDLE, 400, 0)                                                  \
  XX(NOT_FOUND, 500, 0)                                                       \
  XX(NOT_READY, 600, 0)                                                       \
  XX(ILLEGAL_ADDRESS, 700, 1)                                                 \
  XX(LAUNCH_OUT_OF_RESOURCES, 701, 0)                                         \
  XX(LAUNCH_TIMEOUT, 702, 1)                                                  \
  XX(PEER_ACCESS_ALREADY_ENABLED, 704, 0)                                     \
  XX(CONTEXT_IS_DESTROYED, 709, 1)                                            \
  XX(ASSERT, 710, 1)                                                          \
  XX(HARDWARE_STACK_ERROR, 714, 1)                                            \
  XX(ILLEGAL_INSTRUCTION, 715, 1)                                             \
  XX(MISALIGNED_ADDRESS, 716, 1)                                              \
  XX(INVALID_ADDRESS_SPACE, 717, 1)                                           \
  XX(INVALID_PC, 718, 1)                                                      \
  XX(LAUNCH_FAILED, 719, 1)                                                   \
  XX(NOT_SUPPORTED, 801, 0)                                                   \
  XX(SYSTEM_DRIVER_MISMATCH, 803, 0)                                          \
  XX(UNKNOWN, 999, 1)

enum pf_cu_result {
#define XX(name, value, is_lost) PF_CU_##name = value,
  PF_CU_RESULT_MAP(XX)
#undef XX
};

enum {
  PF_CU_STREAM_NON_BLOCKING = 1,
  PF_CU_EVENT_DISABLE_TIMING = 2,
  PF_CU_HOST_PORTABLE = 1,
  PF_CU_JIT_ERROR_LOG = 5,
  PF_CU_JIT_ERROR_LOG_SIZE = 6,
  PF_CU_LOCATION_DEVICE = 1,
  PF_CU_ACCESS_READ_WRITE = 3,
  PF_CU_INTEGRATED = 18, /* attributes of a device from here on */
  PF_CU_CAPABILITY_MAJOR = 75,
  PF_CU_CAPABILITY_MINOR = 76,
  PF_CU_HAS_MEMPOOLS = 115
};

/*
 * Functions: name, the symbol's ending, whether an old driver may lack it,
 * parameters. All return an enum pf_cu_result as int.
 */
/* It would take the stars for products. */
/* clang-format off */
#define PF_CU_FUNCTION_MAP(XX)                                                \
  XX(cuInit, , 0, (unsigned flags))                                           \
  XX(cuDriverGetVersion, , 0, (int *version))                                 \
  XX(cuGetErrorString, , 0, (int result, const char **text))                  \
  XX(cuDeviceGetCount, , 0, (int *n))                                         \
  XX(cuDeviceGet, , 0, (int *device, int ordinal))                            \
  XX(cuDeviceGetName, , 0, (char *name, int size, int device))                \
  XX(cuDeviceGetPCIBusId, , 0, (char *id, int size, int device))              \
  XX(cuDeviceTotalMem, _v2, 0, (size_t *n_bytes, int device))                 \
  XX(cuDeviceGetAttribute, , 0, (int *value, int attribute, int device))      \
  XX(cuDeviceCanAccessPeer, , 0, (int *can, int device, int peer))            \
  XX(cuDevicePrimaryCtxRetain, , 0,                                           \
     (struct pf_cu_context **context, int device))                            \
  XX(cuCtxGetCurrent, , 0, (struct pf_cu_context **context))                  \
  XX(cuCtxPushCurrent, _v2, 0, (struct pf_cu_context *context))               \
  XX(cuCtxPopCurrent, _v2, 0, (struct pf_cu_context **context))               \
  XX(cuCtxEnablePeerAccess, , 0,                                              \
     (struct pf_cu_context *peer, unsigned flags))                            \
  XX(cuMemGetInfo, _v2, 0, (size_t *n_free, size_t *total))                   \
  XX(cuMemAlloc, _v2, 0, (pf_cu_address *at, size_t n_bytes))                 \
  XX(cuMemFree, _v2, 0, (pf_cu_address at))                                   \
  XX(cuMemAllocAsync, , 1,                                                    \
     (pf_cu_address *at, size_t n_bytes, struct pf_cu_stream *stream))        \
  XX(cuMemFreeAsync, , 1, (pf_cu_address at, struct pf_cu_stream *stream))    \
  XX(cuDeviceGetDefaultMemPool, , 1,                                          \
     (struct pf_cu_mempool **pool, int device))                               \
  XX(cuMemPoolTrimTo, , 1, (struct pf_cu_mempool *pool, size_t keep))         \
  XX(cuMemPoolSetAccess, , 1,                                                 \
     (struct pf_cu_mempool *pool, const struct pf_cu_access *access,          \
      size_t n))                                                              \
  XX(cuMemHostAlloc, , 0, (void **data, size_t n_bytes, unsigned flags))      \
  XX(cuMemFreeHost, , 0, (void *data))                                        \
  XX(cuMemcpyHtoDAsync, _v2, 0,                                               \
     (pf_cu_address to, const void *from, size_t n_bytes,                     \
      struct pf_cu_stream *stream))                                           \
  XX(cuMemcpyDtoHAsync, _v2, 0,                                               \
     (void *to, pf_cu_address from, size_t n_bytes,                           \
      struct pf_cu_stream *stream))                                           \
  XX(cuMemcpyDtoDAsync, _v2, 0,                                               \
     (pf_cu_address to, pf_cu_address from, size_t n_bytes,                   \
      struct pf_cu_stream *stream))                                           \
  XX(cuMemcpyPeerAsync, , 0,                                                  \
     (pf_cu_address to, struct pf_cu_context *to_context,                     \
      pf_cu_address from, struct pf_cu_context *from_context,                 \
      size_t n_bytes, struct pf_cu_stream *stream))                           \
  XX(cuStreamCreate, , 0, (struct pf_cu_stream **stream, unsigned flags))     \
  XX(cuStreamSynchronize, , 0, (struct pf_cu_stream *stream))                 \
  XX(cuStreamWaitEvent, , 0,                                                  \
     (struct pf_cu_stream *stream, struct pf_cu_event *event,                 \
      unsigned flags))                                                        \
  XX(cuEventCreate, , 0, (struct pf_cu_event **event, unsigned flags))        \
  XX(cuEventRecord, , 0,                                                      \
     (struct pf_cu_event *event, struct pf_cu_stream *stream))                \
  XX(cuEventQuery, , 0, (struct pf_cu_event *event))                          \
  XX(cuEventSynchronize, , 0, (struct pf_cu_event *event))                    \
  XX(cuEventDestroy, _v2, 0, (struct pf_cu_event *event))                     \
  XX(cuModuleLoadDataEx, , 0,                                                 \
     (struct pf_cu_module **module, const void *image, unsigned n_options,    \
      const int *options, void **values))                                     \
  XX(cuModuleGetFunction, , 0,                                                \
     (struct pf_cu_function **function, struct pf_cu_module *module,          \
      const char *name))                                                      \
  XX(cuLaunchKernel, , 0,                                                     \
     (struct pf_cu_function *function, unsigned grid_x, unsigned grid_y,      \
      unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,  \
      unsigned shared, struct pf_cu_stream *stream, void **arguments,         \
      void **extra))
/* clang-format on */

struct pf_cu_functions {
#define XX(name, ending, is_optional, parameters) int(*name) parameters;
  PF_CU_FUNCTION_MAP(XX)
#undef XX
};

#endif
