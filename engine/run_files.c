/* What a run writes from its journal at the end: tables and lists, in the
 * order of the plan, whatever the workers did. */
#include "engine/runner.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/os.h"

/* A CSV file that appears complete or not at all. Rows are collected and
 * written in one go; a table is far smaller than the images it is about. */
struct csv {
  FILE *file;
  char *temporary, *path;
  const char *name; /* below OUT */
  bool at_start;    /* of a line */
  int saved_errno;  /* of the first failed write; 0: none */
};

static int csv_error(const struct csv *csv, int saved, struct pf_error *err) {
  return pf_error_set(err, pf_os_write_code(saved), "cannot write OUT/%s: %s",
                      csv->name, strerror(saved));
}

static int csv_open(struct csv *csv, const struct pf_runner *runner,
                    const char *name, struct pf_error *err) {
  char *folder = NULL;
  int result = PF_OK;
  *csv = (struct csv){.name = name, .at_start = true};
  csv->path = pf_os_join(runner->out_dir, name);
  csv->temporary = csv->path ? pf_os_temporary(csv->path) : NULL;
  folder = csv->path ? pf_os_dirname(csv->path) : NULL;
  if (!csv->temporary || !folder)
    result = pf_error_set(err, PF_ENOMEM, "out of memory");
  if (result == PF_OK)
    result = pf_os_make_dirs(folder, err);
  if (result == PF_OK) {
    csv->file = fopen(csv->temporary, "we");
    if (!csv->file)
      result = csv_error(csv, errno, err);
  }
  free(folder);
  return result;
}

static void csv_text(struct csv *csv, const char *text) {
  if (!csv->at_start)
    (void)fputc(',', csv->file);
  csv->at_start = false;
  if (!text)
    return;
  if (!strpbrk(text, ",\"\r\n")) {
    (void)fputs(text, csv->file);
    return;
  }
  (void)fputc('"', csv->file);
  for (; *text; text++) {
    if (*text == '"')
      (void)fputc('"', csv->file);
    (void)fputc(*text, csv->file);
  }
  (void)fputc('"', csv->file);
}

/* The shortest decimal that reads back as the same double. */
static void csv_real(struct csv *csv, double x) {
  char text[40] = "";
  for (int digits = 15; digits <= 17 && isfinite(x); digits++) {
    (void)snprintf(text, sizeof(text), "%.*g", digits, x);
    if (strtod(text, NULL) == x)
      break;
  }
  if (isinf(x))
    (void)snprintf(text, sizeof(text), "%s", x > 0 ? "inf" : "-inf");
  csv_text(csv, text);
}

static void csv_int(struct csv *csv, long long x) {
  char text[32];
  (void)snprintf(text, sizeof(text), "%lld", x);
  csv_text(csv, text);
}

static void csv_line(struct csv *csv) {
  (void)fputc('\n', csv->file);
  csv->at_start = true;
  if (!csv->saved_errno && ferror(csv->file))
    csv->saved_errno = errno;
}

/* Rename into place after success, remove after failure. */
static int csv_close(struct csv *csv, const struct pf_runner *runner,
                     int result, struct pf_error *err) {
  if (csv->file && fclose(csv->file) != 0 && !csv->saved_errno)
    csv->saved_errno = errno;
  if (result == PF_OK && csv->saved_errno)
    result = csv_error(csv, csv->saved_errno, err);
  if (result == PF_OK && rename(csv->temporary, csv->path) != 0)
    result = csv_error(csv, errno, err);
  if (result != PF_OK && csv->temporary)
    (void)remove(csv->temporary);
  if (result == PF_OK)
    result = pf_journal_add_file(runner->journal, csv->name, err);
  free(csv->temporary);
  free(csv->path);
  return result;
}

static int prepare(struct pf_runner *runner, const char *sql,
                   sqlite3_stmt **statement, struct pf_error *err) {
  sqlite3 *db = pf_journal_db(runner->journal);
  if (sqlite3_prepare_v2(db, sql, -1, statement, NULL) == SQLITE_OK)
    return PF_OK;
  return pf_error_set(err, PF_EWRITE, "cannot read run.sqlite: %s",
                      sqlite3_errmsg(db));
}

