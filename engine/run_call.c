/* One step on one group: arguments, the call, what it gave. */
#include "engine/runner.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/os.h"
#include "engine/device.h"
#include "engine/slicewise.h"

/* What a call is made from; cleaned up by clear_job(). */
struct job {
  struct pf_worker *worker;
  const struct pf_plan_step *step;
  size_t s;
  struct pf_value *input; /* its stack is gone once it is handed over */
  uint32_t *positions;    /* planes that the step takes */
  size_t n;
  struct pf_array *stack; /* that the step gets */
  size_t n_levels; /* of that, on the canary, where its cast is judged */
  struct pf_with_array *with;
  struct pf_group_info info;
  struct pf_result result;
  enum pf_move moved_in, moved_out; /* between host and device */
};

static void clear_job(struct job *job) {
  pf_array_unref(&job->stack);
  for (size_t k = 0; job->with && k < job->step->n_with; k++)
    free((void *)(uintptr_t)job->with[k].channels);
  free(job->with);
  free(job->positions);
  pf_run_info_free(&job->info);
  pf_result_clear(&job->result);
}

/* A stack of the chosen planes alone; the whole stack where all are. */
static int choose_stack(struct job *job, struct pf_error *err) {
  struct pf_value *in = job->input;
  struct pf_array **planes = NULL;
  int result = PF_OK;
  size_t k = 0;
  if (job->n == in->n) {
    job->stack = pf_array_ref(in->stack);
    return PF_OK;
  }
  planes = calloc(job->n, sizeof(struct pf_array *));
  if (!planes)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t i = 0; i < job->n && result == PF_OK; i++) {
    while (in->positions[k] != job->positions[i])
      k++;
    result = pf_array_plane(&planes[i], in->stack, (int64_t)k, err);
  }
  if (result == PF_OK)
    result = pf_stack_slices(&job->stack, planes, job->n, PF_DTYPE_NONE, err);
  for (size_t i = 0; i < job->n; i++)
    pf_array_unref(&planes[i]);
  free(planes);
  return result;
}

static int cast_stack(struct job *job, struct pf_error *err) {
  enum pf_dtype as = job->step->spec->input_dtype;
  struct pf_array *cast = NULL;
  int result;
  if (as == PF_DTYPE_NONE || as == pf_array_dtype(job->stack))
    return PF_OK;
  result = pf_cast(&cast, job->stack, as, PF_CAST_PRESERVE, NULL, err);
  if (result != PF_OK)
    return result;
  pf_array_unref(&job->stack);
  job->stack = cast;
  return PF_OK;
}

/* A Python function owns its stack alone: where another consumer waits, or the
 * memory is somebody's still, it gets a copy. C steps say what they write, and
 * some frameworks never do. */
static int own_stack(struct job *job, struct pf_error *err) {
  struct pf_array *copy = NULL;
  int result;
  if (job->input->n_consumers <= 1 && !pf_plan_keeps_rest(job->step))
    pf_array_unref(&job->input->stack); /* handed over, or cast already */
  if (!job->step->owns_stack || pf_array_is_writable(job->stack))
    return PF_OK;
  result = pf_array_copy(&copy, job->stack, err);
  if (result != PF_OK)
    return result;
  pf_array_unref(&job->stack);
  job->stack = copy;
  return PF_OK;
}

/* The whole stack may stay on the step's device; pieces and casts are made on
 * the host. Whoever takes the input after this step finds it there too. */
static int bring_input(struct job *job, struct pf_error *err) {
  struct pf_array **stack = &job->input->stack;
  const enum pf_dtype as = job->step->spec->input_dtype;
  const struct pf_device at = pf_array_device(*stack);
  const bool is_whole = job->n == job->input->n &&
                        (as == PF_DTYPE_NONE || as == pf_array_dtype(*stack));
  if (is_whole && at.type == job->step->device.type &&
      at.index == job->step->device.index)
    return PF_OK;
  return pf_run_to_host(stack, &job->moved_out, err);
}

static int prepare_stack(struct job *job, struct pf_error *err) {
  const struct pf_plan *plan = job->worker->runner->plan;
  int result;
  job->positions = calloc(job->input->n + 1, sizeof(*job->positions));
  if (!job->positions)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  job->n = pf_plan_choose(plan, job->step, job->input->positions,
                          job->input->n, job->positions);
  result = bring_input(job, err);
  if (result == PF_OK)
    result = choose_stack(job, err);
  if (result == PF_OK)
    result = cast_stack(job, err);
  return result;
}

