/* --fresh: remove what an earlier run's journal lists, and nothing else. */
#include "engine/journal.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bridge/os.h"
#include "engine/temporaries.h"

/* Remove the folders above a removed file while they are empty. */
static void remove_empty_parents(const char *out_dir, const char *path) {
  char *copy = strdup(path);
  char *slash = copy ? strrchr(copy, '/') : NULL;
  while (slash) {
    char *full;
    *slash = '\0';
    full = pf_os_join(out_dir, copy);
    if (!full || rmdir(full) != 0)
      slash = NULL;
    else
      slash = strrchr(copy, '/');
    free(full);
  }
  free(copy);
}

static int remove_one(const char *out_dir, const char *path,
                      struct pf_error *err) {
  char *full;
  int result = PF_OK;
  /* The journal could have been written by anybody. */
  if (!pf_os_stays_below(path))
    return PF_OK;
  full = pf_os_join(out_dir, path);
  if (!full)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  if (unlink(full) != 0 && errno != ENOENT) {
    char *people = pf_name_for_people(full);
    result = pf_error_set(err, PF_EWRITE, "cannot remove %s: %s",
                          people ? people : "a file", strerror(errno));
    free(people);
  }
  free(full);
  return result;
}

typedef int each_path(const char *out_dir, const char *path,
                      struct pf_error *err);

static int remove_parents(const char *out_dir, const char *path,
                          struct pf_error *err) {
  (void)err;
  if (pf_os_stays_below(path))
    remove_empty_parents(out_dir, path);
  return PF_OK;
}

static int for_each_path(sqlite3 *db, const char *sql, const char *out_dir,
                         each_path *act, struct pf_error *err) {
  sqlite3_stmt *s = NULL;
  int result = PF_OK, code;
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
    return pf_error_set(err, PF_EINVAL,
                        "run.sqlite is no journal of plateflow: %s",
                        sqlite3_errmsg(db));
  while (result == PF_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
    const char *path = (const char *)sqlite3_column_text(s, 0);
    if (path)
      result = act(out_dir, path, err);
  }
  if (result == PF_OK && code != SQLITE_DONE)
    result = pf_error_set(err, PF_EINVAL, "cannot read run.sqlite: %s",
                          sqlite3_errmsg(db));
  (void)sqlite3_finalize(s);
  return result;
}

/* A run that ended while it made its journal left no table in it. */
static bool is_empty(sqlite3 *db) {
  sqlite3_stmt *s = NULL;
  bool empty = sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_master", -1, &s,
                                  NULL) == SQLITE_OK &&
               sqlite3_step(s) == SQLITE_DONE;
  (void)sqlite3_finalize(s);
  return empty;
}

static int remove_listed(sqlite3 *db, const char *out_dir,
                         struct pf_error *err) {
  static const char outputs[] = "SELECT path FROM outputs";
  static const char files[] = "SELECT path FROM files";
  int result = PF_OK;
  if (is_empty(db))
    return PF_OK;
  result = for_each_path(db, outputs, out_dir, remove_one, err);
  if (result == PF_OK)
    result = for_each_path(db, files, out_dir, remove_one, err);
  pf_temporaries_clear(out_dir);
  if (result == PF_OK)
    result = for_each_path(db, outputs, out_dir, remove_parents, err);
  if (result == PF_OK)
    result = for_each_path(db, files, out_dir, remove_parents, err);
  return result;
}

int pf_journal_remove_outputs(const char *out_dir, const char *path,
                              struct pf_error *err) {
  sqlite3 *db = NULL;
  int result = PF_OK;
  if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
    result = pf_error_set(err, PF_EINVAL, "cannot open %s: %s", path,
                          db ? sqlite3_errmsg(db) : "out of memory");
  /* Another run that is writing holds the lock; then nothing is removed. */
  if (result == PF_OK &&
      sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL) != SQLITE_OK)
    result =
        pf_error_set(err, PF_EINVAL, "--fresh: cannot use the journal %s: %s",
                     path, sqlite3_errmsg(db));
  if (result == PF_OK)
    result = remove_listed(db, out_dir, err);
  (void)sqlite3_close(db);
  if (result == PF_OK && unlink(path) != 0 && errno != ENOENT)
    result = pf_error_set(err, PF_EWRITE, "cannot remove %s: %s", path,
                          strerror(errno));
  return result;
}
