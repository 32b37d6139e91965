/* plateflow check, plan, inspect: look, and run nothing. */
#include "engine/cli/app.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "engine/cli/capture.h"
#include "engine/plate/inspect.h"
#include "steps/python.h"

static int print_buf(struct app *app, struct pf_buf *buf) {
  int status = pf_buf_ok(buf) ? 0 : 1;
  (void)fputs(pf_buf_text(buf), app->out);
  pf_buf_free(buf);
  return status;
}

static void finish(struct app *app, struct input *input) {
  close_input(input);
  if (app->adopted)
    return;
  pf_python_finish();
  capture_stop();
}

int cmd_plan(struct app *app) {
  struct input input = {0};
  struct pf_buf buf = {0};
  int status = open_pipeline(app, &input, app->options.arguments[0]);
  if (!status)
    status = open_plate(app, &input, app->options.arguments[1]);
  if (!status)
    status = open_plan(app, &input);
  if (!status) {
    if (app->options.json)
      pf_plan_json(input.plan, &buf);
    else
      pf_plan_text(input.plan, &buf);
    status = print_buf(app, &buf);
  }
  finish(app, &input);
  return status;
}

int cmd_inspect(struct app *app) {
  struct input input = {0};
  struct pf_buf buf = {0};
  int status = open_plate(app, &input, app->options.arguments[0]);
  if (!status) {
    int result =
        app->options.json
            ? pf_inspect_json(input.plate, &buf)
            : pf_inspect_text(input.plate, app->options.verbose, &buf);
    status = print_buf(app, &buf);
    if (result != PF_OK)
      status = 1;
  }
  close_input(&input);
  return status;
}

/* ------------------------------------------------------------------ check */

static void json_report(struct app *app, const struct pf_report *report,
                        bool ok) {
  struct pf_buf buf = {0};
  pf_buf_printf(&buf, "{\"ok\": %s, \"messages\": [", ok ? "true" : "false");
  for (size_t i = 0; i < report->n; i++) {
    const struct pf_message *m = &report->messages[i];
    pf_buf_printf(&buf,
                  "%s\n  {\"severity\": \"%s\", \"line\": %d, \"column\": %d, "
                  "\"where\": ",
                  i ? "," : "", m->is_warning ? "warning" : "error", m->line,
                  m->column);
    pf_buf_json(&buf, m->where ? m->where : "");
    pf_buf_str(&buf, ", \"text\": ");
    pf_buf_json(&buf, m->text ? m->text : "");
    pf_buf_char(&buf, '}');
  }
  pf_buf_str(&buf, "]}\n");
  (void)print_buf(app, &buf);
}

/* What has no place in the file joins the messages without one. */
static int add_error(struct pf_report *report, struct pf_error *err) {
  int status = pf_code_exit_status(err->code);
  char *text = pf_error_format(err);
  /* The report has it already where it came from the pipeline's text. */
  if (!report->n_errors)
    (void)pf_report_add(report, false, NULL, NULL, false, "%s%s%s",
                        text ? text : "out of memory", err->detail ? "\n" : "",
                        err->detail ? err->detail : "");
  free(text);
  pf_error_clear(err);
  return status == 4 ? 3 : status;
}

static int check_plate(struct app *app, struct input *input,
                       struct pf_error *err) {
  struct pf_plate_options options = {0};
  int result;
  plate_options(app, input->pipeline, &options);
  result =
      pf_plate_open(&input->plate, app->options.arguments[1], &options, err);
  if (result == PF_OK)
    result = pf_plan_compile(&input->plan, input->pipeline, input->plate, NULL,
                             &input->report, err);
  return result;
}

static int check_all(struct app *app, struct input *input,
                     struct pf_error *err) {
  int result = pf_pipeline_read(&input->pipeline, app->options.arguments[0],
                                app->options.set, app->options.n_set,
                                &input->report, err);
  if (result == PF_OK)
    result = start_python(app, input->pipeline, err);
  if (result != PF_OK)
    return result;
  if (app->options.n_arguments > 1)
    return check_plate(app, input, err);
  return pf_plan_check_functions(input->pipeline, &input->report, err);
}

static int check_here(struct app *app) {
  struct input input = {0};
  struct pf_error err = PF_ERROR_INIT;
  int status = 0;
  if (check_all(app, &input, &err) != PF_OK)
    status = add_error(&input.report, &err);
  if (!status && input.report.n_errors)
    status = 2;
  pf_report_sort(&input.report);
  if (app->options.json)
    json_report(app, &input.report, status == 0);
  else
    print_report(app, &input);
  if (!status && !app->options.json)
    (void)fprintf(app->out, "%s: nothing wrong was found\n",
                  app->options.arguments[0]);
  finish(app, &input);
  return status;
}

/* Whether the pipeline can be read and has Python steps: only then there is
 * user code, which is looked at in a child process. */
static bool has_user_code(struct app *app) {
  struct input input = {0};
  struct pf_error err = PF_ERROR_INIT;
  bool found = pf_pipeline_read(&input.pipeline, app->options.arguments[0],
                                app->options.set, app->options.n_set,
                                &input.report, &err) == PF_OK &&
               pf_pipeline_needs_python(input.pipeline);
  pf_error_clear(&err);
  close_input(&input);
  return found;
}

static const char child_variable[] = "PLATEFLOW_CHECK_CHILD";

static int report_signal(struct app *app, int number) {
  struct pf_report report = {0};
  struct input input = {0};
  (void)pf_report_add(&report, false, NULL, NULL, false,
                      "looking at the pipeline's Python code ended with "
                      "signal %d (%s)",
                      number, strsignal(number));
  input.report = report;
  if (app->options.json)
    json_report(app, &report, false);
  else
    print_report(app, &input);
  pf_report_clear(&input.report);
  return 2;
}

static int check_in_child(struct app *app) {
  pid_t child = 0;
  int state = 0;
  (void)fflush(app->out);
  (void)fflush(app->err);
  if (setenv(child_variable, "1", 1) != 0 ||
      posix_spawn(&child, "/proc/self/exe", NULL, NULL, app->argv, environ) !=
          0)
    return check_here(app);
  (void)unsetenv(child_variable);
  while (waitpid(child, &state, 0) < 0 && errno == EINTR)
    continue;
  if (WIFSIGNALED(state))
    return report_signal(app, WTERMSIG(state));
  return WIFEXITED(state) ? WEXITSTATUS(state) : 1;
}

int cmd_check(struct app *app) {
  if (app->adopted || getenv(child_variable) || !has_user_code(app))
    return check_here(app);
  return check_in_child(app);
}
