/*
 * Streams, events and copies. Each stream is a thread that runs its work late,
 * after a random while.
 */
#include "tests/fakecuda/fakecuda.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fake_n_events;
static int n_streams;

int fakecuda_n_events(void) {
  int n;
  LOCK();
  n = fake_n_events;
  UNLOCK();
  return n;
}

static void unref_mark(struct mark *mark) {
  if (mark && --mark->n_refs == 0)
    free(mark);
}

/* Run the first operation, which stays in the queue until it is done. */
static void run_first_locked(struct pf_cu_stream *stream) {
  struct operation *operation = stream->first;
  const unsigned late = fake_delay();
  while (operation->waits && !operation->mark->is_done)
    (void)pthread_cond_wait(&fake_changed, &fake_lock);
  if (operation->run &&
      (operation->always || !fake_devices[operation->device].is_lost)) {
    UNLOCK();
    if (late)
      (void)usleep(late);
    operation->run(operation);
    LOCK();
  }
  if (operation->loses)
    fake_devices[operation->device].is_lost = true;
  if (operation->mark && !operation->waits)
    operation->mark->is_done = true;
  unref_mark(operation->mark);
  stream->first = operation->next;
  if (!stream->first)
    stream->last = &stream->first;
  stream->n_done++;
  free(operation);
  (void)pthread_cond_broadcast(&fake_changed);
}

static void *work(void *argument) {
  struct pf_cu_stream *stream = argument;
  LOCK();
  for (;;) {
    while (!stream->first)
      (void)pthread_cond_wait(&fake_changed, &fake_lock);
    run_first_locked(stream);
  }
  return NULL;
}

bool fake_queue(struct pf_cu_stream *stream,
                const struct operation *operation) {
  struct operation *copy = malloc(sizeof(*copy));
  if (!copy)
    return false;
  *copy = *operation;
  copy->next = NULL;
  copy->device = stream->device;
  *stream->last = copy;
  stream->last = &copy->next;
  stream->n_queued++;
  (void)pthread_cond_broadcast(&fake_changed);
  return true;
}

int fake_check_stream(const struct pf_cu_stream *stream) {
  int result;
  const struct device *device = fake_current(&result);
  if (!device)
    return result;
  return stream && stream->device == device->context.device
             ? PF_CU_SUCCESS
             : PF_CU_INVALID_HANDLE;
}

int cuStreamCreate(struct pf_cu_stream **out, unsigned flags) {
  struct pf_cu_stream *stream = NULL;
  const struct device *device;
  int result;
  LOCK();
  *out = NULL;
  device = fake_current(&result);
  if (device && flags != PF_CU_STREAM_NON_BLOCKING)
    result = PF_CU_INVALID_VALUE;
  if (device && result == PF_CU_SUCCESS &&
      (fake_fails() || n_streams + 1 >= MAX_CLOCKS ||
       !(stream = calloc(1, sizeof(*stream)))))
    result = PF_CU_OUT_OF_MEMORY;
  if (stream) {
    stream->device = device->context.device;
    stream->number = ++n_streams;
    stream->last = &stream->first;
    if (pthread_create(&stream->thread, NULL, work, stream) == 0)
      (void)pthread_detach(stream->thread);
    *out = stream;
  }
  UNLOCK();
  return result;
}

int cuStreamSynchronize(struct pf_cu_stream *stream) {
  int result;
  unsigned until;
  LOCK();
  result = fake_check_stream(stream);
  if (result == PF_CU_SUCCESS) {
    until = stream->n_queued;
    while ((int)(stream->n_done - until) < 0)
      (void)pthread_cond_wait(&fake_changed, &fake_lock);
    fake_join(&fake_host, &stream->clock);
    (void)fake_current(&result);
  }
  UNLOCK();
  return result;
}

/* -- events ----------------------------------------------------------------
 */

int cuEventCreate(struct pf_cu_event **out, unsigned flags) {
  struct pf_cu_event *event = NULL;
  const struct device *device;
  int result;
  LOCK();
  *out = NULL;
  device = fake_current(&result);
  if (device && flags != PF_CU_EVENT_DISABLE_TIMING)
    result = PF_CU_INVALID_VALUE;
  if (device && result == PF_CU_SUCCESS &&
      (fake_fails() || !(event = calloc(1, sizeof(*event)))))
    result = PF_CU_OUT_OF_MEMORY;
  if (event) {
    event->device = device->context.device;
    fake_n_events++;
    *out = event;
  }
  UNLOCK();
  return result;
}

int cuEventDestroy_v2(struct pf_cu_event *event) {
  LOCK();
  unref_mark(event->mark);
  fake_n_events--;
  UNLOCK();
  free(event);
  return PF_CU_SUCCESS;
}

