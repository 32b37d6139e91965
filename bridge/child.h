/*
 * Run another program to its end: text in, text out, with a time limit. For
 * questions to an interpreter, not for the workers of a run.
 */
#ifndef PF_CHILD_H
#define PF_CHILD_H

#include <stddef.h>

#include "plateflow/error.h"

struct pf_child {
  const char *const *argv; /* argv[0] is the program; NULL at the end */
  const char *input;       /* its standard input; NULL: empty */
  double timeout_s;        /* killed after that */
};

/* How a child ended, and what it wrote (at most 16 MiB of each). */
struct pf_child_end {
  int status;   /* as exit() got it; 128 + the signal's number if killed */
  char *output; /* standard output; never NULL after success */
  char *errors; /* standard error; never NULL after success */
};
PF_API void pf_child_end_clear(struct pf_child_end *end);

/*
 * Any thread; no fork without exec, no SIGPIPE. A child that ran is a success
 * whatever its status; pf_child_end_clear() frees what it wrote. Errors:
 * PF_EMISSING (it cannot be started, it did not end in time), PF_ENOMEM.
 */
PF_API int pf_child_run(struct pf_child_end *end, const struct pf_child *child,
                        struct pf_error *err) PF_MUST_CHECK;

#endif
