/* Compiling a plan: see include/plateflow/plan.h. */
#include "engine/plan_private.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/json.h"

static void mention_present(struct pf_plan *plan) {
  for (unsigned c = 0; c < PF_N_COMPONENTS; c++)
    if (pf_plate_has(plan->plate, (enum pf_component)c))
      plan->present |= PF_BIT(c);
}

static int nearest_step(struct pf_plan *plan, const char *name,
                        struct pf_error *err) {
  size_t n = plan->pipeline->n_steps;
  const char **names = calloc(n + 1, sizeof(*names));
  const char *nearest;
  if (!names)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t i = 0; i < n; i++)
    names[i] = plan->pipeline->steps[i].name;
  nearest = pf_nearest_word(name, names, n);
  free(names);
  return pf_error_set(err, PF_EINVAL,
                      "--until: the pipeline has no step \"%s\"%s%s%s", name,
                      nearest ? ": did you mean \"" : "",
                      nearest ? nearest : "", nearest ? "\"?" : "");
}

static int cut_steps(struct pf_plan *plan, const char *until,
                     struct pf_error *err) {
  plan->n_steps = plan->pipeline->n_steps;
  if (!until)
    return PF_OK;
  for (size_t i = 0; i < plan->n_steps; i++)
    if (strcmp(plan->pipeline->steps[i].name, until) == 0) {
      plan->n_steps = i + 1;
      return PF_OK;
    }
  return nearest_step(plan, until, err);
}

static int fill_only(struct pf_plan *plan, const struct pf_only *only,
                     struct pf_filter *filter, struct pf_error *err) {
  const char *component = pf_component_name(only->component);
  filter->component = only->component;
  filter->n_ranks = pf_plate_n_values(plan->plate, only->component);
  filter->match = calloc((size_t)filter->n_ranks + 1, sizeof(bool));
  if (!filter->match)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t i = 0; i < only->n_values; i++) {
    uint32_t rank =
        pf_plate_find(plan->plate, only->component, only->values[i]);
    if (rank == PF_NO_VALUE)
      return pf_error_set(err, PF_EINVAL, "--only: the plate has no %s \"%s\"",
                          component, only->values[i]);
    filter->match[rank] = true;
  }
  return PF_OK;
}

static int select_only(struct pf_plan *plan,
                       const struct pf_plan_options *options,
                       struct pf_error *err) {
  if (!options || !options->n_only)
    return PF_OK;
  plan->only = calloc(options->n_only, sizeof(*plan->only));
  if (!plan->only)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t i = 0; i < options->n_only; i++) {
    const struct pf_only *only = &options->only[i];
    int result;
    if (plan->stacked & PF_BIT(only->component))
      return pf_error_set(err, PF_EINVAL,
                          "--only %s: it is stacked, and --only never cuts a "
                          "group; use \"where\" in the step",
                          pf_component_name(only->component));
    result = fill_only(plan, only, &plan->only[plan->n_only++], err);
    if (result != PF_OK)
      return result;
  }
  return PF_OK;
}

/* The first of the report's errors, for who looks at nothing else. */
static int report_error(const struct pf_report *report, struct pf_error *err) {
  size_t i = 0;
  while (i + 1 < report->n && report->messages[i].is_warning)
    i++;
  return pf_error_set(err, PF_EINVAL, "%s", report->messages[i].text);
}

static int compile(struct pf_plan *plan, const struct pf_plan_options *options,
                   struct pf_report *report, struct pf_error *err) {
  int result;
  mention_present(plan);
  result = cut_steps(plan, options ? options->until : NULL, err);
  if (result != PF_OK)
    return result;
  plan->steps = calloc(plan->n_steps, sizeof(*plan->steps));
  if (!plan->steps)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  result = pf_plan_open_steps(plan, report, err);
  if (result != PF_OK || report->n_errors)
    return result;
  result = select_only(plan, options, err);
  if (result == PF_OK)
    result = pf_plan_make_groups(plan, report, err);
  if (result == PF_OK && !report->n_errors)
    result = pf_plan_check_names(plan, report, err);
  if (result == PF_OK && !report->n_errors && !plan->n_groups)
    result = pf_error_set(err, PF_EINVAL,
                          "there is no group to run: the "
                          "plate has none that --only names");
  return result;
}

int pf_plan_compile(struct pf_plan **out, const struct pf_pipeline *pipeline,
                    const struct pf_plate *plate,
                    const struct pf_plan_options *options,
                    struct pf_report *report, struct pf_error *err) {
  struct pf_plan *plan = calloc(1, sizeof(*plan));
  int result;
  *out = NULL;
  if (!plan)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  plan->pipeline = pipeline;
  plan->plate = plate;
  result = compile(plan, options, report, err);
  if (result == PF_OK && report->n_errors)
    result = report_error(report, err);
  if (result != PF_OK)
    pf_plan_destroy(&plan);
  *out = plan;
  return result;
}

static void free_step(struct pf_plan_step *step) {
  pf_step_unref(&step->step);
  pf_filter_free(step->group_filters, step->n_group_filters);
  pf_filter_free(step->slice_filters, step->n_slice_filters);
  free(step->with);
  free(step->folder);
}

void pf_plan_destroy(struct pf_plan **plan_p) {
  struct pf_plan *plan = *plan_p;
  *plan_p = NULL;
  if (!plan)
    return;
  for (size_t i = 0; plan->steps && i < plan->n_steps; i++)
    free_step(&plan->steps[i]);
  for (size_t i = 0; plan->expected && i < plan->n_steps; i++)
    free(plan->expected[i]);
  free(plan->expected);
  free(plan->n_expected);
  pf_filter_free(plan->only, plan->n_only);
  free(plan->steps);
  free(plan->order);
  free(plan->starts);
  free(plan);
}

uint64_t pf_plan_n_groups(const struct pf_plan *plan) {
  return plan->n_groups;
}
