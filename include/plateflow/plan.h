/*
 * A plan: pipeline x plate, compiled before a pixel is read. It resolves every
 * step, lists every group lazily, and finds what would go wrong.
 *
 * Ownership: the plan borrows the pipeline and the plate, which must outlive
 * it; pf_plan_destroy() frees the rest. Threads: constant once compiled.
 */
#ifndef PLATEFLOW_PLAN_H
#define PLATEFLOW_PLAN_H

#include "plateflow/pipeline.h"
#include "plateflow/plate.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pf_buf;
struct pf_plan;

/* `--only COMPONENT=VALUE,...`: only groups that match are run. */
struct pf_only {
  enum pf_component component;
  size_t n_values;
  const char *const *values;
};

struct pf_plan_options {
  const char *until; /* the last step to run, or NULL */
  size_t n_only;
  const struct pf_only *only;
};

/*
 * Open the pipeline's functions and check their parameters: what can be known
 * without a plate. All that is wrong goes into `report`; returns 0, or the
 * code of the first error (PF_EINVAL, PF_EMISSING, PF_ENOMEM).
 */
PF_API int pf_plan_check_functions(const struct pf_pipeline *pipeline,
                                   struct pf_report *report,
                                   struct pf_error *err) PF_MUST_CHECK;

/* The whole plan; errors as above. */
PF_API int pf_plan_compile(struct pf_plan **out,
                           const struct pf_pipeline *pipeline,
                           const struct pf_plate *plate,
                           const struct pf_plan_options *options,
                           struct pf_report *report,
                           struct pf_error *err) PF_MUST_CHECK;
PF_API void pf_plan_destroy(struct pf_plan **plan);

/* Groups that `--only` selects. */
PF_API uint64_t pf_plan_n_groups(const struct pf_plan *plan);

/* The plan for people, and as one JSON object. */
PF_API void pf_plan_text(const struct pf_plan *plan, struct pf_buf *out);
PF_API void pf_plan_json(const struct pf_plan *plan, struct pf_buf *out);

/* Whether any step is a Python function: then the interpreter must run before
 * pf_plan_check_functions(). */
PF_API bool pf_pipeline_needs_python(const struct pf_pipeline *pipeline);
/* The inner threads that the steps ask for; 0: none does, so that the user's
 * environment decides, else 1. */
PF_API int pf_pipeline_threads(const struct pf_pipeline *pipeline);
/* The names of the frameworks whose memory types the pipeline's Python steps
 * say; `names` has room for PF_MEM_END. Returns how many. */
PF_API size_t pf_pipeline_frameworks(const struct pf_pipeline *pipeline,
                                     const char **names);

#ifdef __cplusplus
}
#endif
#endif