/* The channel of each plane; NULL where the plate has none. */
static const char **channels_of(const struct pf_plan *plan,
                                const struct pf_value *value) {
  const char **channels = calloc(value->n + 1, sizeof(*channels));
  for (size_t i = 0; channels && i < value->n; i++) {
    const struct pf_slice *slice = pf_plan_slice(plan, value->positions[i]);
    uint32_t rank = slice->value[PF_CHANNEL];
    if (rank != PF_NO_VALUE)
      channels[i] = pf_plate_value(plan->plate, PF_CHANNEL, rank);
  }
  return channels;
}

static int prepare_with(struct job *job, struct pf_error *err) {
  const struct pf_plan *plan = job->worker->runner->plan;
  size_t n = job->step->n_with;
  if (!n)
    return PF_OK;
  job->with = calloc(n, sizeof(*job->with));
  if (!job->with)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t k = 0; k < n; k++) {
    struct pf_value *value = &job->worker->values[job->step->with[k].from + 1];
    enum pf_move ignored;
    if (!value->stack)
      return pf_error_set(err, PF_EBUG, "\"%s\" has no result to take",
                          job->step->with[k].name);
    if (pf_run_to_host(&value->stack, &ignored, err) != PF_OK)
      return err ? (int)err->code : PF_EBUG;
    job->with[k] = (struct pf_with_array){
        job->step->with[k].name, value->stack, channels_of(plan, value)};
    if (!job->with[k].channels)
      return pf_error_set(err, PF_ENOMEM, "out of memory");
  }
  return PF_OK;
}

/* ------------------------------------------------------------ the call */

static void begin_call(struct pf_step_run *run) {
  int limit = run->plan->concurrency;
  if (!limit)
    return;
  (void)pthread_mutex_lock(&run->lock);
  while (run->n_calls >= limit)
    (void)pthread_cond_wait(&run->changed, &run->lock);
  run->n_calls++;
  (void)pthread_mutex_unlock(&run->lock);
}

static void end_call(struct pf_step_run *run, const struct pf_result *result,
                     double seconds) {
  (void)pthread_mutex_lock(&run->lock);
  if (run->plan->concurrency) {
    run->n_calls--;
    (void)pthread_cond_signal(&run->changed);
  }
  run->seconds += seconds;
  if (result->copied) {
    run->n_copied++;
    run->copied_why = result->copied_why;
  }
  (void)pthread_mutex_unlock(&run->lock);
}

static void note_first_task(struct pf_runner *runner, double now) {
  (void)pthread_mutex_lock(&runner->lock);
  if (runner->first_task == 0)
    runner->first_task = now;
  (void)pthread_mutex_unlock(&runner->lock);
}

static int move_stack(struct job *job, struct pf_error *err) {
  if (!pf_plan_on_device(job->step))
    return PF_OK;
  return pf_run_to_device(&job->stack, job->step->device, &job->moved_in, err);
}

/* Before the call: the step may write into its stack. */
static void count_levels(struct job *job, enum pf_cast_mode mode) {
  if (mode == PF_CAST_PRESERVE && job->step->result == PF_RESULT_IMAGE &&
      job->step->dtype_type == PF_DTYPE_NONE)
    job->n_levels = pf_run_count_levels(job->stack);
}

static int call_step(struct job *job, struct pf_step_instance *instance,
                     struct pf_task_row *task, bool canary,
                     struct pf_error *err) {
  struct pf_runner *runner = job->worker->runner;
  struct pf_step_run *run = &runner->steps[job->s];
  struct pf_call call = {.stack = job->stack,
                         .n_with = job->step->n_with,
                         .with = job->with,
                         .info = &job->info,
                         .may_write = pf_array_is_writable(job->stack),
                         .result = job->step->result,
                         .n_tables = job->step->spec->n_tables,
                         .input_type = job->step->input_type,
                         .output_type = job->step->output_type};
  double start, seconds;
  int result;
  begin_call(run);
  start = pf_os_seconds();
  if (canary)
    note_first_task(runner, start);
  if (job->step->slice_by_slice)
    result = pf_call_slicewise(runner->plan, job->step, instance, &call,
                               job->positions, &job->result, err);
  else
    result = pf_step_call(instance, &call, &job->result, err);
  seconds = pf_os_seconds() - start;
  end_call(run, &job->result, seconds);
  task->seconds = (float)seconds;
  task->note = job->result.copied_why;
  return result;
}

