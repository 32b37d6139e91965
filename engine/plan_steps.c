/* Compiling a plan, part 1: functions, memory types, grouping, filters. */
#include "engine/plan_private.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/frameworks.h"
#include "bridge/json.h"
#include "engine/device.h"
#include "plateflow/device.h"
#include "steps/python.h"

/* Where a message about a step belongs: the member `key` of its object, or
 * the object itself. */
static const struct cJSON *member(const struct pf_plan_step *step,
                                  const char *key) {
  const struct cJSON *value = pf_json_get(step->spec->json, key);
  return value ? value : step->spec->json;
}

struct param_context {
  struct pf_report *report;
  const struct pf_step_spec *spec;
  const struct pf_json_doc *doc;
};

static void report_param(void *context, const struct cJSON *value, bool of_key,
                         const char *message) {
  struct param_context *c = context;
  (void)pf_report_add(c->report, false, c->doc, value ? value : c->spec->json,
                      of_key, "%s", message);
}

static int check_params(const struct pf_pipeline *pipeline,
                        const struct pf_step_spec *spec, struct pf_step *step,
                        struct pf_report *report, struct pf_error *err) {
  struct param_context context = {report, spec, pipeline->doc};
  const char **names = calloc(spec->n_with + 1, sizeof(*names));
  int n;
  if (!names)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t i = 0; i < spec->n_with; i++)
    names[i] = spec->with[i].name;
  n = pf_step_check_params(step, pipeline->doc, spec->parameters, names,
                           spec->n_with, report_param, &context, err);
  free(names);
  return n < 0 ? (int)err->code : PF_OK;
}

/* A failure of opening or checking a function becomes a message at its place;
 * only what is not the pipeline's fault stays an error. */
static int to_report(const struct pf_pipeline *pipeline,
                     const struct pf_step_spec *spec, const char *key,
                     struct pf_report *report, struct pf_error *err) {
  const struct cJSON *value = pf_json_get(spec->json, key);
  char *text;
  if (err->code == PF_ENOMEM || err->code == PF_EMISSING)
    return (int)err->code;
  text = pf_error_format(err);
  (void)pf_report_add(report, false, pipeline->doc, value ? value : spec->json,
                      false, "%s%s%s", text ? text : "out of memory",
                      err->detail ? "\n" : "", err->detail ? err->detail : "");
  free(text);
  pf_error_clear(err);
  return PF_OK;
}

static int open_step(const struct pf_pipeline *pipeline,
                     const struct pf_step_spec *spec, struct pf_step **step,
                     struct pf_report *report, struct pf_error *err) {
  int result = pf_step_open(step, spec->function, pipeline->base_dir, err);
  if (result != PF_OK)
    return to_report(pipeline, spec, "function", report, err);
  result = check_params(pipeline, spec, *step, report, err);
  if (result != PF_OK)
    return to_report(pipeline, spec, "parameters", report, err);
  return PF_OK;
}

/* Kinds of device that arrays can be on today, by what brings them. */
static const char *missing_device(const struct pf_framework *framework) {
  for (size_t i = 0; i < framework->n_devices; i++)
    if (framework->devices[i] == PF_DEVICE_HOST || framework->adapter)
      return NULL;
  return framework->n_devices && framework->devices[0] == PF_DEVICE_OPENCL
             ? "an OpenCL device that plateflow can share memory with"
             : "an NVIDIA driver and device";
}

/* PF_EMISSING where the interpreter has no such framework. */
static int check_framework(const struct pf_plan_step *step,
                           enum pf_memory_type type, struct pf_error *err) {
  const struct pf_framework *framework = pf_framework_of_type(type);
  const char *missing;
  if (!framework)
    return PF_OK;
  if (!pf_python_has_module(framework->import))
    return pf_error_set(
        err, PF_EMISSING,
        "step \"%s\" needs %s, which this Python does not have: %s",
        step->spec->name, framework->import,
        framework->install ? framework->install : "install it");
  missing = missing_device(framework);
  if (missing)
    return pf_error_set(err, PF_EMISSING, "step \"%s\": %s needs %s",
                        step->spec->name, framework->name, missing);
  return PF_OK;
}

