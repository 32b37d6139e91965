/*
 * The pool of one device's memory, for any kind of device: blocks by size,
 * each used again only after the event of its last use, and the count of bytes
 * against the limit (pf_device_limit()).
 * Threads: every function may be called from any thread.
 */
#ifndef PF_DEVICE_POOL_H
#define PF_DEVICE_POOL_H

#include "bridge/device_private.h"

#include <pthread.h>

struct pf_pool_block;

struct pf_device_pool {
  /* Set once. `take` gets memory from the driver (PF_ENOMEM where it has
   * none: the pool then gives back what it keeps and asks once more), `give`
   * gives it back. */
  const struct pf_device_ops *ops;
  int index;
  int (*take)(int index, size_t n_bytes, void **data, struct pf_error *err);
  void (*give)(int index, void *data, size_t n_bytes);
  uint64_t total; /* the device's memory, a limit of its own; 0: unknown */
  uint64_t keep;  /* most bytes that wait to be used again; 0: no bound */
  pthread_mutex_t lock;
  /* --- protected by lock */
  struct pf_pool_block *cached; /* the latest freed first */
  uint64_t n_used, n_cached;    /* bytes */
};

#define PF_DEVICE_POOL_INIT(ops_, index_, take_, give_)                       \
  {                                                                           \
    .ops = (ops_), .index = (index_), .take = (take_), .give = (give_),       \
    .lock = PTHREAD_MUTEX_INITIALIZER                                         \
  }

/* At least `n_bytes` for work queued to `stream` (NULL: for any, at once). */
int pf_device_pool_alloc(struct pf_device_pool *pool, size_t n_bytes,
                         struct pf_stream *stream, void **data,
                         struct pf_error *err) PF_MUST_CHECK;
/* Back, with the n_bytes that were asked for; `last` may be NULL. */
void pf_device_pool_free(struct pf_device_pool *pool, void *data,
                         size_t n_bytes, struct pf_event *last);
/* Back to the driver instead of the pool. */
void pf_device_pool_discard(struct pf_device_pool *pool, void *data,
                            size_t n_bytes);
/* Give all that is cached back to the driver, each after its last use. */
void pf_device_pool_clear(struct pf_device_pool *pool);
/* Bytes, rounded up to the classes' sizes; either may be NULL. */
void pf_device_pool_count(struct pf_device_pool *pool, uint64_t *n_used,
                          uint64_t *n_cached);
/* Most bytes that the pool takes; 0: no limit is known. */
uint64_t pf_device_pool_limit(const struct pf_device_pool *pool);

#endif
