/*
 * What every command shares: where to print, and the options. Private to
 * engine/cli/, the only place that prints. One thread.
 */
#ifndef PF_CLI_APP_H
#define PF_CLI_APP_H

#include <stdio.h>

#include "bridge/buf.h"
#include "engine/log.h"
#include "plateflow/pipeline.h"
#include "plateflow/plan.h"
#include "plateflow/plate.h"
#include "plateflow/run.h"

struct options {
  const char *out, *until, *python, *progress, *compression, *on_error;
  const char *format, *tables;
  const char *layout, *pattern, *pages, *frameworks;
  int64_t workers;
  double tolerate;
  bool fresh, json, deep, verbose;
  size_t n_only, n_set, n_arguments;
  struct pf_only *only;    /* --only; the texts belong to `texts` */
  struct pf_override *set; /* --set */
  const char **arguments;  /* positional */
  size_t n_texts;
  char **texts; /* malloc'd pieces of arguments */
};

struct app {
  FILE *out, *err; /* not redirected; memory streams where adopted */
  bool adopted;
  double start; /* pf_os_seconds() at the program's start */
  char **argv;  /* the program's own, for starting another python */
  struct pf_log *log;
  struct options options;
};

/* A command: its word, what it takes, what it does. */
struct command {
  const char *name, *usage, *help;
  unsigned bit; /* in an option's `commands` */
  size_t min_arguments, max_arguments;
  int (*run)(struct app *app); /* returns the exit status */
};

enum command_bit {
  CMD_RUN = 1,
  CMD_CHECK = 2,
  CMD_PLAN = 4,
  CMD_INSPECT = 8,
  CMD_STEPS = 16,
  CMD_DOCTOR = 32
};

/* options.c: fill app->options from the words behind the command. */
int parse_options(struct app *app, const struct command *command, int argc,
                  char **argv, struct pf_error *err) PF_MUST_CHECK;
void free_options(struct options *options);
void print_options(FILE *out, const struct command *command);

/* input.c: what several commands open. */
struct input {
  struct pf_pipeline *pipeline;
  struct pf_plate *plate;
  struct pf_plan *plan;
  struct pf_report report;
};
/* Read the pipeline, start Python if it needs it; then the plate and the plan
 * where asked. Prints what is wrong; returns the exit status, 0: all is
 * well. */
int open_pipeline(struct app *app, struct input *input, const char *path);
int open_plate(struct app *app, struct input *input, const char *path);
int open_plan(struct app *app, struct input *input);
void close_input(struct input *input);
/* Start the interpreter where the pipeline needs one, its output captured. */
int start_python(struct app *app, const struct pf_pipeline *pipeline,
                 struct pf_error *err) PF_MUST_CHECK;
/* What the pipeline (or NULL) and the options say of the plate; borrowed. */
void plate_options(const struct app *app, const struct pf_pipeline *pipeline,
                   struct pf_plate_options *options);
/* Print an error; returns its exit status and clears it. */
int print_error(struct app *app, struct pf_error *err);
void print_report(struct app *app, const struct input *input);

int cmd_run(struct app *app);
int cmd_check(struct app *app);
int cmd_plan(struct app *app);
int cmd_inspect(struct app *app);
int cmd_steps(struct app *app);
int cmd_doctor(struct app *app);

#endif
