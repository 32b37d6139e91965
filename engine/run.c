/* Running a plan: workers, the canary, the end. See plateflow/run.h. */
#include "plateflow/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bridge/os.h"
#include "engine/runner.h"
#include "engine/temporaries.h"

const char *pf_status_name(enum pf_status status) {
  static const char *const names[] = {
#define XX(name, word) word,
    PF_STATUS_MAP(XX)
#undef XX
  };
  return (size_t)status < PF_N_STATUSES ? names[status] : "?";
}

void pf_run_stop(struct pf_runner *runner, enum pf_code code, const char *fmt,
                 ...) {
  struct pf_buf text = {0};
  va_list args;
  va_start(args, fmt);
  pf_buf_vprintf(&text, fmt, args);
  va_end(args);
  (void)pthread_mutex_lock(&runner->lock);
  if (runner->stop_code == PF_OK) {
    runner->stop_code = code;
    runner->stop_reason = pf_buf_take(&text);
  }
  runner->phase = PF_PHASE_STOP;
  (void)pthread_cond_broadcast(&runner->changed);
  (void)pthread_mutex_unlock(&runner->lock);
  pf_buf_free(&text);
}

/* ------------------------------------------------------- which group next */

static bool was_canary_locked(const struct pf_runner *runner, uint64_t id) {
  for (size_t i = 0; i < runner->n_canaries; i++)
    if (runner->canaries[i] == id)
      return true;
  return false;
}

static bool next_selected_locked(struct pf_runner *runner, uint64_t *from) {
  struct pf_group group;
  for (; *from < runner->plan->n_all; ++*from) {
    if (was_canary_locked(runner, *from))
      continue;
    pf_plan_group(runner->plan, *from, &group);
    if (pf_plan_selects(runner->plan, &group))
      return true;
  }
  return false;
}

/* The first step that no canary has shown to work; n_steps: none. */
static size_t untried_locked(const struct pf_runner *runner) {
  size_t s = 0;
  while (s < runner->plan->n_steps &&
         (runner->tried[s] || !runner->plan->steps[s].n_groups))
    s++;
  return s;
}

/* A group that the step processes, from the middle of the plate on. */
static bool other_canary_locked(struct pf_worker *worker, size_t s,
                                uint64_t *id) {
  struct pf_runner *runner = worker->runner;
  const struct pf_plan *plan = runner->plan;
  struct pf_group group;
  for (uint64_t i = 0; i < plan->n_all; i++) {
    *id = (plan->n_all / 2 + i) % plan->n_all;
    pf_plan_group(plan, *id, &group);
    if (was_canary_locked(runner, *id) || !pf_plan_selects(plan, &group))
      continue;
    pf_plan_flow(plan, &group, worker->flow);
    if (worker->flow[s] == PF_FLOW_RUNS)
      return true;
  }
  return false;
}

/* The deepest group first, then the deepest that a step processes which was
 * not tried yet; where that one could not be read or failed, another. */
static bool next_canary_locked(struct pf_worker *worker, uint64_t *id) {
  struct pf_runner *runner = worker->runner;
  size_t max = sizeof(runner->canaries) / sizeof(runner->canaries[0]);
  size_t s = untried_locked(runner);
  if (runner->n_canaries == max || s == runner->plan->n_steps)
    return false;
  *id = runner->n_canaries ? runner->plan->steps[s].canary
                           : runner->plan->canary;
  if (was_canary_locked(runner, *id) && !other_canary_locked(worker, s, id))
    return false;
  runner->canaries[runner->n_canaries++] = *id;
  return true;
}

static bool stop_asked(const struct pf_runner *runner) {
  return runner->options->stop && atomic_load(runner->options->stop) > 0;
}

