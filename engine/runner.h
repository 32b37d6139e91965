/*
 * The state of one run, shared by its workers. Private to engine/.
 *
 * Lock order: runner.lock and the locks of a struct pf_step_run are never held
 * together, and none is held while a step is called, a file is read or
 * written, or the GIL is taken.
 */
#ifndef PF_RUNNER_H
#define PF_RUNNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/journal.h"
#include "engine/key_set.h"
#include "engine/log.h"
#include "engine/plan_private.h"
#include "engine/plate/tiff.h"
#include "engine/schema.h"
#include "plateflow/run.h"

/* An instance of a step for one set of parameters ({well} filled in). */
struct pf_bound {
  char *parameters; /* as JSON text; the key */
  bool ready;       /* made, or failed: `code` says */
  int code;
  struct pf_error error; /* of making it */
  struct pf_step_instance *instance;
};

/* A step while it runs. */
struct pf_step_run {
  const struct pf_plan_step *plan;
  struct pf_schema **schemas; /* one per table; set once */
  pthread_mutex_t lock;
  pthread_cond_t changed; /* an instance is ready, a call has ended */
  /* --- protected by lock */
  size_t n_bound;
  struct pf_bound **bound;
  int n_calls;                  /* running now */
  uint64_t n_done, n_failed;    /* groups; read errors are not counted */
  uint64_t n_failed_from_start; /* in a row, before any was done */
  double seconds;               /* in calls */
  struct pf_cast_stats cast;    /* what `preserve` did */
  uint64_t n_copied;            /* results that were not the step's own */
  const char *copied_why;       /* of the last one; static text */
};

enum pf_phase {
  PF_PHASE_CANARY, /* one worker tries every step, the others wait */
  PF_PHASE_RUN,
  PF_PHASE_STOP /* no further group is begun */
};

struct pf_runner {
  /* Set once, before workers start. */
  const struct pf_plan *plan;
  const struct pf_run_options *options;
  const char *out_dir; /* absolute */
  struct pf_log *log;
  struct pf_journal *journal;
  struct pf_step_run *steps; /* plan->n_steps */
  size_t n_tables;           /* of all steps */
  int n_workers;
  double start; /* pf_os_seconds() */

  atomic_uint_fast64_t n_images_read, n_bytes_read, n_images_written,
      n_bytes_written;
  atomic_uint_fast64_t ns_read, ns_write; /* of all workers */

  pthread_mutex_t lock;
  pthread_cond_t changed; /* the phase, or a group is finished */
  /* --- protected by lock */
  enum pf_phase phase;
  uint64_t next;         /* group id to look at next */
  uint64_t canaries[16]; /* groups that were run ahead */
  size_t n_canaries, n_failures_of_canary;
  bool *tried;              /* per step: a canary has shown it to work */
  struct pf_key_set extras; /* paths that info.write() has written */
  uint64_t n_finished, n_running, n_status[PF_N_STATUSES];
  double first_task; /* pf_os_seconds() at the first call; 0: none yet */
  size_t n_failures;
  struct pf_error failures[20];
  size_t n_told, n_untold; /* groups of `told` to tell as events */
  struct pf_told *told;
  enum pf_code stop_code; /* PF_OK: it was not stopped */
  char *stop_reason;      /* malloc'd */
  size_t n_workers_ended;
};

/* A group that was not plainly done, for an event. */
struct pf_told {
  char *group, *reason;
  enum pf_status status;
};

/* What a step printed, as far as its error quotes it. */
enum { PF_MAX_PRINTED = 2000 };

/* One worker's own memory, reused from group to group. */
struct pf_worker {
  struct pf_runner *runner;
  int index;
  int slot; /* of the temporary that it writes */
  pthread_t thread;
  struct pf_record *record; /* of the group that it runs */
  struct pf_buf printed;    /* by the step that it runs */
  enum pf_flow *flow;       /* per step */
  struct pf_value *values;  /* [0]: the plate's slices; [s + 1]: of step s */
  uint32_t *scratch;        /* as many positions as the deepest group has */
};

