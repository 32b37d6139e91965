/* OUT/run.json: what ran, with which versions, how long, and what to know. */
#include "engine/runner.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/json.h"
#include "bridge/os.h"
#include "steps/provider.h"

static void key_text(struct pf_buf *out, const char *key, const char *text) {
  pf_buf_json(out, key);
  pf_buf_str(out, ": ");
  if (text)
    pf_buf_json(out, text);
  else
    pf_buf_str(out, "null");
}

static void versions(struct pf_runner *runner, struct pf_buf *out) {
  const struct pf_python_ops *ops = pf_python_ops();
  char *python = NULL;
  pf_buf_str(out, "  \"versions\": {");
  key_text(out, "plateflow", PF_VERSION);
  pf_buf_printf(out, ", \"sqlite\": \"%s\", \"libtiff\": \"",
                sqlite3_libversion());
  pf_tiff_version(out);
  pf_buf_str(out, "\", \"python\": ");
  if (ops && ops->versions && pf_pipeline_needs_python(runner->plan->pipeline))
    (void)!ops->versions(&python, NULL);
  pf_buf_str(out, python ? python : "null");
  pf_buf_str(out, "},\n");
  free(python);
}

static void counts(const struct pf_run_summary *sum, struct pf_buf *out) {
  pf_buf_printf(out, "  \"groups\": {\"all\": %llu",
                (unsigned long long)sum->n_groups);
  for (int i = 0; i < PF_N_STATUSES; i++) {
    pf_buf_str(out, ", ");
    pf_buf_json(out, pf_status_name((enum pf_status)i));
    pf_buf_printf(out, ": %llu", (unsigned long long)sum->n_status[i]);
  }
  pf_buf_str(out, "},\n");
  pf_buf_printf(out,
                "  \"images\": {\"read\": %llu, \"written\": %llu},\n"
                "  \"bytes\": {\"read\": %llu, \"written\": %llu},\n",
                (unsigned long long)sum->n_images_read,
                (unsigned long long)sum->n_images_written,
                (unsigned long long)sum->n_bytes_read,
                (unsigned long long)sum->n_bytes_written);
}

/* Seconds of work by stage, added over the workers. */
static void seconds(struct pf_runner *runner, const struct pf_run_summary *sum,
                    struct pf_buf *out) {
  double in_steps = 0;
  for (size_t s = 0; s < runner->plan->n_steps; s++)
    in_steps += runner->steps[s].seconds;
  pf_buf_printf(
      out,
      "  \"seconds\": {\"run\": %.6f, \"cpu\": %.6f, \"to_first_task\": "
      "%.6f, \"read\": %.6f, \"steps\": %.6f, \"write\": %.6f, \"journal\": "
      "%.6f},\n",
      sum->seconds, sum->cpu_seconds, sum->seconds_to_first_task,
      1e-9 * (double)atomic_load(&runner->ns_read), in_steps,
      1e-9 * (double)atomic_load(&runner->ns_write),
      pf_journal_seconds(runner->journal));
}

static void step(struct pf_step_run *run, struct pf_buf *out) {
  pf_buf_str(out, "    {");
  key_text(out, "name", run->plan->spec->name);
  pf_buf_str(out, ", ");
  key_text(out, "function", run->plan->spec->function);
  pf_buf_printf(out,
                ", \"groups\": %llu, \"done\": %llu, \"failed\": %llu, "
                "\"seconds\": %.6f, \"copied\": %llu, \"clipped\": %llu, "
                "\"rounded\": %llu, \"nan\": %llu}",
                (unsigned long long)run->plan->n_groups,
                (unsigned long long)run->n_done,
                (unsigned long long)run->n_failed, run->seconds,
                (unsigned long long)run->n_copied,
                (unsigned long long)run->cast.n_clipped,
                (unsigned long long)run->cast.n_rounded,
                (unsigned long long)run->cast.n_nan);
}

static void steps(struct pf_runner *runner, struct pf_buf *out) {
  pf_buf_str(out, "  \"steps\": [\n");
  for (size_t s = 0; s < runner->plan->n_steps; s++) {
    step(&runner->steps[s], out);
    pf_buf_str(out, s + 1 < runner->plan->n_steps ? ",\n" : "\n");
  }
  pf_buf_str(out, "  ],\n");
}

static void warning(struct pf_buf *out, size_t *n, const char *text) {
  pf_buf_str(out, (*n)++ ? ",\n    " : "\n    ");
  pf_buf_json(out, text);
}

