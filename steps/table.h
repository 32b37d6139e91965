/*
 * A table that a step returns: typed columns, rows, cells that may be empty.
 * Ownership: pf_table_create() gives a table that pf_table_destroy() frees.
 * One thread at a time.
 */
#ifndef PF_TABLE_H
#define PF_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "plateflow/error.h"

#define PF_COLUMN_TYPE_MAP(XX)                                                \
  XX(INT, "integer")                                                          \
  XX(REAL, "real")                                                            \
  XX(BOOL, "boolean")                                                         \
  XX(TEXT, "text")

enum pf_column_type {
#define XX(name, word) PF_COLUMN_##name,
  PF_COLUMN_TYPE_MAP(XX)
#undef XX
};
PF_API const char *pf_column_type_name(enum pf_column_type type);

enum pf_cell_state { PF_CELL_EMPTY, PF_CELL_SET };

struct pf_cell {
  enum pf_cell_state state;
  union {
    int64_t i; /* INT, BOOL */
    double r;  /* REAL */
    char *t;   /* TEXT, owned by the table */
  } as;
};

struct pf_column {
  char *name;
  enum pf_column_type type;
};

struct pf_table {
  char *name; /* NULL until the engine names it */
  size_t n_columns, n_rows, row_cap;
  struct pf_column *columns;
  struct pf_cell *cells; /* n_rows * n_columns, row by row */
};

PF_API int pf_table_create(struct pf_table **out,
                           struct pf_error *err) PF_MUST_CHECK;
PF_API void pf_table_destroy(struct pf_table **table);
/* Columns come before rows. PF_EINVAL: empty or repeated name. */
PF_API int pf_table_add_column(struct pf_table *table, const char *name,
                               enum pf_column_type type,
                               struct pf_error *err) PF_MUST_CHECK;
/* Add `n` rows of empty cells; the first new row is n_rows - n. */
PF_API int pf_table_add_rows(struct pf_table *table, size_t n,
                             struct pf_error *err) PF_MUST_CHECK;
PF_API struct pf_cell *pf_table_cell(struct pf_table *table, size_t row,
                                     size_t column);
/* Copies the text. */
PF_API int pf_table_set_text(struct pf_table *table, size_t row, size_t column,
                             const char *text,
                             struct pf_error *err) PF_MUST_CHECK;

#endif
