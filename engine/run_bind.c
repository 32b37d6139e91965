/* Instances of steps: one per distinct set of parameters, made once. */
#include "engine/runner.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/json.h"

static void fill_value(const struct pf_runner *runner,
                       const struct pf_slice *slice, const pf_json *value,
                       struct pf_buf *out);

/* Members or elements, with a key where `object`. */
static void fill_children(const struct pf_runner *runner,
                          const struct pf_slice *slice, const pf_json *value,
                          bool object, struct pf_buf *out) {
  const char *comma = "";
  pf_buf_char(out, object ? '{' : '[');
  for (const pf_json *v = pf_json_first(value); v; v = pf_json_next(v)) {
    pf_buf_str(out, comma);
    comma = ",";
    if (object) {
      pf_buf_json(out, pf_json_key(v));
      pf_buf_char(out, ':');
    }
    fill_value(runner, slice, v, out);
  }
  pf_buf_char(out, object ? '}' : ']');
}

/* The value as JSON, the placeholders in its strings filled in. */
static void fill_value(const struct pf_runner *runner,
                       const struct pf_slice *slice, const pf_json *value,
                       struct pf_buf *out) {
  const struct pf_json_doc *doc = runner->plan->pipeline->doc;
  struct pf_buf text = {0};
  switch (pf_json_type(doc, value)) {
  case PF_JSON_STRING:
    pf_plan_fill(runner->plan, slice, runner->out_dir, false,
                 pf_json_string(value), &text);
    pf_buf_json(out, pf_buf_text(&text));
    out->failed |= text.failed;
    pf_buf_free(&text);
    return;
  case PF_JSON_OBJECT:
    fill_children(runner, slice, value, true, out);
    return;
  case PF_JSON_ARRAY:
    fill_children(runner, slice, value, false, out);
    return;
  default:
    pf_json_write(doc, value, out);
  }
}

static struct pf_bound *find_bound(struct pf_step_run *step,
                                   const char *parameters) {
  for (size_t i = 0; i < step->n_bound; i++)
    if (strcmp(step->bound[i]->parameters, parameters) == 0)
      return step->bound[i];
  return NULL;
}

/* Takes `parameters`, also on failure. */
static struct pf_bound *add_bound_locked(struct pf_step_run *step,
                                         char *parameters) {
  struct pf_bound *bound = calloc(1, sizeof(*bound));
  struct pf_bound **list =
      realloc(step->bound, (step->n_bound + 1) * sizeof(*list));
  if (list)
    step->bound = list;
  if (!bound || !list) {
    free(bound);
    free(parameters);
    return NULL;
  }
  bound->parameters = parameters;
  list[step->n_bound++] = bound;
  return bound;
}

/* Without the lock: making may take the GIL. */
static void make_bound(struct pf_step_run *step, struct pf_bound *bound) {
  struct pf_json_doc *doc = NULL;
  struct pf_step_instance *instance = NULL;
  struct pf_error err = PF_ERROR_INIT;
  int code = pf_json_parse(&doc, bound->parameters, strlen(bound->parameters),
                           "parameters", &err);
  if (code == PF_OK)
    code = pf_step_make(&instance, step->plan->step, doc, pf_json_root(doc),
                        &err);
  pf_json_free(&doc);
  (void)pthread_mutex_lock(&step->lock);
  bound->instance = instance;
  bound->code = code;
  pf_error_move(&bound->error, &err);
  bound->ready = true;
  (void)pthread_cond_broadcast(&step->changed);
  (void)pthread_mutex_unlock(&step->lock);
}

static int get_bound(struct pf_step_run *step, char *parameters,
                     struct pf_bound **out, struct pf_error *err) {
  struct pf_bound *bound;
  bool is_mine = false;
  (void)pthread_mutex_lock(&step->lock);
  bound = find_bound(step, parameters);
  if (bound) {
    free(parameters);
  } else {
    bound = add_bound_locked(step, parameters);
    is_mine = bound != NULL;
  }
  while (bound && !is_mine && !bound->ready)
    (void)pthread_cond_wait(&step->changed, &step->lock);
  (void)pthread_mutex_unlock(&step->lock);
  if (!bound)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  if (is_mine)
    make_bound(step, bound);
  *out = bound;
  return PF_OK;
}

int pf_run_bind(struct pf_runner *runner, size_t s,
                const struct pf_group *group,
                struct pf_step_instance **instance, struct pf_error *err) {
  struct pf_step_run *step = &runner->steps[s];
  const struct cJSON *parameters = step->plan->spec->parameters;
  struct pf_bound *bound = NULL;
  struct pf_buf text = {0};
  char *key;
  int result;
  if (!step->plan->placeholders && step->n_bound) {
    bound = step->bound[0]; /* made before the workers started */
  } else {
    if (parameters)
      fill_value(runner, pf_plan_slice(runner->plan, group->first), parameters,
                 &text);
    else
      pf_buf_str(&text, "{}");
    key = pf_buf_take(&text);
    if (!key)
      return pf_error_set(err, PF_ENOMEM, "out of memory");
    result = get_bound(step, key, &bound, err);
    if (result != PF_OK)
      return result;
  }
  *instance = bound->instance;
  if (bound->code == PF_OK)
    return PF_OK;
  result = bound->code;
  /* What one well's value makes wrong (a file that is missing for it alone)
   * is an error of its groups, not of the pipeline. */
  if (result == PF_EINVAL && step->plan->placeholders)
    result = PF_ESTEP;
  (void)pf_error_set(err, (enum pf_code)result, "%s", bound->error.message);
  pf_error_detail(err, bound->error.detail);
  return result;
}

void pf_run_unbind(struct pf_step_run *step) {
  for (size_t i = 0; i < step->n_bound; i++) {
    pf_step_drop(&step->bound[i]->instance);
    pf_error_clear(&step->bound[i]->error);
    free(step->bound[i]->parameters);
    free(step->bound[i]);
  }
  free(step->bound);
  step->bound = NULL;
  step->n_bound = 0;
}
