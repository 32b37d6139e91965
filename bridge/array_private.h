/* What the files of the bridge know about an array; nobody else includes it.
 */
#ifndef PF_ARRAY_PRIVATE_H
#define PF_ARRAY_PRIVATE_H

#include "plateflow/array.h"

#include <stdatomic.h>

struct pf_event;
struct pf_use; /* work that was queued on a storage: bridge/array_event.c */

/* Memory that one or more arrays look into; the last of them releases it. */
struct pf_storage {
  atomic_size_t n_refs;    /* arrays on it */
  void *block;             /* the pool's; NULL: somebody else's memory */
  size_t n_bytes;          /* of `block`, as it was asked for */
  struct pf_device device; /* whose pool; PF_DEVICE_CUDA_HOST: pinned */
  void (*release)(
      void *owner); /* gives somebody else's memory back, or NULL */
  void *owner;
  /* Changed under the lock of array_event.c, by one thread at a time once
   * there is no reference left. */
  struct pf_use *_Atomic uses;
  struct pf_storage *next; /* of those that wait for their uses to end */
};

/* All but the count and the three setters' fields is constant once made. */
struct pf_array {
  atomic_size_t n_refs;
  struct pf_storage *storage; /* one reference */
  void *data;                 /* first element; a cl_mem on OpenCL */
  uint64_t offset;        /* bytes from `data` on, where that is no address */
  struct pf_event *event; /* pf_array_set_event(): one reference, or NULL */
  int64_t size;           /* elements */
  enum pf_dtype dtype;
  enum pf_memory_type memory_type; /* pf_array_set_memory_type() */
  struct pf_device device;
  int ndim;
  bool compact;   /* C order without gaps */
  bool read_only; /* pf_array_set_read_only() */
  int64_t dims[]; /* ndim of the shape, then ndim strides in elements */
};

/* A new array on the storage of `base`, with its own data and layout; *out
 * has base's memory type, device and read-only flag. */
int pf_array_view(struct pf_array **out, struct pf_array *base, void *data,
                  int ndim, const int64_t *shape, const int64_t *strides,
                  struct pf_error *err) PF_MUST_CHECK;

/*
 * An array of the `n_bytes` at desc->data, which `from` has allocated (pinned
 * memory: PF_DEVICE_CUDA_HOST); they go back there with the last reference.
 * After failure they are still the caller's.
 */
int pf_array_of_block(struct pf_array **out, const struct pf_array_desc *desc,
                      struct pf_device from, size_t n_bytes,
                      struct pf_error *err) PF_MUST_CHECK;

/* How the memory of a storage without references goes back. */
void pf_storage_release(struct pf_storage *storage, struct pf_event *last);
/* The same after all that was queued on it; nobody waits. */
void pf_storage_release_after(struct pf_storage *storage);
/* Release those whose uses have ended since; cheap where there are none. */
void pf_storage_reap(void);
/* Whether work that was queued on the array's memory may still run. */
bool pf_array_in_use(const struct pf_array *array);

/*
 * Number of elements, and strides in C order; false if a length is negative
 * or the number overflows. Zeros count as ones in that: the strides of an
 * empty array are still numbers that somebody may multiply.
 */
bool pf_compact_strides(int64_t *size, int64_t *strides, int ndim,
                        const int64_t *shape) PF_MUST_CHECK;

/* Refuses what the CPU cannot read and waits until the elements are valid;
 * `what` is what was to be done. */
int pf_array_check_host(const struct pf_array *array, const char *what,
                        struct pf_error *err) PF_MUST_CHECK;

/* "3x512x512" (`size` bytes at most, cut); returns `text`. */
const char *pf_shape_text(char *text, size_t size, int ndim,
                          const int64_t *shape);

/*
 * The elements of a host array in C order, piece by piece: a caller sees only
 * pieces without gaps, whatever the strides.
 */
enum { PF_WALK_ELEMS = 2048, PF_WALK_BUFFER = PF_WALK_ELEMS * 8 };
struct pf_walk {
  int ndim; /* after dimensions that follow each other were merged */
  int64_t shape[PF_MAX_NDIM], strides[PF_MAX_NDIM]; /* in bytes */
  int64_t index[PF_MAX_NDIM];                       /* of the next element */
  const char *at;                                   /* the next element */
  int64_t n_left;                                   /* elements */
  size_t elem;                                      /* bytes per element */
  _Alignas(64) char buffer[PF_WALK_BUFFER];         /* pieces that had gaps */
};
void pf_walk_start(struct pf_walk *walk, const struct pf_array *array);
/* The next 1..PF_WALK_ELEMS elements, *n of them; valid until the next call.
 * NULL at the end. */
const void *pf_walk_next(struct pf_walk *walk, size_t *n);

#endif
