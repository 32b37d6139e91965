/* plateflow run */
#include "engine/cli/app.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bridge/os.h"
#include "engine/cli/capture.h"
#include "engine/cli/progress.h"
#include "engine/cli/signals.h"
#include "engine/plate/tiff.h"
#include "engine/temporaries.h"
#include "steps/provider.h"
#include "steps/python.h"

struct run_context {
  struct app *app;
  struct progress progress;
  pf_stop_flag stop; /* where adopted: raised by Ctrl-C in Python */
};

/* A second signal: nothing is finished, nothing half is left. */
static void end_now(struct app *app) {
  (void)fprintf(app->err, "\nplateflow: stopped at once; what was being "
                          "written was removed\n");
  (void)fflush(app->err);
  (void)fflush(app->out);
  pf_temporaries_sweep();
  _exit(signals_status());
}

static void on_event(void *context, const struct pf_event *event) {
  struct run_context *run = context;
  const struct pf_python_ops *python = pf_python_ops();
  progress_event(&run->progress, event);
  if (run->app->adopted && python && python->interrupted())
    atomic_store(&run->stop, 1);
  if (!run->app->adopted && atomic_load(signals_begin_run()) > 1)
    end_now(run->app);
}

static int choose(struct app *app, struct pf_run_options *options,
                  struct progress *progress, struct pf_error *err) {
  const struct options *o = &app->options;
  int mode = progress_mode_find(o->progress,
                                !app->adopted && isatty(fileno(app->err)));
  if (mode < 0)
    return pf_error_set(err, PF_EINVAL,
                        "--progress: expected auto, plain, json or none, got "
                        "\"%s\"",
                        o->progress);
  progress->mode = app->adopted ? PROGRESS_NONE : (enum progress_mode)mode;
  options->compression = -1;
  if (o->compression) {
    enum pf_compression c = pf_compression_find(o->compression);
    if (c == PF_N_COMPRESSIONS)
      return pf_error_set(err, PF_EINVAL,
                          "--compression: expected none, lzw, deflate, zstd "
                          "or packbits, got \"%s\"",
                          o->compression);
    options->compression = (int)c;
  }
  if (o->on_error && strcmp(o->on_error, "continue") != 0 &&
      strcmp(o->on_error, "stop") != 0)
    return pf_error_set(err, PF_EINVAL,
                        "--on-error: expected continue or stop, got \"%s\"",
                        o->on_error);
  if (o->format && strcmp(o->format, "tiff") != 0)
    return pf_error_set(err, PF_EINVAL, "--format %s is not supported yet",
                        o->format);
  if (o->tables && strcmp(o->tables, "csv") != 0)
    return pf_error_set(err, PF_EINVAL, "--tables %s is not supported yet",
                        o->tables);
  options->stop_on_error = o->on_error && strcmp(o->on_error, "stop") == 0;
  options->workers = (int)o->workers;
  options->fresh = o->fresh;
  options->tolerate = o->tolerate;
  return PF_OK;
}

/* The real path of `path`, or of its nearest parent that exists. */
static char *real_parent(const char *path) {
  char *folder = strdup(path), *real = NULL;
  while (folder && !(real = realpath(folder, NULL))) {
    char *parent = pf_os_dirname(folder);
    free(folder);
    folder = parent;
  }
  free(folder);
  return real;
}

/* Whether `path` is `folder` or below it; both are real paths. */
static bool holds(const char *folder, const char *path) {
  size_t n = strlen(folder);
  return strncmp(path, folder, n) == 0 &&
         (path[n] == '/' || path[n] == '\0' || folder[n - 1] == '/');
}

/* Whether a run into `out` writes into the plate: OUT is inside of it, or the
 * plate is, perhaps through a link, in one of the folders that OUT gets. */
