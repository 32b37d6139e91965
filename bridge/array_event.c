/*
 * What is queued on an array's memory: the event that makes its elements
 * valid, and the uses after which the memory may go back.
 *
 * A use is an event of a stream; a later one of the same stream replaces it,
 * so that a storage has about as many uses as there are streams. Where there
 * is no memory to note one, the host waits for it instead.
 */
#include <pthread.h>
#include <stdlib.h>

#include "bridge/array_private.h"
#include "bridge/device_private.h"

struct pf_use {
  struct pf_use *next;
  struct pf_event *event; /* one reference */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* --- protected by `lock`: the `uses` of all storages, and */
static struct pf_storage *waiting; /* without references, with uses */
/* --- */
static atomic_size_t n_waiting; /* a hint; changed under `lock` */

static struct pf_use *uses_of(const struct pf_storage *storage) {
  return atomic_load_explicit(&storage->uses, memory_order_relaxed);
}

static void set_uses(struct pf_storage *storage, struct pf_use *uses) {
  atomic_store_explicit(&storage->uses, uses, memory_order_relaxed);
}

/* The use by the stream that `event` was recorded in, or NULL. */
static struct pf_use *use_by_stream_locked(const struct pf_storage *storage,
                                           const struct pf_event *event) {
  struct pf_use *use = event->stream ? uses_of(storage) : NULL;
  while (use && use->event->stream != event->stream)
    use = use->next;
  return use;
}

void pf_array_add_use(struct pf_array *array, struct pf_event *event) {
  struct pf_storage *storage = array->storage;
  struct pf_use *spare = NULL, *use = NULL;
  struct pf_event *earlier = NULL;
  bool is_noted = true;
  if (!event)
    return;
  spare = malloc(sizeof(*spare));
  pthread_mutex_lock(&lock);
  if ((use = use_by_stream_locked(storage, event))) {
    earlier = use->event;
    use->event = pf_event_ref(event);
  } else if ((is_noted = spare != NULL)) {
    spare->event = pf_event_ref(event);
    spare->next = uses_of(storage);
    set_uses(storage, spare);
    spare = NULL;
  }
  pthread_mutex_unlock(&lock);
  if (!is_noted)
    (void)event->ops->event_sync(event, NULL);
  pf_event_unref(&earlier);
  free(spare);
}

struct pf_event *pf_array_event(const struct pf_array *array) {
  return array->event;
}

void pf_array_set_event(struct pf_array *array, struct pf_event *event) {
  struct pf_event *earlier = array->event;
  array->event = pf_event_ref(event);
  pf_array_add_use(array, event);
  pf_event_unref(&earlier);
}

int pf_array_wait(const struct pf_array *array, struct pf_error *err) {
  return array->event ? array->event->ops->event_sync(array->event, err)
                      : PF_OK;
}

/* The events of all uses, a reference to each; *out is malloc'd, or NULL for
 * none and where memory ran out. */
static int list_uses(struct pf_event ***out, size_t *n,
                     const struct pf_storage *storage, struct pf_error *err) {
  struct pf_use *use;
  int code = PF_OK;
  *out = NULL;
  *n = 0;
  pthread_mutex_lock(&lock);
  for (use = uses_of(storage); use; use = use->next)
    ++*n;
  if (*n && !(*out = calloc(*n, sizeof(**out)))) {
    code = pf_error_set(err, PF_ENOMEM, "out of memory");
    *n = 0;
  }
  *n = 0;
  for (use = *out ? uses_of(storage) : NULL; use; use = use->next)
    (*out)[(*n)++] = pf_event_ref(use->event);
  pthread_mutex_unlock(&lock);
  return code;
}

int pf_array_order(const struct pf_array *array, struct pf_stream *stream,
                   bool to_write, struct pf_error *err) {
  struct pf_event **events = NULL;
  size_t n = 0;
  int code = pf_stream_wait_event(stream, array->event, err);
  if (code == PF_OK && to_write && uses_of(array->storage))
    code = list_uses(&events, &n, array->storage, err);
  for (size_t i = 0; i < n; i++) {
    if (code == PF_OK)
      code = pf_stream_wait_event(stream, events[i], err);
    pf_event_unref(&events[i]);
  }
  free(events);
  return code;
}

/* Take the uses that have ended out; they are given back as a list. */
static struct pf_use *drop_ended_locked(struct pf_storage *storage) {
  struct pf_use *ended = NULL, *left = NULL, *next;
  for (struct pf_use *use = uses_of(storage); use; use = next) {
    struct pf_use **list =
        use->event->ops->event_done(use->event) ? &ended : &left;
    next = use->next;
    use->next = *list;
    *list = use;
  }
  set_uses(storage, left);
  return ended;
}

static void free_uses(struct pf_use *use) {
  while (use) {
    struct pf_use *next = use->next;
    pf_event_unref(&use->event);
    free(use);
    use = next;
  }
}

bool pf_array_in_use(const struct pf_array *array) {
  struct pf_use *ended;
  bool is_used;
  if (!uses_of(array->storage))
    return false;
  pthread_mutex_lock(&lock);
  ended = drop_ended_locked(array->storage);
  is_used = uses_of(array->storage) != NULL;
  pthread_mutex_unlock(&lock);
  free_uses(ended);
  return is_used;
}

/*
 * One event after all uses of a storage without references: theirs if there is
 * one, else one that is recorded in a stream of the device after all of them.
 * Where that cannot be, the host waits.
 */
static struct pf_event *merge(struct pf_storage *storage) {
  struct pf_use *uses = uses_of(storage);
  const struct pf_device_ops *ops =
      pf_device_ops((enum pf_device_kind)storage->device.type);
  struct pf_event *last = NULL;
  struct pf_stream *stream = NULL;
  int code = PF_OK;
  if (!uses->next && uses->event->ops == ops)
    return pf_event_ref(uses->event);
  code = pf_stream_get(&stream, storage->device, NULL);
  for (struct pf_use *use = uses; use && code == PF_OK; use = use->next)
    code = pf_stream_wait_event(stream, use->event, NULL);
  if (code == PF_OK)
    code = ops->event_record(stream, &last, NULL);
  for (struct pf_use *use = uses; use && code != PF_OK; use = use->next)
    (void)use->event->ops->event_sync(use->event, NULL);
  pf_stream_put(&stream);
  return last;
}

/* Memory of a device's pool is ordered by the pool; other memory waits. */
static bool is_pooled(const struct pf_storage *storage) {
  return storage->block && (storage->device.type == PF_DEVICE_CUDA ||
                            storage->device.type == PF_DEVICE_OPENCL);
}

void pf_storage_release_after(struct pf_storage *storage) {
  struct pf_use *ended;
  pthread_mutex_lock(&lock);
  ended = drop_ended_locked(storage);
  if (uses_of(storage) && !is_pooled(storage)) {
    storage->next = waiting;
    waiting = storage;
    atomic_fetch_add(&n_waiting, 1);
    storage = NULL;
  }
  pthread_mutex_unlock(&lock);
  free_uses(ended);
  if (storage) {
    struct pf_event *last = uses_of(storage) ? merge(storage) : NULL;
    free_uses(uses_of(storage));
    pf_storage_release(storage, last);
    pf_event_unref(&last);
  } else {
    pf_storage_reap();
  }
}

void pf_storage_reap(void) {
  struct pf_storage *ready = NULL, **at = &waiting, *storage = NULL;
  struct pf_use *ended = NULL;
  if (atomic_load_explicit(&n_waiting, memory_order_relaxed) == 0)
    return;
  pthread_mutex_lock(&lock);
  while ((storage = *at)) {
    struct pf_use *gone = drop_ended_locked(storage);
    while (gone) {
      struct pf_use *next = gone->next;
      gone->next = ended;
      ended = gone;
      gone = next;
    }
    if (uses_of(storage)) {
      at = &storage->next;
    } else {
      *at = storage->next;
      storage->next = ready;
      ready = storage;
      atomic_fetch_sub(&n_waiting, 1);
    }
  }
  pthread_mutex_unlock(&lock);
  free_uses(ended);
  while ((storage = ready)) {
    ready = storage->next;
    pf_storage_release(storage, NULL);
  }
}
