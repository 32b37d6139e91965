/*
 * The OpenCL device: memory, copies, streams and events.
 *
 * A stream is an in-order queue of ours in the device's current context. When
 * another library's context takes over (pf_opencl_adopt()), a stream moves at
 * its next use; buffers that were made before keep their own context and are
 * reached through a queue of that.
 */
#include <stdlib.h>

#include "bridge/opencl_private.h"

struct cl_stream {
  struct pf_stream base;         /* its handle is the queue */
  struct pf_cl_context *context; /* of the queue */
};

static int count(struct pf_error *err) {
  return pf_cl_count(err);
}

static int info(int index, struct pf_device_info *out, struct pf_error *err) {
  const struct pf_cl_device *device = pf_cl_device(index, err);
  if (!device)
    return PF_EMISSING;
  *out = device->info;
  return PF_OK;
}

/* OpenCL does not say what is free: what we have not taken. */
static int memory_info(int index, struct pf_memory_info *out,
                       struct pf_error *err) {
  struct pf_cl_device *device = pf_cl_device(index, err);
  uint64_t taken, limit;
  if (!device)
    return PF_EMISSING;
  limit = pf_device_pool_limit(&device->pool);
  *out = (struct pf_memory_info){.total = device->info.total,
                                 .limit = pf_device_limit()};
  pf_device_pool_count(&device->pool, &out->used, &out->cached);
  taken = out->used + out->cached;
  out->free = limit > taken ? limit - taken : 0;
  return PF_OK;
}

/* -- streams ------------------------------------------------------------ */

static int stream_create(int index, struct pf_stream **out,
                         struct pf_error *err) {
  struct pf_cl_device *device = pf_cl_device(index, err);
  struct cl_stream *stream = NULL;
  struct pf_cl_queue *queue = NULL;
  int code;
  *out = NULL;
  if (!device)
    return PF_EMISSING;
  stream = calloc(1, sizeof(*stream));
  if (!stream)
    return pf_error_set(err, PF_ENOMEM, "no memory for a stream");
  code = pf_cl_current(device, &stream->context, err);
  if (code == PF_OK)
    code = pf_cl_make_queue(device, stream->context, &queue, err);
  if (code != PF_OK) {
    free(stream);
    return code;
  }
  stream->base.ops = &pf_device_opencl_ops;
  stream->base.device = (struct pf_device){PF_DEVICE_OPENCL, index};
  stream->base.handle = queue;
  *out = &stream->base;
  return PF_OK;
}

/* What the old queue holds is done before the first work on the new one. The
 * old one is not released: another thread may be about to use it. */
static int move_locked(struct pf_cl_device *device, struct cl_stream *stream,
                       struct pf_cl_context *context, struct pf_error *err) {
  struct pf_cl_queue *queue = NULL;
  int32_t status = pf_cl.clFinish(stream->base.handle);
  int code;
  if (status != PF_CL_SUCCESS)
    return pf_cl_fail(device, status, "finish a queue", err);
  code = pf_cl_make_queue(device, context, &queue, err);
  if (code != PF_OK)
    return code;
  stream->base.handle = queue;
  stream->context = context;
  return PF_OK;
}

int pf_cl_queue_of(struct pf_cl_device *device, struct pf_stream *stream,
                   struct pf_cl_queue **out, struct pf_error *err) {
  struct pf_cl_context *context = NULL;
  struct cl_stream *mine = NULL;
  int code = pf_cl_current(device, &context, err);
  *out = NULL;
  if (code == PF_OK && !stream)
    code =
        pf_stream_default(&stream, &pf_device_opencl_ops, device->index, err);
  if (code != PF_OK)
    return code;
  mine = (struct cl_stream *)stream;
  (void)pthread_mutex_lock(&device->lock);
  if (mine->context != context)
    code = move_locked(device, mine, context, err);
  *out = stream->handle;
  (void)pthread_mutex_unlock(&device->lock);
  return code;
}

