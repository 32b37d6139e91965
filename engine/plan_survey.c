/* Compiling a plan, part 4: one pass over every group, for what it shows. */
#include "engine/plan_private.h"

#include <stdlib.h>

static void check_with(struct pf_plan *plan, const struct pf_group *group,
                       const enum pf_flow *flow, size_t s, bool *told,
                       struct pf_report *report) {
  struct pf_plan_step *step = &plan->steps[s];
  for (size_t k = 0; k < step->n_with && !*told; k++) {
    struct pf_buf text = {0};
    int from = step->with[k].from;
    if (from < 0 || flow[from] == PF_FLOW_RUNS)
      continue;
    *told = true;
    pf_plan_group_text(plan, group, &text);
    (void)pf_report_add(
        report, false, plan->pipeline->doc, step->spec->with[k].json, false,
        "step \"%s\" has no result for %s, which step \"%s\" "
        "processes",
        plan->steps[from].spec->name, pf_buf_text(&text), step->spec->name);
    pf_buf_free(&text);
  }
}

static void count_group(struct pf_plan_step *step,
                        const struct pf_group *group) {
  step->n_groups++;
  if (group->n > step->n_deepest) {
    step->n_deepest = group->n;
    step->canary = group->id;
  }
}

static bool loses_any(const struct pf_plan *plan,
                      const struct pf_plan_step *step) {
  unsigned before = step->input < 0 ? 0 : plan->steps[step->input].lost;
  return step->lost != before;
}

/* A group that a step passed on has the components that the step collapses
 * elsewhere; what follows would be named and grouped as if it had not. */
static void check_passed(struct pf_plan *plan, const struct pf_group *group,
                         const enum pf_flow *flow, size_t s, bool *told,
                         struct pf_report *report) {
  const struct pf_plan_step *step = &plan->steps[s], *in = NULL;
  struct pf_buf text = {0};
  for (int i = step->input; i >= 0 && flow[i] == PF_FLOW_PASSED;
       i = plan->steps[i].input)
    if (loses_any(plan, &plan->steps[i]))
      in = &plan->steps[i];
  if (!in || *told)
    return;
  *told = true;
  pf_plan_group_text(plan, group, &text);
  (void)pf_report_add(
      report, false, plan->pipeline->doc, step->spec->json, false,
      "step \"%s\" would get %s as it was before step \"%s\", which leaves it "
      "out and collapses the others: that is not supported yet; write "
      "\"input\": \"%s\" to leave it out here too",
      step->spec->name, pf_buf_text(&text), in->spec->name, in->spec->name);
  pf_buf_free(&text);
}

/* What passes over every group at once: counts, the canary, `with`. */
static int all_groups(struct pf_plan *plan, struct pf_report *report,
                      struct pf_error *err) {
  enum pf_flow *flow = calloc(plan->n_steps + 1, sizeof(*flow));
  bool *told = calloc(plan->n_steps + 1, sizeof(*told));
  struct pf_group group;
  int result = PF_OK;
  if (!flow || !told) {
    result = pf_error_set(err, PF_ENOMEM, "out of memory");
    goto out;
  }
  for (uint64_t id = 0; id < plan->n_all; id++) {
    pf_plan_group(plan, id, &group);
    if (!pf_plan_selects(plan, &group))
      continue;
    plan->n_groups++;
    if (group.n > plan->n_deepest) {
      plan->n_deepest = group.n;
      plan->canary = id;
    }
    pf_plan_flow(plan, &group, flow);
    for (size_t s = 0; s < plan->n_steps; s++)
      if (flow[s] == PF_FLOW_RUNS) {
        count_group(&plan->steps[s], &group);
        check_with(plan, &group, flow, s, &told[s], report);
        check_passed(plan, &group, flow, s, &told[s], report);
      }
  }
out:
  free(flow);
  free(told);
  return result;
}

static void check_said(struct pf_plan *plan, struct pf_report *report) {
  for (size_t s = 0; s < plan->n_steps; s++) {
    struct pf_plan_step *step = &plan->steps[s];
    if (plan->n_deepest > 1 && step->mask && !step->traits->is_decorated &&
        step->spec->slice_by_slice < 0)
      (void)pf_report_add(report, false, plan->pipeline->doc, step->spec->json,
                          false,
                          "step \"%s\" gets stacks of %u slices: say "
                          "\"slice_by_slice\": true (called on each [Y,X]) or "
                          "false (called on the whole [Z,Y,X])",
                          step->spec->name, plan->n_deepest);
    if (!step->n_groups)
      (void)pf_report_add(report, true, plan->pipeline->doc, step->spec->json,
                          false, "step \"%s\" has no group to process",
                          step->spec->name);
  }
}

int pf_plan_survey(struct pf_plan *plan, struct pf_report *report,
                   struct pf_error *err) {
  int result = all_groups(plan, report, err);
  if (result == PF_OK)
    check_said(plan, report);
  return result;
}
