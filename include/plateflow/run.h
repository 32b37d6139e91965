/*
 * Running a plan. pf_run() is re-entrant, touches no stdout, no signal and
 * never exits; it tells what happens through events and returns a summary.
 *
 * Threads: call it from one thread that holds no GIL; events come from that
 * same thread.
 */
#ifndef PLATEFLOW_RUN_H
#define PLATEFLOW_RUN_H

#ifdef __cplusplus
#include <atomic>
#else
#include <stdatomic.h>
#endif

#include "plateflow/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a group ended. Worse ones have larger numbers. */
#define PF_STATUS_MAP(XX)                                                     \
  XX(DONE, "done")                                                            \
  XX(EXCLUDED, "excluded") /* a `keep` rule dropped it */                     \
  XX(SKIPPED, "skipped")   /* it lacks slices that its siblings have */       \
  XX(NOT_RUN, "not run")   /* the run stopped before it */                    \
  XX(FAILED, "failed")

enum pf_status {
#define XX(name, word) PF_STATUS_##name,
  PF_STATUS_MAP(XX)
#undef XX
      PF_N_STATUSES
};
PF_API const char *pf_status_name(enum pf_status status);

/* 0: run; 1: finish what is running, then stop; 2: stop at once. May be
 * raised by a signal handler. */
#ifdef __cplusplus
typedef std::atomic_int pf_stop_flag;
#else
typedef atomic_int pf_stop_flag;
#endif

enum pf_event_kind { PF_EVENT_START, PF_EVENT_GROUP, PF_EVENT_TICK };

struct pf_log;

struct pf_event {
  enum pf_event_kind kind;
  uint64_t n_groups, n_finished, n_failed;
  uint64_t n_images, n_bytes; /* read so far */
  double seconds;             /* since the start of the run */
  /* PF_EVENT_GROUP (failed, skipped and excluded groups only): */
  const char *group;
  enum pf_status status;
  const char *reason;
};

struct pf_run_options {
  int workers;              /* 0: the cores that this process may use */
  bool stop_on_error;       /* --on-error stop */
  bool fresh;               /* remove what OUT's journal lists first */
  double tolerate;          /* percent of groups that may fail */
  int compression;          /* enum pf_compression; -1: as the input */
  pf_stop_flag *stop;       /* may be NULL */
  int (*stop_status)(void); /* exit status of a stop: 130, 143; may be NULL */
  struct pf_log *log;       /* where prints go; NULL: one of the run's own */
  const char *version;      /* of the program, for run.json */
  const char *command;      /* the command line, for run.json; may be NULL */
  double start_seconds; /* pf_os_seconds() when the program began; 0: now */
  void (*event)(void *context, const struct pf_event *event);
  void *context;
};

struct pf_run_summary {
  uint64_t n_groups, n_status[PF_N_STATUSES];
  uint64_t n_images_read, n_bytes_read, n_images_written, n_bytes_written;
  uint64_t n_warnings;
  double seconds, cpu_seconds;
  double seconds_to_first_task; /* from the program's start */
  int exit_status;              /* as the design's table says */
  char *stopped_because;        /* malloc'd, or NULL: it ran to the end */
  size_t n_failures;            /* at most 20 are kept */
  struct pf_error failures[20];
};
PF_API void pf_run_summary_clear(struct pf_run_summary *summary);

/*
 * Run the plan into the folder `out`. Returns 0 also when groups failed (see
 * summary->exit_status); an error only if the run could not start or its
 * journal could not be kept: PF_EINVAL, PF_EMISSING, PF_EWRITE, PF_ENOMEM.
 */
PF_API int pf_run(struct pf_run_summary *summary, const struct pf_plan *plan,
                  const char *out, const struct pf_run_options *options,
                  struct pf_error *err) PF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