static struct pf_cl_device *device_of(const struct pf_stream *stream) {
  return pf_cl_device(stream->device.index, NULL);
}

static int finish(struct pf_cl_device *device, struct pf_cl_queue *queue,
                  struct pf_error *err) {
  int32_t status = pf_cl.clFinish(queue);
  return status == PF_CL_SUCCESS
             ? PF_OK
             : pf_cl_fail(device, status, "finish a queue", err);
}

static int stream_sync(struct pf_stream *stream, struct pf_error *err) {
  struct pf_cl_device *device = device_of(stream);
  struct pf_cl_queue *queue = NULL;
  int code = pf_cl_queue_of(device, stream, &queue, err);
  return code == PF_OK ? finish(device, queue, err) : code;
}

/* -- memory ------------------------------------------------------------- */

struct pf_cl_context *pf_cl_context_of(struct pf_cl_mem *buffer) {
  struct pf_cl_context *context = NULL;
  if (pf_cl.clGetMemObjectInfo(buffer, PF_CL_MEM_CONTEXT, sizeof(context),
                               &context, NULL) != PF_CL_SUCCESS)
    return NULL;
  return context;
}

static int alloc(int index, size_t n_bytes, struct pf_stream *stream,
                 void **data, struct pf_error *err) {
  struct pf_cl_device *device = pf_cl_device(index, err);
  *data = NULL;
  if (!device)
    return PF_EMISSING;
  return pf_device_pool_alloc(&device->pool, n_bytes, stream, data, err);
}

/* A buffer of a context that is no longer the device's serves nobody. */
static void free_memory(int index, void *data, size_t n_bytes,
                        struct pf_event *last) {
  struct pf_cl_device *device = pf_cl_device(index, NULL);
  struct pf_cl_context *context = NULL;
  if (!device || !data)
    return;
  if (pf_cl_current(device, &context, NULL) == PF_OK &&
      pf_cl_context_of(data) == context)
    pf_device_pool_free(&device->pool, data, n_bytes, last);
  else /* OpenCL keeps it until what is queued has used it */
    pf_device_pool_discard(&device->pool, data, n_bytes);
}

static void clear(int index) {
  struct pf_cl_device *device = pf_cl_device(index, NULL);
  if (device)
    pf_device_pool_clear(&device->pool);
}

/*
 * The queue for work on `buffer`: the stream's, or a new one where the buffer
 * is of another context; *own then is true: close_queue() finishes it.
 */
static int open_queue(struct pf_cl_device *device, struct pf_stream *stream,
                      struct pf_cl_mem *buffer, struct pf_cl_queue **queue,
                      bool *own, struct pf_error *err) {
  struct pf_cl_context *there = pf_cl_context_of(buffer), *here = NULL;
  int code;
  *own = false;
  if (!there)
    return pf_error_set(err, PF_EINVAL, "the array is no OpenCL buffer");
  code = pf_cl_current(device, &here, err);
  if (code != PF_OK)
    return code;
  if (here == there)
    return pf_cl_queue_of(device, stream, queue, err);
  *own = true;
  return pf_cl_make_queue(device, there, queue, err);
}

static int close_queue(struct pf_cl_device *device, struct pf_cl_queue *queue,
                       bool own, int32_t status, const char *what,
                       struct pf_error *err) {
  int code = PF_OK;
  if (status != PF_CL_SUCCESS)
    code = pf_cl_fail(device, status, what, err);
  else if (own)
    code = finish(device, queue, err);
  else
    (void)pf_cl.clFlush(queue);
  if (own)
    (void)pf_cl.clReleaseCommandQueue(queue);
  return code;
}

