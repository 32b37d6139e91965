/*
 * Devices: the table of kinds, the pool of streams, events' counts, sizes and
 * the limit. See include/plateflow/device.h.
 */
#include "plateflow/device.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/device_private.h"

/* A kind of device is one row; pinned memory is read like the host's. */
struct kind_row {
  enum pf_device_kind kind;
  const struct pf_device_ops *ops;
};
static const struct kind_row kinds[] = {
    {PF_DEVICE_HOST, &pf_device_host_ops},
    {PF_DEVICE_CUDA, &pf_device_cuda_ops},
    {PF_DEVICE_CUDA_HOST, &pf_device_host_ops},
    {PF_DEVICE_OPENCL, &pf_device_opencl_ops},
};

const struct pf_device_ops *pf_device_ops(enum pf_device_kind kind) {
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
    if (kinds[i].kind == kind)
      return kinds[i].ops;
  return NULL;
}

int pf_device_find(const struct pf_device_ops **ops, struct pf_device device,
                   struct pf_error *err) {
  struct pf_error why = PF_ERROR_INIT;
  int n = 0;
  *ops = pf_device_ops((enum pf_device_kind)device.type);
  if (!*ops)
    return pf_error_set(err, PF_EMISSING,
                        "there are no devices of type %d here", device.type);
  n = (*ops)->count(&why);
  if (device.index >= 0 && device.index < n)
    return PF_OK;
  if (n > 0)
    (void)pf_error_set(err, PF_EMISSING,
                       "there is no %s device %d: this machine has 0 to %d",
                       (*ops)->name, device.index, n - 1);
  else
    (void)pf_error_set(err, PF_EMISSING, "there is no %s device: %s",
                       (*ops)->name,
                       why.message ? why.message : "none was found");
  pf_error_clear(&why);
  *ops = NULL;
  return PF_EMISSING;
}

/* -- events ----------------------------------------------------------------
 */

struct pf_event *pf_event_ref(struct pf_event *event) {
  if (event)
    atomic_fetch_add_explicit(&event->n_refs, 1, memory_order_relaxed);
  return event;
}

void pf_event_unref(struct pf_event **event) {
  struct pf_event *last = event ? *event : NULL;
  if (!last)
    return;
  *event = NULL;
  if (atomic_fetch_sub_explicit(&last->n_refs, 1, memory_order_acq_rel) == 1)
    last->destroy(last);
}

int pf_stream_wait_event(struct pf_stream *stream, struct pf_event *event,
                         struct pf_error *err) {
  if (!event)
    return PF_OK;
  if (stream && stream->ops == event->ops)
    return event->ops->event_wait(stream, event, err);
  return event->ops->event_sync(event, err);
}

/* -- streams ---------------------------------------------------------------
 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* --- protected by `lock`. One list each for all devices: a process has a
 * handful of streams. */
static struct pf_stream *idle;     /* in nobody's hands */
static struct pf_stream *defaults; /* one per device, used by all threads */
/* --- */

static bool is_of(const struct pf_stream *stream,
                  const struct pf_device_ops *ops, int index) {
  return stream->ops == ops && stream->device.index == index;
}

