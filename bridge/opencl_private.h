/*
 * What bridge/device_opencl*.c share: the loader's table and one struct per
 * device of it.
 */
#ifndef PF_OPENCL_PRIVATE_H
#define PF_OPENCL_PRIVATE_H

#include "bridge/device_pool.h"
#include "bridge/opencl.h"
#include "bridge/opencl_api.h"

/* Work of one device goes through a context: our own, or one that another
 * library made. Queues, buffers and kernels belong to one each. */
struct pf_cl_device {
  /* Set once, when the loader is loaded. */
  int index;
  struct pf_cl_device_id *id;
  struct pf_device_info info;
  char options[96];    /* for building programs */
  const char *prelude; /* what every program begins with */
  bool has_double;
  struct pf_device_pool pool; /* has its own lock */
  atomic_bool is_dead;        /* an error that no call survives was seen */
  pthread_mutex_t lock;
  /* --- protected by lock */
  struct pf_cl_context *context; /* NULL: not used yet */
  struct pf_kernel *kernels;     /* built, of any context */
};

/* device_opencl_load.c ---------------------------------------------------- */

/* The loader's functions; only after pf_cl_device() gave a device. */
extern struct pf_cl_functions pf_cl;
/* How many devices there are; 0 with err set where there is none. */
int pf_cl_count(struct pf_error *err);
/* Device `index`, or NULL with PF_EMISSING. */
struct pf_cl_device *pf_cl_device(int index, struct pf_error *err);

/* The code and message of a status that is not success; "cannot WHAT on
 * opencl:0 (NAME): CL_..." */
int pf_cl_fail(struct pf_cl_device *device, int32_t status, const char *what,
               struct pf_error *err);
/* The device's context, made if need be; borrowed. */
int pf_cl_current(struct pf_cl_device *device, struct pf_cl_context **context,
                  struct pf_error *err) PF_MUST_CHECK;
/* A new in-order queue of ours. */
int pf_cl_make_queue(struct pf_cl_device *device,
                     struct pf_cl_context *context, struct pf_cl_queue **out,
                     struct pf_error *err) PF_MUST_CHECK;

/* device_opencl.c --------------------------------------------------------- */

/* The queue of the stream (NULL: the default stream), moved to the device's
 * current context if that has changed; borrowed. */
int pf_cl_queue_of(struct pf_cl_device *device, struct pf_stream *stream,
                   struct pf_cl_queue **out,
                   struct pf_error *err) PF_MUST_CHECK;
/* The context that the buffer was made in; NULL: it is no buffer. */
struct pf_cl_context *pf_cl_context_of(struct pf_cl_mem *buffer);
/* Wait on the host; an error of the work itself is told. */
int pf_cl_wait(struct pf_cl_device *device, struct pf_cl_event *event,
               struct pf_error *err) PF_MUST_CHECK;

/* device_opencl_kernel.c: the table's members. */
int pf_cl_kernel(int index, const char *source, const char *name,
                 struct pf_kernel **out, struct pf_error *err);
int pf_cl_launch(struct pf_kernel *kernel, struct pf_stream *stream,
                 const size_t global[3], const size_t local[3],
                 const struct pf_kernel_argument *arguments, size_t n,
                 struct pf_error *err);

#endif
