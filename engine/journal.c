/* The journal: its thread and its statements. See engine/journal.h. */
#include "engine/journal.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bridge/os.h"
#include "engine/schema.h"

enum {
  MAX_QUEUED = 4096, /* records; then push waits */
  WAKE_AT = 1024     /* records that end the writer's nap early */
};

/* The statements that a record needs. Their order is that of `sql_of`. */
enum statement { S_BEGIN, S_COMMIT, S_GROUP, S_TASK, S_OUTPUT, S_FILE, S_N };

static const char *const sql_of[S_N] = {
    [S_BEGIN] = "BEGIN IMMEDIATE",
    [S_COMMIT] = "COMMIT",
    [S_GROUP] = "INSERT OR REPLACE INTO groups VALUES(?,?,?,?,?,?,?,?,?)",
    [S_TASK] = "INSERT INTO tasks VALUES(?,?,?,?,?)",
    [S_OUTPUT] = "INSERT OR REPLACE INTO outputs VALUES(?,?,?,?,?)",
    [S_FILE] = "INSERT OR REPLACE INTO files VALUES(?)",
};

static const char schema_sql[] =
    "PRAGMA locking_mode=EXCLUSIVE;"
    "PRAGMA journal_mode=TRUNCATE;"
    "PRAGMA synchronous=OFF;" /* an empty journal needs no disk to wait for */
    "BEGIN IMMEDIATE;"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT);"
    "CREATE TABLE steps(id INTEGER PRIMARY KEY, name TEXT, function TEXT);"
    "CREATE TABLE groups(id INTEGER PRIMARY KEY, name TEXT, plate TEXT,"
    " well TEXT, site TEXT, timepoint TEXT, channel TEXT, status TEXT,"
    " reason TEXT);"
    "CREATE TABLE tasks(grp INTEGER, step INTEGER, status TEXT,"
    " seconds REAL, note TEXT);"
    "CREATE TABLE outputs(grp INTEGER, step INTEGER, plane INTEGER,"
    " position INTEGER, path TEXT, PRIMARY KEY(grp, step, plane))"
    " WITHOUT ROWID;"
    "CREATE TABLE files(path TEXT PRIMARY KEY);"
    "INSERT INTO meta VALUES('format', '1');"
    "INSERT INTO meta VALUES('plateflow', '" PF_VERSION "');"
    "COMMIT;"
    "PRAGMA synchronous=NORMAL;";

/* The statement that inserts into one table's rows. */
struct row_insert {
  struct pf_schema *schema;
  sqlite3_stmt *statement;
  size_t n_columns;
};

struct pf_journal {
  const struct pf_plan *plan;
  const char *out_dir; /* borrowed */
  sqlite3 *db;
  sqlite3_stmt *statements[S_N];
  size_t n_inserts;
  struct row_insert *inserts;
  double seconds; /* spent writing; of the journal's thread */
  bool is_ours;   /* this run made the tables, so it may remove the file */
  bool thread_started;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t wake; /* the thread waits: work or the end */
  pthread_cond_t room; /* push waits: the queue is full */
  /* --- protected by lock */
  struct pf_record *first, *last; /* queue */
  size_t n_queued;
  bool stopping, failed;
  struct pf_error error; /* the first failure */
};

static int sql_error(struct pf_journal *journal, struct pf_error *err) {
  const char *text = sqlite3_errmsg(journal->db);
  int code = sqlite3_extended_errcode(journal->db) & 0xff;
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
    return pf_error_set(err, PF_EINVAL,
                        "another run is writing to this OUT (run.sqlite is "
                        "locked): wait for it or choose another folder");
  /* A full quota is an error of the disk to SQLite. */
  if (code == SQLITE_FULL ||
      (code == SQLITE_IOERR &&
       pf_os_write_code(sqlite3_system_errno(journal->db)) == PF_EMISSING))
    return pf_error_set(err, PF_EMISSING,
                        "cannot write run.sqlite: no space is left");
  return pf_error_set(err, PF_EWRITE, "cannot write run.sqlite: %s", text);
}

static int exec(struct pf_journal *journal, const char *sql,
                struct pf_error *err) {
  if (sqlite3_exec(journal->db, sql, NULL, NULL, NULL) != SQLITE_OK)
    return sql_error(journal, err);
  return PF_OK;
}

static int run_statement(struct pf_journal *journal, sqlite3_stmt *statement,
                         struct pf_error *err) {
  int code = sqlite3_step(statement);
  int result = code == SQLITE_DONE || code == SQLITE_ROW
                   ? PF_OK
                   : sql_error(journal, err);
  (void)sqlite3_reset(statement);
  return result;
}

