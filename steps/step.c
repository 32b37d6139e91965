/* An opened step, native or Python: see plateflow/step.h. */
#include "plateflow/step.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "plateflow/device.h"
#include "steps/native/native.h"
#include "steps/params.h"
#include "steps/provider.h"
#include "steps/table.h"

static const char native_prefix[] = "native:";

struct pf_step {
  atomic_int n_refs; /* the opener's and one per instance */
  struct pf_step_traits traits;
  char *base_dir; /* of the pipeline, for the files that parameters name */
  /* One of the two is set. */
  const struct pf_step_type *type;
  const struct pf_python_ops *python;
  void *handle; /* of `python` */
};

struct pf_step_instance {
  struct pf_step *step; /* a reference */
  enum pf_cast_mode dtype;
  void *params; /* native: the filled struct */
  void *state;  /* what make() gave */
};

void pf_result_clear(struct pf_result *result) {
  if (!result)
    return;
  pf_array_unref(&result->stack);
  for (size_t i = 0; i < result->n_tables; i++)
    pf_table_destroy(&result->tables[i]);
  free(result->tables);
  memset(result, 0, sizeof(*result));
}

static void describe(struct pf_step_traits *traits,
                     const struct pf_step_type *type) {
  traits->input_memory_type = PF_MEM_NATIVE;
  traits->output_memory_type = PF_MEM_NATIVE;
  traits->result = type->result;
  traits->yields = type->yields;
  traits->resizes = type->resizes;
  traits->dtype = type->dtype;
  traits->is_native = true;
  traits->is_class = type->make != NULL;
  traits->is_reduction = type->finish != NULL;
  traits->is_decorated = true;
  traits->n_tables = type->n_tables;
  traits->memory_types = type->memory_types;
  traits->help = type->help;
}

static int refuse_native(const char *name, struct pf_error *err) {
  const char *names[128];
  const char *nearest;
  size_t n;
  const struct pf_step_type *const *steps = pf_native_steps(&n);
  char *shown = pf_name_for_people(name);
  if (n > sizeof(names) / sizeof(names[0]))
    n = sizeof(names) / sizeof(names[0]);
  for (size_t i = 0; i < n; i++)
    names[i] = steps[i]->name;
  nearest = pf_nearest_word(name, names, n);
  if (nearest)
    pf_error_set(err, PF_EINVAL,
                 "there is no step native:%s: did you mean native:%s?",
                 shown ? shown : "", nearest);
  else
    pf_error_set(err, PF_EINVAL,
                 "there is no step native:%s: `plateflow steps` lists them",
                 shown ? shown : "");
  free(shown);
  return PF_EINVAL;
}

static int open_native(struct pf_step *step, const char *name,
                       struct pf_error *err) {
  step->type = pf_native_find(name);
  if (!step->type)
    return refuse_native(name, err);
  describe(&step->traits, step->type);
  return PF_OK;
}

/* A function that is neither native nor Python's MODULE:NAME. */
static int refuse_form(const char *function, struct pf_error *err) {
  char *shown = pf_name_for_people(function);
  pf_error_set(
      err, PF_EINVAL, "\"%s\" names no function: %s%s%s", shown ? shown : "",
      pf_native_find(function) ? "did you mean native:" : "",
      pf_native_find(function) ? function : "",
      pf_native_find(function) ? "?"
                               : "write native:NAME, package.module:name or "
                                 "./file.py:name");
  free(shown);
  return PF_EINVAL;
}

static int open_python(struct pf_step *step, const char *function,
                       struct pf_error *err) {
  if (!strchr(function, ':'))
    return refuse_form(function, err);
  step->python = pf_python_ops();
  if (!step->python) {
    char *shown = pf_name_for_people(function);
    pf_error_set(err, PF_EMISSING,
                 "%s is a Python function and no interpreter runs",
                 shown ? shown : "");
    free(shown);
    return PF_EMISSING;
  }
  return step->python->open(&step->handle, &step->traits, function,
                            step->base_dir, err);
}

int pf_step_open(struct pf_step **out, const char *function,
                 const char *base_dir, struct pf_error *err) {
  const size_t prefix = sizeof(native_prefix) - 1;
  struct pf_step *step = calloc(1, sizeof(*step));
  int code = PF_OK;
  *out = NULL;
  if (step)
    step->base_dir = strdup(base_dir ? base_dir : ".");
  if (!step || !step->base_dir) {
    code = pf_error_set(err, PF_ENOMEM, "no memory for a step");
    goto out;
  }
  atomic_init(&step->n_refs, 1);
  if (strncmp(function, native_prefix, prefix) == 0)
    code = open_native(step, function + prefix, err);
  else
    code = open_python(step, function, err);
out:
  if (code && step) {
    free(step->base_dir);
    free(step);
    step = NULL;
  }
  *out = step;
  return code;
}

void pf_step_unref(struct pf_step **step) {
  struct pf_step *s = step ? *step : NULL;
  if (!s)
    return;
  *step = NULL;
  if (atomic_fetch_sub(&s->n_refs, 1) > 1)
    return;
  if (s->python)
    s->python->close(s->handle);
  free(s->base_dir);
  free(s);
}

const struct pf_step_traits *pf_step_traits(const struct pf_step *step) {
  return &step->traits;
}

