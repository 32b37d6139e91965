/* tables/images.csv: a row for each field, with its worst status. */
#include "engine/run_list.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* Row counts of one table, stepped along with the groups. */
struct counter {
  size_t step;
  struct pf_schema *schema;
  sqlite3_stmt *statement; /* NULL: the table has no rows */
  int64_t group;           /* of the row that it stands on; INT64_MAX: end */
  int64_t n;
  int code;      /* SQLite's, of the last step */
  int64_t total; /* of the field; -1: no group of it made the table */
};

/* Go to the next row; `code` is what a query's rows ended with. */
static void counter_step(struct counter *counter) {
  counter->group = INT64_MAX;
  if (counter->code == SQLITE_ROW)
    counter->code = sqlite3_step(counter->statement);
  if (counter->code != SQLITE_ROW)
    return;
  counter->group = sqlite3_column_int64(counter->statement, 0);
  counter->n = sqlite3_column_int64(counter->statement, 1);
}

static int counter_open(struct pf_runner *runner, struct counter *counter,
                        struct pf_error *err) {
  struct pf_buf sql = {0};
  int result = PF_OK;
  counter->total = -1;
  counter->code = SQLITE_DONE;
  if (pf_list_has_rows(runner, counter->schema)) {
    pf_buf_printf(&sql,
                  "SELECT grp, count(*) FROM \"table_%s\" GROUP BY grp "
                  "ORDER BY grp",
                  pf_schema_name(counter->schema));
    result = pf_buf_ok(&sql)
                 ? pf_list_query(runner, sql.data, &counter->statement, err)
                 : pf_error_set(err, PF_ENOMEM, "out of memory");
    pf_buf_free(&sql);
    if (result == PF_OK)
      counter->code = SQLITE_ROW;
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
  struct pf_csv csv;
  sqlite3_stmt *groups;
  int64_t journal_group; /* that `groups` stands on; INT64_MAX: end */
  int code;              /* SQLite's, of the last step */
  size_t n_counters;
  struct counter *counters;
  struct field field;
  enum pf_flow *flow;
};

static void groups_step(struct images *images) {
  images->journal_group = INT64_MAX;
  if (images->code == SQLITE_ROW)
    images->code = sqlite3_step(images->groups);
  if (images->code == SQLITE_ROW)
    images->journal_group = sqlite3_column_int64(images->groups, 0);
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
    if (pf_list_has_column(plan, (enum pf_component)c))
      pf_list_value(&images->csv, plan, pf_plan_slice(plan, group.first),
                    plan->stacked, (enum pf_component)c);
  pf_csv_text(&images->csv, pf_status_name(images->field.worst));
  pf_csv_text(&images->csv, images->field.reason);
  for (size_t i = 0; i < images->n_counters; i++) {
    if (images->counters[i].total < 0)
      pf_csv_text(&images->csv, NULL);
    else
      pf_csv_int(&images->csv, images->counters[i].total);
    images->counters[i].total = -1;
  }
  pf_csv_line(&images->csv);
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
  pf_list_names(&images->csv, images->runner->plan, PF_CHANNEL);
  pf_csv_text(&images->csv, "status");
  pf_csv_text(&images->csv, "reason");
  for (size_t i = 0; i < images->n_counters; i++) {
    struct pf_buf name = {0};
    pf_buf_printf(&name, "count_%s",
                  pf_schema_name(images->counters[i].schema));
    pf_csv_text(&images->csv, pf_buf_text(&name));
    pf_buf_free(&name);
  }
  pf_csv_line(&images->csv);
}

/* A journal that cannot be read must not look like groups that did not run. */
static int check_end(const struct images *images, int code,
                     struct pf_error *err) {
  return code == SQLITE_ROW ? PF_OK : pf_list_end(images->runner, code, err);
}

static int check_ends(const struct images *images, struct pf_error *err) {
  int result = check_end(images, images->code, err);
  for (size_t i = 0; i < images->n_counters && result == PF_OK; i++)
    result = check_end(images, images->counters[i].code, err);
  return result;
}

static int all_fields(struct images *images, struct pf_error *err) {
  const struct pf_plan *plan = images->runner->plan;
  struct pf_group group;
  images->code = SQLITE_ROW;
  groups_step(images);
  for (uint64_t id = 0; id < plan->n_all; id++) {
    pf_plan_group(plan, id, &group);
    if (pf_plan_selects(plan, &group))
      add_group(images, &group);
  }
  end_field(images);
  return check_ends(images, err);
}

int pf_run_write_images_csv(struct pf_runner *runner, struct pf_error *err) {
  struct images images = {.runner = runner};
  int result = pf_list_open(&images.csv, runner, "tables/images.csv", err);
  if (result == PF_OK)
    result = pf_list_query(runner,
                           "SELECT id, status, reason FROM groups ORDER BY id",
                           &images.groups, err);
  if (result == PF_OK)
    result = open_counters(&images, err);
  if (result == PF_OK) {
    images_header(&images);
    result = all_fields(&images, err);
  }
  (void)sqlite3_finalize(images.groups);
  for (size_t i = 0; i < images.n_counters; i++)
    (void)sqlite3_finalize(images.counters[i].statement);
  free(images.counters);
  free(images.flow);
  return pf_list_close(&images.csv, runner, result, err);
}
