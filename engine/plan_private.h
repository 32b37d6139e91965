/*
 * What a compiled plan looks like to the engine. Private to engine/.
 *
 * All steps of a plan group alike in one stage: a group is read once and goes
 * through every step (depth first), so a finished well appears early and
 * memory stays flat.
 */
#ifndef PF_PLAN_PRIVATE_H
#define PF_PLAN_PRIVATE_H

#include "bridge/buf.h"
#include "plateflow/plan.h"

#define PF_BIT(component) (1u << (component))

/* Slices or groups whose `component` has one of the marked ranks. */
struct pf_filter {
  enum pf_component component;
  uint32_t n_ranks;
  bool *match; /* by rank */
};

struct pf_plan_with {
  const char *name;
  int from; /* index of the step, or -1: the plate */
};

/* One step, resolved. */
struct pf_plan_step {
  const struct pf_step_spec *spec;
  struct pf_step *step;
  const struct pf_step_traits *traits;
  enum pf_memory_type input_type, output_type; /* what it takes and returns */
  bool owns_stack; /* what it takes may be written to: it gets it alone */
  enum pf_result_kind result;
  struct pf_yields yields;
  bool resizes;
  enum pf_cast_mode dtype;  /* PF_N_CAST_MODES: the instance's own */
  enum pf_dtype dtype_type; /* a type's name, or PF_DTYPE_NONE */
  int input;                /* index of the step, or -1: the plate */
  bool takes_passed;        /* input is `previous`: passed groups count */
  size_t n_with;
  struct pf_plan_with *with;
  unsigned available; /* components that its input's slices have */
  unsigned mask;      /* those of `available` that are stacked */
  unsigned lost;      /* components that its result's slices have lost */
  size_t n_group_filters, n_slice_filters;
  struct pf_filter *group_filters; /* on the group's components */
  struct pf_filter *slice_filters; /* on stacked components */
  bool slice_by_slice;
  int concurrency;         /* 0: no limit */
  struct pf_device device; /* that it runs on */
  bool saved;
  char *folder;       /* below OUT: "images" or "steps/NAME" */
  bool placeholders;  /* its parameters hold {component}s */
  uint64_t n_groups;  /* that it processes */
  uint64_t canary;    /* the deepest of them */
  uint32_t n_deepest; /* its slices */
};

struct pf_group {
  uint64_t id;    /* in the order of the plan */
  uint32_t first; /* position of its first slice in the plan's order */
  uint32_t n;     /* slices */
};

/* How many slices a full group of one (plate, channel, kind) has. */
struct pf_expected {
  uint64_t key;
  uint32_t n;
};

struct pf_plan {
  const struct pf_pipeline *pipeline;
  const struct pf_plate *plate;
  size_t n_steps;
  struct pf_plan_step *steps;
  unsigned present;  /* components that the plate has */
  unsigned stacked;  /* those that vary inside a group */
  unsigned identity; /* the others: what names a group */
  size_t n_order;    /* of the stacked components, the first slowest */
  enum pf_component order_of[PF_N_COMPONENTS];
  uint32_t *order;   /* slices in group order; NULL: the plate's own */
  uint32_t *starts;  /* n_all + 1 positions in the order */
  uint64_t n_all;    /* groups in the plate */
  uint64_t n_groups; /* groups that --only selects */
  size_t n_only;
  struct pf_filter *only;
  uint64_t canary;    /* the deepest selected group */
  uint32_t n_deepest; /* its slices */
  /* For each step, in n_steps vectors: what a full group has. */
  size_t *n_expected;
  struct pf_expected **expected;
};

/* Position in the plan's order -> slice. */
const struct pf_slice *pf_plan_slice(const struct pf_plan *plan,
                                     uint32_t position);
void pf_plan_group(const struct pf_plan *plan, uint64_t id,
                   struct pf_group *group);
bool pf_plan_selects(const struct pf_plan *plan, const struct pf_group *group);
/* "plate P well A01 site 2 channel DNA", appended. */
void pf_plan_group_text(const struct pf_plan *plan,
                        const struct pf_group *group, struct pf_buf *out);

enum pf_flow {
  PF_FLOW_NONE,   /* no result of this step for this group */
  PF_FLOW_PASSED, /* unchanged, for `previous` only */
  PF_FLOW_RUNS    /* the step processes the group */
};
/* What each step does with a group; `flow` has n_steps elements. */
void pf_plan_flow(const struct pf_plan *plan, const struct pf_group *group,
                  enum pf_flow *flow);
/* Whether the slice is part of the step's stack (its slice filters). */
bool pf_plan_step_takes(const struct pf_plan *plan,
                        const struct pf_plan_step *step,
                        const struct pf_slice *slice);
/* How many slices the group lacks for this step; 0: it is complete. */
uint32_t pf_plan_lacks(const struct pf_plan *plan, size_t step,
                       const struct pf_group *group);

/*
 * Planes, as positions in the plan's order. `out` has room for n elements and
 * may be `in`; each returns how many it wrote. choose: those that the step
 * takes (slice filters, `sample`); yield: those that its result stands for.
 */
size_t pf_plan_choose(const struct pf_plan *plan,
                      const struct pf_plan_step *step, const uint32_t *in,
                      size_t n, uint32_t *out);
size_t pf_plan_yield(const struct pf_plan *plan,
                     const struct pf_plan_step *step, const uint32_t *in,
                     size_t n, uint32_t *out);
/* Whether planes that the step's slice filters leave out stay in its result,
 * unchanged. */
bool pf_plan_keeps_rest(const struct pf_plan_step *step);
/* The planes of a step's result in a group of which pf_plan_flow() said
 * `flow`; `out` has room for group->n. */
size_t pf_plan_result_slices(const struct pf_plan *plan, size_t step,
                             const struct pf_group *group,
                             const enum pf_flow *flow, uint32_t *out);

/* plan_steps.c, plan_groups.c, plan_names.c: parts of compiling. Errors go
 * into the report. */
int pf_plan_open_steps(struct pf_plan *plan, struct pf_report *report,
                       struct pf_error *err);
int pf_plan_make_groups(struct pf_plan *plan, struct pf_report *report,
                        struct pf_error *err);
int pf_plan_check_names(struct pf_plan *plan, struct pf_report *report,
                        struct pf_error *err);
/* plan_survey.c: counts of groups, canaries, `with`; reports what is wrong. */
int pf_plan_survey(struct pf_plan *plan, struct pf_report *report,
                   struct pf_error *err);
void pf_filter_free(struct pf_filter *filters, size_t n);

/*
 * Name of an output below OUT, "images/A01_s1.tif": plane `plane` of the
 * result of `step`, made from `slice`. malloc'd; NULL without memory.
 */
char *pf_plan_output_name(const struct pf_plan *plan,
                          const struct pf_plan_step *step,
                          const struct pf_slice *slice);

/* Append `text` with each {component} replaced by the slice's value; "{{" is
 * a brace; {out} is `out_dir` (NULL: left as it is). `in_name`: a value's
 * slashes become `_`, because they are no folders. */
void pf_plan_fill(const struct pf_plan *plan, const struct pf_slice *slice,
                  const char *out_dir, bool in_name, const char *text,
                  struct pf_buf *out);
bool pf_has_placeholder(const struct pf_json_doc *doc,
                        const struct cJSON *value);

#endif
