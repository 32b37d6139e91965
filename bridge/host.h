/*
 * Host memory for arrays, from a pool of the process. Private to the bridge.
 * Threads: every function may be called from any thread.
 */
#ifndef PF_HOST_H
#define PF_HOST_H

#include <stddef.h>

/* At least `n` bytes, not set, aligned to 64 bytes, from 1 MiB on to 4096.
 * NULL if memory ran out, even after giving back what was cached. */
void *pf_host_alloc(size_t n);

/* Give back what pf_host_alloc(n) gave, with the same `n`. */
void pf_host_free(void *memory, size_t n);

/* Bytes that are given out now, rounded up as the pool does. */
size_t pf_host_n_used(void);

#endif
