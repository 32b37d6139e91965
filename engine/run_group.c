/* One group from its first read to its last output. */
#include "engine/runner.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/os.h"

void pf_value_clear(struct pf_value *value) {
  pf_array_unref(&value->stack);
  for (size_t i = 0; value->tags && i < value->n; i++)
    pf_tiff_tags_free(&value->tags[i]);
  value->n = 0;
  value->n_consumers = 0;
}

/* What depends on a step that does not run for this group does not either. */
static void drop_dependents(struct pf_worker *worker) {
  const struct pf_plan *plan = worker->runner->plan;
  for (size_t s = 0; s < plan->n_steps; s++) {
    const struct pf_plan_step *step = &plan->steps[s];
    if (step->input >= 0 && worker->flow[step->input] == PF_FLOW_NONE)
      worker->flow[s] = PF_FLOW_NONE;
    for (size_t k = 0; k < step->n_with; k++)
      if (step->with[k].from >= 0 &&
          worker->flow[step->with[k].from] != PF_FLOW_RUNS)
        worker->flow[s] = PF_FLOW_NONE;
  }
}

static void set_reason(struct pf_record *record, enum pf_status status,
                       struct pf_buf *text) {
  record->status = status;
  pf_error_clear(&record->error);
  record->error.message = pf_buf_take(text);
}

static uint32_t n_taken(const struct pf_plan *plan,
                        const struct pf_plan_step *step,
                        const struct pf_group *group) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < group->n; i++)
    n += pf_plan_step_takes(plan, step, pf_plan_slice(plan, group->first + i));
  return n;
}

/* Leave out the steps whose stack lacks slices. */
static void skip_incomplete(struct pf_worker *worker,
                            const struct pf_group *group,
                            struct pf_record *record) {
  struct pf_runner *runner = worker->runner;
  const struct pf_plan *plan = runner->plan;
  for (size_t s = 0; s < plan->n_steps; s++) {
    const struct pf_plan_step *step = &plan->steps[s];
    uint32_t lacks =
        worker->flow[s] == PF_FLOW_RUNS ? pf_plan_lacks(plan, s, group) : 0;
    struct pf_buf text = {0};
    if (!lacks)
      continue;
    worker->flow[s] = PF_FLOW_NONE;
    record->tasks[record->n_tasks++] =
        (struct pf_task_row){(uint32_t)s, PF_STATUS_SKIPPED, 0, NULL};
    pf_buf_printf(&text,
                  "step \"%s\": %u of %u slices that its siblings have are "
                  "missing",
                  step->spec->name, lacks, lacks + n_taken(plan, step, group));
    if (step->spec->incomplete == PF_INCOMPLETE_STOP)
      pf_run_stop(runner, PF_EFAILED, "%s", pf_buf_text(&text));
    if (record->status != PF_STATUS_SKIPPED)
      set_reason(record, PF_STATUS_SKIPPED, &text);
    pf_buf_free(&text);
  }
  drop_dependents(worker);
}

int pf_run_consumers(const struct pf_worker *worker, size_t s) {
  const struct pf_plan *plan = worker->runner->plan;
  int n = 0;
  for (size_t i = s + 1; i < plan->n_steps; i++) {
    const struct pf_plan_step *step = &plan->steps[i];
    n += worker->flow[i] != PF_FLOW_NONE && step->input == (int)s;
    for (size_t k = 0; k < step->n_with; k++)
      n += worker->flow[i] == PF_FLOW_RUNS && step->with[k].from == (int)s;
  }
  return n;
}

/* A step that passes the group on hands its input over as it is. */
static void pass_value(struct pf_worker *worker, size_t s) {
  const struct pf_plan_step *step = &worker->runner->plan->steps[s];
  struct pf_value *in = &worker->values[step->input + 1];
  struct pf_value *out = &worker->values[s + 1];
  out->stack = in->stack ? pf_array_ref(in->stack) : NULL;
  out->dtype = in->dtype;
  out->n = in->n;
  memcpy(out->positions, in->positions, in->n * sizeof(*in->positions));
  out->n_consumers = pf_run_consumers(worker, s);
  if (--in->n_consumers <= 0)
    pf_array_unref(&in->stack);
}