static int to_device(int index, void *to, size_t to_offset, const void *from,
                     size_t n_bytes, struct pf_stream *stream,
                     struct pf_error *err) {
  struct pf_cl_device *device = pf_cl_device(index, err);
  struct pf_cl_queue *queue = NULL;
  bool own;
  int32_t status;
  int code;
  if (!device)
    return PF_EMISSING;
  if (!n_bytes)
    return PF_OK;
  code = open_queue(device, stream, to, &queue, &own, err);
  if (code != PF_OK)
    return code;
  status = pf_cl.clEnqueueWriteBuffer(queue, to, 0, to_offset, n_bytes, from,
                                      0, NULL, NULL);
  return close_queue(device, queue, own, status, "copy to the device", err);
}

static int to_host(int index, void *to, const void *from, size_t from_offset,
                   size_t n_bytes, struct pf_stream *stream,
                   struct pf_error *err) {
  struct pf_cl_device *device = pf_cl_device(index, err);
  struct pf_cl_mem *buffer = (struct pf_cl_mem *)(uintptr_t)from;
  struct pf_cl_queue *queue = NULL;
  bool own;
  int32_t status;
  int code;
  if (!device)
    return PF_EMISSING;
  if (!n_bytes)
    return PF_OK;
  code = open_queue(device, stream, buffer, &queue, &own, err);
  if (code != PF_OK)
    return code;
  status = pf_cl.clEnqueueReadBuffer(queue, buffer, 0, from_offset, n_bytes,
                                     to, 0, NULL, NULL);
  return close_queue(device, queue, own, status, "copy to the host", err);
}

/* Between two contexts: over the host. */
static int within_contexts(int index, void *to, size_t to_offset,
                           const void *from, size_t from_offset,
                           size_t n_bytes, struct pf_stream *stream,
                           struct pf_error *err) {
  struct pf_cl_device *device = pf_cl_device(index, err);
  struct pf_cl_queue *queue = NULL;
  void *bounce = malloc(n_bytes);
  int code;
  if (!bounce)
    return pf_error_set(err, PF_ENOMEM, "no memory to copy %zu bytes",
                        n_bytes);
  code = pf_cl_queue_of(device, stream, &queue, err);
  if (code == PF_OK)
    code = to_host(index, bounce, from, from_offset, n_bytes, stream, err);
  if (code == PF_OK)
    code = finish(device, queue, err);
  if (code == PF_OK)
    code = to_device(index, to, to_offset, bounce, n_bytes, stream, err);
  if (code == PF_OK)
    code = finish(device, queue, err); /* before its source goes */
  free(bounce);
  return code;
}

static int within(int index, void *to, size_t to_offset, const void *from,
                  size_t from_offset, size_t n_bytes, struct pf_stream *stream,
                  struct pf_error *err) {
  struct pf_cl_device *device = pf_cl_device(index, err);
  struct pf_cl_mem *buffer = (struct pf_cl_mem *)(uintptr_t)from;
  struct pf_cl_queue *queue = NULL;
  bool own;
  int32_t status;
  int code;
  if (!device)
    return PF_EMISSING;
  if (!n_bytes)
    return PF_OK;
  if (pf_cl_context_of(to) != pf_cl_context_of(buffer))
    return within_contexts(index, to, to_offset, from, from_offset, n_bytes,
                           stream, err);
  code = open_queue(device, stream, to, &queue, &own, err);
  if (code != PF_OK)
    return code;
  status = pf_cl.clEnqueueCopyBuffer(queue, buffer, to, from_offset, to_offset,
                                     n_bytes, 0, NULL, NULL);
  return close_queue(device, queue, own, status, "copy", err);
}

/* -- events ------------------------------------------------------------- */

static void event_destroy(struct pf_event *event) {
  (void)pf_cl.clReleaseEvent(event->handle);
  free(event);
}

