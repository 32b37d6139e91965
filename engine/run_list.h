/*
 * What the writers of a run's lists (tables, images.csv, index.csv) share:
 * CSVs that the journal owns, queries, columns of components. Private to
 * engine/run_*.c. One thread, after pf_journal_stop().
 */
#ifndef PF_RUN_LIST_H
#define PF_RUN_LIST_H

#include "engine/csv.h"
#include "engine/runner.h"

struct sqlite3_stmt;

/* pf_csv_open() below OUT; pf_csv_close(), then the journal lists the file. */
int pf_list_open(struct pf_csv *csv, const struct pf_runner *runner,
                 const char *name, struct pf_error *err) PF_MUST_CHECK;
int pf_list_close(struct pf_csv *csv, const struct pf_runner *runner,
                  int result, struct pf_error *err) PF_MUST_CHECK;
/* *statement is to be finalised, NULL after failure. */
int pf_list_query(const struct pf_runner *runner, const char *sql,
                  struct sqlite3_stmt **statement,
                  struct pf_error *err) PF_MUST_CHECK;
/* What is to be said when a query's rows end with `code`: PF_OK at the end.
 */
int pf_list_end(const struct pf_runner *runner, int code,
                struct pf_error *err) PF_MUST_CHECK;
/* Whether any group gave the table a row. */
bool pf_list_has_rows(const struct pf_runner *runner,
                      const struct pf_schema *schema);
/* Which components have a column; the names of those below `n`. */
bool pf_list_has_column(const struct pf_plan *plan, enum pf_component c);
void pf_list_names(struct pf_csv *csv, const struct pf_plan *plan, unsigned n);
/* Empty where the slice has no such component any more. */
void pf_list_value(struct pf_csv *csv, const struct pf_plan *plan,
                   const struct pf_slice *slice, unsigned lost,
                   enum pf_component c);

#endif
