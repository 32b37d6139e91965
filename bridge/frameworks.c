/* The table of frameworks: built-in entries, the user's, the environment. */
#include "bridge/frameworks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/frameworks_private.h"
#include "bridge/os.h"

enum { MAX_FILE = 1 << 20 }; /* bytes of a user's file */

/* ---------------------------------------------------------------- merging */

void pf_framework_table_clear(struct pf_framework_table *table) {
  free((void *)table->entries);
  free(table->oom);
  free((void *)table->not_oom);
  for (size_t i = 0; i < PF_N_FRAMEWORK_FILES; i++)
    pf_framework_file_free(&table->files[i]);
  *table = (struct pf_framework_table){0};
}

static int no_memory(struct pf_error *err) {
  return pf_error_set(err, PF_ENOMEM, "out of memory");
}

/* An entry takes the place of one with its name. */
static void put_entry(struct pf_framework_table *table,
                      const struct pf_framework *entry) {
  size_t at = 0;
  /* Entries below n are set. NOLINTNEXTLINE(clang-analyzer-core.*) */
  while (at < table->n && strcmp(table->entries[at]->name, entry->name) != 0)
    at++;
  table->entries[at] = entry;
  table->n += at == table->n;
}

/* By order; equal ones stay as they are. */
static void sort_entries(struct pf_framework_table *table) {
  for (size_t i = 1; i < table->n; i++) {
    const struct pf_framework *entry = table->entries[i];
    size_t at = i;
    /* Entries below n are set. NOLINTNEXTLINE(clang-analyzer-core.*) */
    for (; at > 0 && table->entries[at - 1]->order > entry->order; at--)
      table->entries[at] = table->entries[at - 1];
    table->entries[at] = entry;
  }
}

static int merge(struct pf_framework_table *table, struct pf_error *err) {
  size_t n = 0, n_oom = 0, n_not_oom = 0;
  for (size_t i = 0; i < PF_N_FRAMEWORK_FILES && table->files[i]; i++) {
    n += table->files[i]->n;
    n_oom += table->files[i]->n_oom;
    n_not_oom += table->files[i]->n_not_oom;
  }
  table->entries = calloc(n + 1, sizeof(*table->entries));
  table->oom = calloc(n_oom + 1, sizeof(*table->oom));
  table->not_oom = calloc(n_not_oom + 1, sizeof(*table->not_oom));
  if (!table->entries || !table->oom || !table->not_oom)
    return no_memory(err);
  for (size_t i = 0; i < PF_N_FRAMEWORK_FILES && table->files[i]; i++) {
    const struct pf_framework_file *file = table->files[i];
    for (size_t j = 0; j < file->n; j++)
      put_entry(table, &file->entries[j]);
    for (size_t j = 0; j < file->n_oom; j++)
      table->oom[table->n_oom++] = file->oom[j];
    for (size_t j = 0; j < file->n_not_oom; j++)
      table->not_oom[table->n_not_oom++] = file->not_oom[j];
  }
  sort_entries(table);
  return PF_OK;
}

/* Each name becomes a memory type. */
static int register_types(struct pf_framework_table *table,
                          struct pf_error *err) {
  for (size_t i = 0; i < PF_N_FRAMEWORK_FILES && table->files[i]; i++) {
    struct pf_framework_file *file = table->files[i];
    for (size_t j = 0; j < file->n; j++) {
      struct pf_framework *entry = &file->entries[j];
      int type = pf_memory_type_register(entry->name, true);
      if (type < 0) {
        int line = 0, column = 0;
        (void)pf_error_set(err, PF_EINVAL,
                           "framework \"%s\" is one too many: %d can be added",
                           entry->name, PF_MEM_END - PF_MEM_FIRST_REGISTERED);
        pf_json_place(file->doc, pf_json_get(entry->json, "name"), false,
                      &line, &column);
        pf_error_at_file(err, pf_json_file(file->doc), line, column);
        return PF_EINVAL;
      }
      entry->type = (enum pf_memory_type)type;
    }
  }
  return PF_OK;
}