/* Others may wait only for what is flushed. */
static int mark(struct pf_cl_device *device, struct pf_stream *stream,
                struct pf_cl_event **out, struct pf_error *err) {
  struct pf_cl_queue *queue = NULL;
  int32_t status;
  int code = pf_cl_queue_of(device, stream, &queue, err);
  *out = NULL;
  if (code != PF_OK)
    return code;
  status = pf_cl.clEnqueueMarkerWithWaitList(queue, 0, NULL, out);
  if (status == PF_CL_SUCCESS)
    status = pf_cl.clFlush(queue);
  if (status == PF_CL_SUCCESS)
    return PF_OK;
  if (*out)
    (void)pf_cl.clReleaseEvent(*out);
  return pf_cl_fail(device, status, "record an event", err);
}

static int event_record(struct pf_stream *stream, struct pf_event **out,
                        struct pf_error *err) {
  struct pf_cl_event *marker = NULL;
  struct pf_event *event = NULL;
  int code = mark(device_of(stream), stream, &marker, err);
  *out = NULL;
  if (code != PF_OK)
    return code;
  event = calloc(1, sizeof(*event));
  if (!event) {
    (void)pf_cl.clReleaseEvent(marker);
    return pf_error_set(err, PF_ENOMEM, "no memory for an event");
  }
  atomic_init(&event->n_refs, 1);
  event->ops = &pf_device_opencl_ops;
  event->device = stream->device;
  event->handle = marker;
  event->stream = stream;
  event->destroy = event_destroy;
  *out = event;
  return PF_OK;
}

/* > 0: not done yet; < 0: what it was marking failed. */
static int32_t event_status(struct pf_cl_event *event) {
  int32_t execution = PF_CL_INVALID_VALUE;
  int32_t status =
      pf_cl.clGetEventInfo(event, PF_CL_EVENT_COMMAND_EXECUTION_STATUS,
                           sizeof(execution), &execution, NULL);
  return status == PF_CL_SUCCESS ? execution : status;
}

int pf_cl_wait(struct pf_cl_device *device, struct pf_cl_event *event,
               struct pf_error *err) {
  int32_t status = pf_cl.clWaitForEvents(1, &event);
  if (status == PF_CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    status = event_status(event);
  return status == PF_CL_SUCCESS
             ? PF_OK
             : pf_cl_fail(device, status, "finish the work", err);
}

static int event_sync(struct pf_event *event, struct pf_error *err) {
  struct pf_cl_device *device = pf_cl_device(event->device.index, err);
  return device ? pf_cl_wait(device, event->handle, err) : PF_EMISSING;
}

/* A queue waits only for events of its own context; else the host does. */
static int event_wait(struct pf_stream *stream, struct pf_event *event,
                      struct pf_error *err) {
  struct pf_cl_device *device = device_of(stream);
  struct pf_cl_event *waits[1] = {event->handle};
  struct pf_cl_queue *queue = NULL;
  int32_t status;
  int code = pf_cl_queue_of(device, stream, &queue, err);
  if (code != PF_OK)
    return code;
  status = pf_cl.clEnqueueBarrierWithWaitList(queue, 1, waits, NULL);
  if (status == PF_CL_INVALID_CONTEXT)
    return event_sync(event, err);
  return status == PF_CL_SUCCESS
             ? PF_OK
             : pf_cl_fail(device, status, "wait for an event", err);
}

static bool event_done(struct pf_event *event) {
  return event_status(event->handle) <= PF_CL_COMPLETE;
}

static bool is_dead(int index) {
  const struct pf_cl_device *device = pf_cl_device(index, NULL);
  return !device || atomic_load(&device->is_dead);
}

const struct pf_device_ops pf_device_opencl_ops = {
    .name = "opencl",
    .kind = PF_DEVICE_OPENCL,
    .count = count,
    .info = info,
    .memory_info = memory_info,
    .alloc = alloc,
    .free = free_memory,
    .clear = clear,
    .to_device = to_device,
    .to_host = to_host,
    .within = within,
    .stream_create = stream_create,
    .stream_sync = stream_sync,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_sync = event_sync,
    .event_done = event_done,
    .kernel = pf_cl_kernel,
    .launch = pf_cl_launch,
    .is_dead = is_dead,
};
