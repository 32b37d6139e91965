/*
 * The host as a device: its memory is the host pool's, work is done when the
 * function that queues it returns, and so every event of it is over.
 */
#include "bridge/device_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bridge/host.h"
#include "plateflow/bridge.h"

enum { ALIGNMENT = 64 };

static int host_count(struct pf_error *err) {
  (void)err;
  return 1;
}

static uint64_t pages(int which) {
  long n = sysconf(which), size = sysconf(_SC_PAGESIZE);
  return n > 0 && size > 0 ? (uint64_t)n * (uint64_t)size : 0;
}

static int host_info(int index, struct pf_device_info *out,
                     struct pf_error *err) {
  struct utsname system;
  (void)index;
  (void)err;
  memset(out, 0, sizeof(*out));
  if (uname(&system) == 0) {
    (void)snprintf(out->name, sizeof(out->name), "%s", system.machine);
    (void)snprintf(out->driver, sizeof(out->driver), "%.20s %.40s",
                   system.sysname, system.release);
  }
  out->total = out->largest = pages(_SC_PHYS_PAGES);
  out->shares_host = out->is_cpu = true;
  out->alignment = ALIGNMENT;
  return PF_OK;
}

static int host_memory_info(int index, struct pf_memory_info *out,
                            struct pf_error *err) {
  (void)index;
  (void)err;
  memset(out, 0, sizeof(*out));
  out->total = pages(_SC_PHYS_PAGES);
  out->free = pages(_SC_AVPHYS_PAGES);
  out->used = pf_host_n_used();
  out->cached = pf_host_pool_n_bytes();
  return PF_OK;
}

static int host_alloc(int index, size_t n_bytes, struct pf_stream *stream,
                      void **data, struct pf_error *err) {
  (void)index;
  (void)stream;
  *data = pf_host_alloc(n_bytes);
  return *data ? PF_OK
               : pf_error_set(err, PF_ENOMEM, "cannot allocate %zu bytes",
                              n_bytes);
}

static void host_free(int index, void *data, size_t n_bytes,
                      struct pf_event *last) {
  (void)index;
  if (last)
    (void)last->ops->event_sync(last, NULL);
  pf_host_free(data, n_bytes);
}

static void host_clear(int index) {
  (void)index;
  pf_host_pool_clear();
}

static int host_within(int index, void *to, size_t to_offset, const void *from,
                       size_t from_offset, size_t n_bytes,
                       struct pf_stream *stream, struct pf_error *err) {
  (void)index;
  (void)stream;
  (void)err;
  if (n_bytes)
    memmove((char *)to + to_offset, (const char *)from + from_offset, n_bytes);
  return PF_OK;
}

static int host_to_device(int index, void *to, size_t to_offset,
                          const void *from, size_t n_bytes,
                          struct pf_stream *stream, struct pf_error *err) {
  return host_within(index, to, to_offset, from, 0, n_bytes, stream, err);
}

static int host_to_host(int index, void *to, const void *from,
                        size_t from_offset, size_t n_bytes,
                        struct pf_stream *stream, struct pf_error *err) {
  return host_within(index, to, 0, from, from_offset, n_bytes, stream, err);
}

static int host_stream_create(int index, struct pf_stream **out,
                              struct pf_error *err) {
  *out = calloc(1, sizeof(**out));
  if (!*out)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  (*out)->ops = &pf_device_host_ops;
  (*out)->device = (struct pf_device){PF_DEVICE_HOST, index};
  return PF_OK;
}

static int host_stream_sync(struct pf_stream *stream, struct pf_error *err) {
  (void)stream;
  (void)err;
  return PF_OK;
}

static void destroy_event(struct pf_event *event) {
  free(event);
}

static int host_event_record(struct pf_stream *stream, struct pf_event **out,
                             struct pf_error *err) {
  struct pf_event *event = calloc(1, sizeof(*event));
  *out = event;
  if (!event)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  atomic_init(&event->n_refs, 1);
  event->ops = &pf_device_host_ops;
  event->device = (struct pf_device){PF_DEVICE_HOST, 0};
  event->stream = stream;
  event->destroy = destroy_event;
  return PF_OK;
}

static int host_event_sync(struct pf_event *event, struct pf_error *err) {
  (void)event;
  (void)err;
  return PF_OK;
}

static int host_event_wait(struct pf_stream *stream, struct pf_event *event,
                           struct pf_error *err) {
  (void)stream;
  return event->ops->event_sync(event, err);
}

static bool host_event_done(struct pf_event *event) {
  (void)event;
  return true;
}

static bool host_is_dead(int index) {
  (void)index;
  return false;
}

const struct pf_device_ops pf_device_host_ops = {
    .name = "host",
    .kind = PF_DEVICE_HOST,
    .count = host_count,
    .info = host_info,
    .memory_info = host_memory_info,
    .alloc = host_alloc,
    .free = host_free,
    .clear = host_clear,
    .to_device = host_to_device,
    .to_host = host_to_host,
    .within = host_within,
    .stream_create = host_stream_create,
    .stream_sync = host_stream_sync,
    .event_record = host_event_record,
    .event_wait = host_event_wait,
    .event_sync = host_event_sync,
    .event_done = host_event_done,
    .is_dead = host_is_dead,
};