static bool take_locked(struct pf_worker *worker, uint64_t *id, bool *canary) {
  struct pf_runner *runner = worker->runner;
  while (runner->phase == PF_PHASE_CANARY && worker->index != 0 &&
         !stop_asked(runner))
    (void)pthread_cond_wait(&runner->changed, &runner->lock);
  if (runner->phase == PF_PHASE_STOP || stop_asked(runner))
    return false;
  *canary = runner->phase == PF_PHASE_CANARY;
  if (*canary && next_canary_locked(worker, id))
    return true;
  if (*canary) { /* all steps were tried, or nothing is left to try them on */
    runner->phase = PF_PHASE_RUN;
    *canary = false;
    (void)pthread_cond_broadcast(&runner->changed);
  }
  if (!next_selected_locked(runner, &runner->next))
    return false;
  *id = runner->next++;
  return true;
}

static bool take_group(struct pf_worker *worker, uint64_t *id, bool *canary) {
  bool taken;
  (void)pthread_mutex_lock(&worker->runner->lock);
  taken = take_locked(worker, id, canary);
  (void)pthread_mutex_unlock(&worker->runner->lock);
  return taken;
}

/* ------------------------------------------------------------ how it went */

static void tell_locked(struct pf_runner *runner, const struct pf_group *group,
                        const struct pf_record *record) {
  struct pf_told *list =
      realloc(runner->told, (runner->n_untold + 1) * sizeof(*list));
  struct pf_buf text = {0};
  if (!list)
    return;
  runner->told = list;
  pf_plan_group_text(runner->plan, group, &text);
  list = &list[runner->n_untold];
  list->group = pf_buf_take(&text);
  pf_buf_reset(&text);
  pf_record_reason(record, &text);
  list->reason = pf_buf_take(&text);
  list->status = record->status;
  runner->n_untold++;
  (void)pthread_cond_broadcast(&runner->changed);
}

static void copy_failure_locked(struct pf_runner *runner,
                                const struct pf_error *err) {
  struct pf_error *to;
  if (runner->n_failures ==
      sizeof(runner->failures) / sizeof(runner->failures[0]))
    return;
  to = &runner->failures[runner->n_failures++];
  (void)pf_error_set(to, err->code, "%s", err->message ? err->message : "");
  pf_error_at_step(to, err->step);
  pf_error_at_group(to, err->group);
  pf_error_at_file(to, err->file, err->line, err->column);
  pf_error_detail(to, err->detail);
}

/* Two canaries that fail in a step show that the step is wrong; one may be a
 * bad field. A read error says nothing of the steps. */
static void judge_canary_locked(struct pf_runner *runner,
                                const struct pf_record *record) {
  bool last = runner->n_canaries >= runner->plan->n_groups;
  for (size_t i = 0; i < record->n_tasks; i++)
    if (record->tasks[i].status == PF_STATUS_DONE ||
        record->tasks[i].status == PF_STATUS_EXCLUDED)
      runner->tried[record->tasks[i].step] = true;
  if (record->status == PF_STATUS_DONE)
    runner->n_failures_of_canary = 0;
  if (record->status != PF_STATUS_FAILED || !record->error.step)
    return;
  if (runner->n_failures_of_canary++ == 0 && !last)
    return;
  runner->stop_code = PF_EINVAL;
  runner->stop_reason = pf_error_format(&record->error);
  runner->phase = PF_PHASE_STOP;
  (void)pthread_cond_broadcast(&runner->changed);
}

static void account_locked(struct pf_runner *runner,
                           const struct pf_record *record, bool canary) {
  struct pf_group group;
  pf_plan_group(runner->plan, record->group, &group);
  runner->n_finished++;
  runner->n_status[record->status]++;
  if (record->status != PF_STATUS_DONE)
    tell_locked(runner, &group, record);
  if (record->status == PF_STATUS_FAILED)
    copy_failure_locked(runner, &record->error);
  if (canary && runner->stop_code == PF_OK)
    judge_canary_locked(runner, record);
}

static void finish_group(struct pf_worker *worker, struct pf_record *record,
                         bool canary, int fatal) {
  struct pf_runner *runner = worker->runner;
  if (fatal != PF_OK) {
    char *text = pf_error_format(&record->error);
    pf_run_stop(runner, (enum pf_code)fatal, "%s", text ? text : "");
    free(text);
  }
  (void)pthread_mutex_lock(&runner->lock);
  account_locked(runner, record, canary);
  (void)pthread_mutex_unlock(&runner->lock);
  if (record->status == PF_STATUS_FAILED && runner->options->stop_on_error)
    pf_run_stop(runner, PF_EFAILED, "a group failed (--on-error stop)");
  pf_journal_push(runner->journal, record);
  if (pf_journal_failed(runner->journal))
    pf_run_stop(runner, PF_EMISSING, "the journal cannot be written");
}

