/* What the writers of lists share, and images/index.csv: see
 * engine/run_list.h. */
#include "engine/run_list.h"

#include <sqlite3.h>
#include <string.h>

int pf_list_open(struct pf_csv *csv, const struct pf_runner *runner,
                 const char *name, struct pf_error *err) {
  return pf_csv_open(csv, runner->out_dir, name, err);
}

int pf_list_close(struct pf_csv *csv, const struct pf_runner *runner,
                  int result, struct pf_error *err) {
  result = pf_csv_close(csv, result, err);
  if (result == PF_OK)
    result = pf_journal_add_file(runner->journal, csv->name, err);
  return result;
}

int pf_list_query(const struct pf_runner *runner, const char *sql,
                  sqlite3_stmt **statement, struct pf_error *err) {
  sqlite3 *db = pf_journal_db(runner->journal);
  if (sqlite3_prepare_v2(db, sql, -1, statement, NULL) == SQLITE_OK)
    return PF_OK;
  return pf_error_set(err, PF_EWRITE, "cannot read run.sqlite: %s",
                      sqlite3_errmsg(db));
}

int pf_list_end(const struct pf_runner *runner, int code,
                struct pf_error *err) {
  if (code == SQLITE_DONE)
    return PF_OK;
  return pf_error_set(err, PF_EWRITE, "cannot read run.sqlite: %s",
                      sqlite3_errmsg(pf_journal_db(runner->journal)));
}

bool pf_list_has_rows(const struct pf_runner *runner,
                      const struct pf_schema *schema) {
  sqlite3_stmt *s = NULL;
  bool found = false;
  if (pf_list_query(runner,
                    "SELECT 1 FROM sqlite_master WHERE type='table' AND "
                    "name='table_' || ?",
                    &s, NULL) == PF_OK) {
    (void)sqlite3_bind_text(s, 1, pf_schema_name(schema), -1, SQLITE_STATIC);
    found = sqlite3_step(s) == SQLITE_ROW;
  }
  (void)sqlite3_finalize(s);
  return found;
}

/* plate, well and site always, so that tables of any plate join; the others
 * where the plate has them. */
bool pf_list_has_column(const struct pf_plan *plan, enum pf_component c) {
  return c == PF_PLATE || c == PF_WELL || c == PF_SITE ||
         (plan->identity & PF_BIT(c));
}

void pf_list_names(struct pf_csv *csv, const struct pf_plan *plan,
                   unsigned n) {
  for (unsigned c = 0; c < n; c++)
    if (pf_list_has_column(plan, (enum pf_component)c))
      pf_csv_text(csv, pf_component_name((enum pf_component)c));
}

void pf_list_value(struct pf_csv *csv, const struct pf_plan *plan,
                   const struct pf_slice *slice, unsigned lost,
                   enum pf_component c) {
  uint32_t rank = slice->value[c];
  pf_csv_text(csv, rank == PF_NO_VALUE || (lost & PF_BIT(c))
                       ? NULL
                       : pf_plate_value(plan->plate, c, rank));
}

/* ------------------------------------------------------ images/index.csv */

static void index_row(struct pf_runner *runner, struct pf_csv *csv,
                      sqlite3_stmt *s) {
  size_t step = (size_t)sqlite3_column_int(s, 1);
  uint32_t position = (uint32_t)sqlite3_column_int64(s, 2);
  const char *path = (const char *)sqlite3_column_text(s, 0);
  const struct pf_plan *plan = runner->plan;
  const struct pf_slice *slice = pf_plan_slice(plan, position);
  if (strcmp(plan->steps[step].folder, "images") != 0)
    return;
  pf_csv_text(csv, path + strlen("images/"));
  pf_csv_int(csv, 0);
  for (unsigned c = 0; c < PF_N_COMPONENTS; c++)
    pf_list_value(csv, plan, slice, plan->steps[step].lost,
                  (enum pf_component)c);
  pf_csv_line(csv);
}

static bool saves_images(const struct pf_plan *plan) {
  for (size_t s = 0; s < plan->n_steps; s++)
    if (plan->steps[s].saved && strcmp(plan->steps[s].folder, "images") == 0)
      return true;
  return false;
}

int pf_run_write_index(struct pf_runner *runner, struct pf_error *err) {
  struct pf_csv csv = {0};
  sqlite3_stmt *s = NULL;
  int result, code = SQLITE_DONE;
  if (!saves_images(runner->plan))
    return PF_OK;
  result = pf_list_open(&csv, runner, "images/index.csv", err);
  if (result == PF_OK)
    result =
        pf_list_query(runner,
                      "SELECT path, step, position FROM outputs WHERE plane < "
                      "1073741824 ORDER BY grp, step, plane",
                      &s, err);
  if (result == PF_OK) {
    pf_csv_text(&csv, "file");
    pf_csv_text(&csv, "page");
    for (unsigned c = 0; c < PF_N_COMPONENTS; c++)
      pf_csv_text(&csv, pf_component_name((enum pf_component)c));
    pf_csv_line(&csv);
  }
  while (result == PF_OK && (code = sqlite3_step(s)) == SQLITE_ROW)
    index_row(runner, &csv, s);
  if (result == PF_OK)
    result = pf_list_end(runner, code, err);
  (void)sqlite3_finalize(s);
  return pf_list_close(&csv, runner, result, err);
}