int pf_framework_table_make(struct pf_framework_table *table,
                            const char *builtin, size_t builtin_size,
                            const char *user, size_t user_size,
                            const char *user_name, struct pf_error *err) {
  int code;
  *table = (struct pf_framework_table){0};
  code = pf_framework_file_parse(&table->files[0], builtin, builtin_size,
                                 "frameworks.json", err);
  if (!code && user)
    code = pf_framework_file_parse(&table->files[1], user, user_size,
                                   user_name, err);
  if (!code)
    code = merge(table, err);
  if (!code)
    code = register_types(table, err);
  if (code)
    pf_framework_table_clear(table);
  return code;
}

/* ------------------------------------------------------- the process's own */

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pf_framework_table loaded; /* set once under the lock */
static struct pf_frameworks frameworks;  /* what others see of it */

static int load(const char *path, struct pf_error *err) {
  char *text = NULL;
  size_t size = 0;
  int code = PF_OK;
  if (!path)
    path = getenv("PLATEFLOW_FRAMEWORKS");
  if (path && *path)
    code = pf_os_read_file(&text, &size, path, MAX_FILE, err);
  if (!code)
    code = pf_framework_table_make(&loaded, (const char *)pf_frameworks_json,
                                   pf_frameworks_json_size, text, size, path,
                                   err);
  free(text);
  if (code)
    return code;
  frameworks =
      (struct pf_frameworks){loaded.n,         loaded.entries, loaded.n_oom,
                             loaded.n_not_oom, loaded.oom,     loaded.not_oom};
  return PF_OK;
}

int pf_frameworks_load(const char *path, struct pf_error *err) {
  int code = PF_OK;
  (void)pthread_mutex_lock(&load_lock);
  if (!frameworks.n)
    code = load(path, err);
  (void)pthread_mutex_unlock(&load_lock);
  return code;
}

const struct pf_frameworks *pf_frameworks_get(void) {
  return &frameworks;
}

const struct pf_framework *pf_framework_find(const char *name) {
  for (size_t i = 0; i < frameworks.n; i++)
    if (strcmp(frameworks.entries[i]->name, name) == 0)
      return frameworks.entries[i];
  return NULL;
}

const struct pf_framework *pf_framework_of_type(enum pf_memory_type type) {
  for (size_t i = 0; i < frameworks.n; i++)
    if (frameworks.entries[i]->type == type)
      return frameworks.entries[i];
  return NULL;
}

/* Whether `value` lies in the text of this file. */
static bool is_of(const struct pf_framework_file *file,
                  const struct pf_framework *framework) {
  return file && framework >= file->entries &&
         framework < file->entries + file->n;
}

const struct pf_json_doc *
pf_framework_doc(const struct pf_framework *framework) {
  for (size_t i = 0; i < PF_N_FRAMEWORK_FILES; i++)
    if (is_of(loaded.files[i], framework))
      return loaded.files[i]->doc;
  return NULL;
}

/* ------------------------------------------------------------ environment */

/* The number of inner threads is what OpenMP was told. */
static const char *env_value(const char *value) {
  const char *threads = getenv("OMP_NUM_THREADS");
  if (strcmp(value, "{threads}") != 0)
    return value;
  return threads ? threads : "1";
}

int pf_frameworks_set_env(const char *const *names, size_t n, char **set,
                          struct pf_error *err) {
  struct pf_buf text = {0};
  int code = PF_OK;
  if (set)
    *set = NULL;
  for (size_t i = 0; i < n && !code; i++) {
    const struct pf_framework *f = pf_framework_find(names[i]);
    const char *value;
    for (size_t j = 0; f && j < f->n_env && !code; j++) {
      if (getenv(f->env_names[j]))
        continue; /* the user's, or another framework's */
      value = env_value(f->env_values[j]);
      if (setenv(f->env_names[j], value, 0) != 0)
        code = no_memory(err);
      pf_buf_printf(&text, "%s=%s\n", f->env_names[j], value);
    }
  }
  if (!code && !pf_buf_ok(&text))
    code = no_memory(err);
  if (!code && set && !(*set = text.len ? pf_buf_take(&text) : strdup("")))
    code = no_memory(err);
  pf_buf_free(&text);
  return code;
}
