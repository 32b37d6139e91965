/*
 * Devices: where arrays live and work is queued. One vtable per kind of
 * device; the bridge calls them only through this table.
 *
 * Memory is a struct pf_memory: on the host and on CUDA `data` is an address,
 * on OpenCL it is a cl_mem (as DLPack has it). A stream is an order of work; a
 * struct pf_event marks a point in it. Streams come from a pool per device and
 * go back to it; frameworks key their caches by stream, so they are never
 * destroyed before the process ends.
 *
 * Threads: all functions may be called from any thread; a stream is used by
 * one thread at a time. None takes the GIL. Errors: PF_EMISSING (no such
 * driver or device: says what to install), PF_ENOMEM with the bytes asked and
 * free (out of device memory, and nothing else is taken for it), PF_EINVAL,
 * PF_EBUG (the driver refused what should work); after a sticky error the
 * table's is_dead() is true.
 */
#ifndef PLATEFLOW_DEVICE_H
#define PLATEFLOW_DEVICE_H

#include "plateflow/array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DLPack's numbers for the kinds of device that plateflow knows. */
enum pf_device_kind {
  PF_DEVICE_HOST = 1,      /* kDLCPU */
  PF_DEVICE_CUDA = 2,      /* kDLCUDA */
  PF_DEVICE_CUDA_HOST = 3, /* kDLCUDAHost: pinned, read like the host */
  PF_DEVICE_OPENCL = 4     /* kDLOpenCL */
};

struct pf_stream; /* opaque; pf_stream_handle() gives the driver's */
struct pf_event;  /* reference counted */

struct pf_device_info {
  char name[128];     /* "NVIDIA H200", "pthread-..." */
  char driver[64];    /* version, for doctor */
  char bus[32];       /* PCI address, or "" */
  uint64_t total;     /* bytes of memory */
  uint64_t largest;   /* bytes of the largest single allocation */
  bool shares_host;   /* its memory is the host's (no copy is needed) */
  bool is_cpu;        /* an OpenCL device on the CPU */
  uint32_t alignment; /* bytes, that a view's offset must be a multiple of */
};

struct pf_memory_info {
  uint64_t total, free; /* bytes, as the driver says, or under the limit */
  uint64_t used;        /* by plateflow's arrays */
  uint64_t cached;      /* by plateflow's pool, given back on request */
  uint64_t limit; /* 0: none; else --gpu-memory, PLATEFLOW_DEVICE_LIMIT */
};

/* A kernel that was built for one device; owned by the device's cache. */
struct pf_kernel;
struct pf_kernel_argument {
  const void *value; /* a scalar of n_bytes, or NULL */
  size_t n_bytes;
  const struct pf_array *array; /* an array on the device, or NULL */
};

/* Each kind of device fills this table; NULL members are not supported. */
struct pf_device_ops {
  const char *name; /* "host", "cuda", "opencl" */
  enum pf_device_kind kind;
  /* How many there are; 0 with err set says why (no driver ...). */
  int (*count)(struct pf_error *err);
  int (*info)(int index, struct pf_device_info *out, struct pf_error *err);
  int (*memory_info)(int index, struct pf_memory_info *out,
                     struct pf_error *err);
  /* Ready for work queued to `stream`; from the pool. */
  int (*alloc)(int index, size_t n_bytes, struct pf_stream *stream,
               void **data, struct pf_error *err);
  /* Back to the pool, used again only after `last` (may be NULL). */
  void (*free)(int index, void *data, size_t n_bytes, struct pf_event *last);
  /* Give the pool's cached memory back to the driver. */
  void (*clear)(int index);
  /* Queue a copy between host memory and the device or within a device
   * (offsets in bytes); host memory must live until the stream passed it. */
  int (*to_device)(int index, void *to, size_t to_offset, const void *from,
                   size_t n_bytes, struct pf_stream *stream,
                   struct pf_error *err);
  int (*to_host)(int index, void *to, const void *from, size_t from_offset,
                 size_t n_bytes, struct pf_stream *stream,
                 struct pf_error *err);
  int (*within)(int index, void *to, size_t to_offset, const void *from,
                size_t from_offset, size_t n_bytes, struct pf_stream *stream,
                struct pf_error *err);
  /* Between two devices of this kind; NULL: over the host. */
  int (*peer)(int to_index, void *to, int from_index, const void *from,
              size_t n_bytes, struct pf_stream *stream, struct pf_error *err);
  int (*stream_create)(int index, struct pf_stream **out,
                       struct pf_error *err);
  int (*stream_sync)(struct pf_stream *stream, struct pf_error *err);
  int (*event_record)(struct pf_stream *stream, struct pf_event **out,
                      struct pf_error *err);
  int (*event_wait)(struct pf_stream *stream, struct pf_event *event,
                    struct pf_error *err); /* the stream waits, not the host */
  int (*event_sync)(struct pf_event *event, struct pf_error *err);
  bool (*event_done)(struct pf_event *event);
  /* Host memory that copies asynchronously; exported as plain kDLCPU. */
  int (*pinned_alloc)(size_t n_bytes, void **data, struct pf_error *err);
  void (*pinned_free)(void *data, size_t n_bytes);
  /* Build `source` (or find it in the cache) and get a kernel of it. */
  int (*kernel)(int index, const char *source, const char *name,
                struct pf_kernel **out, struct pf_error *err);
  int (*launch)(struct pf_kernel *kernel, struct pf_stream *stream,
                const size_t global[3], const size_t local[3],
                const struct pf_kernel_argument *arguments, size_t n,
                struct pf_error *err);
  bool (*is_dead)(int index); /* a sticky error: nothing works any more */
};

