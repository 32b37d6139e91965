/*
 * What deleters may not release themselves, queued: see pf_deferred_push().
 *
 * The queue is a stack linked through the nodes. Taking all of it at once
 * needs no protection against a node that leaves and comes back in between.
 */
#include "plateflow/bridge.h"

#include <stdatomic.h>

#include "bridge/array_private.h"

static struct pf_deferred *_Atomic top;

void pf_deferred_push(struct pf_deferred *node) {
  node->next = atomic_load_explicit(&top, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(
      &top, &node->next, node, memory_order_release, memory_order_relaxed))
    continue;
}

/* Newest first becomes oldest first. */
static struct pf_deferred *reverse(struct pf_deferred *node) {
  struct pf_deferred *done = NULL;
  while (node) {
    struct pf_deferred *next = node->next;
    node->next = done;
    done = node;
    node = next;
  }
  return done;
}

size_t pf_deferred_drain(void) {
  struct pf_deferred *node, *next;
  size_t n = 0;
  pf_storage_reap(); /* may push */
  /* Called between any two tasks: an empty queue costs one load. */
  if (!atomic_load_explicit(&top, memory_order_relaxed))
    return 0;
  node = atomic_exchange_explicit(&top, NULL, memory_order_acquire);
  for (node = reverse(node); node; node = next) {
    next = node->next; /* release() may free the node */
    node->release(node);
    n++;
  }
  return n;
}
