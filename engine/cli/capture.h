/*
 * File descriptors 1 and 2 go to the log, line by line, from the moment that
 * Python starts: what a step prints belongs to OUT/log.txt, not between the
 * program's own lines. Process-wide; main thread only.
 */
#ifndef PF_CLI_CAPTURE_H
#define PF_CLI_CAPTURE_H

#include "engine/log.h"

/* Does nothing where it runs already. */
int capture_start(struct pf_log *log, struct pf_error *err) PF_MUST_CHECK;
/* Everything that was printed is in the log when it returns. */
void capture_stop(void);

#endif