/* ----------------------------------------------------- component columns */

/* plate, well and site always, so that tables of any plate join; the others
 * where the plate has them. */
static bool has_column(const struct pf_plan *plan, enum pf_component c) {
  return c == PF_PLATE || c == PF_WELL || c == PF_SITE ||
         (plan->identity & PF_BIT(c));
}

static void component_names(struct csv *csv, const struct pf_plan *plan,
                            unsigned n) {
  for (unsigned c = 0; c < n; c++)
    if (has_column(plan, (enum pf_component)c))
      csv_text(csv, pf_component_name((enum pf_component)c));
}

/* Empty where the slice has no such component any more. */
static void component_value(struct csv *csv, const struct pf_plan *plan,
                            const struct pf_slice *slice, unsigned lost,
                            enum pf_component c) {
  uint32_t rank = slice->value[c];
  csv_text(csv, rank == PF_NO_VALUE || (lost & PF_BIT(c))
                    ? NULL
                    : pf_plate_value(plan->plate, c, rank));
}

/* ---------------------------------------------------------- tables/NAME */

static void csv_cell(struct csv *csv, sqlite3_stmt *s, int at,
                     enum pf_column_type type) {
  if (sqlite3_column_type(s, at) == SQLITE_NULL)
    csv_text(csv, NULL);
  else if (type == PF_COLUMN_TEXT)
    csv_text(csv, (const char *)sqlite3_column_text(s, at));
  else if (type == PF_COLUMN_BOOL)
    csv_text(csv, sqlite3_column_int(s, at) ? "True" : "False");
  else if (type == PF_COLUMN_INT)
    csv_int(csv, sqlite3_column_int64(s, at));
  else
    csv_real(csv, sqlite3_column_double(s, at));
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
    if (!has_column(plan, (enum pf_component)c))
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
                         struct csv *csv) {
  component_names(csv, plan, PF_N_COMPONENTS);
  for (size_t i = 0; i < table->n; i++)
    if (!is_placed(table, i))
      csv_text(csv, column_name(table, i));
  csv_line(csv);
}

static void table_cell(const struct table *table, struct csv *csv,
                       sqlite3_stmt *s, size_t i) {
  size_t number = 0;
  enum pf_column_type type = PF_COLUMN_INT;
  (void)pf_schema_column(table->schema, i, &number, &type);
  csv_cell(csv, s, (int)number + 2, type);
}

static void table_row(const struct table *table, const struct pf_plan *plan,
                      struct csv *csv, sqlite3_stmt *s) {
  const struct pf_slice *slice;
  struct pf_group group;
  pf_plan_group(plan, (uint64_t)sqlite3_column_int64(s, 0), &group);
  slice = pf_plan_slice(plan, group.first);
  for (unsigned c = 0; c < PF_N_COMPONENTS; c++)
    if (!has_column(plan, (enum pf_component)c))
      continue;
    else if (table->place[c] < table->n)
      table_cell(table, csv, s, table->place[c]);
    else
      component_value(csv, plan, slice, plan->stacked, (enum pf_component)c);
  for (size_t i = 0; i < table->n; i++)
    if (!is_placed(table, i))
      table_cell(table, csv, s, i);
  csv_line(csv);
}

static int table_rows(struct pf_runner *runner, const struct table *table,
                      struct csv *csv, struct pf_error *err) {
  sqlite3_stmt *s = NULL;
  struct pf_buf sql = {0};
  int result, code = SQLITE_DONE;
  pf_buf_printf(&sql, "SELECT * FROM \"table_%s\" ORDER BY grp, row",
                pf_schema_name(table->schema));
  result = pf_buf_ok(&sql) ? prepare(runner, sql.data, &s, err)
                           : pf_error_set(err, PF_ENOMEM, "out of memory");
  while (result == PF_OK && (code = sqlite3_step(s)) == SQLITE_ROW)
    table_row(table, runner->plan, csv, s);
  if (result == PF_OK && code != SQLITE_DONE)
    result = pf_error_set(err, PF_EWRITE, "cannot read run.sqlite: %s",
                          sqlite3_errmsg(pf_journal_db(runner->journal)));
  (void)sqlite3_finalize(s);
  pf_buf_free(&sql);
  return result;
}

