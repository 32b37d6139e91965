/*
 * The pool of one device's memory: see bridge/device_pool.h.
 *
 * Stacks of one size come and go by the thousand, and a driver's allocation
 * may stop the whole device. Sizes are rounded up, 8 classes to a doubling, so
 * that stacks of nearly one size share blocks.
 */
#include "bridge/device_pool.h"

#include <stdlib.h>

enum { SMALLEST = 512, LOG2_STEPS = 3 };

/* A freed block that waits to be used again. */
struct pf_pool_block {
  struct pf_pool_block *next;
  void *data;
  size_t size;           /* of its class */
  struct pf_event *last; /* its last use; NULL: over */
};

/* The class's size: n rounded up to 4 significant bits. */
static size_t class_size(size_t n) {
  int shift;
  if (n <= SMALLEST)
    return SMALLEST;
  shift = 63 - __builtin_clzll(n - 1) - LOG2_STEPS;
  return (((n - 1) >> shift) + 1) << shift;
}

/* The smaller of the user's limit and the device's memory; 0: none known. */
static uint64_t limit_of(const struct pf_device_pool *pool) {
  uint64_t limit = pf_device_limit();
  return limit && (!pool->total || limit < pool->total) ? limit : pool->total;
}

static bool is_over(struct pf_device_pool *pool,
                    const struct pf_pool_block *block) {
  return !block->last || pool->ops->event_done(block->last);
}

/* Take a block of the class out of the list: one whose last use is over if
 * there is one, else the one that was used longest ago. */
static struct pf_pool_block *pop_locked(struct pf_device_pool *pool,
                                        size_t size) {
  struct pf_pool_block **best = NULL, *block = NULL;
  for (struct pf_pool_block **at = &pool->cached; *at; at = &(*at)->next) {
    if ((*at)->size != size)
      continue;
    best = at;
    if (is_over(pool, *at))
      break;
  }
  if (best) {
    block = *best;
    *best = block->next;
    pool->n_cached -= size;
  }
  return block;
}

/* Order the caller's work behind the block's last use. */
static int wait_for(struct pf_device_pool *pool, struct pf_event *last,
                    struct pf_stream *stream, struct pf_error *err) {
  if (!last)
    return PF_OK;
  return stream ? pool->ops->event_wait(stream, last, err)
                : pool->ops->event_sync(last, err);
}

/* Frees the list's structs; their memory goes back to the driver after its
 * last use (an event that fails is over too). */
static void give_list(struct pf_device_pool *pool,
                      struct pf_pool_block *block) {
  while (block) {
    struct pf_pool_block *next = block->next;
    if (block->last)
      (void)pool->ops->event_sync(block->last, NULL);
    pool->give(pool->index, block->data, block->size);
    pf_event_unref(&block->last);
    free(block);
    block = next;
  }
}

/* Book `size` bytes under the limit; *evicted is what had to go for it. */
static bool book_locked(struct pf_device_pool *pool, size_t size,
                        struct pf_pool_block **evicted) {
  const uint64_t limit = limit_of(pool);
  if (limit && (size > limit || pool->n_used > limit - size))
    return false;
  while (limit && pool->cached &&
         pool->n_used + pool->n_cached > limit - size) {
    struct pf_pool_block *block = pool->cached;
    pool->cached = block->next;
    pool->n_cached -= block->size;
    block->next = *evicted;
    *evicted = block;
  }
  pool->n_used += size;
  return true;
}

static void unbook(struct pf_device_pool *pool, size_t size) {
  (void)pthread_mutex_lock(&pool->lock);
  pool->n_used -= size;
  (void)pthread_mutex_unlock(&pool->lock);
}

static int refuse(struct pf_device_pool *pool, size_t n_bytes,
                  struct pf_error *err) {
  const uint64_t limit = limit_of(pool);
  uint64_t used = 0;
  pf_device_pool_count(pool, &used, NULL);
  return pf_error_set(
      err, PF_ENOMEM,
      "out of memory on %s:%d: asked for %zu bytes, %llu of %llu are free",
      pool->ops->name, pool->index, n_bytes,
      (unsigned long long)(limit > used ? limit - used : 0),
      (unsigned long long)limit);
}