/* The pipeline's word first, the function's own second. */
static int check_memory_type(struct pf_plan_step *step,
                             const struct pf_pipeline *pipeline,
                             struct pf_report *report, struct pf_error *err) {
  const struct pf_framework *framework;
  int result;
  step->input_type = step->spec->input_memory_type;
  step->output_type = step->spec->output_memory_type;
  if (step->input_type == PF_MEM_NONE)
    step->input_type = step->traits->input_memory_type;
  if (step->output_type == PF_MEM_NONE)
    step->output_type = step->traits->output_memory_type;
  if (step->input_type == PF_MEM_NONE || step->output_type == PF_MEM_NONE) {
    (void)pf_report_add(report, false, pipeline->doc, step->spec->json, false,
                        "step \"%s\" has no memory type: write "
                        "\"memory_type\": \"numpy\", or decorate the function",
                        step->spec->name);
    return PF_OK;
  }
  framework = pf_framework_of_type(step->input_type);
  step->owns_stack =
      !step->traits->is_native && !(framework && framework->give_aliased);
  if (step->traits->is_native)
    return PF_OK;
  result = check_framework(step, step->input_type, err);
  if (result == PF_OK)
    result = check_framework(step, step->output_type, err);
  return result;
}

static void check_kind(struct pf_plan_step *step,
                       const struct pf_pipeline *pipeline,
                       struct pf_report *report) {
  const struct pf_step_traits *traits = step->traits;
  const struct pf_step_spec *spec = step->spec;
  if (traits->is_reduction)
    (void)pf_report_add(report, false, pipeline->doc, member(step, "function"),
                        false,
                        "\"%s\" has add() and finish(): streaming reductions "
                        "are not supported yet",
                        spec->function);
  if (traits->is_native && traits->n_tables != spec->n_tables)
    (void)pf_report_add(report, false, pipeline->doc, member(step, "tables"),
                        false,
                        "\"%s\" returns %u table(s): \"tables\" names %zu",
                        spec->function, traits->n_tables, spec->n_tables);
  if (traits->is_native && spec->result >= 0 &&
      (enum pf_result_kind)spec->result != traits->result &&
      (traits->result == PF_RESULT_NONE || spec->result == PF_RESULT_NONE))
    (void)pf_report_add(report, false, pipeline->doc, member(step, "result"),
                        false, "\"%s\" has the result \"%s\"", spec->function,
                        pf_result_kind_name(traits->result));
  step->result =
      spec->result >= 0 ? (enum pf_result_kind)spec->result : traits->result;
}

/* What the step is, from the pipeline first and the function second. */
static int resolve_step(struct pf_plan_step *step,
                        const struct pf_pipeline *pipeline,
                        struct pf_report *report, struct pf_error *err) {
  const struct pf_step_spec *spec = step->spec;
  const struct pf_step_traits *traits = step->traits;
  int result = check_memory_type(step, pipeline, report, err);
  check_kind(step, pipeline, report);
  step->yields = spec->has_yields ? spec->yields : traits->yields;
  step->resizes = spec->resizes >= 0 ? spec->resizes == 1 : traits->resizes;
  step->slice_by_slice = spec->slice_by_slice == 1;
  step->concurrency = spec->concurrency;
  if (result == PF_OK)
    result = pf_plan_choose_device(step, pipeline, report, err);
  step->dtype_type = spec->dtype_type;
  step->dtype = spec->dtype;
  if (step->dtype == PF_N_CAST_MODES && !traits->is_native)
    step->dtype = PF_CAST_PRESERVE;
  step->placeholders = pf_has_placeholder(pipeline->doc, spec->parameters);
  return result;
}

static bool placeholder_in_text(const char *text) {
  for (const char *p = strchr(text, '{'); p; p = strchr(p, '{')) {
    if (p[1] != '{')
      return true;
    p += 2;
  }
  return strstr(text, "}}") != NULL;
}