static bool has_rows(struct pf_runner *runner, struct pf_schema *schema) {
  sqlite3_stmt *s = NULL;
  bool found = false;
  if (prepare(runner,
              "SELECT 1 FROM sqlite_master WHERE type='table' AND "
              "name='table_' || ?",
              &s, NULL) == PF_OK) {
    (void)sqlite3_bind_text(s, 1, pf_schema_name(schema), -1, SQLITE_STATIC);
    found = sqlite3_step(s) == SQLITE_ROW;
  }
  (void)sqlite3_finalize(s);
  return found;
}

static int write_table(struct pf_runner *runner, struct pf_schema *schema,
                       struct pf_error *err) {
  struct pf_buf name = {0};
  struct csv csv = {0};
  struct table table;
  int result;
  table_init(&table, runner->plan, schema);
  pf_buf_printf(&name, "tables/%s.csv", pf_schema_name(schema));
  result = csv_open(&csv, runner, pf_buf_text(&name), err);
  if (result == PF_OK) {
    table_header(&table, runner->plan, &csv);
    if (has_rows(runner, schema))
      result = table_rows(runner, &table, &csv, err);
  }
  result = csv_close(&csv, runner, result, err);
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

/* -------------------------------------------------------------- images.csv */

/* Row counts of one table, stepped along with the groups. */
struct counter {
  size_t step;
  struct pf_schema *schema;
  sqlite3_stmt *statement; /* NULL: the table has no rows */
  int64_t group;           /* of the row that it stands on; INT64_MAX: end */
  int64_t n;
  int64_t total; /* of the field; -1: no group of it made the table */
};

static void counter_step(struct counter *counter) {
  counter->group = INT64_MAX;
  if (counter->statement && sqlite3_step(counter->statement) == SQLITE_ROW) {
    counter->group = sqlite3_column_int64(counter->statement, 0);
    counter->n = sqlite3_column_int64(counter->statement, 1);
  }
}

static int counter_open(struct pf_runner *runner, struct counter *counter,
                        struct pf_error *err) {
  struct pf_buf sql = {0};
  int result = PF_OK;
  counter->total = -1;
  if (has_rows(runner, counter->schema)) {
    pf_buf_printf(&sql,
                  "SELECT grp, count(*) FROM \"table_%s\" GROUP BY grp "
                  "ORDER BY grp",
                  pf_schema_name(counter->schema));
    result = pf_buf_ok(&sql)
                 ? prepare(runner, sql.data, &counter->statement, err)
                 : pf_error_set(err, PF_ENOMEM, "out of memory");
    pf_buf_free(&sql);
  }
  counter_step(counter);
  return result;
}

struct field {
  uint64_t first; /* its first group */
  bool open;
  enum pf_status worst;
  char *reason;
};

struct images {
  struct pf_runner *runner;
  struct csv csv;
  sqlite3_stmt *groups;
  int64_t journal_group; /* that `groups` stands on; INT64_MAX: end */
  size_t n_counters;
  struct counter *counters;
  struct field field;
  enum pf_flow *flow;
};

static void groups_step(struct images *images) {
  images->journal_group = sqlite3_step(images->groups) == SQLITE_ROW
                              ? sqlite3_column_int64(images->groups, 0)
                              : INT64_MAX;
}

static enum pf_status find_status(const char *word) {
  for (int i = 0; i < PF_N_STATUSES; i++)
    if (word && strcmp(word, pf_status_name((enum pf_status)i)) == 0)
      return (enum pf_status)i;
  return PF_STATUS_FAILED;
}

static void end_field(struct images *images) {
  const struct pf_plan *plan = images->runner->plan;
  struct pf_group group;
  if (!images->field.open)
    return;
  pf_plan_group(plan, images->field.first, &group);
  for (unsigned c = 0; c < PF_CHANNEL; c++)
    if (has_column(plan, (enum pf_component)c))
      component_value(&images->csv, plan, pf_plan_slice(plan, group.first),
                      plan->stacked, (enum pf_component)c);
  csv_text(&images->csv, pf_status_name(images->field.worst));
  csv_text(&images->csv, images->field.reason);
  for (size_t i = 0; i < images->n_counters; i++) {
    if (images->counters[i].total < 0)
      csv_text(&images->csv, NULL);
    else
      csv_int(&images->csv, images->counters[i].total);
    images->counters[i].total = -1;
  }
  csv_line(&images->csv);
  free(images->field.reason);
  images->field = (struct field){0};
}

static bool same_field(const struct pf_plan *plan, uint64_t a, uint64_t b) {
  struct pf_group x, y;
  const struct pf_slice *p, *q;
  pf_plan_group(plan, a, &x);
  pf_plan_group(plan, b, &y);
  p = pf_plan_slice(plan, x.first);
  q = pf_plan_slice(plan, y.first);
  for (unsigned c = 0; c < PF_CHANNEL; c++)
    if ((plan->identity & PF_BIT(c)) && p->value[c] != q->value[c])
      return false;
  return true;
}

/* What the journal says of a group; not run where it says nothing. */
static enum pf_status group_status(struct images *images, uint64_t id,
                                   const char **reason) {
  *reason = NULL;
  while (images->journal_group < (int64_t)id)
    groups_step(images);
  if (images->journal_group != (int64_t)id)
    return PF_STATUS_NOT_RUN;
  *reason = (const char *)sqlite3_column_text(images->groups, 2);
  return find_status((const char *)sqlite3_column_text(images->groups, 1));
}

static void count_rows(struct images *images, const struct pf_group *group,
                       enum pf_status status) {
  pf_plan_flow(images->runner->plan, group, images->flow);
  for (size_t i = 0; i < images->n_counters; i++) {
    struct counter *counter = &images->counters[i];
    while (counter->group < (int64_t)group->id)
      counter_step(counter);
    if (images->flow[counter->step] != PF_FLOW_RUNS ||
        (status != PF_STATUS_DONE && counter->group != (int64_t)group->id))
      continue;
    if (counter->total < 0)
      counter->total = 0;
    if (counter->group == (int64_t)group->id)
      counter->total += counter->n;
  }
}

static void add_group(struct images *images, const struct pf_group *group) {
  const char *reason = NULL;
  enum pf_status status = group_status(images, group->id, &reason);
  if (images->field.open &&
      !same_field(images->runner->plan, images->field.first, group->id))
    end_field(images);
  if (!images->field.open) {
    images->field.open = true;
    images->field.first = group->id;
    images->field.worst = PF_STATUS_DONE;
  }
  if (status > images->field.worst) {
    images->field.worst = status;
    free(images->field.reason);
    images->field.reason = reason ? strdup(reason) : NULL;
  }
  count_rows(images, group, status);
}

static int open_counters(struct images *images, struct pf_error *err) {
  struct pf_runner *runner = images->runner;
  images->counters = calloc(runner->n_tables + 1, sizeof(*images->counters));
  images->flow = calloc(runner->plan->n_steps, sizeof(*images->flow));
  if (!images->counters || !images->flow)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t s = 0; s < runner->plan->n_steps; s++)
    for (size_t t = 0; t < runner->plan->steps[s].spec->n_tables; t++) {
      struct counter *counter = &images->counters[images->n_counters++];
      int result;
      counter->step = s;
      counter->schema = runner->steps[s].schemas[t];
      result = counter_open(runner, counter, err);
      if (result != PF_OK)
        return result;
    }
  return PF_OK;
}