static void bind_text(sqlite3_stmt *statement, int at, const char *text) {
  /* The text outlives the step of its statement: no copy. */
  (void)sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
}

/* --------------------------------------------------------------- records */

static int write_group(struct pf_journal *journal,
                       const struct pf_record *record, struct pf_error *err) {
  static const enum pf_component columns[] = {PF_PLATE, PF_WELL, PF_SITE,
                                              PF_TIMEPOINT, PF_CHANNEL};
  sqlite3_stmt *s = journal->statements[S_GROUP];
  struct pf_group group;
  const struct pf_slice *slice;
  struct pf_buf name = {0}, reason = {0};
  int result;
  pf_plan_group(journal->plan, record->group, &group);
  slice = pf_plan_slice(journal->plan, group.first);
  pf_plan_group_text(journal->plan, &group, &name);
  (void)sqlite3_bind_int64(s, 1, (sqlite3_int64)record->group);
  bind_text(s, 2, pf_buf_text(&name));
  for (int i = 0; i < 5; i++) {
    uint32_t rank = slice->value[columns[i]];
    bool has =
        (journal->plan->identity & PF_BIT(columns[i])) && rank != PF_NO_VALUE;
    bind_text(s, 3 + i,
              has ? pf_plate_value(journal->plan->plate, columns[i], rank)
                  : NULL);
  }
  bind_text(s, 8, pf_status_name(record->status));
  pf_record_reason(record, &reason);
  bind_text(s, 9, reason.len ? reason.data : NULL);
  result = run_statement(journal, s, err);
  pf_buf_free(&reason);
  pf_buf_free(&name);
  return result;
}

static int write_tasks(struct pf_journal *journal,
                       const struct pf_record *record, struct pf_error *err) {
  sqlite3_stmt *s = journal->statements[S_TASK];
  int result = PF_OK;
  for (size_t i = 0; i < record->n_tasks && result == PF_OK; i++) {
    const struct pf_task_row *task = &record->tasks[i];
    (void)sqlite3_bind_int64(s, 1, (sqlite3_int64)record->group);
    (void)sqlite3_bind_int(s, 2, (int)task->step);
    bind_text(s, 3, pf_status_name(task->status));
    (void)sqlite3_bind_double(s, 4, (double)task->seconds);
    bind_text(s, 5, task->note);
    result = run_statement(journal, s, err);
  }
  return result;
}

static int write_outputs(struct pf_journal *journal,
                         const struct pf_record *record,
                         struct pf_error *err) {
  sqlite3_stmt *s = journal->statements[S_OUTPUT];
  int result = PF_OK;
  for (size_t i = 0; i < record->n_outputs && result == PF_OK; i++) {
    const struct pf_output_row *row = &record->outputs[i];
    (void)sqlite3_bind_int64(s, 1, (sqlite3_int64)record->group);
    (void)sqlite3_bind_int(s, 2, (int)row->step);
    (void)sqlite3_bind_int(s, 3, (int)row->plane);
    (void)sqlite3_bind_int64(s, 4, row->position);
    bind_text(s, 5, row->path);
    result = run_statement(journal, s, err);
  }
  return result;
}

/* ------------------------------------------------------------------ rows */

/* Columns are numbered: a user's names may differ in case alone. */
static int add_columns(struct pf_journal *journal, struct row_insert *in,
                       size_t n, struct pf_error *err) {
  struct pf_buf sql = {0};
  int result = PF_OK;
  if (!in->statement)
    pf_buf_printf(&sql,
                  "CREATE TABLE \"table_%s\"(grp INTEGER, row INTEGER, "
                  "PRIMARY KEY(grp, row)) WITHOUT ROWID;",
                  pf_schema_name(in->schema));
  for (size_t i = in->n_columns; i < n; i++)
    pf_buf_printf(&sql, "ALTER TABLE \"table_%s\" ADD COLUMN c%zu;",
                  pf_schema_name(in->schema), i);
  result = pf_buf_ok(&sql) ? exec(journal, pf_buf_text(&sql), err)
                           : pf_error_set(err, PF_ENOMEM, "out of memory");
  pf_buf_free(&sql);
  return result;
}