static int take_fresh(struct pf_device_pool *pool, size_t size, void **data,
                      struct pf_error *err) {
  struct pf_error first = PF_ERROR_INIT;
  int code = pool->take(pool->index, size, data, &first);
  if (code == PF_ENOMEM) {
    pf_error_clear(&first);
    pf_device_pool_clear(pool);
    code = pool->take(pool->index, size, data, &first);
  }
  pf_error_move(err, &first);
  return code;
}

/* A cached block for the stream; *data stays NULL where there is none. */
static int take_cached(struct pf_device_pool *pool,
                       struct pf_pool_block *block, struct pf_stream *stream,
                       void **data, struct pf_error *err) {
  int code = wait_for(pool, block->last, stream, err);
  if (code == PF_OK)
    *data = block->data;
  else
    pool->give(pool->index, block->data, block->size);
  pf_event_unref(&block->last);
  free(block);
  return code;
}

int pf_device_pool_alloc(struct pf_device_pool *pool, size_t n_bytes,
                         struct pf_stream *stream, void **data,
                         struct pf_error *err) {
  struct pf_pool_block *block = NULL, *evicted = NULL;
  size_t size;
  bool booked = true;
  int code;
  *data = NULL;
  if (n_bytes > SIZE_MAX / 4)
    return refuse(pool, n_bytes, err);
  size = class_size(n_bytes);
  (void)pthread_mutex_lock(&pool->lock);
  block = pop_locked(pool, size);
  booked = book_locked(pool, size, &evicted);
  (void)pthread_mutex_unlock(&pool->lock);
  give_list(pool, evicted);
  if (!booked) { /* the limit was lowered since the block was cached */
    give_list(pool, block);
    return refuse(pool, n_bytes, err);
  }
  code = block ? take_cached(pool, block, stream, data, err)
               : take_fresh(pool, size, data, err);
  if (code != PF_OK)
    unbook(pool, size);
  return code;
}

/* Whether there is room for a block that comes back. Sizes that nobody asks
 * for any more would fill the pool for ever: all go where it is full. */
static bool make_room(struct pf_device_pool *pool, size_t size) {
  uint64_t n_cached = 0;
  if (!pool->keep)
    return true;
  pf_device_pool_count(pool, NULL, &n_cached);
  if (n_cached + size > pool->keep)
    pf_device_pool_clear(pool);
  return size <= pool->keep;
}

void pf_device_pool_free(struct pf_device_pool *pool, void *data,
                         size_t n_bytes, struct pf_event *last) {
  struct pf_pool_block *block = NULL;
  const size_t size = class_size(n_bytes);
  if (!data)
    return;
  if (make_room(pool, size))
    block = calloc(1, sizeof(*block));
  if (!block) {
    if (last)
      (void)pool->ops->event_sync(last, NULL);
    pf_device_pool_discard(pool, data, n_bytes);
    return;
  }
  *block = (struct pf_pool_block){
      .data = data, .size = size, .last = last ? pf_event_ref(last) : NULL};
  (void)pthread_mutex_lock(&pool->lock);
  block->next = pool->cached;
  pool->cached = block;
  pool->n_used -= size;
  pool->n_cached += size;
  (void)pthread_mutex_unlock(&pool->lock);
}

void pf_device_pool_discard(struct pf_device_pool *pool, void *data,
                            size_t n_bytes) {
  const size_t size = class_size(n_bytes);
  if (!data)
    return;
  pool->give(pool->index, data, size);
  unbook(pool, size);
}

void pf_device_pool_clear(struct pf_device_pool *pool) {
  struct pf_pool_block *all;
  (void)pthread_mutex_lock(&pool->lock);
  all = pool->cached;
  pool->cached = NULL;
  pool->n_cached = 0;
  (void)pthread_mutex_unlock(&pool->lock);
  give_list(pool, all);
}

void pf_device_pool_count(struct pf_device_pool *pool, uint64_t *n_used,
                          uint64_t *n_cached) {
  (void)pthread_mutex_lock(&pool->lock);
  if (n_used)
    *n_used = pool->n_used;
  if (n_cached)
    *n_cached = pool->n_cached;
  (void)pthread_mutex_unlock(&pool->lock);
}

uint64_t pf_device_pool_limit(const struct pf_device_pool *pool) {
  return limit_of(pool);
}
