/*
 * Pinned host memory: what a card copies to and from while the host goes on.
 *
 * Getting a block from the driver costs milliseconds, so that freed ones are
 * kept. Pinned pages are taken from everybody: there is a bound.
 */
#include <pthread.h>
#include <unistd.h>

#include "bridge/cuda_private.h"

enum { PAGE = 4096 };
#define MOST_CACHED ((size_t)256 << 20)

/* Lies at the start of a cached block. */
struct block {
  struct block *next;
  size_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* --- protected by `lock` */
static struct block *cached;
static size_t n_cached; /* bytes in the list */
static size_t n_used;   /* bytes in others' hands */
/* --- */

/* A quarter of the machine's memory. */
static size_t most_pinned(void) {
  long n = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return n > 0 && size > 0 ? (size_t)n / 4 * (size_t)size : 0;
}

static size_t block_size(size_t n_bytes) {
  return n_bytes ? (n_bytes + PAGE - 1) / PAGE * PAGE : PAGE;
}

/* A cached block, or NULL; `size` bytes are booked unless *is_full. */
static struct block *book(size_t size, bool *is_full) {
  const size_t most = most_pinned();
  struct block **at, *found = NULL;
  (void)pthread_mutex_lock(&lock);
  for (at = &cached; *at && (*at)->size != size;)
    at = &(*at)->next;
  if ((found = *at)) {
    *at = found->next;
    n_cached -= size;
  }
  *is_full = !found && (size > most || n_used + n_cached > most - size);
  if (!*is_full)
    n_used += size;
  (void)pthread_mutex_unlock(&lock);
  return found;
}

/* Put a block (NULL: there is none) that is not used any more into the list;
 * it is given back if it has no place there. */
static struct block *unbook(struct block *block, size_t size) {
  (void)pthread_mutex_lock(&lock);
  n_used -= size;
  if (block && size <= MOST_CACHED && n_cached <= MOST_CACHED - size) {
    *block = (struct block){.next = cached, .size = size};
    cached = block;
    n_cached += size;
    block = NULL;
  }
  (void)pthread_mutex_unlock(&lock);
  return block;
}

static int take_fresh(size_t size, void **data, struct pf_error *err) {
  struct pf_cuda_scope scope;
  int code = pf_cuda_enter(&scope, 0, err);
  if (code != PF_OK)
    return code;
  code = pf_cuda_check(scope.device,
                       pf_cu.cuMemHostAlloc(data, size, PF_CU_HOST_PORTABLE),
                       size, "pin host memory", err);
  pf_cuda_leave(&scope);
  return code;
}

static void give(struct block *block) {
  struct pf_cuda_scope scope;
  if (!block || pf_cuda_enter(&scope, 0, NULL) != PF_OK)
    return;
  (void)pf_cu.cuMemFreeHost(block);
  pf_cuda_leave(&scope);
}

int pf_cuda_pinned_alloc(size_t n_bytes, void **data, struct pf_error *err) {
  size_t size;
  bool is_full = false;
  int code = PF_OK;
  *data = NULL;
  if (n_bytes > SIZE_MAX / 2)
    return pf_error_set(err, PF_ENOMEM, "cannot pin %zu bytes", n_bytes);
  size = block_size(n_bytes);
  *data = book(size, &is_full);
  if (is_full)
    return pf_error_set(err, PF_ENOMEM,
                        "cannot pin %zu bytes: a quarter of the host's memory "
                        "is pinned already",
                        n_bytes);
  if (!*data && (code = take_fresh(size, data, err)) != PF_OK)
    (void)unbook(NULL, size);
  return code;
}

void pf_cuda_pinned_free(void *data, size_t n_bytes) {
  if (data)
    give(unbook(data, block_size(n_bytes)));
}

void pf_cuda_pinned_clear(void) {
  struct block *all, *next;
  (void)pthread_mutex_lock(&lock);
  all = cached;
  cached = NULL;
  n_cached = 0;
  (void)pthread_mutex_unlock(&lock);
  for (; all; all = next) {
    next = all->next;
    give(all);
  }
}
