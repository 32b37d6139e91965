/* Compiling a plan, part 2: groups, listed lazily, and what they lack. */
#include "engine/key_set.h"
#include "engine/plan_private.h"

#include <stdlib.h>
#include <string.h>

/* Order of the components that name a group: a field's groups are neighbours,
 * so that a finished well appears early. The plate's slices come so too. */
static const enum pf_component group_order[] = {
    PF_PLATE, PF_WELL, PF_SITE, PF_TIMEPOINT, PF_CHANNEL, PF_Z};

const struct pf_slice *pf_plan_slice(const struct pf_plan *plan,
                                     uint32_t position) {
  const struct pf_slice *slices = pf_plate_slices(plan->plate);
  return &slices[plan->order ? plan->order[position] : position];
}

void pf_plan_group(const struct pf_plan *plan, uint64_t id,
                   struct pf_group *group) {
  group->id = id;
  group->first = plan->starts[id];
  group->n = plan->starts[id + 1] - plan->starts[id];
}

static int compare_values(const struct pf_slice *a, const struct pf_slice *b,
                          enum pf_component c) {
  /* Absent sorts first: PF_NO_VALUE + 1 is 0. */
  uint32_t x = a->value[c] + 1, y = b->value[c] + 1;
  return (x > y) - (x < y);
}

/* The components that name the group, then the kind: projections and slices
 * never share a stack. */
static int compare_groups(const struct pf_plan *plan, const struct pf_slice *a,
                          const struct pf_slice *b) {
  for (size_t i = 0; i < PF_N_COMPONENTS; i++) {
    int order;
    if (!(plan->identity & PF_BIT(group_order[i])))
      continue;
    order = compare_values(a, b, group_order[i]);
    if (order)
      return order;
  }
  return (a->kind > b->kind) - (a->kind < b->kind);
}

static int compare_slices(const void *a, const void *b, void *context) {
  const struct pf_plan *plan = context;
  const struct pf_slice *slices = pf_plate_slices(plan->plate);
  uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
  int order = compare_groups(plan, &slices[i], &slices[j]);
  for (size_t k = 0; k < plan->n_order && !order; k++)
    order = compare_values(&slices[i], &slices[j], plan->order_of[k]);
  return order ? order : (i > j) - (i < j);
}

/* The plate's own order serves while only z is stacked. */
static int order_slices(struct pf_plan *plan, struct pf_error *err) {
  size_t n = pf_plate_n_slices(plan->plate);
  bool natural = (plan->stacked & ~PF_BIT(PF_Z)) == 0;
  for (size_t i = 1; natural && i < n; i++)
    natural = compare_groups(plan, pf_plan_slice(plan, (uint32_t)i - 1),
                             pf_plan_slice(plan, (uint32_t)i)) <= 0;
  if (natural)
    return PF_OK;
  plan->order = malloc((n + 1) * sizeof(*plan->order));
  if (!plan->order)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t i = 0; i < n; i++)
    plan->order[i] = (uint32_t)i;
  qsort_r(plan->order, n, sizeof(*plan->order), compare_slices, plan);
  return PF_OK;
}

static int find_starts(struct pf_plan *plan, struct pf_error *err) {
  uint32_t n = (uint32_t)pf_plate_n_slices(plan->plate);
  uint64_t n_groups = n ? 1 : 0;
  for (uint32_t i = 1; i < n; i++)
    n_groups += compare_groups(plan, pf_plan_slice(plan, i - 1),
                               pf_plan_slice(plan, i)) != 0;
  plan->starts = malloc((size_t)(n_groups + 1) * sizeof(*plan->starts));
  if (!plan->starts)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  plan->n_all = 0;
  for (uint32_t i = 0; i < n; i++)
    if (i == 0 || compare_groups(plan, pf_plan_slice(plan, i - 1),
                                 pf_plan_slice(plan, i)) != 0)
      plan->starts[plan->n_all++] = i;
  plan->starts[plan->n_all] = n;
  return PF_OK;
}

