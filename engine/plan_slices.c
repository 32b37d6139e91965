/* Which planes a step takes and which its result has. */
#include "engine/plan_private.h"

#include <string.h>

/* At most `limit` of n, spread evenly, always the same: the middles of
 * `limit` equal parts. */
static size_t sample(uint32_t *list, size_t n, uint32_t limit) {
  if (!limit || n <= limit)
    return n;
  for (size_t i = 0; i < limit; i++)
    list[i] = list[(2 * i + 1) * n / (2 * (size_t)limit)];
  return limit;
}

size_t pf_plan_choose(const struct pf_plan *plan,
                      const struct pf_plan_step *step, const uint32_t *in,
                      size_t n, uint32_t *out) {
  size_t n_out = 0;
  for (size_t i = 0; i < n; i++)
    if (pf_plan_step_takes(plan, step, pf_plan_slice(plan, in[i])))
      out[n_out++] = in[i];
  return sample(out, n_out, step->spec->sample);
}

static bool has_value(const struct pf_plan *plan, const uint32_t *list,
                      size_t n, enum pf_component c, uint32_t value) {
  for (size_t i = 0; i < n; i++)
    if (pf_plan_slice(plan, list[i])->value[c] == value)
      return true;
  return false;
}

size_t pf_plan_yield(const struct pf_plan *plan,
                     const struct pf_plan_step *step, const uint32_t *in,
                     size_t n, uint32_t *out) {
  enum pf_component c = step->yields.along;
  size_t n_out = 0;
  switch (step->yields.kind) {
  case PF_YIELDS_ONE:
    out[0] = in[0];
    return n ? 1 : 0;
  case PF_YIELDS_ALONG:
    for (size_t i = 0; i < n; i++)
      if (!has_value(plan, out, n_out, c,
                     pf_plan_slice(plan, in[i])->value[c]))
        out[n_out++] = in[i];
    return n_out;
  default:
    memmove(out, in, n * sizeof(*out));
    return n;
  }
}

bool pf_plan_keeps_rest(const struct pf_plan_step *step) {
  return step->n_slice_filters && !step->spec->sample &&
         step->result == PF_RESULT_IMAGE &&
         step->yields.kind == PF_YIELDS_SAME;
}

size_t pf_plan_result_slices(const struct pf_plan *plan, size_t s,
                             const struct pf_group *group,
                             const enum pf_flow *flow, uint32_t *out) {
  const struct pf_plan_step *step = &plan->steps[s];
  size_t n = group->n;
  if (step->input >= 0)
    n = pf_plan_result_slices(plan, (size_t)step->input, group, flow, out);
  else
    for (uint32_t i = 0; i < group->n; i++)
      out[i] = group->first + i;
  if (flow[s] == PF_FLOW_PASSED || pf_plan_keeps_rest(step))
    return n;
  n = pf_plan_choose(plan, step, out, n, out);
  return pf_plan_yield(plan, step, out, n, out);
}