bool pf_has_placeholder(const struct pf_json_doc *doc,
                        const struct cJSON *value) {
  if (!value)
    return false;
  switch (pf_json_type(doc, value)) {
  case PF_JSON_STRING:
    return placeholder_in_text(pf_json_string(value));
  case PF_JSON_ARRAY:
  case PF_JSON_OBJECT:
    for (const pf_json *v = pf_json_first(value); v; v = pf_json_next(v))
      if (pf_has_placeholder(doc, v))
        return true;
    return false;
  default:
    return false;
  }
}

/* --------------------------------------------------------------- grouping */

static unsigned stack_bits(const struct pf_step_spec *spec) {
  unsigned bits = 0;
  if (!spec->has_stack)
    return PF_BIT(PF_Z);
  for (size_t i = 0; i < spec->n_stack; i++)
    bits |= PF_BIT(spec->stack[i]);
  return bits;
}

static void mention_components(unsigned bits, struct pf_buf *out) {
  for (unsigned c = 0; c < PF_N_COMPONENTS; c++)
    if (bits & PF_BIT(c))
      pf_buf_printf(out, "%s%s", out->len ? ", " : "",
                    pf_component_name((enum pf_component)c));
  if (!out->len)
    pf_buf_str(out, "nothing");
}

static void report_regroup(struct pf_plan *plan, struct pf_plan_step *step,
                           unsigned identity, struct pf_report *report) {
  struct pf_buf here = {0}, there = {0};
  mention_components(identity, &here);
  mention_components(plan->identity, &there);
  (void)pf_report_add(
      report, false, plan->pipeline->doc, member(step, "stack"), false,
      "step \"%s\" has one group per (%s), the steps before "
      "it one per (%s): grouping anew is not supported yet",
      step->spec->name, pf_buf_text(&here), pf_buf_text(&there));
  pf_buf_free(&here);
  pf_buf_free(&there);
}

static void check_lost(struct pf_plan *plan, struct pf_plan_step *step,
                       struct pf_report *report) {
  unsigned gone = plan->present & ~step->available;
  if (!step->spec->has_stack)
    return;
  for (size_t i = 0; i < step->spec->n_stack; i++)
    if (gone & PF_BIT(step->spec->stack[i]))
      (void)pf_report_add(report, false, plan->pipeline->doc,
                          member(step, "stack"), false,
                          "\"%s\" cannot be stacked: an earlier step has "
                          "already collapsed it",
                          pf_component_name(step->spec->stack[i]));
}

static unsigned lost_by(const struct pf_plan_step *step) {
  switch (step->yields.kind) {
  case PF_YIELDS_ONE:
    return step->mask;
  case PF_YIELDS_ALONG:
    return step->mask & ~PF_BIT(step->yields.along);
  default:
    return 0;
  }
}

static void check_along(struct pf_plan *plan, struct pf_plan_step *step,
                        struct pf_report *report) {
  if (step->yields.kind == PF_YIELDS_ALONG && step->mask &&
      !(step->mask & PF_BIT(step->yields.along)))
    (void)pf_report_add(report, false, plan->pipeline->doc,
                        member(step, "yields"), false,
                        "\"yields\" counts along \"%s\", which the step does "
                        "not stack",
                        pf_component_name(step->yields.along));
}

/* Whether the step's stack is in the order that the first step chose. */
static bool same_order(const struct pf_plan *plan,
                       const struct pf_plan_step *step) {
  size_t at = 0;
  for (size_t k = 0; k < step->spec->n_stack; k++) {
    if (!(step->mask & PF_BIT(step->spec->stack[k])))
      continue;
    while (at < plan->n_order && plan->order_of[at] != step->spec->stack[k])
      at++;
    if (at == plan->n_order)
      return false;
  }
  return true;
}