static bool matches(const struct pf_filter *filters, size_t n,
                    const struct pf_slice *slice) {
  for (size_t i = 0; i < n; i++) {
    uint32_t rank = slice->value[filters[i].component];
    if (rank == PF_NO_VALUE || !filters[i].match[rank])
      return false;
  }
  return true;
}

bool pf_plan_selects(const struct pf_plan *plan,
                     const struct pf_group *group) {
  return matches(plan->only, plan->n_only, pf_plan_slice(plan, group->first));
}

bool pf_plan_step_takes(const struct pf_plan *plan,
                        const struct pf_plan_step *step,
                        const struct pf_slice *slice) {
  (void)plan;
  return matches(step->slice_filters, step->n_slice_filters, slice);
}

/* Whether the slice is among those that reach the step: the step takes it,
 * and no step on the way there, which `flow` tells, has dropped it. */
static bool is_left(const struct pf_plan *plan,
                    const struct pf_plan_step *step, const enum pf_flow *flow,
                    const struct pf_slice *slice) {
  for (;;) {
    if (!pf_plan_step_takes(plan, step, slice))
      return false;
    do {
      if (step->input < 0)
        return true;
      step = &plan->steps[step->input];
    } while (flow[step - plan->steps] == PF_FLOW_PASSED ||
             pf_plan_keeps_rest(step));
  }
}

static bool any_slice(const struct pf_plan *plan,
                      const struct pf_plan_step *step,
                      const enum pf_flow *flow, const struct pf_group *group) {
  if (!step->n_slice_filters)
    return true;
  for (uint32_t i = 0; i < group->n; i++)
    if (is_left(plan, step, flow, pf_plan_slice(plan, group->first + i)))
      return true;
  return false;
}

void pf_plan_flow(const struct pf_plan *plan, const struct pf_group *group,
                  enum pf_flow *flow) {
  const struct pf_slice *slice = pf_plan_slice(plan, group->first);
  for (size_t i = 0; i < plan->n_steps; i++) {
    const struct pf_plan_step *step = &plan->steps[i];
    enum pf_flow in = step->input < 0 ? PF_FLOW_RUNS : flow[step->input];
    if (in == PF_FLOW_PASSED && !step->takes_passed)
      in = PF_FLOW_NONE;
    if (in == PF_FLOW_NONE)
      flow[i] = PF_FLOW_NONE;
    else if (matches(step->group_filters, step->n_group_filters, slice) &&
             any_slice(plan, step, flow, group))
      flow[i] = PF_FLOW_RUNS;
    else
      flow[i] =
          step->result == PF_RESULT_IMAGE ? PF_FLOW_PASSED : PF_FLOW_NONE;
  }
}

void pf_plan_group_text(const struct pf_plan *plan,
                        const struct pf_group *group, struct pf_buf *out) {
  const struct pf_slice *slice = pf_plan_slice(plan, group->first);
  size_t start = out->len;
  for (size_t i = 0; i < PF_N_COMPONENTS; i++) {
    enum pf_component c = group_order[i];
    if (!(plan->identity & PF_BIT(c)) || slice->value[c] == PF_NO_VALUE)
      continue;
    if (c == PF_PLATE && pf_plate_n_values(plan->plate, c) < 2)
      continue; /* it says nothing */
    pf_buf_printf(out, "%s%s ", out->len > start ? " " : "",
                  pf_component_name(c));
    pf_buf_name(out, pf_plate_value(plan->plate, c, slice->value[c]));
  }
  if (slice->kind == PF_KIND_PROJECTION)
    pf_buf_printf(out, "%sprojection", out->len > start ? " " : "");
  if (out->len == start)
    pf_buf_str(out, "the whole plate");
}

/* ------------------------------------------------------------- incomplete */

