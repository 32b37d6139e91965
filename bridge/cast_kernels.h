/* Casts of short runs of elements. Private to the bridge. */
#ifndef PF_CAST_KERNELS_H
#define PF_CAST_KERNELS_H

#include "bridge/array_private.h"
#include "plateflow/bridge.h"

/*
 * Cast `n` elements, at most PF_WALK_ELEMS, as mode `preserve` does; both runs
 * without gaps, aligned to their elements, not overlapping. Adds to `stats`.
 */
void pf_cast_run(void *to, enum pf_dtype to_type, const void *from,
                 enum pf_dtype from_type, size_t n,
                 struct pf_cast_stats *stats);

#endif
