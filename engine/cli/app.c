/* pf_main(): which command, with which options. */
#include "engine/cli/app.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bridge/frameworks.h"
#include "bridge/json.h"
#include "bridge/os.h"
#include "plateflow/main.h"
#include "steps/python.h"

static const struct command commands[] = {
    {"run", "PIPELINE PLATE -o OUT", "run a pipeline over a plate", CMD_RUN, 2,
     2, cmd_run},
    {"check", "PIPELINE [PLATE]",
     "say all that is wrong with a pipeline, without running it", CMD_CHECK, 1,
     2, cmd_check},
    {"plan", "PIPELINE PLATE", "show the compiled plan", CMD_PLAN, 2, 2,
     cmd_plan},
    {"inspect", "PLATE", "show what a folder holds", CMD_INSPECT, 1, 1,
     cmd_inspect},
    {"steps", "[NAME]", "list the steps that can be used, or explain one",
     CMD_STEPS, 0, 1, cmd_steps},
    {"doctor", "", "say what works here, and what to install", CMD_DOCTOR, 0,
     0, cmd_doctor},
    {"merge", "OUT", "make one result from shards", 0, 1, 1, NULL},
    {"report", "OUT", "write OUT/report.html again", 0, 1, 1, NULL},
};
enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void print_help(FILE *out) {
  (void)fprintf(out,
                "plateflow %s: image-processing steps over plates of "
                "microscope images\n\n",
                PF_VERSION);
  for (size_t i = 0; i < N_COMMANDS; i++)
    if (commands[i].run)
      (void)fprintf(out, "  plateflow %-8s%-24s%s\n", commands[i].name,
                    commands[i].usage, commands[i].help);
  (void)fprintf(out, "\nplateflow COMMAND --help lists its options.\n");
}

static const struct command *find_command(const char *word) {
  for (size_t i = 0; i < N_COMMANDS; i++)
    if (strcmp(commands[i].name, word) == 0)
      return &commands[i];
  return NULL;
}

static int unknown_command(struct app *app, const char *word) {
  const char *names[N_COMMANDS];
  const char *nearest;
  for (size_t i = 0; i < N_COMMANDS; i++)
    names[i] = commands[i].name;
  nearest = pf_nearest_word(word, names, N_COMMANDS);
  (void)fprintf(app->err, "plateflow: there is no command \"%s\"%s%s%s\n",
                word, nearest ? ": did you mean \"" : "",
                nearest ? nearest : "", nearest ? "\"?" : "");
  return 2;
}

static bool asks_for_help(int argc, char **argv) {
  for (int i = 0; i < argc; i++)
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
      return true;
  return false;
}

static void print_usage(FILE *out, const struct command *command) {
  (void)fprintf(out, "usage: plateflow %s %s [options]\n\n%s\n\n",
                command->name, command->usage, command->help);
  print_options(out, command);
}

static int check_arguments(const struct app *app,
                           const struct command *command,
                           struct pf_error *err) {
  size_t n = app->options.n_arguments;
  if (n < command->min_arguments)
    return pf_error_set(err, PF_EINVAL,
                        "an argument is missing: plateflow %s %s",
                        command->name, command->usage);
  if (n > command->max_arguments)
    return pf_error_set(err, PF_EINVAL,
                        "\"%s\" is one argument too many: plateflow %s %s",
                        app->options.arguments[command->max_arguments],
                        command->name, command->usage);
  return PF_OK;
}

/* The environment tells the processes that commands start. */
static int load_frameworks(const struct app *app, struct pf_error *err) {
  const char *path = app->options.frameworks;
  char *absolute = path ? pf_os_absolute(path) : NULL;
  bool failed =
      path && (!absolute || setenv("PLATEFLOW_FRAMEWORKS", absolute, 1) != 0);
  free(absolute);
  if (failed)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  return pf_frameworks_load(path, err);
}

static int run_command(struct app *app, int argc, char **argv) {
  const struct command *command = find_command(argv[1]);
  struct pf_error err = PF_ERROR_INIT;
  int result;
  if (!command)
    return unknown_command(app, argv[1]);
  if (!command->run) {
    (void)fprintf(app->err, "plateflow: \"%s\" is not supported yet\n",
                  command->name);
    return 2;
  }
  if (asks_for_help(argc - 2, argv + 2)) {
    print_usage(app->out, command);
    return 0;
  }
  result = parse_options(app, command, argc - 2, argv + 2, &err);
  if (result == PF_OK)
    result = check_arguments(app, command, &err);
  if (result == PF_OK)
    result = load_frameworks(app, &err);
  if (result != PF_OK)
    return print_error(app, &err);
  return command->run(app);
}

static int dispatch(struct app *app, int argc, char **argv) {
  if (argc < 2) {
    print_help(app->err);
    return 2;
  }
  if (strcmp(argv[1], "--version") == 0) {
    (void)fprintf(app->out, "plateflow %s\n", PF_VERSION);
    return 0;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
      strcmp(argv[1], "help") == 0) {
    print_help(app->out);
    return 0;
  }
  return run_command(app, argc, argv);
}

/* Streams of our own, so that what steps print can be sent elsewhere. */
static bool open_streams(struct app *app, char **text, size_t *size) {
  if (app->adopted) {
    app->out = open_memstream(text, size);
    app->err = app->out;
    return app->out != NULL;
  }
  app->out = fdopen(dup(STDOUT_FILENO), "w");
  app->err = fdopen(dup(STDERR_FILENO), "w");
  return app->out && app->err;
}

static int close_streams(struct app *app, int status) {
  bool failed = false;
  if (app->out && app->out != app->err && fclose(app->out) != 0)
    failed = true;
  if (app->err && fclose(app->err) != 0)
    failed = true;
  /* A full disk behind `> file`: what was printed is not there. */
  return failed && status == 0 && !app->adopted ? 1 : status;
}

int pf_main(int argc, char **argv, bool adopted, char **message) {
  struct app app = {
      .adopted = adopted, .start = pf_os_seconds(), .argv = argv};
  struct pf_os_numbers *numbers = pf_os_begin_numbers();
  struct pf_error err = PF_ERROR_INIT;
  char *text = NULL;
  size_t size = 0;
  int status = 1;
  if (message)
    *message = NULL;
  if (open_streams(&app, &text, &size) &&
      pf_log_create(&app.log, &err) == PF_OK)
    status = dispatch(&app, argc, argv);
  free_options(&app.options);
  pf_log_destroy(&app.log);
  pf_error_clear(&err);
  status = close_streams(&app, status);
  if (message && adopted)
    *message = text;
  else
    free(text);
  if (!adopted)
    pf_python_finish();
  pf_os_end_numbers(&numbers);
  return status;
}
