/*
 * run.sqlite: every group, task, output and row of a run. One thread writes
 * it, in batches of about a second; a group's rows go in with the transaction
 * that marks it done. The database is locked exclusively while a run lasts,
 * which keeps a second run out of the same OUT.
 *
 * Threads: push may be called from any thread; open, close and the queries
 * from one thread at a time, the queries only after pf_journal_stop().
 */
#ifndef PF_JOURNAL_H
#define PF_JOURNAL_H

#include "engine/plan_private.h"
#include "engine/record.h"

struct pf_journal;
struct sqlite3;

/*
 * Open OUT/run.sqlite. One that is there already is refused (PF_EINVAL)
 * without `fresh`, which first removes what it lists, and only that. The
 * journal borrows `out_dir` and the plan.
 */
int pf_journal_open(struct pf_journal **out, const char *out_dir,
                    const struct pf_plan *plan, bool fresh,
                    struct pf_error *err) PF_MUST_CHECK;
/* Hand a record over; waits while too many are queued. After the journal
 * failed it is freed, and its outputs are removed: nothing would list them.
 */
void pf_journal_push(struct pf_journal *journal, struct pf_record *record);
/* Whether writing failed, for a run to stop early. */
bool pf_journal_failed(struct pf_journal *journal);
/* Write what is queued and end the thread. The first failure is the error. */
int pf_journal_stop(struct pf_journal *journal, struct pf_error *err);
/* A file of OUT that is no image (a table, run.json): --fresh removes it. */
int pf_journal_add_file(struct pf_journal *journal, const char *path,
                        struct pf_error *err) PF_MUST_CHECK;
struct sqlite3 *pf_journal_db(struct pf_journal *journal);
double pf_journal_seconds(const struct pf_journal *journal); /* writing */
/* Stop if it runs, close, free. NULL is allowed. */
void pf_journal_close(struct pf_journal **journal);

/* journal_fresh.c: remove what the journal at `path` lists below `out_dir`,
 * then the journal. */
int pf_journal_remove_outputs(const char *out_dir, const char *path,
                              struct pf_error *err) PF_MUST_CHECK;

#endif
