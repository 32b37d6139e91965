/* Columns of tables: see engine/schema.h. */
#include "engine/schema.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct column {
  char *name;
  enum pf_column_type type;
  bool typed; /* a table with rows has said the type */
};

struct pf_schema {
  char *name; /* set once */
  pthread_mutex_t lock;
  /* --- protected by lock */
  size_t n_columns;
  struct column *columns;
  size_t *order;        /* numbers in the order to write them */
  uint64_t order_group; /* the group that gave the order: the lowest seen */
};

int pf_schema_create(struct pf_schema **out, const char *table,
                     struct pf_error *err) {
  struct pf_schema *schema = calloc(1, sizeof(*schema));
  *out = schema;
  if (!schema || !(schema->name = strdup(table))) {
    free(schema);
    *out = NULL;
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  }
  (void)pthread_mutex_init(&schema->lock, NULL);
  return PF_OK;
}

void pf_schema_destroy(struct pf_schema **schema_p) {
  struct pf_schema *schema = *schema_p;
  *schema_p = NULL;
  if (!schema)
    return;
  for (size_t i = 0; i < schema->n_columns; i++)
    free(schema->columns[i].name);
  free(schema->columns);
  free(schema->order);
  free(schema->name);
  (void)pthread_mutex_destroy(&schema->lock);
  free(schema);
}

static int first_columns_locked(struct pf_schema *schema,
                                const struct pf_table *table) {
  schema->columns = calloc(table->n_columns, sizeof(*schema->columns));
  schema->order = calloc(table->n_columns, sizeof(*schema->order));
  if (!schema->columns || !schema->order)
    return PF_ENOMEM;
  for (size_t i = 0; i < table->n_columns; i++) {
    schema->columns[i].name = strdup(table->columns[i].name);
    if (!schema->columns[i].name)
      return PF_ENOMEM;
    schema->columns[i].type = table->columns[i].type;
    schema->order[i] = i;
    schema->n_columns = i + 1;
  }
  schema->order_group = UINT64_MAX;
  return PF_OK;
}

static size_t find_locked(const struct pf_schema *schema, const char *name) {
  size_t i = 0;
  while (i < schema->n_columns && strcmp(schema->columns[i].name, name) != 0)
    i++;
  return i;
}

static bool is_empty_column(const struct pf_table *table, size_t c) {
  for (size_t r = 0; r < table->n_rows; r++)
    if (table->cells[r * table->n_columns + c].state == PF_CELL_SET)
      return false;
  return true;
}

/* Whether `type` fits the column, widening integer to real. */
static bool fits_locked(struct column *column, enum pf_column_type type) {
  if (!column->typed) {
    column->type = type;
    column->typed = true;
    return true;
  }
  if (column->type == PF_COLUMN_INT && type == PF_COLUMN_REAL)
    column->type = PF_COLUMN_REAL;
  return column->type == type ||
         (column->type == PF_COLUMN_REAL && type == PF_COLUMN_INT);
}

static int map_column_locked(struct pf_schema *schema,
                             const struct pf_table *table, size_t c,
                             size_t *map, struct pf_error *err) {
  const struct pf_column *have = &table->columns[c];
  size_t number = find_locked(schema, have->name);
  if (number == schema->n_columns)
    return pf_error_set(err, PF_ESTEP,
                        "table \"%s\" has a column \"%s\" that earlier groups "
                        "did not have",
                        schema->name, have->name);
  map[c] = number;
  if (is_empty_column(table, c) ||
      fits_locked(&schema->columns[number], have->type))
    return PF_OK;
  return pf_error_set(err, PF_ESTEP,
                      "column \"%s\" of table \"%s\" is %s here and %s in "
                      "earlier groups",
                      have->name, schema->name,
                      pf_column_type_name(have->type),
                      pf_column_type_name(schema->columns[number].type));
}

static int map_all_locked(struct pf_schema *schema,
                          const struct pf_table *table, size_t *map,
                          struct pf_error *err) {
  if (!schema->n_columns && first_columns_locked(schema, table) != PF_OK)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t c = 0; c < table->n_columns; c++) {
    int result = map_column_locked(schema, table, c, map, err);
    if (result != PF_OK)
      return result;
  }
  if (table->n_columns < schema->n_columns)
    for (size_t i = 0; i < schema->n_columns; i++) {
      size_t c = 0;
      while (c < table->n_columns && map[c] != i)
        c++;
      if (c == table->n_columns)
        return pf_error_set(err, PF_ESTEP,
                            "table \"%s\" lacks the column \"%s\" that "
                            "earlier groups had",
                            schema->name, schema->columns[i].name);
    }
  return PF_OK;
}

int pf_schema_accept(struct pf_schema *schema, uint64_t group,
                     const struct pf_table *table, size_t **map,
                     struct pf_error *err) {
  int result;
  *map = calloc(table->n_columns + 1, sizeof(**map));
  if (!*map)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  if (!table->n_columns) /* an empty list: no rows, nothing known */
    return PF_OK;
  (void)pthread_mutex_lock(&schema->lock);
  result = map_all_locked(schema, table, *map, err);
  if (result == PF_OK && group < schema->order_group) {
    schema->order_group = group;
    memcpy(schema->order, *map, table->n_columns * sizeof(**map));
  }
  (void)pthread_mutex_unlock(&schema->lock);
  if (result != PF_OK) {
    free(*map);
    *map = NULL;
  }
  return result;
}

const char *pf_schema_name(const struct pf_schema *schema) {
  return schema->name;
}

size_t pf_schema_n_columns(struct pf_schema *schema) {
  size_t n;
  (void)pthread_mutex_lock(&schema->lock);
  n = schema->n_columns;
  (void)pthread_mutex_unlock(&schema->lock);
  return n;
}

const char *pf_schema_column(struct pf_schema *schema, size_t i,
                             size_t *number, enum pf_column_type *type) {
  const char *name;
  (void)pthread_mutex_lock(&schema->lock);
  *number = schema->order[i];
  *type = schema->columns[*number].type;
  name = schema->columns[*number].name;
  (void)pthread_mutex_unlock(&schema->lock);
  return name;
}