static bool writes_into(const char *out, const char *plate) {
  static const char *const folders[] = {"images", "steps", "tables", "files"};
  char *real = real_parent(out);
  bool found = real && holds(plate, real);
  free(real);
  for (size_t i = 0; i < sizeof(folders) / sizeof(*folders) && !found; i++) {
    char *path = pf_os_join(out, folders[i]);
    real = path ? realpath(path, NULL) : NULL;
    found = real && (holds(plate, real) || holds(real, plate));
    free(real);
    free(path);
  }
  return found;
}

/* Whether a ".." follows a folder that is not there yet: made on the way, it
 * could lead into the plate. */
static bool leads_back(const char *out) {
  for (const char *p = strstr(out, ".."); p; p = strstr(p + 2, "..")) {
    bool whole = p > out && p[-1] == '/' && (p[2] == '/' || p[2] == '\0');
    char *before = whole ? strndup(out, (size_t)(p - out)) : NULL;
    bool missing = before && access(before, F_OK) != 0;
    free(before);
    if (missing)
      return true;
  }
  return false;
}

/* The plate's folder is never written to. */
static int check_out(struct app *app, struct pf_error *err) {
  const char *out = app->options.out;
  char *plate;
  int result = PF_OK;
  if (!out || !*out)
    return pf_error_set(err, PF_EINVAL,
                        "-o OUT is missing: the folder for the results");
  if (pf_os_is_file(out))
    return pf_error_set(err, PF_EINVAL, "%s is a file, not a folder", out);
  if (leads_back(out))
    return pf_error_set(err, PF_EINVAL,
                        "%s goes back out of a folder that is not there", out);
  plate = realpath(app->options.arguments[1], NULL);
  if (plate && writes_into(out, plate))
    result = pf_error_set(err, PF_EINVAL,
                          "a run into OUT (%s) would write into the plate's "
                          "folder, which is never written to: choose another",
                          out);
  free(plate);
  return result;
}

