/*
 * What bridge/device_cuda*.c share: the driver's functions and one struct per
 * card.
 *
 * A card is used through its primary context, which frameworks use too. Every
 * function that calls the driver enters the context and leaves it again, so
 * that a thread keeps the device that a framework made current.
 */
#ifndef PF_CUDA_PRIVATE_H
#define PF_CUDA_PRIVATE_H

#include "bridge/cuda_api.h"
#include "bridge/device_pool.h"
#include "bridge/device_private.h"

enum { PF_CUDA_MAX_DEVICES = 64 };

struct pf_cuda_device {
  /* Set once, when the driver is loaded. */
  int index;  /* in PCI order */
  int handle; /* the driver's CUdevice */
  char name[128];
  int capability; /* major * 10 + minor */
  /* Set once, when the card is first used (`lock` of device_cuda.c). */
  atomic_bool is_open;
  struct pf_cu_context *context;
  struct pf_cu_mempool *mempool;      /* NULL: no stream-ordered allocation */
  struct pf_cu_stream *memory_stream; /* allocations and frees, no work */
  struct pf_device_pool pool;         /* has its own lock */
  atomic_bool is_dead;                /* the context is lost */
};

/* A context that was made current, to be undone. */
struct pf_cuda_scope {
  struct pf_cuda_device *device;
  bool is_pushed;
};

/* device_cuda.c ----------------------------------------------------------- */

/* The driver's functions; only after pf_cuda_device() gave a device. */
extern struct pf_cu_functions pf_cu;

/* Card `index`, or NULL with PF_EMISSING. Its context may not be there yet. */
struct pf_cuda_device *pf_cuda_device(int index, struct pf_error *err);
/* Make the card's context current in this thread, making it if need be.
 * PF_EBUG where the context is lost. After success: pf_cuda_leave(). */
int pf_cuda_enter(struct pf_cuda_scope *scope, int index,
                  struct pf_error *err) PF_MUST_CHECK;
void pf_cuda_leave(struct pf_cuda_scope *scope);
/* PF_OK for success; else sets err, "cannot WHAT on cuda:0 (NAME): ...".
 * `n_bytes` is what was asked for where memory ran out. */
int pf_cuda_check(struct pf_cuda_device *device, int result, size_t n_bytes,
                  const char *what, struct pf_error *err);

/* device_cuda_memory.c: members of the table, and what sets a card up. -----
 */

void pf_cuda_memory_open(struct pf_cuda_device *device);
int pf_cuda_memory_info(int index, struct pf_memory_info *out,
                        struct pf_error *err);
int pf_cuda_alloc(int index, size_t n_bytes, struct pf_stream *stream,
                  void **data, struct pf_error *err);
void pf_cuda_free(int index, void *data, size_t n_bytes,
                  struct pf_event *last);
void pf_cuda_clear(int index);
int pf_cuda_to_device(int index, void *to, size_t to_offset, const void *from,
                      size_t n_bytes, struct pf_stream *stream,
                      struct pf_error *err);
int pf_cuda_to_host(int index, void *to, const void *from, size_t from_offset,
                    size_t n_bytes, struct pf_stream *stream,
                    struct pf_error *err);
int pf_cuda_within(int index, void *to, size_t to_offset, const void *from,
                   size_t from_offset, size_t n_bytes,
                   struct pf_stream *stream, struct pf_error *err);
int pf_cuda_peer(int to_index, void *to, int from_index, const void *from,
                 size_t n_bytes, struct pf_stream *stream,
                 struct pf_error *err);

/* device_cuda_pinned.c: members of the table. ------------------------------
 */

int pf_cuda_pinned_alloc(size_t n_bytes, void **data, struct pf_error *err);
void pf_cuda_pinned_free(void *data, size_t n_bytes);
/* Give what is cached back to the driver. */
void pf_cuda_pinned_clear(void);

/* device_cuda_stream.c: members of the table. ------------------------------
 */

int pf_cuda_stream_create(int index, struct pf_stream **out,
                          struct pf_error *err);
int pf_cuda_stream_sync(struct pf_stream *stream, struct pf_error *err);
int pf_cuda_event_record(struct pf_stream *stream, struct pf_event **out,
                         struct pf_error *err);
int pf_cuda_event_wait(struct pf_stream *stream, struct pf_event *event,
                       struct pf_error *err);
int pf_cuda_event_sync(struct pf_event *event, struct pf_error *err);
bool pf_cuda_event_done(struct pf_event *event);

/* device_cuda_kernel.c: members of the table. ------------------------------
 */

int pf_cuda_kernel(int index, const char *source, const char *name,
                   struct pf_kernel **out, struct pf_error *err);
int pf_cuda_launch(struct pf_kernel *kernel, struct pf_stream *stream,
                   const size_t global[3], const size_t local[3],
                   const struct pf_kernel_argument *arguments, size_t n,
                   struct pf_error *err);

/* cuda_compile.c -----------------------------------------------------------
 */

/* Device code for cards of `capability` from CUDA C++ source, by the compiler
 * library that is found at run time; malloc'd. PF_EMISSING where there is
 * none; PF_EINVAL with the compiler's log as the detail. */
int pf_cuda_compile(char **image, const char *source, const char *name,
                    int capability, struct pf_error *err) PF_MUST_CHECK;

#endif