static void count_group(struct pf_step_run *run, int result) {
  (void)pthread_mutex_lock(&run->lock);
  if (result == PF_OK) {
    run->n_done++;
  } else {
    run->n_failed++;
    if (!run->n_done)
      run->n_failed_from_start++;
  }
  (void)pthread_mutex_unlock(&run->lock);
}

/* A step that fails on its first 20 groups will fail on the rest. */
static void stop_if_hopeless(struct pf_runner *runner, size_t s) {
  struct pf_step_run *run = &runner->steps[s];
  bool hopeless;
  (void)pthread_mutex_lock(&run->lock);
  hopeless = !run->n_done && run->n_failed_from_start >= 20;
  (void)pthread_mutex_unlock(&run->lock);
  if (hopeless)
    pf_run_stop(runner, PF_EFAILED,
                "step \"%s\" failed on each of its first 20 groups",
                run->plan->spec->name);
}

static int run_steps(struct pf_worker *worker, const struct pf_group *group,
                     struct pf_record *record, bool canary,
                     struct pf_error *err) {
  const struct pf_plan *plan = worker->runner->plan;
  for (size_t s = 0; s < plan->n_steps; s++) {
    int result;
    if (worker->flow[s] == PF_FLOW_PASSED)
      pass_value(worker, s);
    if (worker->flow[s] != PF_FLOW_RUNS)
      continue;
    result = pf_run_step(worker, group, s, record, canary, err);
    count_group(&worker->runner->steps[s], result);
    if (result != PF_OK) {
      if (!canary)
        stop_if_hopeless(worker->runner, s);
      return result;
    }
    if (record->status == PF_STATUS_EXCLUDED) {
      struct pf_buf text = {0};
      pf_buf_printf(&text, "step \"%s\": a \"keep\" rule left it out",
                    plan->steps[s].spec->name);
      set_reason(record, PF_STATUS_EXCLUDED, &text);
      return PF_OK;
    }
  }
  return PF_OK;
}

static bool anything_to_do(const struct pf_worker *worker) {
  for (size_t s = 0; s < worker->runner->plan->n_steps; s++)
    if (worker->flow[s] == PF_FLOW_RUNS)
      return true;
  return false;
}

static void fail(struct pf_worker *worker, const struct pf_group *group,
                 struct pf_record *record, bool canary, struct pf_error *err,
                 int *fatal) {
  struct pf_buf text = {0};
  /* Not this group's fault alone: what the canary shows to be wrong with the
   * pipeline, and what every group needs. */
  if ((canary && err->code == PF_EINVAL) || err->code == PF_EMISSING)
    *fatal = (int)err->code;
  pf_plan_group_text(worker->runner->plan, group, &text);
  pf_error_at_group(err, pf_buf_text(&text));
  pf_buf_free(&text);
  pf_error_clear(&record->error);
  record->status = PF_STATUS_FAILED;
  pf_error_move(&record->error, err);
}

struct pf_record *pf_run_group(struct pf_worker *worker, uint64_t id,
                               bool canary, int *fatal) {
  struct pf_runner *runner = worker->runner;
  const struct pf_plan *plan = runner->plan;
  struct pf_record *record =
      pf_record_create(id, plan->n_steps * 2, runner->n_tables);
  struct pf_error err = PF_ERROR_INIT;
  struct pf_group group;
  *fatal = PF_OK;
  if (!record)
    return NULL;
  worker->record = record;
  pf_plan_group(plan, id, &group);
  pf_plan_flow(plan, &group, worker->flow);
  skip_incomplete(worker, &group, record);
  if (anything_to_do(worker)) {
    int result = pf_run_read(worker, &group, &err);
    if (result == PF_OK)
      result = run_steps(worker, &group, record, canary, &err);
    if (result != PF_OK)
      fail(worker, &group, record, canary, &err, fatal);
  }
  for (size_t s = 0; s <= plan->n_steps; s++)
    pf_value_clear(&worker->values[s]);
  worker->record = NULL;
  return record;
}