/* The first step decides how the plan groups; the others must agree. */
static void group_step(struct pf_plan *plan, size_t i,
                       struct pf_report *report) {
  struct pf_plan_step *step = &plan->steps[i];
  unsigned lost = step->input < 0 ? 0 : plan->steps[step->input].lost;
  unsigned identity;
  step->available = plan->present & ~lost;
  step->mask = stack_bits(step->spec) & step->available;
  identity = step->available & ~step->mask;
  if (i == 0) {
    plan->identity = identity;
    plan->stacked = step->mask;
    for (size_t k = 0; k < step->spec->n_stack; k++)
      if (plan->stacked & PF_BIT(step->spec->stack[k]))
        plan->order_of[plan->n_order++] = step->spec->stack[k];
    if (!step->spec->has_stack && plan->stacked)
      plan->order_of[plan->n_order++] = PF_Z;
  }
  check_lost(plan, step, report);
  check_along(plan, step, report);
  if (identity != plan->identity)
    report_regroup(plan, step, identity, report);
  else if (!same_order(plan, step))
    (void)pf_report_add(report, false, plan->pipeline->doc,
                        member(step, "stack"), false,
                        "step \"%s\" orders its stack unlike the steps "
                        "before it: that is not supported yet",
                        step->spec->name);
  step->lost = lost | lost_by(step);
}

/* ------------------------------------------------------------------ input */

static void connect_input(struct pf_plan *plan, size_t i,
                          struct pf_report *report) {
  struct pf_plan_step *step = &plan->steps[i];
  int input = step->spec->input;
  step->takes_passed = input == PF_INPUT_PREVIOUS;
  step->input = input == PF_INPUT_PREVIOUS ? (int)i - 1 : input;
  if (step->input < 0)
    return;
  if (plan->steps[step->input].result == PF_RESULT_NONE) {
    (void)pf_report_add(report, false, plan->pipeline->doc,
                        member(step, "input"), false,
                        "step \"%s\" takes its input from \"%s\", which "
                        "returns no image: name another step in \"input\"",
                        step->spec->name, plan->steps[step->input].spec->name);
    return;
  }
}

static void connect_with(struct pf_plan *plan, struct pf_plan_step *step,
                         size_t k, struct pf_report *report) {
  const struct pf_with *with = &step->spec->with[k];
  const struct pf_plan_step *from = NULL;
  unsigned available = plan->present;
  step->with[k] = (struct pf_plan_with){with->name, with->from};
  if (with->from >= 0) {
    from = &plan->steps[with->from];
    available &= ~from->lost;
  }
  if (from && from->result == PF_RESULT_NONE)
    (void)pf_report_add(report, false, plan->pipeline->doc, with->json, false,
                        "step \"%s\" returns no image to take",
                        from->spec->name);
  else if (with->n_where)
    (void)pf_report_add(report, false, plan->pipeline->doc, with->json, false,
                        "\"where\" in \"with\" is not supported yet");
  else if (with->has_stack && (available & ~with->stack) != plan->identity)
    (void)pf_report_add(report, false, plan->pipeline->doc, with->json, false,
                        "\"with\" that groups unlike its step is not "
                        "supported yet");
}

static int connect_withs(struct pf_plan *plan, struct pf_plan_step *step,
                         struct pf_report *report, struct pf_error *err) {
  step->n_with = step->spec->n_with;
  if (!step->n_with)
    return PF_OK;
  step->with = calloc(step->n_with, sizeof(*step->with));
  if (!step->with)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t k = 0; k < step->n_with; k++)
    connect_with(plan, step, k, report);
  return PF_OK;
}

/* ---------------------------------------------------------------- filters */

void pf_filter_free(struct pf_filter *filters, size_t n) {
  for (size_t i = 0; filters && i < n; i++)
    free(filters[i].match);
  free(filters);
}

