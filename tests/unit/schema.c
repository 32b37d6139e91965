/* engine/schema.c: columns of tables that arrive in any order, from any
 * thread. */
#include "engine/schema.h"
#include "bridge/buf.h"
#include "tests/unit/check.h"

#include <pthread.h>
#include <stdlib.h>

/*
 * A table as text: "name:type" per column, type i, r, b or t, upper case
 * where its only row has a value.
 */
struct given {
  uint64_t group;
  const char *columns; /* "area:I label:I name:t" */
  bool no_rows;
  const char *error; /* a part of it, or NULL */
};

static enum pf_column_type type_of(char letter) {
  static const char letters[] = "irbt";
  return (enum pf_column_type)(strchr(letters, letter | 0x20) - letters);
}

static void add_column(struct pf_table *table, const char *word, size_t n) {
  struct pf_error err = PF_ERROR_INIT;
  char name[64] = "";
  memcpy(name, word, n - 2);
  CHECK_INT(pf_table_add_column(table, name, type_of(word[n - 1]), &err),
            PF_OK);
  pf_error_clear(&err);
}

static void set_cell(struct pf_table *table, size_t column) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_cell *cell = pf_table_cell(table, 0, column);
  if (table->columns[column].type == PF_COLUMN_TEXT) {
    CHECK_INT(pf_table_set_text(table, 0, column, "x", &err), PF_OK);
    return;
  }
  cell->state = PF_CELL_SET;
  cell->as.i = 0;
}

static struct pf_table *make_table(const char *columns, bool no_rows) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_table *table = NULL;
  size_t i = 0;
  CHECK_INT(pf_table_create(&table, &err), PF_OK);
  for (const char *p = columns; *p; p += p[strcspn(p, " ")] ? 1 : 0) {
    add_column(table, p, strcspn(p, " "));
    p += strcspn(p, " ");
  }
  if (no_rows)
    return table;
  CHECK_INT(pf_table_add_rows(table, 1, &err), PF_OK);
  for (const char *p = strchr(columns, ':'); p; p = strchr(p + 1, ':'), i++)
    if (p[1] >= 'A' && p[1] <= 'Z')
      set_cell(table, i);
  return table;
}

/* "area:r label:i", in the order in which they would be written. */
static void describe(struct pf_schema *schema, struct pf_buf *out) {
  pf_schema_sort(schema);
  for (size_t i = 0; i < pf_schema_n_columns(schema); i++) {
    size_t number = 0;
    enum pf_column_type type = PF_COLUMN_INT;
    const char *name = pf_schema_column(schema, i, &number, &type);
    pf_buf_printf(out, "%s%s:%c", i ? " " : "", name, "irbt"[type]);
    CHECK(number < pf_schema_n_columns(schema));
  }
}

enum { MAX_GIVEN = 4 };

static const struct {
  const char *name;
  struct given given[MAX_GIVEN];
  const char *columns;
} cases[] = {
    {"one table", {{0, "label:I area:R", false, NULL}}, "label:i area:r"},
    {"the same again",
     {{0, "a:I b:T", false, NULL}, {1, "a:I b:T", false, NULL}},
     "a:i b:t"},
    {"integers become real",
     {{0, "a:I", false, NULL}, {1, "a:R", false, NULL}},
     "a:r"},
    {"a real column takes integers",
     {{0, "a:R", false, NULL}, {1, "a:I", false, NULL}},
     "a:r"},
    {"text is no number",
     {{0, "a:I", false, NULL},
      {1, "a:T", false,
       "column \"a\" of table \"t\" is text here and integer "
       "in earlier groups"}},
     "a:i"},
    {"a boolean is no number",
     {{0, "a:R", false, NULL}, {1, "a:B", false, "is boolean here"}},
     "a:r"},
    {"without rows a type says nothing",
     {{0, "a:t", true, NULL}, {1, "a:I", false, NULL}},
     "a:i"},
    {"empty cells say nothing",
     {{0, "a:I b:i", false, NULL}, {1, "a:t b:T", false, NULL}},
     "a:i b:t"},
    {"another order in a later group",
     {{3, "a:I b:R", false, NULL}, {4, "b:R a:I", false, NULL}},
     "a:i b:r"},
    {"the plan's first group decides, whoever comes first",
     {{4, "b:R a:I", false, NULL}, {3, "a:I b:R", false, NULL}},
     "a:i b:r"},
    {"columns of a later group stand behind",
     {{5, "label:I mean_2:R", false, NULL},
      {2, "label:I mean_1:R", false, NULL}},
     "label:i mean_1:r mean_2:r"},
    {"names differ in case", {{0, "a:I A:T", false, NULL}}, "a:i A:t"},
};

