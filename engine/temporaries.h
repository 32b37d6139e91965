/*
 * The temporary files that are being written now, so that a run that must end
 * at once leaves no half file. One slot per writer.
 *
 * Threads: a slot belongs to its writer; sweep may be called from any thread,
 * after which begin waits for ever: the process is about to end.
 */
#ifndef PF_TEMPORARIES_H
#define PF_TEMPORARIES_H

#include "plateflow/error.h"

/* A free slot, or -1: too many writers. Given back with close. */
int pf_temporaries_open(void);
void pf_temporaries_close(int slot);
/* Remember that `path`'s temporary is being written by this slot. */
int pf_temporaries_begin(int slot, const char *path, struct pf_error *err);
void pf_temporaries_end(int slot);
/* Remove them all. Only before _exit(). */
PF_API void pf_temporaries_sweep(void);
/* Remove what an earlier run, killed while it wrote, left in the folders that
 * OUT gets. Only while no other run writes there. */
void pf_temporaries_clear(const char *out_dir);

#endif