/* The table of a kind, or NULL. */
PF_API const struct pf_device_ops *pf_device_ops(enum pf_device_kind kind);

/*
 * An array on a device, compact, elements not set; `stream` NULL: the
 * device's default. It may be used by work in that stream, and by others that
 * wait for an event of it. On the host this is pf_array_create();
 * PF_DEVICE_CUDA_HOST is pinned memory, an array like any other on the host.
 */
PF_API int pf_array_create_on(struct pf_array **out, struct pf_device device,
                              enum pf_dtype dtype, int ndim,
                              const int64_t *shape, struct pf_stream *stream,
                              struct pf_error *err) PF_MUST_CHECK;
/*
 * Copy to another device; the result carries an event, nobody waits. The same
 * device gives another reference. Over the host where there is no direct
 * way. `stream` is one of either device, or NULL for the default; the host
 * waits where the elements on a device are not compact, and where a device's
 * memory has to go through the host's. The result is compact but for another
 * reference to `array`.
 */
PF_API int pf_array_to_device(struct pf_array **out, struct pf_array *array,
                              struct pf_device device,
                              struct pf_stream *stream,
                              struct pf_error *err) PF_MUST_CHECK;
/* The event after which the elements are valid; NULL: they are. Borrowed. */
PF_API struct pf_event *pf_array_event(const struct pf_array *array);
/* Takes a reference to the event (NULL clears). */
PF_API void pf_array_set_event(struct pf_array *array, struct pf_event *event);
/*
 * Work that reads or writes the array's memory ends with this event: until
 * then the memory is not used again, given back, or (on the host) writable.
 * pf_array_set_event() says so too. Whoever queues work calls one of them.
 * A NULL event does nothing.
 */
PF_API void pf_array_add_use(struct pf_array *array, struct pf_event *event);
/*
 * Work that is queued to `stream` from now on comes after what makes the
 * elements valid and, where it is to write, after all that was queued to use
 * them. The stream waits, not the host, unless the two are of different
 * kinds. A NULL stream is the host.
 */
PF_API int pf_array_order(const struct pf_array *array,
                          struct pf_stream *stream, bool to_write,
                          struct pf_error *err) PF_MUST_CHECK;
/* Wait until the elements are valid. */
PF_API int pf_array_wait(const struct pf_array *array,
                         struct pf_error *err) PF_MUST_CHECK;

PF_API struct pf_event *pf_event_ref(struct pf_event *event);
PF_API void pf_event_unref(struct pf_event **event); /* NULLs are allowed */

/* A stream from the device's pool for the calling thread, and back. */
PF_API int pf_stream_get(struct pf_stream **out, struct pf_device device,
                         struct pf_error *err) PF_MUST_CHECK;
PF_API void pf_stream_put(struct pf_stream **stream);
PF_API void *pf_stream_handle(const struct pf_stream *stream);
PF_API struct pf_device pf_stream_device(const struct pf_stream *stream);

/* Most bytes that plateflow allocates on a device (0: no limit). From
 * PLATEFLOW_DEVICE_LIMIT ("512MiB") where nobody set it. */
PF_API void pf_device_set_limit(uint64_t n_bytes);
PF_API uint64_t pf_device_limit(void);
/* "512MiB", "2GiB", "1e9", "100000"; 0 and PF_EINVAL for nonsense. */
PF_API int pf_parse_size(const char *text, uint64_t *out,
                         struct pf_error *err) PF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
