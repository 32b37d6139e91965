/* A compiled plan, for people and as JSON. */
#include "bridge/convert_plan.h"
#include "engine/device.h"
#include "engine/plan_private.h"

#include <stdlib.h>

static void components(unsigned bits, const char *none, struct pf_buf *out) {
  const char *comma = "";
  if (!bits)
    pf_buf_str(out, none);
  for (unsigned c = 0; c < PF_N_COMPONENTS; c++)
    if (bits & PF_BIT(c)) {
      pf_buf_printf(out, "%s%s", comma,
                    pf_component_name((enum pf_component)c));
      comma = ", ";
    }
}

static void component_list(unsigned bits, struct pf_buf *out) {
  const char *comma = "";
  pf_buf_char(out, '[');
  for (unsigned c = 0; c < PF_N_COMPONENTS; c++)
    if (bits & PF_BIT(c)) {
      pf_buf_printf(out, "%s\"%s\"", comma,
                    pf_component_name((enum pf_component)c));
      comma = ", ";
    }
  pf_buf_char(out, ']');
}

static const char *input_name(const struct pf_plan *plan, int input) {
  return input < 0 ? "plate" : plan->steps[input].spec->name;
}

/* Whether a later step takes the same stack. */
static bool is_taken_later(const struct pf_plan *plan,
                           const struct pf_plan_step *step) {
  for (const struct pf_plan_step *later = step + 1;
       later < plan->steps + plan->n_steps; later++) {
    if (later->input == step->input)
      return true;
    for (size_t k = 0; k < later->n_with; k++)
      if (later->with[k].from == step->input)
        return true;
  }
  return false;
}

/* How the stack reaches the step, and why that takes a copy. */
enum { MALLOC_ALIGNMENT = 16 };
struct way {
  enum pf_mechanism mechanism;
  const char *why; /* of a copy, or of one that there may be; NULL: of none */
};

static struct way way_of(const struct pf_plan *plan,
                         const struct pf_plan_step *step) {
  enum pf_memory_type type =
      step->input < 0 ? PF_MEM_NATIVE : plan->steps[step->input].output_type;
  const struct pf_framework *from = pf_framework_of_type(type);
  const struct pf_framework *to = pf_framework_of_type(step->input_type);
  struct pf_array_facts facts = {.dtype = step->spec->input_dtype};
  struct pf_convert_plan found;
  bool host =
      step->input_type == PF_MEM_NUMPY || step->input_type == PF_MEM_NATIVE;
  if (from && from->give_aliased && step->owns_stack)
    facts.is_read_only = true;
  pf_convert_plan(&found, from, to, &facts);
  if (step->owns_stack && is_taken_later(plan, step))
    return (struct way){PF_MECHANISM_COPIED, "another step takes it too"};
  if (facts.is_read_only)
    return (struct way){PF_MECHANISM_COPIED, "the step may write to it"};
  /* C's memory and NumPy's are one. */
  if (host && (type == PF_MEM_NUMPY || type == PF_MEM_NATIVE))
    return (struct way){PF_MECHANISM_STAYS, NULL};
  /* Where a function lets its memory begin is not known before it runs. */
  if (found.mechanism == PF_MECHANISM_SHARED && from && !from->give_aliased &&
      to && to->take_alignment > MALLOC_ALIGNMENT)
    found.why = "copied where it is not aligned as that needs";
  return (struct way){found.mechanism, found.why};
}

static void mechanism(const struct pf_plan *plan,
                      const struct pf_plan_step *step, struct pf_buf *out) {
  struct way way = way_of(plan, step);
  if (pf_plan_device_way(plan, step, out))
    return;
  if (step->input < 0 && way.mechanism == PF_MECHANISM_STAYS)
    pf_buf_str(out, "read into the stack");
  else
    pf_buf_str(out, pf_mechanism_name(way.mechanism));
  if (way.why)
    pf_buf_printf(out, " (%s)", way.why);
}

/* Bytes of the deepest group's stack as it is read. */
static uint64_t stack_bytes(const struct pf_plan *plan) {
  struct pf_group group;
  uint64_t n = 0;
  pf_plan_group(plan, plan->canary, &group);
  for (uint32_t i = 0; i < group.n; i++) {
    const struct pf_slice *slice = pf_plan_slice(plan, group.first + i);
    const struct pf_format *f = pf_plate_format(plan->plate, slice->format);
    n += (uint64_t)f->width * f->height * pf_dtype_size(f->dtype);
  }
  return n;
}

