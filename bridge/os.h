/*
 * What plateflow asks of the operating system, in one place for later ports.
 * Threads: all functions may be called from any thread.
 */
#ifndef PF_OS_H
#define PF_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plateflow/error.h"

/*
 * Numbers with a decimal point in the calling thread, whatever locale a step
 * or a library sets for the process, until pf_os_end_numbers(). Returns what
 * that takes; NULL, and nothing changes, if memory ran out.
 */
struct pf_os_numbers;
PF_API struct pf_os_numbers *pf_os_begin_numbers(void);
PF_API void pf_os_end_numbers(struct pf_os_numbers **numbers);

PF_API double pf_os_seconds(void);     /* monotonic clock */
PF_API double pf_os_cpu_seconds(void); /* CPU of this process so far */
PF_API double pf_os_thread_cpu_seconds(void);
PF_API int pf_os_n_cores(void); /* that this process may use; at least 1 */
PF_API size_t pf_os_page_size(void);
/* Name of the calling thread, cut to 15 bytes. */
PF_API void pf_os_name_thread(const char *name);

/* What a failed write is: PF_EMISSING where the disk or the quota is full,
 * which concerns every later write too, else PF_EWRITE. */
PF_API enum pf_code pf_os_write_code(int saved_errno);
/* Make a folder and its parents; an existing folder is fine. */
PF_API int pf_os_make_dirs(const char *path,
                           struct pf_error *err) PF_MUST_CHECK;
/* Sync a folder's entries to the disk. */
PF_API int pf_os_sync_dir(const char *path, struct pf_error *err);
PF_API bool pf_os_is_dir(const char *path);
PF_API bool pf_os_is_file(const char *path);
/* Whether a path from outside can only name something visible below the folder
 * that it is joined to: no part is empty or begins with a dot. */
PF_API bool pf_os_stays_below(const char *path);
/* "DIR/NAME" as a malloc'd string; an absolute NAME stands alone. */
PF_API char *pf_os_join(const char *dir, const char *name);
/* `path` made absolute against the working folder; not resolved. malloc'd. */
PF_API char *pf_os_absolute(const char *path);
/* The folder of `path` ("." where it has none), malloc'd. */
PF_API char *pf_os_dirname(const char *path);
/* Whole file; *size bytes and a NUL behind them, malloc'd. Refuses more than
 * `limit` bytes with PF_EINVAL. */
PF_API int pf_os_read_file(char **out, size_t *size, const char *path,
                           size_t limit, struct pf_error *err) PF_MUST_CHECK;
/* Write `path` so that it appears complete or not at all: a dot-file beside
 * it (".NAME.pf-tmp"), then rename. */
PF_API int pf_os_write_file(const char *path, const void *bytes, size_t size,
                            struct pf_error *err) PF_MUST_CHECK;
/* The temporary name for `path`: "DIR/.NAME.pf-tmp", malloc'd. */
PF_API char *pf_os_temporary(const char *path);

#endif
