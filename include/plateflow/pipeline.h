/*
 * A pipeline file, parsed and checked against itself: every key, its type, its
 * place. What needs the plate or the step functions is checked by the plan.
 *
 * Ownership: pf_pipeline_read() gives one that pf_pipeline_destroy() frees;
 * all strings in it are its own. Threads: constant once read.
 */
#ifndef PLATEFLOW_PIPELINE_H
#define PLATEFLOW_PIPELINE_H

#include "plateflow/step.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An error or a warning about the pipeline, at its place. */
struct pf_message {
  bool is_warning;
  int line, column; /* 1-based; 0: the whole file */
  char *where;      /* "steps[2].parameters.sigma", or "" */
  char *text;       /* what is wrong and what to do */
};
/* All that is wrong, in the order in which it was found. A zeroed struct is
 * empty. */
struct pf_report {
  size_t n, cap;
  struct pf_message *messages;
  size_t n_errors; /* messages that are no warnings */
};
PF_API void pf_report_clear(struct pf_report *report);
/* Sort by line and column, as `check` prints them. */
PF_API void pf_report_sort(struct pf_report *report);
/* Append; `value` is the place (NULL: the whole file). Returns 0, PF_ENOMEM.
 */
PF_API int pf_report_add(struct pf_report *report, bool is_warning,
                         const struct pf_json_doc *doc,
                         const struct cJSON *value, bool of_key,
                         const char *fmt, ...) PF_PRINTF(6, 7);

enum pf_incomplete {
  PF_INCOMPLETE_SKIP,
  PF_INCOMPLETE_RUN,
  PF_INCOMPLETE_STOP
};

/* `where`: the slices whose component is one of the values. */
struct pf_where {
  enum pf_component component;
  size_t n_values;
  char **values; /* as written; numbers as their decimal text */
  const struct cJSON *json;
};

struct pf_with {
  char *name; /* the function's parameter */
  int from;   /* index of the step; -1: the plate */
  bool has_stack;
  unsigned stack; /* bits 1u << enum pf_component */
  size_t n_where;
  struct pf_where *where;
  const struct cJSON *json;
};

struct pf_keep {
  char *table, *column;
  double min, max; /* -INFINITY, INFINITY where not given */
};

enum { PF_INPUT_PREVIOUS = -2, PF_INPUT_PLATE = -1 };

struct pf_step_spec {
  char *name;
  char *function;
  enum pf_memory_type input_memory_type; /* PF_MEM_NONE: not said */
  enum pf_memory_type output_memory_type;
  bool has_stack; /* else the default, ["z"] */
  size_t n_stack;
  enum pf_component stack[PF_N_COMPONENTS]; /* the first varies slowest */
  size_t n_where;
  struct pf_where *where;
  int input; /* PF_INPUT_PREVIOUS, PF_INPUT_PLATE, or a step's index */
  size_t n_with;
  struct pf_with *with;
  int result; /* enum pf_result_kind; -1: not said */
  bool has_yields;
  struct pf_yields yields;
  int resizes;                    /* 0, 1; -1: not said */
  const struct cJSON *parameters; /* an object in `doc`, or NULL */
  enum pf_dtype input_dtype;      /* PF_DTYPE_NONE: as read */
  int slice_by_slice;             /* 0, 1; -1: not said */
  enum pf_cast_mode dtype;        /* PF_N_CAST_MODES: not said or a type */
  enum pf_dtype dtype_type;       /* a type's name, else PF_DTYPE_NONE */
  char *device;                   /* "auto", "cpu" */
  int concurrency;                /* 0: not said */
  int threads;                    /* 0: not said */
  enum pf_incomplete incomplete;
  uint32_t sample; /* 0: all */
  size_t n_keep;
  struct pf_keep *keep;
  int save;            /* 0, 1; -1: not said */
  char *save_template; /* or NULL */
  size_t n_tables;
  char **tables;
  const struct cJSON *json; /* the step's object */
};

struct pf_pipeline {
  char *file;     /* as given */
  char *base_dir; /* absolute folder of the file */
  char *name;
  /* plate: */
  char *layout, *pattern, *pages, *planes; /* NULL: not said */
  size_t n_channels;
  char **channel_values, **channel_names;
  size_t n_steps;
  struct pf_step_spec *steps;
  struct pf_json_doc *doc; /* places; owned */
};

/* `--set STEP.PARAM=VALUE`, applied to the file's text before it is checked:
 * VALUE is JSON, or a string where it is not valid JSON. */
struct pf_override {
  const char *step, *parameter, *value;
};

/*
 * Read and check. All that is wrong goes into `report` (never NULL); *out is
 * set only if it holds no error. Returns 0, PF_EINVAL (see report; err has the
 * first one too), PF_ENOMEM. A file that cannot be opened is PF_EINVAL.
 */
PF_API int pf_pipeline_read(struct pf_pipeline **out, const char *path,
                            const struct pf_override *overrides,
                            size_t n_overrides, struct pf_report *report,
                            struct pf_error *err) PF_MUST_CHECK;
PF_API void pf_pipeline_destroy(struct pf_pipeline **pipeline);

#ifdef __cplusplus
}
#endif
#endif
