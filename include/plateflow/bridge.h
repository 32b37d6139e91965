/*
 * The bridge: stacks 2D slices into 3D, unstacks, and changes element types.
 * It knows nothing of plates or pipelines.
 *
 * Threads: every function may be called from any thread; arrays as array.h
 * says. None takes the GIL.
 */
#ifndef PLATEFLOW_BRIDGE_H
#define PLATEFLOW_BRIDGE_H

#include "plateflow/array.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One compact host array [Z,Y,X] from `n` 2D slices of equal shape, with one
 * allocation and one copy per slice. `as` casts on the way with `preserve`'s
 * rounding (round half to even, saturate, NaN is 0); PF_DTYPE_NONE keeps the
 * type, which then must be the same for all. A refusal names the slice.
 */
PF_API int pf_stack_slices(struct pf_array **out,
                           struct pf_array *const *slices, size_t n,
                           enum pf_dtype as,
                           struct pf_error *err) PF_MUST_CHECK;

/*
 * `n` 2D views of a 3D array, n being its depth. After failure no element of
 * `slices` is set.
 */
PF_API int pf_unstack_slices(struct pf_array **slices, size_t n,
                             struct pf_array *stack,
                             struct pf_error *err) PF_MUST_CHECK;

/* How a result's element type is chosen. */
#define PF_CAST_MODE_MAP(XX)                                                  \
  XX(PRESERVE, "preserve") /* round half to even, saturate to the type */     \
  XX(RESCALE, "rescale")   /* min-max of the array to the type's range */     \
  XX(UNIT, "unit")         /* multiply by the type's maximum, preserve */     \
  XX(NATIVE, "native")     /* as it is */

enum pf_cast_mode {
#define XX(name, word) PF_CAST_##name,
  PF_CAST_MODE_MAP(XX)
#undef XX
      PF_N_CAST_MODES
};

PF_API const char *pf_cast_mode_name(enum pf_cast_mode mode);
/* PF_N_CAST_MODES where there is no such word. */
PF_API enum pf_cast_mode pf_cast_mode_find(const char *word);

/* What a cast did to the values, in elements. */
struct pf_cast_stats {
  uint64_t n_clipped; /* beyond the type's range: saturated, or infinity */
  uint64_t n_rounded; /* had a fraction that was rounded away */
  uint64_t n_nan;     /* NaN, written as 0 */
};

/*
 * Cast a host array to `to`. *out is a new compact array, or another reference
 * to `in` where nothing changes (same type and not `rescale`, or `native`).
 * `stats` may be NULL; it is added to, not reset, and counts a value once.
 * Integers agree to the bit on every machine: floats are rounded half to even
 * and saturated, integers saturated, what becomes a float follows IEEE
 * (float64 beyond float32's range becomes infinity). bool is 0 to 1.
 * Formula of `rescale`: (x - min) / (max - min) * (hi - lo) + lo in float64,
 * min and max over finite values; a constant array becomes lo. For a float
 * `to`, hi and lo are 1 and 0, and `unit` multiplies by 1.
 */
PF_API int pf_cast(struct pf_array **out, struct pf_array *in,
                   enum pf_dtype to, enum pf_cast_mode mode,
                   struct pf_cast_stats *stats,
                   struct pf_error *err) PF_MUST_CHECK;

/*
 * Deleters never take the GIL: they queue what is to be released here and
 * code that may run `release` (holding the GIL) drains. `node` is embedded in
 * the thing to be released, so that pushing cannot fail.
 * Push: any thread, lock-free. Drain: any thread; returns how many it ran.
 */
struct pf_deferred {
  struct pf_deferred *next;
  void (*release)(struct pf_deferred *node);
};
PF_API void pf_deferred_push(struct pf_deferred *node);
PF_API size_t pf_deferred_drain(void);

/*
 * Host pool: bytes that freed arrays left in it, giving them back, and how
 * many it may keep (256 MiB unless set; less than it holds empties it).
 */
PF_API size_t pf_host_pool_n_bytes(void);
PF_API void pf_host_pool_clear(void);
PF_API void pf_host_pool_set_limit(size_t n_bytes);

#ifdef __cplusplus
}
#endif
#endif
