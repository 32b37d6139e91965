/* Tables of one call: named, joined with their slice, checked, kept. */
#include "engine/runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Columns that tables/NAME.csv has already. A stacked component is none: what
 * a table says of it is what stands there. */
static bool is_taken(const struct pf_plan *plan, enum pf_component c) {
  if (c == PF_N_COMPONENTS || (plan->stacked & PF_BIT(c)))
    return false;
  return c == PF_PLATE || c == PF_WELL || c == PF_SITE ||
         (plan->identity & PF_BIT(c));
}

static int check_names(const struct pf_plan *plan,
                       const struct pf_table *table, const char *name,
                       struct pf_error *err) {
  for (size_t c = 0; c < table->n_columns; c++) {
    if (is_taken(plan, pf_component_find(table->columns[c].name)))
      return pf_error_set(
          err, PF_ESTEP,
          "table \"%s\" has a column \"%s\", which is the name "
          "of a component: call it something else",
          name, table->columns[c].name);
  }
  return PF_OK;
}

static double cell_number(const struct pf_table *table, size_t row,
                          size_t column) {
  const struct pf_cell *cell = &table->cells[row * table->n_columns + column];
  if (cell->state == PF_CELL_EMPTY)
    return NAN;
  if (table->columns[column].type == PF_COLUMN_REAL)
    return cell->as.r;
  return (double)cell->as.i;
}

static int keep_rule(const struct pf_keep *rule, const struct pf_table *table,
                     bool *keep, struct pf_error *err) {
  size_t c = 0;
  while (c < table->n_columns &&
         strcmp(table->columns[c].name, rule->column) != 0)
    c++;
  if (c == table->n_columns)
    return table->n_rows == 0
               ? PF_OK
               : pf_error_set(err, PF_ESTEP,
                              "\"keep\": table \"%s\" has no column \"%s\"",
                              rule->table, rule->column);
  if (table->columns[c].type == PF_COLUMN_TEXT)
    return pf_error_set(err, PF_ESTEP,
                        "\"keep\": column \"%s\" of table \"%s\" is text",
                        rule->column, rule->table);
  for (size_t r = 0; r < table->n_rows; r++) {
    double x = cell_number(table, r, c);
    /* An empty cell or NaN is within no bounds. */
    if (!(x >= rule->min && x <= rule->max))
      *keep = false;
  }
  return PF_OK;
}

static const struct pf_table *find_table(const struct pf_record *record,
                                         const char *name) {
  for (size_t i = record->n_rows; i-- > 0;)
    if (strcmp(pf_schema_name(record->rows[i].schema), name) == 0)
      return record->rows[i].table;
  return NULL;
}

static int apply_keep(const struct pf_step_spec *spec,
                      const struct pf_record *record, bool *keep,
                      struct pf_error *err) {
  for (size_t i = 0; i < spec->n_keep; i++) {
    const struct pf_table *table = find_table(record, spec->keep[i].table);
    int result = table ? keep_rule(&spec->keep[i], table, keep, err) : PF_OK;
    if (result != PF_OK)
      return result;
  }
  return PF_OK;
}

/* Takes the table, also on failure. */
static int keep_table(struct pf_worker *worker, size_t s, size_t t,
                      struct pf_table *table, struct pf_record *record,
                      struct pf_error *err) {
  struct pf_runner *runner = worker->runner;
  struct pf_rows *rows = &record->rows[record->n_rows];
  const char *name = runner->plan->steps[s].spec->tables[t];
  int result = check_names(runner->plan, table, name, err);
  if (result == PF_OK)
    result = pf_schema_accept(runner->steps[s].schemas[t], record->group,
                              table, &rows->map, err);
  if (result != PF_OK) {
    pf_table_destroy(&table);
    return result;
  }
  rows->schema = runner->steps[s].schemas[t];
  rows->table = table;
  record->n_rows++;
  return PF_OK;
}

int pf_run_tables(struct pf_worker *worker, size_t s, struct pf_result *result,
                  struct pf_record *record, bool *keep, struct pf_error *err) {
  const struct pf_step_spec *spec = worker->runner->plan->steps[s].spec;
  int code = PF_OK;
  *keep = true;
  if (result->n_tables != spec->n_tables)
    return pf_error_set(err, PF_ESTEP,
                        "%zu table(s) were returned, \"tables\" names %zu",
                        result->n_tables, spec->n_tables);
  for (size_t t = 0; t < spec->n_tables && code == PF_OK; t++) {
    struct pf_table *table = result->tables[t];
    result->tables[t] = NULL;
    code = keep_table(worker, s, t, table, record, err);
  }
  if (code == PF_OK)
    code = apply_keep(spec, record, keep, err);
  return code;
}