static void step_warnings(const struct pf_step_run *run, struct pf_buf *out,
                          size_t *n) {
  const char *name = run->plan->spec->name;
  struct pf_buf text = {0};
  if (run->n_copied) {
    pf_buf_printf(&text, "step \"%s\": %llu results were copied: %s", name,
                  (unsigned long long)run->n_copied,
                  run->copied_why ? run->copied_why : "");
    warning(out, n, pf_buf_text(&text));
  }
  if (run->cast.n_clipped) {
    pf_buf_reset(&text);
    pf_buf_printf(&text,
                  "step \"%s\": %llu values were beyond the range of the "
                  "output's type and were clipped",
                  name, (unsigned long long)run->cast.n_clipped);
    warning(out, n, pf_buf_text(&text));
  }
  if (run->cast.n_nan) {
    pf_buf_reset(&text);
    pf_buf_printf(&text, "step \"%s\": %llu NaNs were written as 0", name,
                  (unsigned long long)run->cast.n_nan);
    warning(out, n, pf_buf_text(&text));
  }
  pf_buf_free(&text);
}

static void failures(const struct pf_run_summary *sum, struct pf_buf *out) {
  pf_buf_str(out, "  \"failures\": [");
  for (size_t i = 0; i < sum->n_failures; i++) {
    const struct pf_error *err = &sum->failures[i];
    pf_buf_str(out, i ? ",\n    {" : "\n    {");
    key_text(out, "step", err->step);
    pf_buf_str(out, ", ");
    key_text(out, "group", err->group);
    pf_buf_str(out, ", ");
    key_text(out, "file", err->file);
    pf_buf_str(out, ", ");
    key_text(out, "message", err->message);
    pf_buf_str(out, ", ");
    key_text(out, "detail", err->detail);
    pf_buf_char(out, '}');
  }
  pf_buf_str(out, sum->n_failures ? "\n  ],\n" : "],\n");
}

/* As libraries saw it when they were loaded. */
static int applied_threads(const struct pf_pipeline *pipeline) {
  const char *given = getenv("OMP_NUM_THREADS");
  long threads = pf_pipeline_threads(pipeline);
  if (threads == 0 && given)
    threads = strtol(given, NULL, 10);
  return threads > 0 && threads <= INT_MAX ? (int)threads : 1;
}

static void about(struct pf_runner *runner, const struct pf_run_summary *sum,
                  struct pf_buf *out) {
  const struct pf_plan *plan = runner->plan;
  pf_buf_printf(out, "{\n  \"plateflow\": 1,\n  \"exit_status\": %d,\n  ",
                sum->exit_status);
  key_text(out, "stopped_because", sum->stopped_because);
  pf_buf_str(out, ",\n  \"plate\": {");
  key_text(out, "path", pf_plate_root(plan->plate));
  pf_buf_str(out, ", ");
  key_text(out, "layout", pf_plate_layout(plan->plate));
  pf_buf_printf(out, ", \"slices\": %zu, \"left_out\": %zu},\n",
                pf_plate_n_slices(plan->plate),
                pf_plate_n_left_out(plan->plate));
  pf_buf_printf(out, "  \"workers\": %d,\n  \"threads\": %d,\n",
                runner->n_workers, applied_threads(plan->pipeline));
}

int pf_run_write_json(struct pf_runner *runner,
                      const struct pf_run_summary *summary,
                      struct pf_error *err) {
  const struct pf_pipeline *pipeline = runner->plan->pipeline;
  struct pf_buf out = {0};
  char *path = pf_os_join(runner->out_dir, "run.json");
  size_t n = 0;
  int result = PF_OK;
  about(runner, summary, &out);
  versions(runner, &out);
  counts(summary, &out);
  seconds(runner, summary, &out);
  steps(runner, &out);
  pf_buf_str(&out, "  \"warnings\": [");
  for (size_t s = 0; s < runner->plan->n_steps; s++)
    step_warnings(&runner->steps[s], &out, &n);
  pf_buf_str(&out, n ? "\n  ],\n" : "],\n");
  failures(summary, &out);
  pf_buf_str(&out, "  \"pipeline\": ");
  pf_json_write(pipeline->doc, pf_json_root(pipeline->doc), &out);
  pf_buf_str(&out, "\n}\n");
  if (!path || !pf_buf_ok(&out))
    result = pf_error_set(err, PF_ENOMEM, "out of memory");
  if (result == PF_OK)
    result = pf_os_write_file(path, out.data, out.len, err);
  if (result == PF_OK)
    result = pf_journal_add_file(runner->journal, "run.json", err);
  pf_buf_free(&out);
  free(path);
  return result;
}