int cuEventRecord(struct pf_cu_event *event, struct pf_cu_stream *stream) {
  struct operation operation = {.always = true};
  struct mark *mark = NULL;
  int result;
  LOCK();
  result = fake_check_stream(stream);
  if (result == PF_CU_SUCCESS && event->device != stream->device)
    result = PF_CU_INVALID_HANDLE;
  if (result == PF_CU_SUCCESS && !(mark = calloc(1, sizeof(*mark))))
    result = PF_CU_OUT_OF_MEMORY;
  if (mark) {
    fake_tick(stream);
    mark->n_refs = 2; /* the event's and the operation's */
    mark->clock = stream->clock;
    operation.mark = mark;
    unref_mark(event->mark);
    event->mark = mark;
    if (!fake_queue(stream, &operation))
      result = PF_CU_OUT_OF_MEMORY;
  }
  UNLOCK();
  return result;
}

int cuStreamWaitEvent(struct pf_cu_stream *stream, struct pf_cu_event *event,
                      unsigned flags) {
  struct operation operation = {.waits = true, .always = true};
  int result;
  LOCK();
  result = flags ? PF_CU_INVALID_VALUE : fake_check_stream(stream);
  if (result == PF_CU_SUCCESS && event->mark) {
    fake_join(&stream->clock, &event->mark->clock);
    operation.mark = event->mark;
    event->mark->n_refs++;
    if (!fake_queue(stream, &operation))
      result = PF_CU_OUT_OF_MEMORY;
  }
  UNLOCK();
  return result;
}

int cuEventQuery(struct pf_cu_event *event) {
  int result;
  LOCK();
  if (fake_current(&result) && event->mark) {
    if (event->mark->is_done)
      fake_join(&fake_host, &event->mark->clock);
    else
      result = PF_CU_NOT_READY;
  }
  UNLOCK();
  return result;
}

int cuEventSynchronize(struct pf_cu_event *event) {
  struct mark *mark;
  int result;
  LOCK();
  if (fake_current(&result) && (mark = event->mark)) {
    mark->n_refs++;
    while (!mark->is_done)
      (void)pthread_cond_wait(&fake_changed, &fake_lock);
    fake_join(&fake_host, &mark->clock);
    unref_mark(mark);
    (void)fake_current(&result);
  }
  UNLOCK();
  return result;
}

/* -- copies ----------------------------------------------------------------
 */

static void copy_late(struct operation *operation) {
  memcpy(operation->to, operation->from, operation->n_bytes);
}

/* A side of a copy: an address as the program has it, on the host or not. */
struct side {
  const void *at;
  bool is_host;
};

static void *reach_side(struct side side, size_t n_bytes) {
  return side.is_host ? (void *)(uintptr_t)side.at
                      : fake_reach(side.at, n_bytes);
}

static int copy(struct side to, struct side from, size_t n_bytes,
                struct pf_cu_stream *stream) {
  struct operation operation = {.run = copy_late, .n_bytes = n_bytes};
  int result;
  LOCK();
  result = fake_check_stream(stream);
  if (result == PF_CU_SUCCESS) {
    operation.to = reach_side(to, n_bytes);
    operation.from = reach_side(from, n_bytes);
    if (!operation.to || !operation.from)
      result = PF_CU_INVALID_VALUE;
  }
  if (result == PF_CU_SUCCESS) {
    fake_tick(stream);
    fake_access(stream, from.at, n_bytes, false);
    fake_access(stream, to.at, n_bytes, true);
    if (!fake_queue(stream, &operation))
      result = PF_CU_OUT_OF_MEMORY;
  }
  UNLOCK();
  return result;
}

static struct side on_device(pf_cu_address at) {
  return (struct side){(void *)(uintptr_t)at, false};
}

static struct side on_host(const void *at) {
  return (struct side){at, true};
}

int cuMemcpyHtoDAsync_v2(pf_cu_address to, const void *from, size_t n_bytes,
                         struct pf_cu_stream *stream) {
  return copy(on_device(to), on_host(from), n_bytes, stream);
}

int cuMemcpyDtoHAsync_v2(void *to, pf_cu_address from, size_t n_bytes,
                         struct pf_cu_stream *stream) {
  return copy(on_host(to), on_device(from), n_bytes, stream);
}

int cuMemcpyDtoDAsync_v2(pf_cu_address to, pf_cu_address from, size_t n_bytes,
                         struct pf_cu_stream *stream) {
  return copy(on_device(to), on_device(from), n_bytes, stream);
}

int cuMemcpyPeerAsync(pf_cu_address to, struct pf_cu_context *to_context,
                      pf_cu_address from, struct pf_cu_context *from_context,
                      size_t n_bytes, struct pf_cu_stream *stream) {
  const struct region *a, *b;
  bool is_right;
  LOCK();
  a = fake_region((void *)(uintptr_t)to);
  b = fake_region((void *)(uintptr_t)from);
  is_right = a && b && a->device == to_context->device &&
             b->device == from_context->device;
  UNLOCK();
  return is_right ? copy(on_device(to), on_device(from), n_bytes, stream)
                  : PF_CU_INVALID_VALUE;
}
