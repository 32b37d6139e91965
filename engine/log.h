/*
 * OUT/log.txt: what steps print, line by line, with step and group.
 *
 * Until a file is attached, lines are kept in memory (64 KiB at most).
 * Threads: every function may be called from any thread; lines stay whole.
 */
#ifndef PF_LOG_H
#define PF_LOG_H

#include <stddef.h>

#include "plateflow/error.h"

struct pf_log;

PF_API int pf_log_create(struct pf_log **out,
                         struct pf_error *err) PF_MUST_CHECK;
PF_API void pf_log_destroy(struct pf_log **log);
/* Append to `path` from now on, what is in memory first. */
PF_API int pf_log_attach(struct pf_log *log, const char *path,
                         struct pf_error *err) PF_MUST_CHECK;
/* One line (n bytes, no newline needed). `step` and `group` may be NULL. */
PF_API void pf_log_line(struct pf_log *log, const char *step,
                        const char *group, const char *text, size_t n);

#endif