static void images_header(struct images *images) {
  component_names(&images->csv, images->runner->plan, PF_CHANNEL);
  csv_text(&images->csv, "status");
  csv_text(&images->csv, "reason");
  for (size_t i = 0; i < images->n_counters; i++) {
    struct pf_buf name = {0};
    pf_buf_printf(&name, "count_%s",
                  pf_schema_name(images->counters[i].schema));
    csv_text(&images->csv, pf_buf_text(&name));
    pf_buf_free(&name);
  }
  csv_line(&images->csv);
}

static void all_fields(struct images *images) {
  const struct pf_plan *plan = images->runner->plan;
  struct pf_group group;
  groups_step(images);
  for (uint64_t id = 0; id < plan->n_all; id++) {
    pf_plan_group(plan, id, &group);
    if (pf_plan_selects(plan, &group))
      add_group(images, &group);
  }
  end_field(images);
}

int pf_run_write_images_csv(struct pf_runner *runner, struct pf_error *err) {
  struct images images = {.runner = runner};
  int result = csv_open(&images.csv, runner, "tables/images.csv", err);
  if (result == PF_OK)
    result =
        prepare(runner, "SELECT id, status, reason FROM groups ORDER BY id",
                &images.groups, err);
  if (result == PF_OK)
    result = open_counters(&images, err);
  if (result == PF_OK) {
    images_header(&images);
    all_fields(&images);
  }
  (void)sqlite3_finalize(images.groups);
  for (size_t i = 0; i < images.n_counters; i++)
    (void)sqlite3_finalize(images.counters[i].statement);
  free(images.counters);
  free(images.flow);
  return csv_close(&images.csv, runner, result, err);
}