static int prepare_insert(struct pf_journal *journal, struct row_insert *in,
                          struct pf_error *err) {
  struct pf_buf insert = {0};
  size_t n = pf_schema_n_columns(in->schema);
  int result = add_columns(journal, in, n, err);
  in->n_columns = n;
  pf_buf_printf(&insert, "INSERT INTO \"table_%s\" VALUES(?,?",
                pf_schema_name(in->schema));
  for (size_t i = 0; i < n; i++)
    pf_buf_str(&insert, ",?");
  pf_buf_str(&insert, ")");
  if (result == PF_OK && !pf_buf_ok(&insert))
    result = pf_error_set(err, PF_ENOMEM, "out of memory");
  (void)sqlite3_finalize(in->statement);
  in->statement = NULL;
  if (result == PF_OK && sqlite3_prepare_v2(journal->db, insert.data, -1,
                                            &in->statement, NULL) != SQLITE_OK)
    result = sql_error(journal, err);
  pf_buf_free(&insert);
  return result;
}

static struct row_insert *find_insert(struct pf_journal *journal,
                                      struct pf_schema *schema,
                                      struct pf_error *err) {
  struct row_insert *list;
  for (size_t i = 0; i < journal->n_inserts; i++)
    if (journal->inserts[i].schema == schema)
      return &journal->inserts[i];
  list = realloc(journal->inserts, (journal->n_inserts + 1) * sizeof(*list));
  if (!list) {
    (void)pf_error_set(err, PF_ENOMEM, "out of memory");
    return NULL;
  }
  journal->inserts = list;
  list = &list[journal->n_inserts++];
  *list = (struct row_insert){schema, NULL, 0};
  return list;
}

static void bind_cell(sqlite3_stmt *s, int at, enum pf_column_type type,
                      const struct pf_cell *cell) {
  if (cell->state == PF_CELL_EMPTY)
    (void)sqlite3_bind_null(s, at);
  else if (type == PF_COLUMN_REAL)
    (void)sqlite3_bind_double(s, at, cell->as.r);
  else if (type == PF_COLUMN_TEXT)
    bind_text(s, at, cell->as.t);
  else
    (void)sqlite3_bind_int64(s, at, cell->as.i);
}

static int write_rows(struct pf_journal *journal, uint64_t group,
                      const struct pf_rows *rows, struct pf_error *err) {
  const struct pf_table *table = rows->table;
  struct row_insert *in;
  int result = PF_OK;
  if (!table->n_rows)
    return PF_OK;
  in = find_insert(journal, rows->schema, err);
  if (!in)
    return (int)err->code;
  if (!in->statement || in->n_columns < pf_schema_n_columns(in->schema))
    result = prepare_insert(journal, in, err);
  for (size_t r = 0; r < table->n_rows && result == PF_OK; r++) {
    (void)sqlite3_bind_int64(in->statement, 1, (sqlite3_int64)group);
    (void)sqlite3_bind_int64(in->statement, 2, (sqlite3_int64)r);
    /* What this group does not have is empty. */
    for (size_t c = 0; c < in->n_columns; c++)
      (void)sqlite3_bind_null(in->statement, (int)c + 3);
    for (size_t c = 0; c < table->n_columns; c++)
      bind_cell(in->statement, (int)rows->map[c] + 3, table->columns[c].type,
                &table->cells[r * table->n_columns + c]);
    result = run_statement(journal, in->statement, err);
  }
  return result;
}

static int write_record(struct pf_journal *journal,
                        const struct pf_record *record, struct pf_error *err) {
  int result = write_tasks(journal, record, err);
  if (result == PF_OK)
    result = write_outputs(journal, record, err);
  /* Rows of a group that failed would stand for a field that is not done. */
  if (record->status != PF_STATUS_FAILED)
    for (size_t i = 0; i < record->n_rows && result == PF_OK; i++)
      result = write_rows(journal, record->group, &record->rows[i], err);
  if (result == PF_OK)
    result = write_group(journal, record, err);
  return result;
}

/* ---------------------------------------------------------------- thread */

static int write_batch(struct pf_journal *journal, struct pf_record *batch,
                       struct pf_error *err) {
  double start = pf_os_thread_cpu_seconds();
  int result = run_statement(journal, journal->statements[S_BEGIN], err);
  for (struct pf_record *r = batch; r && result == PF_OK; r = r->next)
    result = write_record(journal, r, err);
  if (result == PF_OK)
    result = run_statement(journal, journal->statements[S_COMMIT], err);
  if (result != PF_OK)
    (void)sqlite3_exec(journal->db, "ROLLBACK", NULL, NULL, NULL);
  journal->seconds += pf_os_thread_cpu_seconds() - start;
  return result;
}

