/* Tables that steps return: see steps/table.h. */
#include "steps/table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *const type_names[] = {
#define XX(name, word) [PF_COLUMN_##name] = word,
    PF_COLUMN_TYPE_MAP(XX)
#undef XX
};

const char *pf_column_type_name(enum pf_column_type type) {
  return type_names[type];
}

int pf_table_create(struct pf_table **out, struct pf_error *err) {
  *out = calloc(1, sizeof(**out));
  if (!*out)
    return pf_error_set(err, PF_ENOMEM, "no memory for a table");
  return PF_OK;
}

static void free_texts(struct pf_table *table) {
  for (size_t c = 0; c < table->n_columns; c++) {
    if (table->columns[c].type != PF_COLUMN_TEXT)
      continue;
    for (size_t r = 0; r < table->n_rows; r++)
      free(table->cells[r * table->n_columns + c].as.t);
  }
}

void pf_table_destroy(struct pf_table **table) {
  struct pf_table *t;
  if (!table || !*table)
    return;
  t = *table;
  free_texts(t);
  for (size_t c = 0; c < t->n_columns; c++)
    free(t->columns[c].name);
  free(t->columns);
  free(t->cells);
  free(t->name);
  free(t);
  *table = NULL;
}

static bool has_column(const struct pf_table *table, const char *name) {
  for (size_t c = 0; c < table->n_columns; c++)
    if (strcmp(table->columns[c].name, name) == 0)
      return true;
  return false;
}

int pf_table_add_column(struct pf_table *table, const char *name,
                        enum pf_column_type type, struct pf_error *err) {
  struct pf_column *columns;
  char *copy;
  if (!name || !*name)
    return pf_error_set(err, PF_EINVAL, "a table column has no name");
  if (has_column(table, name))
    return pf_error_set(err, PF_EINVAL,
                        "two columns of a table are called \"%s\"", name);
  if (table->n_rows)
    return pf_error_set(err, PF_EBUG, "column \"%s\" comes after the rows",
                        name);
  columns = realloc(table->columns, (table->n_columns + 1) * sizeof(*columns));
  if (!columns)
    return pf_error_set(err, PF_ENOMEM, "no memory for a table's columns");
  table->columns = columns;
  copy = strdup(name);
  if (!copy)
    return pf_error_set(err, PF_ENOMEM, "no memory for a table's columns");
  columns[table->n_columns].name = copy;
  columns[table->n_columns].type = type;
  table->n_columns++;
  return PF_OK;
}

/* Room for `n_rows` rows, doubling so that adding one by one stays linear. */
static int reserve_rows(struct pf_table *table, size_t n_rows,
                        struct pf_error *err) {
  size_t row_bytes = table->n_columns * sizeof(*table->cells);
  size_t cap = table->row_cap ? table->row_cap : 16;
  struct pf_cell *cells;
  if (n_rows <= table->row_cap || row_bytes == 0)
    return PF_OK;
  while (cap < n_rows && cap <= SIZE_MAX / 2)
    cap *= 2;
  if (cap < n_rows || cap > SIZE_MAX / row_bytes)
    return pf_error_set(err, PF_ENOMEM, "no memory for %zu rows of a table",
                        n_rows);
  cells = realloc(table->cells, cap * row_bytes);
  if (!cells)
    return pf_error_set(err, PF_ENOMEM, "no memory for %zu rows of a table",
                        n_rows);
  table->cells = cells;
  table->row_cap = cap;
  return PF_OK;
}

int pf_table_add_rows(struct pf_table *table, size_t n, struct pf_error *err) {
  int code;
  if (n > SIZE_MAX - table->n_rows)
    return pf_error_set(err, PF_ENOMEM, "a table has too many rows");
  code = reserve_rows(table, table->n_rows + n, err);
  if (code)
    return code;
  if (n && table->n_columns)
    memset(table->cells + table->n_rows * table->n_columns, 0,
           n * table->n_columns * sizeof(*table->cells));
  table->n_rows += n;
  return PF_OK;
}

struct pf_cell *pf_table_cell(struct pf_table *table, size_t row,
                              size_t column) {
  return &table->cells[row * table->n_columns + column];
}

int pf_table_set_text(struct pf_table *table, size_t row, size_t column,
                      const char *text, struct pf_error *err) {
  struct pf_cell *cell = pf_table_cell(table, row, column);
  char *copy = strdup(text);
  if (!copy)
    return pf_error_set(err, PF_ENOMEM, "no memory for a table's text");
  free(cell->as.t);
  cell->as.t = copy;
  cell->state = PF_CELL_SET;
  return PF_OK;
}