/* ---------------------------------------------------------------- workers */

static int worker_init(struct pf_worker *worker, struct pf_runner *runner,
                       int index, struct pf_error *err) {
  size_t n = runner->plan->n_steps, deepest = runner->plan->n_deepest;
  bool ok;
  worker->runner = runner;
  worker->index = index;
  worker->slot = pf_temporaries_open();
  worker->flow = calloc(n, sizeof(*worker->flow));
  worker->values = calloc(n + 1, sizeof(*worker->values));
  worker->scratch = calloc(deepest + 1, sizeof(*worker->scratch));
  ok = worker->flow && worker->values && worker->scratch;
  for (size_t s = 0; ok && s <= n; s++) {
    worker->values[s].positions = calloc(deepest + 1, sizeof(uint32_t));
    ok = worker->values[s].positions != NULL;
  }
  if (ok)
    worker->values[0].tags =
        calloc(deepest + 1, sizeof(*worker->values[0].tags));
  if (!ok || !worker->values[0].tags)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  if (worker->slot < 0)
    return pf_error_set(err, PF_EINVAL, "too many workers");
  return PF_OK;
}

static void worker_finish(struct pf_worker *worker) {
  if (!worker->runner)
    return;
  for (size_t s = 0; worker->values && s <= worker->runner->plan->n_steps;
       s++) {
    pf_value_clear(&worker->values[s]);
    free(worker->values[s].positions);
    free(worker->values[s].tags);
  }
  pf_temporaries_close(worker->slot);
  pf_buf_free(&worker->printed);
  free(worker->flow);
  free(worker->values);
  free(worker->scratch);
}

static void work(struct pf_worker *worker) {
  uint64_t id = 0;
  bool canary = false;
  while (take_group(worker, &id, &canary)) {
    int fatal = PF_OK;
    struct pf_record *record = pf_run_group(worker, id, canary, &fatal);
    if (!record) {
      pf_run_stop(worker->runner, PF_ENOMEM, "out of memory");
      return;
    }
    finish_group(worker, record, canary, fatal);
  }
}

static void *worker_main(void *context) {
  struct pf_worker *worker = context;
  struct pf_runner *runner = worker->runner;
  struct pf_error err = PF_ERROR_INIT;
  pf_os_name_thread("pf-worker");
  if (pf_step_thread_start(&err) == PF_OK) {
    work(worker);
    pf_step_thread_stop();
  } else {
    pf_run_stop(runner, PF_EBUG, "%s", err.message);
  }
  pf_error_clear(&err);
  (void)pthread_mutex_lock(&runner->lock);
  runner->n_workers_ended++;
  (void)pthread_cond_broadcast(&runner->changed);
  (void)pthread_mutex_unlock(&runner->lock);
  return NULL;
}

/* ----------------------------------------------------------------- events */

static void send_event(struct pf_runner *runner, struct pf_event *event) {
  if (!runner->options->event)
    return;
  event->n_groups = runner->plan->n_groups;
  event->n_images = atomic_load(&runner->n_images_read);
  event->n_bytes = atomic_load(&runner->n_bytes_read);
  event->seconds = pf_os_seconds() - runner->start;
  runner->options->event(runner->options->context, event);
}

static void send_told(struct pf_runner *runner, struct pf_told *told, size_t n,
                      uint64_t n_finished, uint64_t n_failed) {
  for (size_t i = 0; i < n; i++) {
    struct pf_event event = {.kind = PF_EVENT_GROUP,
                             .n_finished = n_finished,
                             .n_failed = n_failed,
                             .group = told[i].group ? told[i].group : "",
                             .status = told[i].status,
                             .reason = told[i].reason ? told[i].reason : ""};
    send_event(runner, &event);
    free(told[i].group);
    free(told[i].reason);
  }
  free(told);
}