static struct pf_stream *take_idle(const struct pf_device_ops *ops,
                                   int index) {
  struct pf_stream **at, *found = NULL;
  pthread_mutex_lock(&lock);
  for (at = &idle; *at && !is_of(*at, ops, index);)
    at = &(*at)->next;
  if ((found = *at)) {
    *at = found->next;
    found->next = NULL;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

int pf_stream_get(struct pf_stream **out, struct pf_device device,
                  struct pf_error *err) {
  const struct pf_device_ops *ops = NULL;
  int code = pf_device_find(&ops, device, err);
  *out = NULL;
  if (code != PF_OK)
    return code;
  *out = take_idle(ops, device.index);
  return *out ? PF_OK : ops->stream_create(device.index, out, err);
}

void pf_stream_put(struct pf_stream **stream) {
  struct pf_stream *back = stream ? *stream : NULL;
  if (!back)
    return;
  *stream = NULL;
  pthread_mutex_lock(&lock);
  back->next = idle;
  idle = back;
  pthread_mutex_unlock(&lock);
}

static struct pf_stream *find_default_locked(const struct pf_device_ops *ops,
                                             int index) {
  struct pf_stream *at = defaults;
  while (at && !is_of(at, ops, index))
    at = at->next;
  return at;
}

int pf_stream_default(struct pf_stream **out, const struct pf_device_ops *ops,
                      int index, struct pf_error *err) {
  struct pf_stream *found, *made = NULL;
  int code;
  pthread_mutex_lock(&lock);
  found = find_default_locked(ops, index);
  pthread_mutex_unlock(&lock);
  *out = found;
  if (found)
    return PF_OK;
  if ((code = ops->stream_create(index, &made, err)) != PF_OK)
    return code;
  pthread_mutex_lock(&lock);
  found = find_default_locked(ops, index);
  if (!found) {
    made->next = defaults;
    found = defaults = made;
    made = NULL;
  }
  pthread_mutex_unlock(&lock);
  *out = found;
  pf_stream_put(&made); /* another thread was first: ours serves later */
  return PF_OK;
}

void *pf_stream_handle(const struct pf_stream *stream) {
  return stream ? stream->handle : NULL;
}

struct pf_device pf_stream_device(const struct pf_stream *stream) {
  return stream->device;
}

/* -- sizes and the limit ---------------------------------------------------
 */

struct unit_row {
  const char *word;
  double bytes;
};
static const struct unit_row units[] = {
    {"", 1},       {"B", 1},        {"K", 1024},     {"KiB", 1024},
    {"kB", 1e3},   {"KB", 1e3},     {"M", 0x1p20},   {"MiB", 0x1p20},
    {"MB", 1e6},   {"G", 0x1p30},   {"GiB", 0x1p30}, {"GB", 1e9},
    {"T", 0x1p40}, {"TiB", 0x1p40}, {"TB", 1e12},
};

static const struct unit_row *find_unit(const char *text) {
  for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
    if (strcmp(units[i].word, text) == 0)
      return &units[i];
  return NULL;
}

static const char *skip_spaces(const char *text) {
  while (*text == ' ')
    text++;
  return text;
}

int pf_parse_size(const char *text, uint64_t *out, struct pf_error *err) {
  const struct unit_row *unit = NULL;
  char *end = NULL;
  double value = 0;
  *out = 0;
  /* strtod() also takes signs, spaces, "inf", "nan" and hexadecimal. */
  if (isdigit((unsigned char)text[0]) && text[1] != 'x' && text[1] != 'X') {
    value = strtod(text, &end);
    unit = find_unit(skip_spaces(end));
  }
  if (unit && value * unit->bytes < 0x1p63) {
    *out = (uint64_t)floor(value * unit->bytes);
    return PF_OK;
  }
  return pf_error_set(err, PF_EINVAL,
                      "\"%.64s\" is no size in bytes: write a number such as "
                      "100000, 512MiB or 2GiB",
                      text);
}

#define LIMIT_VARIABLE "PLATEFLOW_DEVICE_LIMIT"

static pthread_once_t limit_once = PTHREAD_ONCE_INIT;
/* --- set once, from the environment */
static bool limit_is_wrong; /* what it holds is no size */
/* --- */
static _Atomic uint64_t limit;

static void read_limit(void) {
  const char *text = getenv(LIMIT_VARIABLE);
  uint64_t n_bytes = 0;
  if (text && *text)
    limit_is_wrong = pf_parse_size(text, &n_bytes, NULL) != PF_OK;
  atomic_store(&limit, n_bytes);
}

void pf_device_set_limit(uint64_t n_bytes) {
  (void)pthread_once(&limit_once, read_limit);
  atomic_store(&limit, n_bytes);
}

uint64_t pf_device_limit(void) {
  (void)pthread_once(&limit_once, read_limit);
  return atomic_load(&limit);
}

int pf_device_check_limit(struct pf_error *err) {
  const char *text = getenv(LIMIT_VARIABLE);
  uint64_t ignored;
  if (pf_device_limit() != 0 || !limit_is_wrong)
    return PF_OK;
  if (!text || pf_parse_size(text, &ignored, err) == PF_OK)
    return PF_OK; /* it was changed since */
  pf_error_prefix(err, "the environment variable " LIMIT_VARIABLE);
  return PF_EINVAL;
}