static void report_value(struct pf_plan *plan, const struct pf_where *where,
                         const char *value, struct pf_report *report) {
  struct pf_buf known = {0}, name = {0};
  uint32_t n = pf_plate_n_values(plan->plate, where->component);
  for (uint32_t i = 0; i < n && i < 12; i++) {
    pf_buf_str(&known, i ? ", " : "");
    pf_buf_name(&known, pf_plate_value(plan->plate, where->component, i));
  }
  if (n > 12)
    pf_buf_str(&known, ", ...");
  pf_buf_name(&name, value);
  (void)pf_report_add(report, false, plan->pipeline->doc, where->json, false,
                      "the plate has no %s \"%s\" (it has %s)",
                      pf_component_name(where->component), pf_buf_text(&name),
                      known.len ? pf_buf_text(&known) : "none");
  pf_buf_free(&known);
  pf_buf_free(&name);
}

static int fill_filter(struct pf_plan *plan, const struct pf_where *where,
                       struct pf_filter *filter, struct pf_report *report,
                       struct pf_error *err) {
  filter->component = where->component;
  filter->n_ranks = pf_plate_n_values(plan->plate, where->component);
  filter->match = calloc((size_t)filter->n_ranks + 1, sizeof(bool));
  if (!filter->match)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t i = 0; i < where->n_values; i++) {
    uint32_t rank =
        pf_plate_find(plan->plate, where->component, where->values[i]);
    if (rank == PF_NO_VALUE)
      report_value(plan, where, where->values[i], report);
    else
      filter->match[rank] = true;
  }
  return PF_OK;
}

static int add_filter(struct pf_plan *plan, struct pf_plan_step *step,
                      const struct pf_where *where, struct pf_report *report,
                      struct pf_error *err) {
  unsigned bit = PF_BIT(where->component);
  if ((plan->present & bit) && !(step->available & bit)) {
    (void)pf_report_add(report, false, plan->pipeline->doc, where->json, false,
                        "an earlier step has collapsed \"%s\"",
                        pf_component_name(where->component));
    return PF_OK;
  }
  if (step->mask & bit)
    return fill_filter(plan, where,
                       &step->slice_filters[step->n_slice_filters++], report,
                       err);
  return fill_filter(
      plan, where, &step->group_filters[step->n_group_filters++], report, err);
}

static int add_filters(struct pf_plan *plan, struct pf_plan_step *step,
                       struct pf_report *report, struct pf_error *err) {
  size_t n = step->spec->n_where;
  int result = PF_OK;
  if (!n)
    return PF_OK;
  step->group_filters = calloc(n, sizeof(*step->group_filters));
  step->slice_filters = calloc(n, sizeof(*step->slice_filters));
  if (!step->group_filters || !step->slice_filters)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t i = 0; i < n && result == PF_OK; i++)
    result = add_filter(plan, step, &step->spec->where[i], report, err);
  return result;
}

/* ---------------------------------------------------------------- outputs */

static int choose_folder(struct pf_plan_step *step, bool is_last,
                         struct pf_error *err) {
  struct pf_buf folder = {0};
  if (is_last)
    pf_buf_str(&folder, "images");
  else
    pf_buf_printf(&folder, "steps/%s", step->spec->name);
  step->folder = pf_buf_take(&folder);
  return step->folder ? PF_OK : pf_error_set(err, PF_ENOMEM, "out of memory");
}

/* The last image or labels step is saved unless it says false. */
static int choose_outputs(struct pf_plan *plan, struct pf_error *err) {
  bool is_last = true;
  for (size_t i = plan->n_steps; i-- > 0;) {
    struct pf_plan_step *step = &plan->steps[i];
    if (step->result == PF_RESULT_NONE)
      continue;
    step->saved = step->spec->save == 1 || step->spec->save_template ||
                  (is_last && step->spec->save != 0);
    if (step->saved && choose_folder(step, is_last, err) != PF_OK)
      return (int)err->code;
    is_last = false;
  }
  return PF_OK;
}