/* Sleep up to a fifth of a second or until there is something to tell, and
 * tell it. False once all workers have ended. */
static bool watch(struct pf_runner *runner, size_t n_started) {
  struct pf_event tick = {.kind = PF_EVENT_TICK};
  struct timespec until;
  struct pf_told *told;
  size_t n_told;
  bool ended;
  (void)clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 200000000;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  (void)pthread_mutex_lock(&runner->lock);
  while (runner->n_workers_ended < n_started && !runner->n_untold)
    if (pthread_cond_timedwait(&runner->changed, &runner->lock, &until) ==
        ETIMEDOUT)
      break;
  if (stop_asked(runner)) /* those that wait for the canary look again */
    (void)pthread_cond_broadcast(&runner->changed);
  told = runner->told;
  n_told = runner->n_untold;
  runner->told = NULL;
  runner->n_untold = 0;
  tick.n_finished = runner->n_finished;
  tick.n_failed = runner->n_status[PF_STATUS_FAILED];
  ended = runner->n_workers_ended == n_started;
  (void)pthread_mutex_unlock(&runner->lock);
  send_told(runner, told, n_told, tick.n_finished, tick.n_failed);
  send_event(runner, &tick);
  return !ended;
}

static int run_workers(struct pf_runner *runner, struct pf_error *err) {
  size_t n = (size_t)runner->n_workers, n_started = 0;
  struct pf_worker *workers = calloc(n, sizeof(*workers));
  struct pf_event start = {.kind = PF_EVENT_START};
  int result = workers ? PF_OK : pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t i = 0; i < n && result == PF_OK; i++)
    result = worker_init(&workers[i], runner, (int)i, err);
  send_event(runner, &start);
  for (size_t i = 0; i < n && result == PF_OK; i++) {
    if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) !=
        0) {
      pf_run_stop(runner, PF_EMISSING, "cannot start worker %zu", i + 1);
      break;
    }
    n_started++;
  }
  while (n_started && watch(runner, n_started))
    continue;
  for (size_t i = 0; i < n_started; i++)
    (void)pthread_join(workers[i].thread, NULL);
  for (size_t i = 0; workers && i < n; i++)
    worker_finish(&workers[i]);
  free(workers);
  return result;
}

/* ------------------------------------------------------------ start, end */

static int start_step(struct pf_runner *runner, size_t s,
                      struct pf_error *err) {
  struct pf_step_run *run = &runner->steps[s];
  const struct pf_step_spec *spec = runner->plan->steps[s].spec;
  struct pf_group none = {0, 0, 0};
  struct pf_step_instance *instance = NULL;
  int result = PF_OK;
  run->plan = &runner->plan->steps[s];
  (void)pthread_mutex_init(&run->lock, NULL);
  (void)pthread_cond_init(&run->changed, NULL);
  run->schemas = calloc(spec->n_tables + 1, sizeof(struct pf_schema *));
  if (!run->schemas)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t t = 0; t < spec->n_tables && result == PF_OK; t++)
    result = pf_schema_create(&run->schemas[t], spec->tables[t], err);
  runner->n_tables += spec->n_tables;
  /* Made here, so that what cannot be made stops the run before it starts. */
  if (result == PF_OK && !run->plan->placeholders) {
    result = pf_run_bind(runner, s, &none, &instance, err);
    pf_error_at_step(err, spec->name);
  }
  if (result == PF_ESTEP) {
    err->code = PF_EINVAL;
    result = PF_EINVAL;
  }
  return result;
}

static void finish_step(struct pf_step_run *run) {
  if (!run->plan)
    return;
  pf_run_unbind(run);
  for (size_t t = 0; run->schemas && t < run->plan->spec->n_tables; t++)
    pf_schema_destroy(&run->schemas[t]);
  free(run->schemas);
  (void)pthread_mutex_destroy(&run->lock);
  (void)pthread_cond_destroy(&run->changed);
}

