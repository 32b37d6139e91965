/*
 * The pool of host memory.
 *
 * Planes of one size come and go by the thousand. A fresh 2 MB block costs an
 * mmap and 500 page faults, more than most steps; so freed blocks are kept, by
 * size class, up to a limit over all classes. Classes are multiples of 64
 * bytes up to 512, then 8 to each doubling: at most 1/8 of a block is unused,
 * and of large blocks that part is never touched.
 */
#include "bridge/host.h"

#include "plateflow/bridge.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(at, n) ASAN_POISON_MEMORY_REGION(at, n)
#define UNPOISON(at, n) ASAN_UNPOISON_MEMORY_REGION(at, n)
#else
#define POISON(at, n) ((void)(at), (void)(n))
#define UNPOISON(at, n) ((void)(at), (void)(n))
#endif

enum {
  ALIGNMENT = 64, /* what TensorFlow and JAX need to take it without a copy */
  LARGE = 1 << 20,
  LARGE_ALIGNMENT = 4096,
  LOG2_STEPS = 3, /* 8 classes to a doubling */
  LOG2_LINEAR = 9 /* up to 512 bytes the classes are multiples of 64 */
};
#define MAX_BLOCK ((size_t)1 << 62)
enum { N_CLASSES = (62 - LOG2_LINEAR + 1) << LOG2_STEPS };

/* Lies at the start of a cached block. */
struct block {
  struct block *next;
  size_t size; /* of its class */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* --- protected by `lock` */
static struct block *cached[N_CLASSES]; /* the latest freed first: warm */
static size_t n_cached;                 /* bytes in all lists */
static size_t n_used;                   /* bytes in others' hands */
static size_t limit = (size_t)256 << 20;
static int evict_at; /* class that gives up a block next */
/* --- */

/* Index of the class that `n` bytes belong to; *size is the class's size. */
static int class_of(size_t n, size_t *size) {
  size_t last = n ? n - 1 : 0; /* offset of the last byte */
  int shift = LOG2_LINEAR - LOG2_STEPS, doubling = 0;
  if (last >> LOG2_LINEAR) {
    doubling = 63 - __builtin_clzll(last) - LOG2_LINEAR + 1;
    shift += doubling - 1;
  }
  *size = ((last >> shift) + 1) << shift;
  /* Within a doubling last >> shift runs from 8 to 15. */
  return (doubling ? (doubling - 1) << LOG2_STEPS : 0) + (int)(last >> shift);
}

static void free_list(struct block *block) {
  while (block) {
    struct block *next = block->next;
    UNPOISON(block, block->size);
    free(block);
    block = next;
  }
}

static struct block *pop_locked(int class) {
  struct block *block = cached[class];
  if (block) {
    cached[class] = block->next;
    n_cached -= block->size;
  }
  return block;
}

/*
 * Take blocks of other classes out until `size` more bytes fit, so that sizes
 * that nobody asks for any more do not fill the pool for ever. Blocks of class
 * `keep` stay: they are the ones in use.
 */
static struct block *evict_locked(size_t size, int keep) {
  struct block *evicted = NULL;
  for (int tries = 0; tries < N_CLASSES && size > limit - n_cached;) {
    struct block *block = evict_at == keep ? NULL : pop_locked(evict_at);
    if (block) {
      block->next = evicted;
      evicted = block;
    } else {
      evict_at = (evict_at + 1) % N_CLASSES;
      tries++;
    }
  }
  return evicted;
}

static void *take_fresh(size_t size) {
  return aligned_alloc(size >= LARGE ? LARGE_ALIGNMENT : ALIGNMENT, size);
}

void *pf_host_alloc(size_t n) {
  struct block *block = NULL;
  size_t size = 0;
  int class = 0;
  if (n > MAX_BLOCK)
    return NULL;
  class = class_of(n, &size);
  pthread_mutex_lock(&lock);
  block = pop_locked(class);
  n_used += size;
  pthread_mutex_unlock(&lock);
  if (!block)
    block = take_fresh(size);
  if (!block) {
    pf_host_pool_clear();
    block = take_fresh(size);
  }
  if (block) {
    UNPOISON(block, size);
    POISON((char *)block + n, size - n);
  } else {
    pthread_mutex_lock(&lock);
    n_used -= size;
    pthread_mutex_unlock(&lock);
  }
  return block;
}

void pf_host_free(void *memory, size_t n) {
  struct block *block = memory, *evicted = NULL;
  size_t size = 0;
  int class = 0;
  if (!block)
    return;
  class = class_of(n, &size);
  UNPOISON(block, sizeof(*block));
  block->size = size;
  block->next = NULL;
  POISON(block + 1, size - sizeof(*block));
  pthread_mutex_lock(&lock);
  n_used -= size;
  if (size <= limit)
    evicted = evict_locked(size, class);
  if (size <= limit - n_cached) {
    block->next = cached[class];
    cached[class] = block;
    n_cached += size;
    block = NULL;
  }
  pthread_mutex_unlock(&lock);
  free_list(evicted);
  free_list(block);
}

size_t pf_host_n_used(void) {
  size_t n;
  pthread_mutex_lock(&lock);
  n = n_used;
  pthread_mutex_unlock(&lock);
  return n;
}

size_t pf_host_pool_n_bytes(void) {
  size_t n;
  pthread_mutex_lock(&lock);
  n = n_cached;
  pthread_mutex_unlock(&lock);
  return n;
}

/* Take everything out; the caller frees it without the lock. */
static struct block *take_all_locked(void) {
  struct block *all = NULL, *block = NULL;
  for (int class = 0; class < N_CLASSES; class ++)
    while ((block = pop_locked(class))) {
      block->next = all;
      all = block;
    }
  return all;
}

void pf_host_pool_clear(void) {
  struct block *all;
  pthread_mutex_lock(&lock);
  all = take_all_locked();
  pthread_mutex_unlock(&lock);
  free_list(all);
}

void pf_host_pool_set_limit(size_t n_bytes) {
  struct block *all = NULL;
  pthread_mutex_lock(&lock);
  limit = n_bytes;
  if (n_cached > limit)
    all = take_all_locked();
  pthread_mutex_unlock(&lock);
  free_list(all);
}
