/*
 * A stand-in for libcuda.so.1 over host memory: what its files share. See
 * README.md.
 *
 * One lock protects everything; the work itself runs without it.
 */
#ifndef FAKECUDA_H
#define FAKECUDA_H

#include <pthread.h>
#include <stdbool.h>

#include "bridge/cuda_api.h"
#include "tests/fakecuda/control.h"
#include "tests/fakecuda/kernel.h"

/* The driver's functions, declared as the bridge calls them. */
#define XX(name, ending, is_optional, parameters)                             \
  PF_API int name##ending parameters;
PF_CU_FUNCTION_MAP(XX)
#undef XX

enum { MAX_DEVICES = 8, MAX_CLOCKS = 64, MAX_ARGUMENTS = 32 };

/* What somebody knows to be over: of each stream, so many operations. Number 0
 * is the host, all its threads taken as one. */
struct clock {
  unsigned at[MAX_CLOCKS];
};

struct pf_cu_context {
  int device;
};

struct device {
  struct pf_cu_context context;
  size_t n_used;
  bool is_lost;
};

/* A point in a stream that was recorded; counted, since an event may be
 * recorded again while somebody waits. */
struct mark {
  int n_refs;
  bool is_done;
  struct clock clock;
};

struct pf_cu_event {
  int device;
  struct mark *mark; /* NULL: never recorded, which counts as done */
};

/* One piece of queued work. */
struct operation {
  struct operation *next;
  void (*run)(struct operation *operation);
  int device;
  void *to;
  const void *from;
  size_t n_bytes;
  struct mark *mark; /* to wait for, or to be set */
  struct region *region;
  const struct fakecuda_kernel *kernel;
  struct fakecuda_thread shape;
  bool loses;                     /* the context is lost with it */
  bool waits;                     /* for `mark` */
  bool always;                    /* on a lost device too */
  uint64_t values[MAX_ARGUMENTS]; /* of the kernel's arguments */
};

struct pf_cu_stream {
  int device;
  int number; /* in the clocks */
  struct clock clock;
  pthread_t thread;
  struct operation *first, **last;
  unsigned n_queued, n_done;
};

/* An access of a stream to bytes of a region, or of the host. */
struct access {
  struct access *next;
  uintptr_t first, end;
  int stream;    /* number in the clocks */
  unsigned time; /* of that stream */
  bool writes;
};

/* Memory that was allocated. A device's address cannot be read by the host:
 * the work uses another mapping of the same pages. */
struct region {
  struct region *next;
  char *address; /* what the program sees */
  char *mapped;  /* what the work uses */
  size_t n_bytes, n_mapped;
  int device; /* -1: pinned host memory */
  bool is_freed;
};

extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_changed;
/* --- protected by fake_lock */
extern struct device fake_devices[MAX_DEVICES];
extern int fake_n_devices;
extern int fake_n_events;
extern size_t fake_memory; /* bytes per device */
/* --- */

#define LOCK() (void)pthread_mutex_lock(&fake_lock)
#define UNLOCK() (void)pthread_mutex_unlock(&fake_lock)

/* driver.c. The current context's device, or NULL with *result set (no
 * context, or lost). */
struct device *fake_current(int *result);
/* Count a call that asks for memory; true: it gets none. */
bool fake_fails(void);
/* A random number below n; seeded by FAKECUDA_SEED. */
unsigned fake_random(unsigned n);
unsigned fake_delay(void);
unsigned long fake_number(const char *variable, unsigned long otherwise);

/* order.c, with the lock held. */
extern struct clock fake_host;
void fake_join(struct clock *into, const struct clock *other);
/* The stream's next operation: it knows what the host knows. */
void fake_tick(struct pf_cu_stream *stream);
/* The stream (NULL: the host) now accesses bytes; says what no event orders.
 */
void fake_access(struct pf_cu_stream *stream, const void *at, size_t n_bytes,
                 bool writes);
void fake_violation(const char *fmt, ...) PF_PRINTF(1, 2);

/* memory.c, with the lock held. The region of an address; NULL: none. */
struct region *fake_region(const void *at);
/* The address for the work, after checking that the bytes are there. */
void *fake_reach(const void *at, size_t n_bytes);

/* stream.c, with the lock held; `operation` is copied. False: no memory. */
bool fake_queue(struct pf_cu_stream *stream,
                const struct operation *operation);
/* PF_CU_SUCCESS, or why the stream cannot be used now. */
int fake_check_stream(const struct pf_cu_stream *stream);

#endif