static const char intensity[] = "intensity";

/* A C step takes at most one further array, called "intensity". */
static int check_with(const struct pf_step_type *type, const char *const *with,
                      size_t n_with, pf_param_report *report, void *context) {
  const bool takes = type->needs_intensity || type->may_intensity;
  struct pf_buf text = {0};
  bool has = false;
  int n_reports = 0;
  for (size_t i = 0; i < n_with; i++) {
    if (takes && strcmp(with[i], intensity) == 0) {
      has = true;
      continue;
    }
    pf_buf_reset(&text);
    pf_buf_printf(&text, "native:%s takes no array ", type->name);
    pf_buf_json(&text, with[i]);
    pf_buf_str(&text, takes ? ", only \"intensity\"" : "");
    report(context, NULL, false, pf_buf_text(&text));
    n_reports++;
  }
  if (type->needs_intensity && !has) {
    pf_buf_reset(&text);
    pf_buf_printf(&text,
                  "native:%s needs an array: "
                  "\"with\": { \"intensity\": STEP }",
                  type->name);
    report(context, NULL, false, pf_buf_text(&text));
    n_reports++;
  }
  pf_buf_free(&text);
  return n_reports;
}

int pf_step_check_params(struct pf_step *step, const struct pf_json_doc *doc,
                         const struct cJSON *params, const char *const *with,
                         size_t n_with, pf_param_report *report, void *context,
                         struct pf_error *err) {
  int n_reports;
  if (step->python)
    return step->python->check_params(step->handle, doc, params, with, n_with,
                                      report, context, err);
  n_reports = pf_params_check(step->type, step->base_dir, doc, params, report,
                              context, err);
  if (n_reports < 0)
    return n_reports;
  return n_reports + check_with(step->type, with, n_with, report, context);
}

static int make_native(struct pf_step_instance *made,
                       const struct pf_json_doc *doc,
                       const struct cJSON *params, struct pf_error *err) {
  const struct pf_step_type *type = made->step->type;
  int code = pf_params_parse(&made->params, type, made->step->base_dir, doc,
                             params, err);
  if (!code && type->make)
    code = type->make(&made->state, made->params, err);
  if (!code && type->dtype_of)
    made->dtype = type->dtype_of(made->params);
  if (code)
    pf_params_free(&made->params, type);
  return code;
}

int pf_step_make(struct pf_step_instance **out, struct pf_step *step,
                 const struct pf_json_doc *doc, const struct cJSON *params,
                 struct pf_error *err) {
  struct pf_step_instance *made = calloc(1, sizeof(*made));
  int code;
  *out = NULL;
  if (!made)
    return pf_error_set(err, PF_ENOMEM, "no memory for a step");
  made->step = step;
  made->dtype = step->traits.dtype;
  if (step->python)
    code = step->python->make(&made->state, step->handle, doc, params, err);
  else
    code = make_native(made, doc, params, err);
  if (code) {
    free(made);
    return code;
  }
  atomic_fetch_add(&step->n_refs, 1);
  *out = made;
  return PF_OK;
}

enum pf_cast_mode
pf_step_instance_dtype(const struct pf_step_instance *instance) {
  return instance->dtype;
}

/* The step itself takes host memory, its twins what their rows say. */
static int call_native(struct pf_step_instance *instance,
                       const struct pf_call *call, struct pf_result *result,
                       struct pf_error *err) {
  const struct pf_step_type *type = instance->step->type;
  const enum pf_memory_type memory = pf_array_memory_type(call->stack);
  const int32_t device = pf_array_device(call->stack).type;
  if (device == PF_DEVICE_HOST || device == PF_DEVICE_CUDA_HOST)
    return type->call(instance->state, instance->params, call, result, err);
  for (size_t i = 0; i < type->n_twins; i++)
    if (type->twins[i].memory_type == memory)
      return type->twins[i].call(instance->state, instance->params, call,
                                 result, err);
  return pf_error_set(err, PF_EINVAL, "native:%s takes no %s stack",
                      type->name, pf_memory_type_name(memory));
}

int pf_step_call(struct pf_step_instance *instance, const struct pf_call *call,
                 struct pf_result *result, struct pf_error *err) {
  const struct pf_step *step = instance->step;
  int code;
  memset(result, 0, sizeof(*result));
  if (step->python)
    code = step->python->call(instance->state, call, result, err);
  else
    code = call_native(instance, call, result, err);
  if (code)
    pf_result_clear(result);
  return code;
}

void pf_step_drop(struct pf_step_instance **instance) {
  struct pf_step_instance *i = instance ? *instance : NULL;
  if (!i)
    return;
  *instance = NULL;
  if (i->step->python) {
    i->step->python->drop(i->state);
  } else {
    if (i->step->type->drop)
      i->step->type->drop(i->state);
    pf_params_free(&i->params, i->step->type);
  }
  pf_step_unref(&i->step);
  free(i);
}

int pf_step_thread_start(struct pf_error *err) {
  const struct pf_python_ops *python = pf_python_ops();
  return python ? python->thread_start(err) : PF_OK;
}

void pf_step_thread_stop(void) {
  const struct pf_python_ops *python = pf_python_ops();
  if (python)
    python->thread_stop();
}
