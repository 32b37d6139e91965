/*
 * How a run shows itself: a line on a terminal, a line a minute otherwise, or
 * a JSON object per event. One thread.
 */
#ifndef PF_CLI_PROGRESS_H
#define PF_CLI_PROGRESS_H

#include <stdio.h>

#include "plateflow/run.h"

enum progress_mode {
  PROGRESS_LINE,
  PROGRESS_PLAIN,
  PROGRESS_JSON,
  PROGRESS_NONE
};

struct progress {
  enum progress_mode mode;
  FILE *out;      /* JSON events */
  FILE *err;      /* lines for people */
  double last;    /* seconds of the run when a line was printed */
  bool line_open; /* a terminal line waits to be overwritten */
  size_t n_told;  /* failures that were printed */
};

/* `word` as --progress takes it, or NULL; -1 where there is no such mode. */
int progress_mode_find(const char *word, bool is_terminal);
void progress_event(struct progress *progress, const struct pf_event *event);
void progress_end(struct progress *progress);

#endif
