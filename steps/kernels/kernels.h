/*
 * The sources of the kernels, and how a step gets one that is built for its
 * element type. Private to steps/.
 * Threads: every function may be called from any thread.
 */
#ifndef PF_KERNELS_H
#define PF_KERNELS_H

#include "plateflow/device.h"

/* The text of steps/kernels/NAME.cl; made by the build. */
extern const char pf_kernels_common[];
extern const char pf_kernels_gaussian[];

/*
 * The kernel `name` of `body` for elements of `dtype` and sums of `real`
 * (PF_F64 or PF_F32); bool is taken as uint8. Built once per device and
 * process. Errors: PF_EINVAL (a dtype that kernels do not take), PF_EMISSING,
 * PF_EBUG with the compiler's words as detail.
 */
int pf_kernels_get(struct pf_kernel **out, struct pf_device device,
                   const char *body, const char *name, enum pf_dtype dtype,
                   enum pf_dtype real, struct pf_error *err) PF_MUST_CHECK;

#endif