static void test_cases(void) {
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct pf_schema *schema = NULL;
    struct pf_error err = PF_ERROR_INIT;
    struct pf_buf text = {0};
    CHECK_INT(pf_schema_create(&schema, "t", &err), PF_OK);
    CHECK_STR(pf_schema_name(schema), "t");
    for (size_t k = 0; k < MAX_GIVEN && cases[i].given[k].columns; k++) {
      const struct given *given = &cases[i].given[k];
      struct pf_table *table = make_table(given->columns, given->no_rows);
      size_t *map = NULL;
      int result = pf_schema_accept(schema, given->group, table, &map, &err);
      CHECK_INT(result, given->error ? PF_ESTEP : PF_OK);
      CHECK(!map == (given->error != NULL));
      if (given->error && !strstr(err.message, given->error))
        CHECK_STR(err.message, given->error);
      pf_error_clear(&err);
      pf_table_destroy(&table);
      free(map);
    }
    describe(schema, &text);
    CHECK_STR(pf_buf_text(&text), cases[i].columns);
    pf_buf_free(&text);
    pf_schema_destroy(&schema);
  }
}

/* A column keeps its number while others arrive; too many are refused. */
static void test_numbers(void) {
  struct pf_schema *schema = NULL;
  struct pf_error err = PF_ERROR_INIT;
  int result = PF_OK;
  size_t n = 0;
  CHECK_INT(pf_schema_create(&schema, "t", &err), PF_OK);
  for (; n < 5000 && result == PF_OK; n++) {
    char columns[64];
    struct pf_table *table;
    size_t *map = NULL;
    (void)snprintf(columns, sizeof(columns), "first:I c%zu:I", n);
    table = make_table(columns, false);
    result = pf_schema_accept(schema, n, table, &map, &err);
    if (result == PF_OK) {
      CHECK_INT(map[0], 0);
      CHECK_INT(map[1], n + 1);
    }
    pf_table_destroy(&table);
    free(map);
  }
  CHECK_INT(result, PF_ESTEP);
  CHECK(n > 1000 && n < 2000);
  pf_error_clear(&err);
  pf_schema_destroy(&schema);
  pf_schema_destroy(&schema);
}

struct user {
  pthread_t thread;
  struct pf_schema *schema;
  const struct pf_table *even, *odd; /* of all users */
  uint64_t first;
  int n_failed;
};

/* Every fourth of 256 groups. Checks count, so they wait for the end. */
static void *use(void *context) {
  struct user *user = context;
  for (uint64_t group = user->first; group < 256; group += 4) {
    struct pf_error err = PF_ERROR_INIT;
    size_t *map = NULL;
    user->n_failed += pf_schema_accept(user->schema, group,
                                       group % 2 ? user->odd : user->even,
                                       &map, &err) != PF_OK;
    pf_error_clear(&err);
    free(map);
  }
  return NULL;
}

static void test_threads(void) {
  struct user users[4];
  struct pf_table *even = make_table("a:I b:I", false);
  struct pf_table *odd = make_table("b:R c:T a:I", false);
  struct pf_schema *schema = NULL;
  struct pf_error err = PF_ERROR_INIT;
  struct pf_buf text = {0};
  CHECK_INT(pf_schema_create(&schema, "t", &err), PF_OK);
  for (size_t i = 0; i < 4; i++) {
    users[i] =
        (struct user){.schema = schema, .even = even, .odd = odd, .first = i};
    CHECK_INT(pthread_create(&users[i].thread, NULL, use, &users[i]), 0);
  }
  for (size_t i = 0; i < 4; i++) {
    CHECK_INT(pthread_join(users[i].thread, NULL), 0);
    CHECK_INT(users[i].n_failed, 0);
  }
  describe(schema, &text);
  CHECK_STR(pf_buf_text(&text), "a:i b:r c:t");
  pf_table_destroy(&even);
  pf_table_destroy(&odd);
  pf_buf_free(&text);
  pf_schema_destroy(&schema);
}

int main(void) {
  test_cases();
  test_numbers();
  test_threads();
  return check_done();
}
