/* Columns of tables: see engine/schema.h. */
#include "engine/schema.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 1900 }; /* SQLite's limit is 2000 a table */

struct column {
  char *name;
  size_t number; /* order of arrival: the column of the journal's table */
  enum pf_column_type type;
  bool typed;     /* a table with rows has said the type */
  uint64_t group; /* the plan's first group that has it ... */
  size_t place;   /* ... and where it stands there */
};

struct pf_schema {
  char *name; /* set once */
  pthread_mutex_t lock;
  /* --- protected by lock */
  size_t n_columns;
  struct column *columns; /* by number until they are sorted */
};

int pf_schema_create(struct pf_schema **out, const char *table,
                     struct pf_error *err) {
  struct pf_schema *schema = calloc(1, sizeof(*schema));
  char *name = strdup(table);
  *out = NULL;
  if (!schema || !name) {
    free(schema);
    free(name);
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  }
  schema->name = name;
  (void)pthread_mutex_init(&schema->lock, NULL);
  *out = schema;
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
  free(schema->name);
  (void)pthread_mutex_destroy(&schema->lock);
  free(schema);
}

static struct column *add_column_locked(struct pf_schema *schema,
                                        const char *name,
                                        struct pf_error *err) {
  struct column *list;
  char *copy = NULL;
  if (schema->n_columns == MAX_COLUMNS) {
    (void)pf_error_set(err, PF_ESTEP, "table \"%s\" has more than %d columns",
                       schema->name, MAX_COLUMNS);
    return NULL;
  }
  list = realloc(schema->columns, (schema->n_columns + 1) * sizeof(*list));
  if (list)
    schema->columns = list;
  copy = list ? strdup(name) : NULL;
  if (!copy) {
    (void)pf_error_set(err, PF_ENOMEM, "out of memory");
    return NULL;
  }
  list = &list[schema->n_columns];
  *list = (struct column){
      .name = copy, .number = schema->n_columns, .group = UINT64_MAX};
  schema->n_columns++;
  return list;
}

/* Tables mostly come with their columns in the same places: look there
 * first. */
static struct column *find_locked(struct pf_schema *schema, const char *name,
                                  size_t hint) {
  if (hint < schema->n_columns &&
      strcmp(schema->columns[hint].name, name) == 0)
    return &schema->columns[hint];
  for (size_t i = 0; i < schema->n_columns; i++)
    if (strcmp(schema->columns[i].name, name) == 0)
      return &schema->columns[i];
  return NULL;
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

static int accept_column_locked(struct pf_schema *schema, uint64_t group,
                                const struct pf_table *table, size_t c,
                                size_t *number, struct pf_error *err) {
  const struct pf_column *have = &table->columns[c];
  struct column *column = find_locked(schema, have->name, c);
  if (!column)
    column = add_column_locked(schema, have->name, err);
  if (!column)
    return (int)err->code;
  *number = column->number;
  if (group < column->group) {
    column->group = group;
    column->place = c;
  }
  if (is_empty_column(table, c) || fits_locked(column, have->type))
    return PF_OK;
  return pf_error_set(err, PF_ESTEP,
                      "column \"%s\" of table \"%s\" is %s here and %s in "
                      "earlier groups",
                      have->name, schema->name,
                      pf_column_type_name(have->type),
                      pf_column_type_name(column->type));
}

int pf_schema_accept(struct pf_schema *schema, uint64_t group,
                     const struct pf_table *table, size_t **map,
                     struct pf_error *err) {
  struct pf_error own = PF_ERROR_INIT;
  int result = PF_OK;
  *map = calloc(table->n_columns + 1, sizeof(**map));
  if (!*map)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  (void)pthread_mutex_lock(&schema->lock);
  for (size_t c = 0; c < table->n_columns && result == PF_OK; c++)
    result = accept_column_locked(schema, group, table, c, &(*map)[c], &own);
  (void)pthread_mutex_unlock(&schema->lock);
  pf_error_move(err, &own);
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

static int compare_columns(const void *a, const void *b) {
  const struct column *x = a, *y = b;
  if (x->group != y->group)
    return x->group < y->group ? -1 : 1;
  return (x->place > y->place) - (x->place < y->place);
}

void pf_schema_sort(struct pf_schema *schema) {
  (void)pthread_mutex_lock(&schema->lock);
  if (schema->n_columns)
    qsort(schema->columns, schema->n_columns, sizeof(*schema->columns),
          compare_columns);
  (void)pthread_mutex_unlock(&schema->lock);
}

const char *pf_schema_column(struct pf_schema *schema, size_t i,
                             size_t *number, enum pf_column_type *type) {
  const char *name;
  (void)pthread_mutex_lock(&schema->lock);
  *number = schema->columns[i].number;
  *type = schema->columns[i].type;
  name = schema->columns[i].name;
  (void)pthread_mutex_unlock(&schema->lock);
  return name;
}
