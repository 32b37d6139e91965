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

extern const struct pf_device_ops pf_device_host_ops;   /* device_host.c */
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
  /* Gives the driver's event and the struct back; by the last reference. */
  void (*destroy)(struct pf_event *event);
};

#endif
