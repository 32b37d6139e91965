/*
 * The words of steps/kernels/ as C has them: include this, define PF_T and its
 * friends (see common.cl), include common.cl and a kernel. One thread runs one
 * work item at a time: pf_host_item says which.
 */
#ifndef PF_KERNELS_HOST_H
#define PF_KERNELS_HOST_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define PF_KERNEL static
#define PF_GLOBAL
typedef int64_t pf_long;

static _Thread_local size_t pf_host_item[3];

static inline size_t get_global_id(unsigned dimension) {
  return pf_host_item[dimension];
}

#endif