static int plan_step(struct pf_plan *plan, size_t i, struct pf_report *report,
                     struct pf_error *err) {
  struct pf_plan_step *step = &plan->steps[i];
  int result = PF_OK;
  step->spec = &plan->pipeline->steps[i];
  result = open_step(plan->pipeline, step->spec, &step->step, report, err);
  if (result != PF_OK || !step->step)
    return result;
  step->traits = pf_step_traits(step->step);
  result = resolve_step(step, plan->pipeline, report, err);
  if (result != PF_OK)
    return result;
  connect_input(plan, i, report);
  group_step(plan, i, report);
  result = connect_withs(plan, step, report, err);
  if (result == PF_OK)
    result = add_filters(plan, step, report, err);
  return result;
}

/* Numerical libraries have one setting per process. */
static void check_threads(const struct pf_pipeline *pipeline,
                          struct pf_report *report) {
  const struct pf_step_spec *first = NULL;
  for (size_t i = 0; i < pipeline->n_steps; i++) {
    const struct pf_step_spec *spec = &pipeline->steps[i];
    if (!spec->threads || strncmp(spec->function, "native:", 7) == 0)
      continue;
    if (!first)
      first = spec;
    if (spec->threads != first->threads)
      (void)pf_report_add(report, false, pipeline->doc,
                          pf_json_get(spec->json, "threads"), false,
                          "step \"%s\" asks for %d inner threads and step "
                          "\"%s\" for %d: the libraries of one process take "
                          "one number",
                          spec->name, spec->threads, first->name,
                          first->threads);
  }
}

/* Steps `first` to `n`, each on its own. */
static int check_functions(const struct pf_pipeline *pipeline, size_t first,
                           size_t n, struct pf_report *report,
                           struct pf_error *err) {
  for (size_t i = first; i < n; i++) {
    struct pf_plan_step step = {.spec = &pipeline->steps[i]};
    int result = open_step(pipeline, step.spec, &step.step, report, err);
    if (result == PF_OK && step.step) {
      step.traits = pf_step_traits(step.step);
      result = resolve_step(&step, pipeline, report, err);
    }
    pf_step_unref(&step.step);
    if (result != PF_OK)
      return result;
  }
  return PF_OK;
}

int pf_plan_open_steps(struct pf_plan *plan, struct pf_report *report,
                       struct pf_error *err) {
  check_threads(plan->pipeline, report);
  for (size_t i = 0; i < plan->n_steps; i++) {
    int result = plan_step(plan, i, report, err);
    if (result != PF_OK)
      return result;
    /* How the steps after it group cannot be judged, what they are can. */
    if (!plan->steps[i].step)
      return check_functions(plan->pipeline, i + 1, plan->n_steps, report,
                             err);
  }
  return choose_outputs(plan, err);
}

int pf_plan_check_functions(const struct pf_pipeline *pipeline,
                            struct pf_report *report, struct pf_error *err) {
  check_threads(pipeline, report);
  return check_functions(pipeline, 0, pipeline->n_steps, report, err);
}

bool pf_pipeline_needs_python(const struct pf_pipeline *pipeline) {
  for (size_t i = 0; i < pipeline->n_steps; i++)
    if (strncmp(pipeline->steps[i].function, "native:", 7) != 0)
      return true;
  return false;
}

static size_t add_framework(const char **names, size_t n,
                            enum pf_memory_type type) {
  const struct pf_framework *framework = pf_framework_of_type(type);
  for (size_t i = 0; framework && i < n; i++)
    if (names[i] == framework->name)
      return n;
  if (framework)
    names[n++] = framework->name;
  return n;
}

size_t pf_pipeline_frameworks(const struct pf_pipeline *pipeline,
                              const char **names) {
  size_t n = 0;
  for (size_t i = 0; i < pipeline->n_steps; i++) {
    n = add_framework(names, n, pipeline->steps[i].input_memory_type);
    n = add_framework(names, n, pipeline->steps[i].output_memory_type);
  }
  return n;
}

int pf_pipeline_threads(const struct pf_pipeline *pipeline) {
  int threads = 0;
  for (size_t i = 0; i < pipeline->n_steps; i++)
    if (pipeline->steps[i].threads > threads)
      threads = pipeline->steps[i].threads;
  return threads;
}