/* The stack that a step (or the plate) gives to the steps after it. */
struct pf_value {
  struct pf_array *stack;
  enum pf_dtype dtype; /* before `input_dtype` was applied */
  size_t n;            /* planes */
  uint32_t *positions; /* of its planes in the plan's order; own memory */
  int n_consumers;     /* still to come */
  struct pf_tiff_tags *tags; /* [0] only: per plane; own memory */
};

/* run_group.c: run one group to its end; the record says how it went. Sets
 * *fatal for what must stop the run (a canary's shape, a full disk). */
struct pf_record *pf_run_group(struct pf_worker *worker, uint64_t id,
                               bool canary, int *fatal);
/* How many steps will take the result of step `s` for this group. */
int pf_run_consumers(const struct pf_worker *worker, size_t s);
/* run_read.c: read the planes that the group's steps take into values[0]. */
int pf_run_read(struct pf_worker *worker, const struct pf_group *group,
                struct pf_error *err) PF_MUST_CHECK;
/* run_call.c: one step on one group; fills values[s + 1] and the record. */
int pf_run_step(struct pf_worker *worker, const struct pf_group *group,
                size_t s, struct pf_record *record, bool canary,
                struct pf_error *err) PF_MUST_CHECK;
/* run_write.c: save the result of a step. */
int pf_run_write(struct pf_worker *worker, size_t s, struct pf_record *record,
                 struct pf_error *err) PF_MUST_CHECK;
/* What a result is held against. */
struct pf_expect {
  const struct pf_array *input; /* for its shape; the step may have written
                                 * into its elements */
  enum pf_dtype dtype;          /* that `preserve` goes back to */
  enum pf_cast_mode mode;
  size_t n_planes;
  size_t n_levels; /* of the input before the call; 0: not judged */
  bool canary;
};
/* run_check.c: shape, depth, element type of a result; may replace *stack. */
int pf_run_check(struct pf_worker *worker, size_t s, struct pf_array **stack,
                 const struct pf_expect *expect,
                 struct pf_error *err) PF_MUST_CHECK;
/* Distinct values among at most 65536 elements, evenly spread. 0 without
 * memory: then nothing is judged. */
size_t pf_run_count_levels(struct pf_array *array);
/* run_table.c: name, check and keep a call's tables in the record; *keep is
 * false where a `keep` rule drops the group. Takes the tables. */
int pf_run_tables(struct pf_worker *worker, size_t s, struct pf_result *result,
                  struct pf_record *record, bool *keep,
                  struct pf_error *err) PF_MUST_CHECK;
/* run_bind.c: the instance for a group's parameters, made if need be. */
int pf_run_bind(struct pf_runner *runner, size_t s,
                const struct pf_group *group,
                struct pf_step_instance **instance,
                struct pf_error *err) PF_MUST_CHECK;
void pf_run_unbind(struct pf_step_run *step);
/* run_info.c: what `info` says; freed by pf_run_info_free(). */
int pf_run_info(struct pf_worker *worker, const struct pf_group *group,
                size_t s, const uint32_t *positions, size_t n,
                struct pf_group_info *info,
                struct pf_error *err) PF_MUST_CHECK;
void pf_run_info_free(struct pf_group_info *info);

/* Say that the run stops; the first reason stays. Takes runner->lock. */
void pf_run_stop(struct pf_runner *runner, enum pf_code code, const char *fmt,
                 ...) PF_PRINTF(3, 4);
void pf_value_clear(struct pf_value *value);

/* run_table_csv.c, run_images.c, run_list.c: tables/NAME.csv,
 * tables/images.csv, images/index.csv. */
int pf_run_write_tables(struct pf_runner *runner,
                        struct pf_error *err) PF_MUST_CHECK;
int pf_run_write_images_csv(struct pf_runner *runner,
                            struct pf_error *err) PF_MUST_CHECK;
int pf_run_write_index(struct pf_runner *runner,
                       struct pf_error *err) PF_MUST_CHECK;
/* run_json.c: OUT/run.json. */
int pf_run_write_json(struct pf_runner *runner,
                      const struct pf_run_summary *summary,
                      struct pf_error *err) PF_MUST_CHECK;

#endif
