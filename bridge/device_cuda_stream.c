/*
 * CUDA's streams and events. Streams do not wait for the legacy stream, events
 * take no time. An event of a lost card is over: nothing runs there any more.
 */
#include <stdlib.h>

#include "bridge/cuda_private.h"

int pf_cuda_stream_create(int index, struct pf_stream **out,
                          struct pf_error *err) {
  struct pf_cuda_scope scope;
  struct pf_cu_stream *handle = NULL;
  struct pf_stream *stream = NULL;
  int code = pf_cuda_enter(&scope, index, err);
  *out = NULL;
  if (code != PF_OK)
    return code;
  stream = calloc(1, sizeof(*stream));
  if (!stream)
    code = pf_error_set(err, PF_ENOMEM, "out of memory");
  else
    code = pf_cuda_check(
        scope.device, pf_cu.cuStreamCreate(&handle, PF_CU_STREAM_NON_BLOCKING),
        0, "make a stream", err);
  pf_cuda_leave(&scope);
  if (code != PF_OK) {
    free(stream);
    return code;
  }
  stream->ops = &pf_device_cuda_ops;
  stream->device = (struct pf_device){PF_DEVICE_CUDA, index};
  stream->handle = handle;
  *out = stream;
  return PF_OK;
}

int pf_cuda_stream_sync(struct pf_stream *stream, struct pf_error *err) {
  struct pf_cuda_scope scope;
  int code = pf_cuda_enter(&scope, stream->device.index, err);
  if (code != PF_OK)
    return code;
  code = pf_cuda_check(scope.device, pf_cu.cuStreamSynchronize(stream->handle),
                       0, "finish the work", err);
  pf_cuda_leave(&scope);
  return code;
}

/* Needs no context, and is right on a lost card. */
static void destroy_event(struct pf_event *event) {
  (void)pf_cu.cuEventDestroy(event->handle);
  free(event);
}

static int make_event(struct pf_event **out, const struct pf_stream *stream,
                      struct pf_cuda_device *device, struct pf_error *err) {
  struct pf_cu_event *handle = NULL;
  struct pf_event *event = calloc(1, sizeof(*event));
  int code;
  if (!event)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  code = pf_cuda_check(
      device, pf_cu.cuEventCreate(&handle, PF_CU_EVENT_DISABLE_TIMING), 0,
      "make an event", err);
  if (code != PF_OK) {
    free(event);
    return code;
  }
  atomic_init(&event->n_refs, 1);
  event->ops = &pf_device_cuda_ops;
  event->device = stream->device;
  event->handle = handle;
  event->stream = stream;
  event->destroy = destroy_event;
  *out = event;
  return PF_OK;
}

int pf_cuda_event_record(struct pf_stream *stream, struct pf_event **out,
                         struct pf_error *err) {
  struct pf_cuda_scope scope;
  struct pf_event *event = NULL;
  int code = pf_cuda_enter(&scope, stream->device.index, err);
  *out = NULL;
  if (code != PF_OK)
    return code;
  if ((code = make_event(&event, stream, scope.device, err)) == PF_OK)
    code = pf_cuda_check(scope.device,
                         pf_cu.cuEventRecord(event->handle, stream->handle), 0,
                         "record an event", err);
  pf_cuda_leave(&scope);
  if (code != PF_OK)
    pf_event_unref(&event);
  *out = event;
  return code;
}

int pf_cuda_event_wait(struct pf_stream *stream, struct pf_event *event,
                       struct pf_error *err) {
  struct pf_cuda_scope scope;
  int code;
  if (event->stream == stream)
    return PF_OK; /* its own order */
  code = pf_cuda_enter(&scope, stream->device.index, err);
  if (code != PF_OK)
    return code;
  code = pf_cuda_check(
      scope.device, pf_cu.cuStreamWaitEvent(stream->handle, event->handle, 0),
      0, "wait for an event", err);
  pf_cuda_leave(&scope);
  return code;
}

int pf_cuda_event_sync(struct pf_event *event, struct pf_error *err) {
  struct pf_cuda_scope scope;
  int code = pf_cuda_enter(&scope, event->device.index, err);
  if (code != PF_OK)
    return code;
  code = pf_cuda_check(scope.device, pf_cu.cuEventSynchronize(event->handle),
                       0, "finish the work", err);
  pf_cuda_leave(&scope);
  return code;
}

bool pf_cuda_event_done(struct pf_event *event) {
  struct pf_cuda_scope scope;
  int result;
  if (pf_cuda_enter(&scope, event->device.index, NULL) != PF_OK)
    return true;
  result = pf_cu.cuEventQuery(event->handle);
  if (result != PF_CU_NOT_READY)
    (void)pf_cuda_check(scope.device, result, 0, "ask for an event", NULL);
  pf_cuda_leave(&scope);
  return result != PF_CU_NOT_READY;
}
