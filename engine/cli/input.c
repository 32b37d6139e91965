/* Pipeline, plate and plan, as several commands open them. */
#include "engine/cli/app.h"

#include <stdlib.h>
#include <string.h>

#include "engine/cli/capture.h"
#include "steps/python.h"

int print_error(struct app *app, struct pf_error *err) {
  char *text = pf_error_format(err);
  int status = pf_code_exit_status(err->code);
  (void)fprintf(app->err, "plateflow: %s\n", text ? text : "out of memory");
  if (err->detail)
    (void)fprintf(app->err, "%s\n", err->detail);
  free(text);
  pf_error_clear(err);
  /* A failure outside a group is the run's: 2 and 3 stay, else 1 is a bug. */
  return status == 4 ? 3 : status;
}

void print_report(struct app *app, const struct input *input) {
  const char *file = input->pipeline ? input->pipeline->file : NULL;
  for (size_t i = 0; i < input->report.n; i++) {
    const struct pf_message *m = &input->report.messages[i];
    if (!file && app->options.n_arguments)
      file = app->options.arguments[0];
    if (m->line > 0)
      (void)fprintf(app->err, "%s:%d:%d: ", file ? file : "", m->line,
                    m->column);
    else
      (void)fprintf(app->err, "%s: ", file ? file : "");
    (void)fprintf(app->err, "%s%s%s%s\n", m->is_warning ? "warning: " : "",
                  m->where ? m->where : "", m->where && *m->where ? ": " : "",
                  m->text);
  }
}

/* Numerical libraries read their thread counts when Python starts, and what
 * steps print must not mix with what the program prints. */
int start_python(struct app *app, const struct pf_pipeline *pipeline,
                 struct pf_error *err) {
  const char *frameworks[PF_MEM_END];
  struct pf_python_options options = {
      .python = app->options.python,
      .threads = pf_pipeline_threads(pipeline),
      .n_frameworks = pf_pipeline_frameworks(pipeline, frameworks),
      .frameworks = frameworks};
  if (!pf_pipeline_needs_python(pipeline))
    return PF_OK;
  if (!app->adopted && (pf_python_reexec(&options, app->argv, err) != PF_OK ||
                        capture_start(app->log, err) != PF_OK))
    return (int)err->code;
  return pf_python_start(&options, err);
}

static int report_status(struct app *app, struct input *input,
                         struct pf_error *err) {
  int status = 0;
  pf_report_sort(&input->report);
  print_report(app, input);
  if (input->report.n_errors) {
    pf_error_clear(err);
    return 2;
  }
  if (err->code != PF_OK)
    status = print_error(app, err);
  pf_report_clear(&input->report); /* warnings are told once */
  return status;
}

int open_pipeline(struct app *app, struct input *input, const char *path) {
  struct pf_error err = PF_ERROR_INIT;
  int result = pf_pipeline_read(&input->pipeline, path, app->options.set,
                                app->options.n_set, &input->report, &err);
  if (result == PF_OK)
    result = start_python(app, input->pipeline, &err);
  return result == PF_OK && !input->report.n ? 0
                                             : report_status(app, input, &err);
}

void plate_options(const struct app *app, const struct pf_pipeline *p,
                   struct pf_plate_options *options) {
  const struct options *o = &app->options;
  *options = (struct pf_plate_options){.layout = o->layout,
                                       .pattern = o->pattern,
                                       .pages = o->pages,
                                       .deep = o->deep};
  if (o->pattern && !o->layout)
    options->layout = "pattern";
  if (!p)
    return;
  options->layout = p->layout;
  options->pattern = p->pattern;
  options->pages = p->pages;
  options->planes = p->planes;
  options->n_channels = p->n_channels;
  options->channel_values = (const char *const *)p->channel_values;
  options->channel_names = (const char *const *)p->channel_names;
}

int open_plate(struct app *app, struct input *input, const char *path) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_plate_options options = {0};
  plate_options(app, input->pipeline, &options);
  if (pf_plate_open(&input->plate, path, &options, &err) != PF_OK)
    return print_error(app, &err);
  return 0;
}

int open_plan(struct app *app, struct input *input) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_plan_options options = {.until = app->options.until,
                                    .n_only = app->options.n_only,
                                    .only = app->options.only};
  int result = pf_plan_compile(&input->plan, input->pipeline, input->plate,
                               &options, &input->report, &err);
  return result == PF_OK && !input->report.n ? 0
                                             : report_status(app, input, &err);
}

void close_input(struct input *input) {
  pf_plan_destroy(&input->plan);
  pf_plate_unref(&input->plate);
  pf_pipeline_destroy(&input->pipeline);
  pf_report_clear(&input->report);
}
