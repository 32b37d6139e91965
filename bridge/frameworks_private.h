/*
 * A file of frameworks while it is read, and as it is kept. Private to
 * bridge/frameworks*.c.
 */
#ifndef PF_FRAMEWORKS_PRIVATE_H
#define PF_FRAMEWORKS_PRIVATE_H

#include "bridge/frameworks.h"

/* One file. Everything in it lives as long. */
struct pf_framework_file {
  struct pf_json_doc *doc;
  size_t n;
  struct pf_framework *entries;
  size_t n_oom, n_not_oom; /* of no one framework */
  struct pf_framework_oom *oom;
  const char *const *not_oom;
  size_t n_blocks;
  void **blocks; /* every allocation of the entries */
};

/*
 * Read a file's text; `name` names it in errors. Errors: PF_EINVAL with the
 * place, PF_ENOMEM.
 */
int pf_framework_file_parse(struct pf_framework_file **out, const char *text,
                            size_t n, const char *name,
                            struct pf_error *err) PF_MUST_CHECK;
void pf_framework_file_free(struct pf_framework_file **file);

/* The built-in file and the user's, merged. */
enum { PF_N_FRAMEWORK_FILES = 2 };
struct pf_framework_table {
  struct pf_framework_file *files[PF_N_FRAMEWORK_FILES]; /* then NULLs */
  size_t n;
  const struct pf_framework **entries; /* by order */
  size_t n_oom, n_not_oom;
  struct pf_framework_oom *oom;
  const char **not_oom;
};

/* Parse, merge and register the memory types. `user` may be NULL. */
int pf_framework_table_make(struct pf_framework_table *table,
                            const char *builtin, size_t builtin_size,
                            const char *user, size_t user_size,
                            const char *user_name,
                            struct pf_error *err) PF_MUST_CHECK;
void pf_framework_table_clear(struct pf_framework_table *table);

/* --- for the readers of values */

struct pf_framework_reader {
  struct pf_framework_file *file;
  const struct pf_framework *entry; /* being read, or NULL; for messages */
  struct pf_error *err;
};

/* PF_EINVAL at a value's place (or its key's), always returned. */
int pf_framework_complain(struct pf_framework_reader *r, const pf_json *value,
                          bool of_key, const char *fmt, ...) PF_PRINTF(4, 5);
/* "NAME is no WHAT", with the word that may have been meant. */
int pf_framework_complain_word(struct pf_framework_reader *r,
                               const pf_json *value, bool of_key,
                               const char *what, const char *word,
                               const char *const *known, size_t n);
/* n zeroed elements that live as long as the file; NULL: PF_ENOMEM is set. */
void *pf_framework_alloc(struct pf_framework_reader *r, size_t n, size_t size);
/* A row of a table of keys. */
struct pf_fw_key;
/* Read one value into `base`, the struct that the table is for. */
typedef int pf_fw_read(struct pf_framework_reader *r,
                       const struct pf_fw_key *key, const pf_json *value,
                       void *base);
struct pf_fw_key {
  const char *name;
  pf_fw_read *read;
  size_t offset;   /* of the field in the struct */
  size_t offset_n; /* of a list's length */
  bool required;
  int64_t max;                   /* of a number */
  const char *const *words;      /* of a choice, NULL at the end */
  const struct pf_fw_key *table; /* of an object, ends without a name */
};

/* Read the members of an object by the rows of a table. */
int pf_fw_object(struct pf_framework_reader *r, const pf_json *value,
                 const struct pf_fw_key *table, void *base);
/* A list's zeroed elements; *list is set to them. */
int pf_fw_list(struct pf_framework_reader *r, const pf_json *value,
               size_t size, void *list, size_t *n);
/* "expected WHAT, got an integer" */
int pf_fw_expected(struct pf_framework_reader *r, const pf_json *value,
                   const char *what);
int pf_fw_text_of(struct pf_framework_reader *r, const pf_json *value,
                  const char **out);
pf_fw_read pf_fw_part, pf_fw_text, pf_fw_dotted, pf_fw_bool, pf_fw_int,
    pf_fw_alignment, pf_fw_choice, pf_fw_texts, pf_fw_pairs, pf_fw_devices,
    pf_fw_dtypes, pf_fw_call, pf_fw_calls;

/* A call, checked with all that is in it (frameworks_call.c). */
int pf_framework_read_call(struct pf_framework_reader *r, const pf_json *value,
                           struct pf_framework_call *out);
/* One key of a call: "function", "args" or "kwargs". */
int pf_framework_read_call_key(struct pf_framework_reader *r,
                               const pf_json *value,
                               struct pf_framework_call *out);
/* "a.b().c"; `array`: may start with {array}. */
bool pf_framework_is_dotted(const char *text, bool calls, bool array);

/* bridge/frameworks.json as text, made by the build; a NUL stands behind. */
extern const unsigned char pf_frameworks_json[];
extern const unsigned long pf_frameworks_json_size; /* without the NUL */

#endif