/* What the journal does not list belongs to nobody: no later run would remove
 * it, and its group is not known to be done. */
static void disown(const struct pf_journal *journal,
                   const struct pf_record *record) {
  for (size_t i = 0; i < record->n_outputs; i++) {
    char *path = pf_os_join(journal->out_dir, record->outputs[i].path);
    if (path)
      (void)unlink(path);
    free(path);
  }
}

static void free_batch(const struct pf_journal *journal,
                       struct pf_record *batch, bool written) {
  while (batch) {
    struct pf_record *next = batch->next;
    if (!written)
      disown(journal, batch);
    pf_record_destroy(batch);
    batch = next;
  }
}

/* Sleep for about a second, less if much is queued or the run ends. Returns
 * the queue, or NULL at the end. */
static struct pf_record *take_batch(struct pf_journal *journal, bool *ended) {
  struct pf_record *batch;
  struct timespec until;
  (void)clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec++;
  (void)pthread_mutex_lock(&journal->lock);
  while (!journal->stopping && journal->n_queued < WAKE_AT)
    if (pthread_cond_timedwait(&journal->wake, &journal->lock, &until) ==
        ETIMEDOUT)
      break;
  batch = journal->first;
  journal->first = journal->last = NULL;
  journal->n_queued = 0;
  *ended = journal->stopping;
  (void)pthread_cond_broadcast(&journal->room);
  (void)pthread_mutex_unlock(&journal->lock);
  return batch;
}

static void *journal_main(void *context) {
  struct pf_journal *journal = context;
  bool ended = false;
  pf_os_name_thread("pf-journal");
  while (!ended) {
    struct pf_error err = PF_ERROR_INIT;
    struct pf_record *batch = take_batch(journal, &ended);
    bool written = batch && !pf_journal_failed(journal) &&
                   write_batch(journal, batch, &err) == PF_OK;
    free_batch(journal, batch, written);
    if (err.code != PF_OK) {
      (void)pthread_mutex_lock(&journal->lock);
      journal->failed = true;
      pf_error_move(&journal->error, &err);
      (void)pthread_mutex_unlock(&journal->lock);
    }
  }
  return NULL;
}

void pf_journal_push(struct pf_journal *journal, struct pf_record *record) {
  record->next = NULL;
  (void)pthread_mutex_lock(&journal->lock);
  while (journal->n_queued >= MAX_QUEUED && !journal->failed)
    (void)pthread_cond_wait(&journal->room, &journal->lock);
  if (journal->failed) {
    (void)pthread_mutex_unlock(&journal->lock);
    free_batch(journal, record, false);
    return;
  }
  if (journal->last)
    journal->last->next = record;
  else
    journal->first = record;
  journal->last = record;
  if (++journal->n_queued == WAKE_AT)
    (void)pthread_cond_signal(&journal->wake);
  (void)pthread_mutex_unlock(&journal->lock);
}

bool pf_journal_failed(struct pf_journal *journal) {
  bool failed;
  (void)pthread_mutex_lock(&journal->lock);
  failed = journal->failed;
  (void)pthread_mutex_unlock(&journal->lock);
  return failed;
}

int pf_journal_stop(struct pf_journal *journal, struct pf_error *err) {
  if (journal->thread_started) {
    (void)pthread_mutex_lock(&journal->lock);
    journal->stopping = true;
    (void)pthread_cond_signal(&journal->wake);
    (void)pthread_mutex_unlock(&journal->lock);
    (void)pthread_join(journal->thread, NULL);
    journal->thread_started = false;
  }
  if (journal->error.code == PF_OK)
    return PF_OK;
  pf_error_move(err, &journal->error);
  return err ? (int)err->code : PF_EWRITE;
}

/* ------------------------------------------------------------ open, close */

static int write_steps(struct pf_journal *journal, struct pf_error *err) {
  sqlite3_stmt *s = NULL;
  int result = PF_OK;
  if (sqlite3_prepare_v2(journal->db, "INSERT INTO steps VALUES(?,?,?)", -1,
                         &s, NULL) != SQLITE_OK)
    return sql_error(journal, err);
  for (size_t i = 0; i < journal->plan->n_steps && result == PF_OK; i++) {
    (void)sqlite3_bind_int(s, 1, (int)i);
    bind_text(s, 2, journal->plan->steps[i].spec->name);
    bind_text(s, 3, journal->plan->steps[i].spec->function);
    result = run_statement(journal, s, err);
  }
  (void)sqlite3_finalize(s);
  return result;
}