/* ---------------------------------------------------------- the result */

static int check_rest(const struct pf_array *stack,
                      const struct pf_array *rest, struct pf_error *err) {
  const int64_t *a = pf_array_shape(stack), *b = pf_array_shape(rest);
  if (pf_array_dtype(stack) == pf_array_dtype(rest) && a[1] == b[1] &&
      a[2] == b[2])
    return PF_OK;
  return pf_error_set(err, PF_ESTEP,
                      "\"where\" leaves out planes of %lldx%lld %s, which "
                      "cannot stay in one stack with a result of %lldx%lld "
                      "%s: give the result their type with \"dtype\", or "
                      "take all planes",
                      (long long)b[2], (long long)b[1],
                      pf_dtype_name(pf_array_dtype(rest)), (long long)a[2],
                      (long long)a[1], pf_dtype_name(pf_array_dtype(stack)));
}

/* Planes that the slice filters left out stay, in their places. */
static int merge_rest(struct job *job, struct pf_array **stack,
                      struct pf_error *err) {
  struct pf_value *in = job->input;
  struct pf_array **planes = calloc(in->n, sizeof(struct pf_array *));
  struct pf_array *merged = NULL;
  int result = planes ? check_rest(*stack, in->stack, err)
                      : pf_error_set(err, PF_ENOMEM, "out of memory");
  size_t k = 0;
  for (size_t i = 0; i < in->n && result == PF_OK; i++) {
    bool taken = k < job->n && job->positions[k] == in->positions[i];
    result = pf_array_plane(&planes[i], taken ? *stack : in->stack,
                            taken ? (int64_t)k : (int64_t)i, err);
    k += taken;
  }
  if (result == PF_OK)
    result = pf_stack_slices(&merged, planes, in->n, PF_DTYPE_NONE, err);
  for (size_t i = 0; planes && i < in->n; i++)
    pf_array_unref(&planes[i]);
  free(planes);
  if (result == PF_OK) {
    pf_array_unref(stack);
    *stack = merged;
  }
  return result;
}

static void set_value(struct job *job, struct pf_array *stack, bool merged) {
  struct pf_worker *worker = job->worker;
  struct pf_value *value = &worker->values[job->s + 1];
  const struct pf_value *in = job->input;
  value->stack = stack;
  value->dtype = pf_array_dtype(stack);
  if (merged) {
    memcpy(value->positions, in->positions, in->n * sizeof(uint32_t));
    value->n = in->n;
  } else {
    value->n = pf_plan_yield(worker->runner->plan, job->step, job->positions,
                             job->n, value->positions);
  }
}

static size_t expected_depth(struct job *job) {
  return pf_plan_yield(job->worker->runner->plan, job->step, job->positions,
                       job->n, job->worker->scratch);
}

/* Whether nothing here has to look at the result's elements. */
static bool may_stay(const struct job *job, enum pf_cast_mode mode,
                     bool merge) {
  const enum pf_dtype as = job->step->dtype_type == PF_DTYPE_NONE
                               ? job->input->dtype
                               : job->step->dtype_type;
  return !merge && job->step->result == PF_RESULT_IMAGE &&
         pf_plan_stays(job->worker->runner->plan, job->s) &&
         (mode == PF_CAST_NATIVE || mode == PF_CAST_PRESERVE) &&
         pf_array_dtype(job->result.stack) == as;
}

static int bring_result(struct job *job, struct pf_error *err) {
  enum pf_move move;
  int result = pf_run_to_host(&job->result.stack, &move, err);
  if (move != PF_MOVE_NONE)
    job->moved_out = move;
  return result;
}

static int take_stack(struct job *job, enum pf_cast_mode mode, bool canary,
                      struct pf_error *err) {
  struct pf_array *stack = job->result.stack;
  const struct pf_expect expect = {.input = job->stack,
                                   .dtype = job->input->dtype,
                                   .mode = mode,
                                   .n_planes = expected_depth(job),
                                   .n_levels = job->n_levels,
                                   .canary = canary};
  bool merge = pf_plan_keeps_rest(job->step) && job->n < job->input->n;
  int result;
  if (!stack)
    return pf_error_set(err, PF_ESTEP,
                        "the step returned no image, but its result is "
                        "\"%s\"; a step of tables alone says \"result\": "
                        "\"none\"",
                        pf_result_kind_name(job->step->result));
  if (!may_stay(job, mode, merge) &&
      (result = bring_result(job, err)) != PF_OK)
    return result;
  stack = job->result.stack;
  job->result.stack = NULL;
  result = pf_run_check(job->worker, job->s, &stack, &expect, err);
  if (result == PF_OK && merge)
    result = merge_rest(job, &stack, err);
  if (result != PF_OK) {
    pf_array_unref(&stack);
    return result;
  }
  set_value(job, stack, merge);
  return PF_OK;
}

