/*
 * What the kinds of device share: streams, events, and the table of kinds.
 * Private to bridge/device*.c.
 *
 * A kind of device embeds these structs at the start of its own, or uses
 * `handle` alone. bridge/device.c has the functions of plateflow/device.h and
 * the registration table; one row per kind:
 */
#ifndef PF_DEVICE_PRIVATE_H
#define PF_DEVICE_PRIVATE_H

#include "plateflow/device.h"

#include <stdatomic.h>

extern const struct pf_device_ops pf_device_host_ops;   /* device_host_ops.c */
extern const struct pf_device_ops pf_device_cuda_ops;   /* device_cuda.c */
extern const struct pf_device_ops pf_device_opencl_ops; /* device_opencl.c */

/* Made by ops->stream_create(), kept in the pool of its device, never freed.
 */
struct pf_stream {
  const struct pf_device_ops *ops;
  struct pf_device device;
  void *handle; /* the driver's: CUstream, cl_command_queue */
  /* Of the pool, in device.c. */
  struct pf_stream *next;
};

/* Made by ops->event_record() with one reference. */
struct pf_event {
  atomic_size_t n_refs;
  const struct pf_device_ops *ops;
  struct pf_device device;
  void *handle; /* the driver's: CUevent, cl_event */
  /* That it was recorded in, or NULL; compared, never used: a later event of
   * the same stream comes after this one. */
  const struct pf_stream *stream;
  /* Gives the driver's event and the struct back; by the last reference. */
  void (*destroy)(struct pf_event *event);
};

/* The table of a device that exists; PF_EMISSING says what is missing. */
int pf_device_find(const struct pf_device_ops **ops, struct pf_device device,
                   struct pf_error *err) PF_MUST_CHECK;
/* The stream that stands for NULL: one per device, for all threads. */
int pf_stream_default(struct pf_stream **out, const struct pf_device_ops *ops,
                      int index, struct pf_error *err) PF_MUST_CHECK;
/* The stream waits for an event of any kind of device: by itself where it can,
 * else the host waits first. A NULL event is over; a NULL stream is the host.
 */
int pf_stream_wait_event(struct pf_stream *stream, struct pf_event *event,
                         struct pf_error *err) PF_MUST_CHECK;
/* PF_EINVAL where PLATEFLOW_DEVICE_LIMIT holds no size. */
int pf_device_check_limit(struct pf_error *err) PF_MUST_CHECK;

#endif