static int open_database(struct pf_journal *journal, const char *path,
                         struct pf_error *err) {
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(path, &journal->db, flags, NULL) != SQLITE_OK)
    return pf_error_set(err, PF_EWRITE, "cannot open %s: %s", path,
                        journal->db ? sqlite3_errmsg(journal->db)
                                    : "out of memory");
  if (exec(journal, schema_sql, err) != PF_OK)
    return (int)err->code;
  journal->is_ours = true;
  for (int i = 0; i < S_N; i++)
    if (sqlite3_prepare_v2(journal->db, sql_of[i], -1, &journal->statements[i],
                           NULL) != SQLITE_OK)
      return sql_error(journal, err);
  return write_steps(journal, err);
}

static int start_thread(struct pf_journal *journal, struct pf_error *err) {
  if (pthread_create(&journal->thread, NULL, journal_main, journal) != 0)
    return pf_error_set(err, PF_ENOMEM, "cannot start a thread");
  journal->thread_started = true;
  return PF_OK;
}

/* An empty file is left by a run that ended before its journal began: it
 * lists nothing. */
static int clear_way(const char *out_dir, const char *path, bool fresh,
                     struct pf_error *err) {
  struct stat st;
  char *people;
  if (stat(path, &st) != 0 || (S_ISREG(st.st_mode) && st.st_size == 0))
    return PF_OK;
  if (fresh)
    return pf_journal_remove_outputs(out_dir, path, err);
  people = pf_name_for_people(out_dir);
  (void)pf_error_set(err, PF_EINVAL,
                     "%s holds the results of an earlier run: choose another "
                     "folder, or give --fresh to remove them first",
                     people ? people : "OUT");
  free(people);
  return PF_EINVAL;
}

int pf_journal_open(struct pf_journal **out, const char *out_dir,
                    const struct pf_plan *plan, bool fresh,
                    struct pf_error *err) {
  struct pf_journal *journal = calloc(1, sizeof(*journal));
  char *path = pf_os_join(out_dir, "run.sqlite");
  int result = PF_OK;
  *out = NULL;
  if (!journal || !path) {
    free(journal);
    free(path);
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  }
  journal->plan = plan;
  journal->out_dir = out_dir;
  (void)pthread_mutex_init(&journal->lock, NULL);
  (void)pthread_cond_init(&journal->wake, NULL);
  (void)pthread_cond_init(&journal->room, NULL);
  result = clear_way(out_dir, path, fresh, err);
  if (result == PF_OK)
    result = open_database(journal, path, err);
  if (result == PF_OK)
    result = start_thread(journal, err);
  if (result != PF_OK) {
    if (journal->is_ours)
      (void)unlink(path);
    pf_journal_close(&journal);
  }
  free(path);
  *out = journal;
  return result;
}

int pf_journal_add_file(struct pf_journal *journal, const char *path,
                        struct pf_error *err) {
  sqlite3_stmt *s = journal->statements[S_FILE];
  bind_text(s, 1, path);
  return run_statement(journal, s, err);
}

struct sqlite3 *pf_journal_db(struct pf_journal *journal) {
  return journal->db;
}

double pf_journal_seconds(const struct pf_journal *journal) {
  return journal->seconds;
}

void pf_journal_close(struct pf_journal **journal_p) {
  struct pf_journal *journal = *journal_p;
  struct pf_error err = PF_ERROR_INIT;
  *journal_p = NULL;
  if (!journal)
    return;
  (void)pf_journal_stop(journal, &err);
  pf_error_clear(&err);
  free_batch(journal, journal->first, false);
  for (int i = 0; i < S_N; i++)
    (void)sqlite3_finalize(journal->statements[i]);
  for (size_t i = 0; i < journal->n_inserts; i++)
    (void)sqlite3_finalize(journal->inserts[i].statement);
  /* Truncating is quick while the run goes; at its end no empty
   * run.sqlite-journal stays behind. */
  (void)sqlite3_exec(journal->db,
                     "PRAGMA journal_mode=DELETE;"
                     "PRAGMA locking_mode=NORMAL;",
                     NULL, NULL, NULL);
  (void)sqlite3_close(journal->db);
  free(journal->inserts);
  (void)pthread_cond_destroy(&journal->wake);
  (void)pthread_cond_destroy(&journal->room);
  (void)pthread_mutex_destroy(&journal->lock);
  free(journal);
}
