/* tables/NAME.csv, from the journal, in the order of the plan whatever the
 * workers did. */
#include "engine/run_list.h"

#include <sqlite3.h>

static void csv_cell(struct pf_csv *csv, sqlite3_stmt *s, int at,
                     enum pf_column_type type) {
  if (sqlite3_column_type(s, at) == SQLITE_NULL)
    pf_csv_text(csv, NULL);
  else if (type == PF_COLUMN_TEXT)
    pf_csv_text(csv, (const char *)sqlite3_column_text(s, at));
  else if (type == PF_COLUMN_BOOL)
    pf_csv_text(csv, sqlite3_column_int(s, at) ? "True" : "False");
  else if (type == PF_COLUMN_INT)
    pf_csv_int(csv, sqlite3_column_int64(s, at));
  else
    pf_csv_real(csv, sqlite3_column_double(s, at));
}

/* A table that will be written: the i-th column of its schema that stands in
 * a component's place, SIZE_MAX where there is none. */
struct table {
  struct pf_schema *schema;
  size_t n; /* columns of the schema */
  size_t place[PF_N_COMPONENTS];
};

static const char *column_name(const struct table *table, size_t i) {
  size_t number;
  enum pf_column_type type;
  return pf_schema_column(table->schema, i, &number, &type);
}

/* What a table says of a stacked component goes where the component would. */
static void table_init(struct table *table, const struct pf_plan *plan,
                       struct pf_schema *schema) {
  pf_schema_sort(schema);
  table->schema = schema;
  table->n = pf_schema_n_columns(schema);
  for (unsigned c = 0; c < PF_N_COMPONENTS; c++) {
    table->place[c] = SIZE_MAX;
    if (!pf_list_has_column(plan, (enum pf_component)c))
      continue;
    for (size_t i = 0; i < table->n; i++)
      if (pf_component_find(column_name(table, i)) == (enum pf_component)c)
        table->place[c] = i;
  }
}

static bool is_placed(const struct table *table, size_t i) {
  for (unsigned c = 0; c < PF_N_COMPONENTS; c++)
    if (table->place[c] == i)
      return true;
  return false;
}

static void table_header(const struct table *table, const struct pf_plan *plan,
                         struct pf_csv *csv) {
  pf_list_names(csv, plan, PF_N_COMPONENTS);
  for (size_t i = 0; i < table->n; i++)
    if (!is_placed(table, i))
      pf_csv_text(csv, column_name(table, i));
  pf_csv_line(csv);
}

static void table_cell(const struct table *table, struct pf_csv *csv,
                       sqlite3_stmt *s, size_t i) {
  size_t number = 0;
  enum pf_column_type type = PF_COLUMN_INT;
  (void)pf_schema_column(table->schema, i, &number, &type);
  csv_cell(csv, s, (int)number + 2, type);
}

static void table_row(const struct table *table, const struct pf_plan *plan,
                      struct pf_csv *csv, sqlite3_stmt *s) {
  const struct pf_slice *slice;
  struct pf_group group;
  pf_plan_group(plan, (uint64_t)sqlite3_column_int64(s, 0), &group);
  slice = pf_plan_slice(plan, group.first);
  for (unsigned c = 0; c < PF_N_COMPONENTS; c++)
    if (!pf_list_has_column(plan, (enum pf_component)c))
      continue;
    else if (table->place[c] < table->n)
      table_cell(table, csv, s, table->place[c]);
    else
      pf_list_value(csv, plan, slice, plan->stacked, (enum pf_component)c);
  for (size_t i = 0; i < table->n; i++)
    if (!is_placed(table, i))
      table_cell(table, csv, s, i);
  pf_csv_line(csv);
}

static int table_rows(struct pf_runner *runner, const struct table *table,
                      struct pf_csv *csv, struct pf_error *err) {
  sqlite3_stmt *s = NULL;
  struct pf_buf sql = {0};
  int result, code = SQLITE_DONE;
  pf_buf_printf(&sql, "SELECT * FROM \"table_%s\" ORDER BY grp, row",
                pf_schema_name(table->schema));
  result = pf_buf_ok(&sql) ? pf_list_query(runner, sql.data, &s, err)
                           : pf_error_set(err, PF_ENOMEM, "out of memory");
  while (result == PF_OK && (code = sqlite3_step(s)) == SQLITE_ROW)
    table_row(table, runner->plan, csv, s);
  if (result == PF_OK)
    result = pf_list_end(runner, code, err);
  (void)sqlite3_finalize(s);
  pf_buf_free(&sql);
  return result;
}

static int write_table(struct pf_runner *runner, struct pf_schema *schema,
                       struct pf_error *err) {
  struct pf_buf name = {0};
  struct pf_csv csv = {0};
  struct table table;
  int result;
  table_init(&table, runner->plan, schema);
  pf_buf_printf(&name, "tables/%s.csv", pf_schema_name(schema));
  result = pf_list_open(&csv, runner, pf_buf_text(&name), err);
  if (result == PF_OK) {
    table_header(&table, runner->plan, &csv);
    if (pf_list_has_rows(runner, schema))
      result = table_rows(runner, &table, &csv, err);
  }
  result = pf_list_close(&csv, runner, result, err);
  pf_buf_free(&name);
  return result;
}

int pf_run_write_tables(struct pf_runner *runner, struct pf_error *err) {
  for (size_t s = 0; s < runner->plan->n_steps; s++)
    for (size_t t = 0; t < runner->plan->steps[s].spec->n_tables; t++) {
      int result = write_table(runner, runner->steps[s].schemas[t], err);
      if (result != PF_OK)
        return result;
    }
  return PF_OK;
}