static int start_runner(struct pf_runner *runner, struct pf_error *err) {
  int result = PF_OK;
  runner->start = pf_os_seconds();
  runner->n_workers = runner->options->workers > 0 ? runner->options->workers
                                                   : pf_os_n_cores();
  if ((uint64_t)runner->n_workers > runner->plan->n_groups)
    runner->n_workers = (int)runner->plan->n_groups;
  runner->steps = calloc(runner->plan->n_steps, sizeof(*runner->steps));
  runner->tried = calloc(runner->plan->n_steps, sizeof(*runner->tried));
  if (!runner->steps || !runner->tried)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t s = 0; s < runner->plan->n_steps && result == PF_OK; s++)
    result = start_step(runner, s, err);
  return result;
}

static void finish_runner(struct pf_runner *runner) {
  for (size_t s = 0; runner->steps && s < runner->plan->n_steps; s++)
    finish_step(&runner->steps[s]);
  free(runner->steps);
  free(runner->tried);
  pf_key_set_free(&runner->extras);
  for (size_t i = 0; i < runner->n_failures; i++)
    pf_error_clear(&runner->failures[i]);
  free(runner->stop_reason);
  (void)pthread_mutex_destroy(&runner->lock);
  (void)pthread_cond_destroy(&runner->changed);
}

static int exit_status(const struct pf_runner *runner,
                       const struct pf_run_summary *sum) {
  uint64_t failed = sum->n_status[PF_STATUS_FAILED];
  uint64_t finished =
      sum->n_groups - failed - sum->n_status[PF_STATUS_NOT_RUN];
  if (runner->stop_code == PF_EINVAL || runner->stop_code == PF_EMISSING ||
      runner->stop_code == PF_EBUG)
    return pf_code_exit_status(runner->stop_code);
  if (runner->stop_code != PF_OK)
    return finished ? 4 : 5;
  if (sum->n_status[PF_STATUS_NOT_RUN])
    return runner->options->stop_status /* only a signal stops without words */
               ? runner->options->stop_status()
               : pf_code_exit_status(PF_EINTERRUPTED);
  if (!failed)
    return 0;
  if ((double)failed <=
      runner->options->tolerate / 100 * (double)sum->n_groups)
    return 0;
  return finished ? 4 : 5;
}

static void fill_summary(struct pf_runner *runner,
                         struct pf_run_summary *sum) {
  sum->n_groups = runner->plan->n_groups;
  memcpy(sum->n_status, runner->n_status, sizeof(sum->n_status));
  sum->n_status[PF_STATUS_NOT_RUN] = sum->n_groups - runner->n_finished;
  sum->n_images_read = atomic_load(&runner->n_images_read);
  sum->n_bytes_read = atomic_load(&runner->n_bytes_read);
  sum->n_images_written = atomic_load(&runner->n_images_written);
  sum->n_bytes_written = atomic_load(&runner->n_bytes_written);
  sum->seconds = pf_os_seconds() - runner->start;
  sum->cpu_seconds = pf_os_cpu_seconds();
  if (runner->first_task > 0)
    sum->seconds_to_first_task =
        runner->first_task - (runner->options->start_seconds > 0
                                  ? runner->options->start_seconds
                                  : runner->start);
  sum->exit_status = exit_status(runner, sum);
  sum->stopped_because = runner->stop_reason;
  runner->stop_reason = NULL;
  sum->n_failures = runner->n_failures;
  memcpy(sum->failures, runner->failures, sizeof(sum->failures));
  runner->n_failures = 0;
}

void pf_run_summary_clear(struct pf_run_summary *sum) {
  for (size_t i = 0; i < sum->n_failures; i++)
    pf_error_clear(&sum->failures[i]);
  free(sum->stopped_because);
  *sum = (struct pf_run_summary){0};
}

static int write_results(struct pf_runner *runner, struct pf_run_summary *sum,
                         struct pf_error *err) {
  int result = pf_journal_stop(runner->journal, err);
  if (result == PF_OK)
    result = pf_run_write_tables(runner, err);
  if (result == PF_OK)
    result = pf_run_write_images_csv(runner, err);
  if (result == PF_OK)
    result = pf_run_write_index(runner, err);
  fill_summary(runner, sum);
  if (result == PF_OK)
    result = pf_run_write_json(runner, sum, err);
  return result;
}

