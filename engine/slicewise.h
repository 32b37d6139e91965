/*
 * `slice_by_slice`: the function is called on each plane, results are stacked
 * again, tables joined with the slice's components as columns.
 * Threads: as pf_step_call().
 */
#ifndef PF_SLICEWISE_H
#define PF_SLICEWISE_H

#include "engine/runner.h"

/* As pf_step_call() on the whole stack; `positions` are its planes. */
int pf_call_slicewise(const struct pf_plan *plan,
                      const struct pf_plan_step *step,
                      struct pf_step_instance *instance,
                      const struct pf_call *call, const uint32_t *positions,
                      struct pf_result *result,
                      struct pf_error *err) PF_MUST_CHECK;

#endif
