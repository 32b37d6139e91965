/*
 * Arrays: a reference-counted n-dimensional array of one memory type on one
 * device, carried by a DLPack DLManagedTensorVersioned.
 *
 * Ownership: pf_array_create() and every function with a `struct pf_array **`
 * as its first argument give the caller one reference; *out is NULL after
 * failure. pf_array_unref() drops it and sets the pointer to NULL. Views hold
 * a reference to what they look into.
 *
 * Threads: the count is atomic; any thread may hold and drop references.
 * Elements are protected by nobody: whoever holds the only reference to the
 * storage may write (pf_array_is_writable()).
 */
#ifndef PLATEFLOW_ARRAY_H
#define PLATEFLOW_ARRAY_H

#include <stdint.h>

#include "plateflow/memory_type.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pf_array;
struct DLManagedTensorVersioned;
struct DLManagedTensor;

enum { PF_MAX_NDIM = 8 };

/* DLPack's device numbers: type 1 is the host (kDLCPU). */
struct pf_device {
  int32_t type;
  int32_t index;
};

/* Memory that somebody else owns, as an array sees it. */
struct pf_array_desc {
  void *data; /* first element; may be NULL for size 0 */
  enum pf_dtype dtype;
  int ndim;               /* 0..PF_MAX_NDIM */
  const int64_t *shape;   /* ndim values, each >= 0 */
  const int64_t *strides; /* in elements; NULL: C order, compact */
  struct pf_device device;
  enum pf_memory_type memory_type;
  bool read_only;
};

/*
 * A compact host array in C order, its elements not set, its memory type
 * `native`. Storage is aligned to 64 bytes, from 1 MiB on to 4096, and comes
 * from a pool of the process.
 * Errors: PF_EINVAL (negative or overflowing shape), PF_ENOMEM.
 */
PF_API int pf_array_create(struct pf_array **out, enum pf_dtype dtype,
                           int ndim, const int64_t *shape,
                           struct pf_error *err) PF_MUST_CHECK;

/*
 * An array over memory of another owner. Refused with PF_EINVAL: elements not
 * aligned to their size, strides that reach outside the address space. An
 * array that repeats elements (stride 0) is read-only. `release(owner)` is
 * called once, by the thread that drops the last reference: it must not take
 * the GIL (queue with pf_deferred_push() instead). After failure the caller
 * still owns `owner` and `release` is never called. `release` may be NULL.
 */
PF_API int pf_array_wrap(struct pf_array **out,
                         const struct pf_array_desc *desc,
                         void (*release)(void *owner), void *owner,
                         struct pf_error *err) PF_MUST_CHECK;

PF_API struct pf_array *pf_array_ref(struct pf_array *array);
PF_API void pf_array_unref(struct pf_array **array); /* NULLs are allowed */

PF_API void *pf_array_data(const struct pf_array *array);
PF_API enum pf_dtype pf_array_dtype(const struct pf_array *array);
PF_API int pf_array_ndim(const struct pf_array *array);
PF_API const int64_t *pf_array_shape(const struct pf_array *array);
PF_API const int64_t *pf_array_strides(const struct pf_array *array);
PF_API struct pf_device pf_array_device(const struct pf_array *array);
PF_API enum pf_memory_type pf_array_memory_type(const struct pf_array *array);
PF_API void pf_array_set_memory_type(struct pf_array *array,
                                     enum pf_memory_type type);
PF_API int64_t pf_array_size(const struct pf_array *array); /* elements */
PF_API size_t pf_array_n_bytes(const struct pf_array *array);
PF_API bool pf_array_is_compact(const struct pf_array *array); /* C order */
PF_API bool pf_array_is_read_only(const struct pf_array *array);
PF_API void pf_array_set_read_only(struct pf_array *array);
/* Not read-only, and nobody else can see the storage: this reference is the
 * only one, and there is no view and no tensor given out. */
PF_API bool pf_array_is_writable(const struct pf_array *array);
/* Whether the bytes that the two arrays span overlap (host arrays). */
PF_API bool pf_array_overlaps(const struct pf_array *a,
                              const struct pf_array *b);

/* "3x512x512 uint16" for messages, cut to `size` bytes; returns `text`. */
enum { PF_ARRAY_TEXT = 192 };
PF_API const char *pf_array_text(char *text, size_t size,
                                 const struct pf_array *array);

/* View of one plane of a 3D array [Z,Y,X] as 2D [Y,X]; no copy. */
PF_API int pf_array_plane(struct pf_array **out, struct pf_array *stack,
                          int64_t z, struct pf_error *err) PF_MUST_CHECK;

/* View of a compact array under another shape of the same size; no copy. */
PF_API int pf_array_reshape(struct pf_array **out, struct pf_array *array,
                            int ndim, const int64_t *shape,
                            struct pf_error *err) PF_MUST_CHECK;

/* A compact host copy of a host array of any strides. */
PF_API int pf_array_copy(struct pf_array **out, const struct pf_array *array,
                         struct pf_error *err) PF_MUST_CHECK;

/*
 * Give the array out as DLPack; the tensor holds a reference, which its
 * deleter drops (from any thread, without the GIL). NULL if memory ran out.
 * The legacy tensor cannot say "read-only": whoever asks for one of a
 * read-only array sees to it that nobody writes.
 */
PF_API struct DLManagedTensorVersioned *
pf_array_to_dlpack(struct pf_array *array) PF_MUST_CHECK;
PF_API struct DLManagedTensor *
pf_array_to_dlpack_legacy(struct pf_array *array) PF_MUST_CHECK;

/*
 * Take a DLPack tensor in. Everything in it is hostile until checked: version,
 * device, lanes, bits, shape, strides, byte_offset, overflow. After success
 * the array owns the tensor; after failure the caller still does. Of a tensor
 * of another major version only the deleter may be called.
 *
 * The tensor's deleter may take the GIL, so the last reference to the array
 * does not call it but queues it: pf_deferred_drain() does.
 */
PF_API int pf_array_from_dlpack(struct pf_array **out,
                                struct DLManagedTensorVersioned *tensor,
                                enum pf_memory_type type,
                                struct pf_error *err) PF_MUST_CHECK;
PF_API int pf_array_from_dlpack_legacy(struct pf_array **out,
                                       struct DLManagedTensor *tensor,
                                       enum pf_memory_type type,
                                       struct pf_error *err) PF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
