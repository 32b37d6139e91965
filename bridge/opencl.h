/*
 * OpenCL beyond what all devices can do: contexts of other libraries, and
 * buffers that are host memory.
 *
 * An array on an OpenCL device has a cl_mem as its data (pf_array_data()), is
 * compact and starts at the buffer's first byte. Devices are numbered in the
 * loader's order, over all platforms.
 * Threads: every function may be called from any thread; none takes the GIL.
 */
#ifndef PF_OPENCL_H
#define PF_OPENCL_H

#include "plateflow/device.h"

/*
 * Use the context that `cl_mem` was made in for all further work on its
 * devices; *index is the number of the first of them. Libraries take only
 * buffers of their own context, and do not always check. Arrays that were made
 * before stay valid and are copied over the host where they meet new ones.
 * Errors: PF_EINVAL (no buffer), PF_EMISSING.
 */
PF_API int pf_opencl_adopt(void *cl_mem, int *index,
                           struct pf_error *err) PF_MUST_CHECK;

/* Whether pf_opencl_from_host() can take the array: compact, not empty, and
 * so aligned and sized that the device reads it where it lies. */
PF_API bool pf_opencl_can_share(const struct pf_array *host, int index);
/*
 * The host array as an array on the device, without a copy; it holds a
 * reference. Until it is released nobody writes to `host`, and what the device
 * writes is seen on the host only through pf_opencl_to_host_view(). Read-only
 * unless pf_array_is_writable(host). PF_EINVAL where it cannot be shared.
 */
PF_API int pf_opencl_from_host(struct pf_array **out, struct pf_array *host,
                               int index, struct pf_error *err) PF_MUST_CHECK;
/*
 * The array as host memory, without a copy, on a device that shares it; waits
 * until the elements are valid. It holds a reference; until the last view is
 * released nobody writes to `array` on the device. Read-only unless
 * pf_array_is_writable(array). PF_EINVAL where the device has its own memory.
 */
PF_API int pf_opencl_to_host_view(struct pf_array **out,
                                  struct pf_array *array,
                                  struct pf_error *err) PF_MUST_CHECK;

/* Whether each plane of a stack begins where a view may (base alignment). */
PF_API bool pf_opencl_can_unstack(const struct pf_array *stack);
/* Plane z of a stack on the device as 2D, a sub-buffer: no copy. PF_EINVAL
 * where its first byte is not aligned. */
PF_API int pf_opencl_plane(struct pf_array **out, struct pf_array *stack,
                           int64_t z, struct pf_error *err) PF_MUST_CHECK;

/* Whether kernels on the device can use double. */
PF_API bool pf_opencl_has_double(int index);

#endif