/* The next try must not be refused for the journal of a run that has done
 * nothing worth keeping. */
static void forget_run(struct pf_runner *runner) {
  struct pf_error ignored = PF_ERROR_INIT;
  char *path = pf_os_join(runner->out_dir, "run.sqlite");
  pf_journal_close(&runner->journal);
  if (path)
    (void)!pf_journal_remove_outputs(runner->out_dir, path, &ignored);
  pf_error_clear(&ignored);
  free(path);
}

static int open_out(struct pf_runner *runner, const char *out,
                    struct pf_error *err) {
  char *path = pf_os_join(out, "log.txt");
  int result = path ? pf_os_make_dirs(out, err)
                    : pf_error_set(err, PF_ENOMEM, "out of memory");
  if (result == PF_OK)
    result = pf_journal_open(&runner->journal, out, runner->plan,
                             runner->options->fresh, err);
  if (result == PF_OK)
    result = pf_log_attach(runner->log, path, err);
  if (result == PF_OK)
    result = pf_journal_add_file(runner->journal, "log.txt", err);
  free(path);
  return result;
}

static int read_image(struct pf_array **out, const char *path,
                      struct pf_error *err) {
  struct pf_tiff *tiff = NULL;
  uint32_t width = 0, height = 0;
  enum pf_dtype dtype = PF_DTYPE_NONE;
  int result = pf_tiff_open(&tiff, path, err);
  *out = NULL;
  if (result == PF_OK)
    result = pf_tiff_page(tiff, 0, &width, &height, &dtype, err);
  if (result == PF_OK) {
    const int64_t shape[2] = {height, width};
    result = pf_array_create(out, dtype, 2, shape, err);
  }
  if (result == PF_OK)
    result = pf_tiff_read_pixels(tiff, pf_array_data(*out),
                                 pf_array_n_bytes(*out), err);
  if (result != PF_OK)
    pf_array_unref(out);
  pf_tiff_close(&tiff);
  return result;
}

static int run(struct pf_run_summary *summary, const struct pf_plan *plan,
               const char *out, const struct pf_run_options *options,
               struct pf_error *err) {
  struct pf_runner runner = {.plan = plan,
                             .options = options,
                             .lock = PTHREAD_MUTEX_INITIALIZER,
                             .changed = PTHREAD_COND_INITIALIZER};
  struct pf_log *own_log = NULL;
  char *out_dir = NULL;
  int result;
  pf_step_set_image_reader(read_image);
  runner.log = options->log;
  result = runner.log ? PF_OK : pf_log_create(&own_log, err);
  if (!runner.log)
    runner.log = own_log;
  out_dir = pf_os_absolute(out);
  runner.out_dir = out_dir;
  if (result == PF_OK && !out_dir)
    result = pf_error_set(err, PF_ENOMEM, "out of memory");
  if (result == PF_OK)
    result = start_runner(&runner, err);
  if (result == PF_OK)
    result = open_out(&runner, out_dir, err);
  if (result == PF_OK)
    result = run_workers(&runner, err);
  if (result == PF_OK)
    result = write_results(&runner, summary, err);
  /* Nothing but a canary gives 2. */
  if (runner.journal &&
      (result == PF_OK ? summary->exit_status == 2 : !runner.n_finished))
    forget_run(&runner);
  pf_journal_close(&runner.journal);
  finish_runner(&runner);
  pf_log_destroy(&own_log);
  free(out_dir);
  return result;
}

int pf_run(struct pf_run_summary *summary, const struct pf_plan *plan,
           const char *out, const struct pf_run_options *options,
           struct pf_error *err) {
  struct pf_os_numbers *numbers = pf_os_begin_numbers();
  struct pf_error own = PF_ERROR_INIT; /* `err` may be NULL */
  int result;
  *summary = (struct pf_run_summary){0};
  result = numbers ? run(summary, plan, out, options, &own)
                   : pf_error_set(&own, PF_ENOMEM, "out of memory");
  pf_os_end_numbers(&numbers);
  pf_error_move(err, &own);
  return result;
}