/* "images/A01_s1.tif", of a group that the step processes. */
static void example_output(const struct pf_plan *plan,
                           const struct pf_plan_step *step,
                           struct pf_buf *out) {
  struct pf_group group;
  char *name;
  pf_plan_group(plan, step->n_groups ? step->canary : plan->canary, &group);
  name = pf_plan_output_name(plan, step, pf_plan_slice(plan, group.first));
  if (name)
    pf_buf_name(out, name);
  free(name);
}

static void step_text(const struct pf_plan *plan, size_t s,
                      struct pf_buf *out) {
  const struct pf_plan_step *step = &plan->steps[s];
  pf_buf_printf(out, "%zu. %s  %s (%s)\n", s + 1, step->spec->name,
                step->spec->function, pf_memory_type_name(step->input_type));
  pf_buf_printf(out, "   input %s, ", input_name(plan, step->input));
  mechanism(plan, step, out);
  pf_buf_str(out, "; stacks ");
  components(step->mask, "nothing", out);
  pf_buf_printf(out, "; %llu groups", (unsigned long long)step->n_groups);
  for (size_t k = 0; k < step->n_with; k++)
    pf_buf_printf(out, "; %s from %s", step->with[k].name,
                  input_name(plan, step->with[k].from));
  pf_buf_printf(out, "\n   result %s", pf_result_kind_name(step->result));
  if (step->lost) {
    pf_buf_str(out, ", without ");
    components(step->lost, "", out);
  }
  if (step->saved) {
    pf_buf_str(out, ", saved as OUT/");
    example_output(plan, step, out);
  }
  for (size_t t = 0; t < step->spec->n_tables; t++)
    pf_buf_printf(out, ", OUT/tables/%s.csv", step->spec->tables[t]);
  pf_buf_char(out, '\n');
}

void pf_plan_text(const struct pf_plan *plan, struct pf_buf *out) {
  pf_buf_str(out, "pipeline ");
  pf_buf_name(out, plan->pipeline->name);
  pf_buf_str(out, " on ");
  pf_buf_name(out, pf_plate_root(plan->plate));
  pf_buf_printf(out, "\n%zu slices, %llu groups, one per ",
                pf_plate_n_slices(plan->plate),
                (unsigned long long)plan->n_groups);
  components(plan->identity, "plate", out);
  pf_buf_printf(out, "; deepest stack %u, %.1f MiB as read\n", plan->n_deepest,
                (double)stack_bytes(plan) / (1 << 20));
  for (size_t s = 0; s < plan->n_steps; s++)
    step_text(plan, s, out);
}

static void step_json(const struct pf_plan *plan, size_t s,
                      struct pf_buf *out) {
  const struct pf_plan_step *step = &plan->steps[s];
  pf_buf_str(out, "{\"name\": ");
  pf_buf_json(out, step->spec->name);
  pf_buf_str(out, ", \"function\": ");
  pf_buf_json(out, step->spec->function);
  pf_buf_printf(out, ", \"memory_type\": \"%s\", \"input\": ",
                pf_memory_type_name(step->input_type));
  pf_buf_json(out, input_name(plan, step->input));
  pf_buf_str(out, ", \"mechanism\": \"");
  mechanism(plan, step, out); /* nothing in it needs quoting */
  pf_buf_str(out, "\", \"stack\": ");
  component_list(step->mask, out);
  pf_buf_str(out, ", \"lost\": ");
  component_list(step->lost, out);
  pf_buf_printf(out, ", \"groups\": %llu, \"result\": \"%s\", \"saved\": ",
                (unsigned long long)step->n_groups,
                pf_result_kind_name(step->result));
  if (step->saved)
    pf_buf_json(out, step->folder);
  else
    pf_buf_str(out, "null");
  pf_buf_char(out, '}');
}

void pf_plan_json(const struct pf_plan *plan, struct pf_buf *out) {
  pf_buf_printf(out, "{\"slices\": %zu, \"groups\": %llu, \"per\": ",
                pf_plate_n_slices(plan->plate),
                (unsigned long long)plan->n_groups);
  component_list(plan->identity, out);
  pf_buf_printf(out, ", \"deepest\": %u, \"stack_bytes\": %llu, \"steps\": [",
                plan->n_deepest, (unsigned long long)stack_bytes(plan));
  for (size_t s = 0; s < plan->n_steps; s++) {
    pf_buf_str(out, s ? ",\n  " : "\n  ");
    step_json(plan, s, out);
  }
  pf_buf_str(out, "]}\n");
}