/* Drop what nobody after this step will take. */
static void release_inputs(struct job *job) {
  struct pf_value *in = job->input;
  if (--in->n_consumers <= 0)
    pf_array_unref(&in->stack);
  for (size_t k = 0; k < job->step->n_with; k++) {
    struct pf_value *value = &job->worker->values[job->step->with[k].from + 1];
    if (--value->n_consumers <= 0)
      pf_array_unref(&value->stack);
  }
}

static int run_job(struct job *job, const struct pf_group *group,
                   struct pf_record *record, bool canary, bool *keep,
                   struct pf_error *err) {
  struct pf_runner *runner = job->worker->runner;
  struct pf_task_row *task = &record->tasks[record->n_tasks - 1];
  struct pf_step_instance *instance = NULL;
  enum pf_cast_mode mode = job->step->dtype;
  int result = pf_run_bind(runner, job->s, group, &instance, err);
  if (result == PF_OK && mode == PF_N_CAST_MODES)
    mode = pf_step_instance_dtype(instance);
  if (result == PF_OK)
    result = prepare_stack(job, err);
  if (result == PF_OK)
    result = prepare_with(job, err);
  if (result == PF_OK)
    result = own_stack(job, err);
  if (result == PF_OK)
    result = pf_run_info(job->worker, group, job->s, job->positions, job->n,
                         &job->info, err);
  if (result == PF_OK && canary)
    count_levels(job, mode);
  if (result == PF_OK)
    result = move_stack(job, err);
  if (result == PF_OK)
    result = call_step(job, instance, task, canary, err);
  if (result == PF_OK && job->step->result != PF_RESULT_NONE)
    result = take_stack(job, mode, canary, err);
  if (!task->note)
    task->note = pf_run_move_note(job->moved_in, job->moved_out);
  if (result == PF_OK)
    result =
        pf_run_tables(job->worker, job->s, &job->result, record, keep, err);
  return result;
}

/* What the step printed before it failed goes behind the traceback. */
static void quote_printed(struct pf_worker *worker, struct pf_error *err) {
  struct pf_buf text = {0};
  if (!worker->printed.len || !pf_buf_ok(&worker->printed))
    return;
  pf_buf_printf(&text, "%s%sit printed:\n%s", err->detail ? err->detail : "",
                err->detail ? "\n" : "", worker->printed.data);
  while (text.len && text.data[text.len - 1] == '\n')
    text.data[--text.len] = '\0';
  if (pf_buf_ok(&text)) {
    free(err->detail);
    err->detail = pf_buf_take(&text);
  }
  pf_buf_free(&text);
}

int pf_run_step(struct pf_worker *worker, const struct pf_group *group,
                size_t s, struct pf_record *record, bool canary,
                struct pf_error *err) {
  const struct pf_plan_step *step = &worker->runner->plan->steps[s];
  struct job job = {.worker = worker, .step = step, .s = s};
  struct pf_task_row *task = &record->tasks[record->n_tasks++];
  bool keep = true;
  int result;
  job.input = &worker->values[step->input + 1];
  worker->values[s + 1].n_consumers = pf_run_consumers(worker, s);
  *task = (struct pf_task_row){(uint32_t)s, PF_STATUS_DONE, 0, NULL};
  pf_buf_reset(&worker->printed);
  result = run_job(&job, group, record, canary, &keep, err);
  release_inputs(&job);
  clear_job(&job);
  if (result == PF_OK && keep && step->saved)
    result = pf_run_write(worker, s, record, err);
  if (result != PF_OK) {
    task->status = PF_STATUS_FAILED;
    pf_error_at_step(err, step->spec->name);
    quote_printed(worker, err);
    return result;
  }
  if (!keep) {
    task->status = PF_STATUS_EXCLUDED;
    record->status = PF_STATUS_EXCLUDED;
  }
  return PF_OK;
}
