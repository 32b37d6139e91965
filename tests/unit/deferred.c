/* bridge/deferred.c */
#include "plateflow/bridge.h"
#include "tests/unit/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

struct thing {
  struct pf_deferred node; /* first */
  int thread, number;
};

enum { N_THREADS = 4, N_EACH = 5000 };

static int order[8], n_order;
static atomic_int n_released, n_alive;

static void note_order(struct pf_deferred *node) {
  order[n_order++] = ((struct thing *)node)->number;
}

static void push_more(struct pf_deferred *node) {
  static struct thing late = {{NULL, note_order}, 0, 99};
  note_order(node);
  pf_deferred_push(&late.node);
}

static void test_order(void) {
  struct thing things[3] = {{{NULL, note_order}, 0, 0},
                            {{NULL, push_more}, 0, 1},
                            {{NULL, note_order}, 0, 2}};
  CHECK_INT(pf_deferred_drain(), 0);
  for (int i = 0; i < 3; i++)
    pf_deferred_push(&things[i].node);
  CHECK_INT(n_order, 0);
  CHECK_INT(pf_deferred_drain(), 3);
  /* What a release pushes is for the next drain. */
  CHECK_INT(n_order, 3);
  for (int i = 0; i < 3; i++)
    CHECK_INT(order[i], i);
  CHECK_INT(pf_deferred_drain(), 1);
  CHECK_INT(order[3], 99);
  CHECK_INT(pf_deferred_drain(), 0);
}

static void release_thing(struct pf_deferred *node) {
  free(node);
  atomic_fetch_add(&n_released, 1);
}

static void *push_many(void *arg) {
  (void)arg;
  for (int i = 0; i < N_EACH; i++) {
    struct thing *thing = calloc(1, sizeof(*thing));
    if (!thing)
      abort();
    thing->node.release = release_thing;
    pf_deferred_push(&thing->node);
  }
  atomic_fetch_sub(&n_alive, 1);
  return NULL;
}

static void *drain_many(void *count) {
  size_t *n = count;
  while (atomic_load(&n_alive) > 0) {
    *n += pf_deferred_drain();
    sched_yield();
  }
  return NULL;
}

static void test_threads(void) {
  pthread_t pushers[N_THREADS], drainer;
  size_t n = 0, n_drainer = 0;
  atomic_store(&n_alive, N_THREADS);
  CHECK_INT(pthread_create(&drainer, NULL, drain_many, &n_drainer), 0);
  for (int i = 0; i < N_THREADS; i++)
    CHECK_INT(pthread_create(&pushers[i], NULL, push_many, NULL), 0);
  while (atomic_load(&n_alive) > 0) {
    n += pf_deferred_drain();
    sched_yield();
  }
  for (int i = 0; i < N_THREADS; i++)
    pthread_join(pushers[i], NULL);
  pthread_join(drainer, NULL);
  n += pf_deferred_drain() + n_drainer;
  CHECK_INT(n, N_THREADS * N_EACH);
  CHECK_INT(atomic_load(&n_released), N_THREADS * N_EACH);
}

int main(void) {
  test_order();
  test_threads();
  return check_done();
}