/* --------------------------------------------------------- images/index.csv
 */

static void index_row(struct pf_runner *runner, struct csv *csv,
                      sqlite3_stmt *s) {
  size_t step = (size_t)sqlite3_column_int(s, 1);
  uint32_t position = (uint32_t)sqlite3_column_int64(s, 2);
  const char *path = (const char *)sqlite3_column_text(s, 0);
  const struct pf_plan *plan = runner->plan;
  const struct pf_slice *slice = pf_plan_slice(plan, position);
  if (strcmp(plan->steps[step].folder, "images") != 0)
    return;
  csv_text(csv, path + strlen("images/"));
  csv_int(csv, 0);
  for (unsigned c = 0; c < PF_N_COMPONENTS; c++)
    component_value(csv, plan, slice, plan->steps[step].lost,
                    (enum pf_component)c);
  csv_line(csv);
}

static bool saves_images(const struct pf_plan *plan) {
  for (size_t s = 0; s < plan->n_steps; s++)
    if (plan->steps[s].saved && strcmp(plan->steps[s].folder, "images") == 0)
      return true;
  return false;
}

int pf_run_write_index(struct pf_runner *runner, struct pf_error *err) {
  struct csv csv = {0};
  sqlite3_stmt *s = NULL;
  int result, code = SQLITE_DONE;
  if (!saves_images(runner->plan))
    return PF_OK;
  result = csv_open(&csv, runner, "images/index.csv", err);
  if (result == PF_OK)
    result = prepare(runner,
                     "SELECT path, step, position FROM outputs WHERE plane < "
                     "1073741824 ORDER BY grp, step, plane",
                     &s, err);
  if (result == PF_OK) {
    csv_text(&csv, "file");
    csv_text(&csv, "page");
    for (unsigned c = 0; c < PF_N_COMPONENTS; c++)
      csv_text(&csv, pf_component_name((enum pf_component)c));
    csv_line(&csv);
  }
  while (result == PF_OK && (code = sqlite3_step(s)) == SQLITE_ROW)
    index_row(runner, &csv, s);
  if (result == PF_OK && code != SQLITE_DONE)
    result = pf_error_set(err, PF_EWRITE, "cannot read run.sqlite: %s",
                          sqlite3_errmsg(pf_journal_db(runner->journal)));
  (void)sqlite3_finalize(s);
  return csv_close(&csv, runner, result, err);
}
