/*
 * SIGINT, SIGTERM and SIGHUP: the first asks the run to finish what is
 * running, a second one to end at once. Process-wide; main thread only.
 */
#ifndef PF_CLI_SIGNALS_H
#define PF_CLI_SIGNALS_H

#include "plateflow/run.h"

/* Install the handlers; again after Python's modules were imported, which may
 * have put in their own. */
void signals_install(void);
/* From now on a first signal ends the run, not the process. */
pf_stop_flag *signals_begin_run(void);
/* 130 or 143: the exit status for the signal that came; 0: none came. */
int signals_status(void);

#endif