/* Siblings share plate, channel (where it is not stacked) and kind. */
static uint64_t sibling_key(const struct pf_plan *plan,
                            const struct pf_slice *slice) {
  uint64_t key = (uint64_t)slice->kind + 1;
  key = key << 20 | ((slice->value[PF_PLATE] + 1) & 0xfffff);
  if (plan->identity & PF_BIT(PF_CHANNEL))
    key = key << 20 | ((slice->value[PF_CHANNEL] + 1) & 0xfffff);
  /* A lone plane is no stack with holes. */
  for (size_t k = 0; k < plan->n_order; k++)
    if (slice->value[plan->order_of[k]] != PF_NO_VALUE)
      return key << 1 | 1;
  return key << 1;
}

static uint64_t slice_key(const struct pf_plan *plan,
                          const struct pf_slice *slice) {
  uint64_t key = sibling_key(plan, slice);
  for (size_t k = 0; k < plan->n_order; k++)
    key = pf_mix64(key) ^ (slice->value[plan->order_of[k]] + 1);
  return key ? key : 1;
}

static int count_expected(struct pf_plan *plan, size_t s, uint64_t key,
                          struct pf_error *err) {
  struct pf_expected *list = plan->expected[s];
  size_t n = plan->n_expected[s];
  for (size_t i = 0; i < n; i++)
    if (list[i].key == key) {
      list[i].n++;
      return PF_OK;
    }
  list = realloc(list, (n + 1) * sizeof(*list));
  if (!list)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  plan->expected[s] = list;
  list[n] = (struct pf_expected){key, 1};
  plan->n_expected[s] = n + 1;
  return PF_OK;
}

/* Distinct stacked values among all siblings of a group: what is expected. */
static int find_expected(struct pf_plan *plan, size_t s,
                         struct pf_error *err) {
  struct pf_key_set set = {0};
  size_t n = pf_plate_n_slices(plan->plate);
  int result = PF_OK;
  for (size_t i = 0; i < n && result == PF_OK; i++) {
    const struct pf_slice *slice = pf_plan_slice(plan, (uint32_t)i);
    int added;
    if (!pf_plan_step_takes(plan, &plan->steps[s], slice))
      continue;
    added = pf_key_set_add(&set, slice_key(plan, slice));
    if (added < 0)
      result = pf_error_set(err, PF_ENOMEM, "out of memory");
    else if (added)
      result = count_expected(plan, s, sibling_key(plan, slice), err);
  }
  pf_key_set_free(&set);
  return result;
}

static bool can_be_incomplete(const struct pf_plan_step *step) {
  return step->mask != 0 && step->spec->incomplete != PF_INCOMPLETE_RUN;
}

uint32_t pf_plan_lacks(const struct pf_plan *plan, size_t s,
                       const struct pf_group *group) {
  const struct pf_plan_step *step = &plan->steps[s];
  uint64_t key;
  uint32_t n = 0;
  if (!can_be_incomplete(step))
    return 0;
  for (uint32_t i = 0; i < group->n; i++)
    n += pf_plan_step_takes(plan, step, pf_plan_slice(plan, group->first + i));
  key = sibling_key(plan, pf_plan_slice(plan, group->first));
  for (size_t i = 0; i < plan->n_expected[s]; i++)
    if (plan->expected[s][i].key == key)
      return plan->expected[s][i].n > n ? plan->expected[s][i].n - n : 0;
  return 0;
}

static int all_expected(struct pf_plan *plan, struct pf_error *err) {
  plan->n_expected = calloc(plan->n_steps, sizeof(*plan->n_expected));
  plan->expected = calloc(plan->n_steps, sizeof(struct pf_expected *));
  if (!plan->n_expected || !plan->expected)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t s = 0; s < plan->n_steps; s++) {
    int result;
    if (!can_be_incomplete(&plan->steps[s]))
      continue;
    result = find_expected(plan, s, err);
    if (result != PF_OK)
      return result;
  }
  return PF_OK;
}

int pf_plan_make_groups(struct pf_plan *plan, struct pf_report *report,
                        struct pf_error *err) {
  int result = order_slices(plan, err);
  if (result == PF_OK)
    result = find_starts(plan, err);
  if (result == PF_OK)
    result = all_expected(plan, err);
  if (result == PF_OK)
    result = pf_plan_survey(plan, report, err);
  return result;
}