static bool same_text(const char *a, const char *b) {
  return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_cause(const struct pf_error *a, const struct pf_error *b) {
  return same_text(a->step, b->step) && same_text(a->message, b->message);
}

/* One failure per cause, with its first group. */
static void print_cause(struct app *app, const struct pf_run_summary *sum,
                        size_t i) {
  const struct pf_error *err = &sum->failures[i];
  char *text = pf_error_format(err);
  size_t n = 0;
  for (size_t k = i + 1; k < sum->n_failures; k++)
    n += same_cause(err, &sum->failures[k]);
  (void)fprintf(app->out, "  %s", text ? text : "out of memory");
  if (n)
    (void)fprintf(app->out, " (and %zu more groups likewise)", n);
  (void)fprintf(app->out, "\n%s%s", err->detail ? err->detail : "",
                err->detail ? "\n" : "");
  free(text);
}

static bool was_told(const struct pf_run_summary *sum, size_t i) {
  for (size_t k = 0; k < i; k++)
    if (same_cause(&sum->failures[k], &sum->failures[i]))
      return true;
  return false;
}

static void print_failures(struct app *app, const struct pf_run_summary *sum) {
  uint64_t n = sum->n_status[PF_STATUS_FAILED];
  size_t told = 0;
  for (size_t i = 0; i < sum->n_failures && told < 5; i++)
    if (!was_told(sum, i)) {
      print_cause(app, sum, i);
      told++;
    }
  if (n > 1)
    (void)fprintf(app->out, "  all %llu are in OUT/tables/images.csv\n",
                  (unsigned long long)n);
}

static void print_counts(struct app *app, const struct pf_run_summary *sum) {
  double seconds = sum->seconds > 0 ? sum->seconds : 1e-9;
  (void)fprintf(app->out,
                "%llu of %llu groups done in %.1f s: %llu images read "
                "(%.1f images/s, %.1f MB/s), %llu written\n",
                (unsigned long long)sum->n_status[PF_STATUS_DONE],
                (unsigned long long)sum->n_groups, sum->seconds,
                (unsigned long long)sum->n_images_read,
                (double)sum->n_images_read / seconds,
                (double)sum->n_bytes_read / 1e6 / seconds,
                (unsigned long long)sum->n_images_written);
  for (int i = PF_STATUS_EXCLUDED; i < PF_N_STATUSES; i++)
    if (sum->n_status[i])
      (void)fprintf(app->out, "%llu %s\n",
                    (unsigned long long)sum->n_status[i],
                    pf_status_name((enum pf_status)i));
}

static void print_summary(struct app *app, const struct pf_run_summary *sum,
                          int status) {
  if (sum->stopped_because)
    (void)fprintf(app->out, "stopped: %s\n", sum->stopped_because);
  else if (status == 130 || status == 143)
    (void)fprintf(app->out,
                  "%s: what was running is finished, %llu groups are left\n",
                  status == 130 ? "interrupted" : "terminated",
                  (unsigned long long)sum->n_status[PF_STATUS_NOT_RUN]);
  print_counts(app, sum);
  print_failures(app, sum);
  /* What a canary stopped leaves nothing: see pf_run(). */
  if (status != 2)
    (void)fprintf(app->out,
                  "results: %s (images/, tables/, run.json, "
                  "log.txt)\n",
                  app->options.out);
}

static void json_end(struct app *app, const struct pf_run_summary *sum,
                     int status) {
  (void)fprintf(app->out,
                "{\"event\": \"end\", \"seconds\": %.3f, \"exit_status\": %d, "
                "\"groups\": %llu, \"done\": %llu, \"failed\": %llu, "
                "\"skipped\": %llu, \"excluded\": %llu, \"not_run\": %llu}\n",
                sum->seconds, status, (unsigned long long)sum->n_groups,
                (unsigned long long)sum->n_status[PF_STATUS_DONE],
                (unsigned long long)sum->n_status[PF_STATUS_FAILED],
                (unsigned long long)sum->n_status[PF_STATUS_SKIPPED],
                (unsigned long long)sum->n_status[PF_STATUS_EXCLUDED],
                (unsigned long long)sum->n_status[PF_STATUS_NOT_RUN]);
}

static int run_plan(struct app *app, struct input *input,
                    struct pf_run_options *options,
                    struct run_context *context) {
  struct pf_run_summary sum = {0};
  struct pf_error err = PF_ERROR_INIT;
  int status;
  options->log = app->log;
  options->start_seconds = app->start;
  options->version = PF_VERSION;
  options->event = on_event;
  options->context = context;
  options->stop = &context->stop;
  if (!app->adopted) {
    signals_install(); /* imports may have put in their own */
    options->stop = signals_begin_run();
    options->stop_status = signals_status;
  }
  if (pf_run(&sum, input->plan, app->options.out, options, &err) != PF_OK) {
    progress_end(&context->progress);
    pf_run_summary_clear(&sum);
    return print_error(app, &err);
  }
  progress_end(&context->progress);
  status = sum.exit_status;
  if (context->progress.mode == PROGRESS_JSON)
    json_end(app, &sum, status);
  else
    print_summary(app, &sum, status);
  pf_run_summary_clear(&sum);
  return status;
}

int cmd_run(struct app *app) {
  struct input input = {0};
  struct pf_run_options options = {0};
  struct run_context context = {.app = app};
  struct pf_error err = PF_ERROR_INIT;
  int status;
  context.progress.out = app->out;
  context.progress.err = app->err;
  if (!app->adopted)
    signals_install();
  if (choose(app, &options, &context.progress, &err) != PF_OK ||
      check_out(app, &err) != PF_OK)
    return print_error(app, &err);
  status = open_pipeline(app, &input, app->options.arguments[0]);
  if (!status)
    status = open_plate(app, &input, app->options.arguments[1]);
  if (!status)
    status = open_plan(app, &input);
  if (!status)
    status = run_plan(app, &input, &options, &context);
  close_input(&input);
  if (!app->adopted) {
    pf_python_finish();
    capture_stop();
  }
  return status;
}
