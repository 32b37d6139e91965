/* Reading the values of a file of frameworks, by tables of keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/frameworks_private.h"
#include "plateflow/device.h"

/* Limits of a file, far above what anyone writes. */
enum { MAX_LIST = 256, MAX_ALIGNMENT = 1 << 20 };

/* ----------------------------------------------------------------- errors */

int pf_framework_complain(struct pf_framework_reader *r, const pf_json *value,
                          bool of_key, const char *fmt, ...) {
  struct pf_buf text = {0}, path = {0};
  int line = 0, column = 0, code;
  va_list args;
  va_start(args, fmt);
  pf_buf_vprintf(&text, fmt, args);
  va_end(args);
  pf_json_path(r->file->doc, value, &path);
  if (r->entry && r->entry->name)
    code =
        pf_error_set(r->err, PF_EINVAL, "framework \"%s\", %s: %s",
                     r->entry->name, pf_buf_text(&path), pf_buf_text(&text));
  else if (path.len)
    code = pf_error_set(r->err, PF_EINVAL, "%s: %s", pf_buf_text(&path),
                        pf_buf_text(&text));
  else
    code = pf_error_set(r->err, PF_EINVAL, "%s", pf_buf_text(&text));
  pf_json_place(r->file->doc, value, of_key, &line, &column);
  pf_error_at_file(r->err, pf_json_file(r->file->doc), line, column);
  pf_buf_free(&path);
  pf_buf_free(&text);
  return code;
}

int pf_framework_complain_word(struct pf_framework_reader *r,
                               const pf_json *value, bool of_key,
                               const char *what, const char *word,
                               const char *const *known, size_t n) {
  const char *nearest = pf_nearest_word(word, known, n);
  struct pf_buf quoted = {0};
  int code;
  pf_buf_json(&quoted, word);
  code = pf_framework_complain(r, value, of_key, "unknown %s %s%s%s%s", what,
                               pf_buf_text(&quoted),
                               nearest ? "; did you mean \"" : "",
                               nearest ? nearest : "", nearest ? "\"?" : "");
  pf_buf_free(&quoted);
  return code;
}

int pf_fw_expected(struct pf_framework_reader *r, const pf_json *value,
                   const char *what) {
  (void)pf_framework_complain(
      r, value, false, "expected %s, got %s", what,
      pf_json_type_name(pf_json_type(r->file->doc, value)));
  return PF_EINVAL;
}

/* ----------------------------------------------------------------- memory */

static int no_memory(struct pf_framework_reader *r) {
  return pf_error_set(r->err, PF_ENOMEM, "out of memory");
}

void *pf_framework_alloc(struct pf_framework_reader *r, size_t n,
                         size_t size) {
  struct pf_framework_file *file = r->file;
  void **blocks =
      realloc(file->blocks, (file->n_blocks + 1) * sizeof(*blocks));
  void *block = calloc(n + 1, size); /* never 0 bytes */
  if (blocks)
    file->blocks = blocks;
  if (!blocks || !block) {
    free(block);
    (void)no_memory(r);
    return NULL;
  }
  file->blocks[file->n_blocks++] = block;
  return block;
}

void pf_framework_file_free(struct pf_framework_file **file) {
  if (!*file)
    return;
  for (size_t i = 0; i < (*file)->n_blocks; i++)
    free((*file)->blocks[i]);
  free((*file)->blocks);
  pf_json_free(&(*file)->doc);
  free(*file);
  *file = NULL;
}

/* ------------------------------------------------------------------- keys */

static void *field(const struct pf_fw_key *key, void *base) {
  return (char *)base + key->offset;
}

static void *second(const struct pf_fw_key *key, void *base) {
  return (char *)base + key->offset_n;
}

/* Read the members of an object by the rows of a table. */
int pf_fw_object(struct pf_framework_reader *r, const pf_json *value,
                 const struct pf_fw_key *table, void *base) {
  const char *names[32];
  size_t n = 0;
  int code = PF_OK;
  if (pf_json_type(r->file->doc, value) != PF_JSON_OBJECT)
    return pf_fw_expected(r, value, "an object");
  while (table[n].name) {
    names[n] = table[n].name;
    n++;
  }
  for (const pf_json *v = pf_json_first(value); v && !code;
       v = pf_json_next(v)) {
    size_t i = 0;
    while (i < n && strcmp(names[i], pf_json_key(v)) != 0)
      i++;
    code = i < n ? table[i].read(r, &table[i], v, base)
                 : pf_framework_complain_word(r, v, true, "key",
                                              pf_json_key(v), names, n);
  }
  for (size_t i = 0; i < n && !code; i++)
    if (table[i].required && !pf_json_get(value, names[i]))
      code = pf_framework_complain(r, value, false, "\"%s\" is missing",
                                   names[i]);
  return code;
}

int pf_fw_part(struct pf_framework_reader *r, const struct pf_fw_key *key,
               const pf_json *value, void *base) {
  return pf_fw_object(r, value, key->table, base);
}

/* ---------------------------------------------------------- simple values */

int pf_fw_text_of(struct pf_framework_reader *r, const pf_json *value,
                  const char **out) {
  const char *text = pf_json_string(value);
  if (!text || !*text)
    return pf_fw_expected(r, value, "a string that is not empty");
  *out = text;
  return PF_OK;
}

int pf_fw_text(struct pf_framework_reader *r, const struct pf_fw_key *key,
               const pf_json *value, void *base) {
  return pf_fw_text_of(r, value, field(key, base));
}

/* "package.module" */
int pf_fw_dotted(struct pf_framework_reader *r, const struct pf_fw_key *key,
                 const pf_json *value, void *base) {
  const char *text = pf_json_string(value);
  if (!text || !pf_framework_is_dotted(text, false, false))
    return pf_framework_complain(r, value, false,
                                 "expected a dotted name such as "
                                 "\"package.module\"");
  *(const char **)field(key, base) = text;
  return PF_OK;
}

int pf_fw_bool(struct pf_framework_reader *r, const struct pf_fw_key *key,
               const pf_json *value, void *base) {
  if (pf_json_type(r->file->doc, value) != PF_JSON_BOOL)
    return pf_fw_expected(r, value, "true or false");
  *(bool *)field(key, base) = pf_json_bool(value);
  return PF_OK;
}

int pf_fw_int(struct pf_framework_reader *r, const struct pf_fw_key *key,
              const pf_json *value, void *base) {
  int64_t number = pf_json_int(r->file->doc, value);
  if (pf_json_type(r->file->doc, value) != PF_JSON_INT)
    return pf_fw_expected(r, value, "an integer");
  if (number < 0 || number > key->max)
    return pf_framework_complain(r, value, false,
                                 "expected an integer from 0 to %lld",
                                 (long long)key->max);
  *(int *)field(key, base) = (int)number;
  return PF_OK;
}

int pf_fw_alignment(struct pf_framework_reader *r, const struct pf_fw_key *key,
                    const pf_json *value, void *base) {
  int64_t number = pf_json_int(r->file->doc, value);
  if (pf_json_type(r->file->doc, value) != PF_JSON_INT || number < 1 ||
      number > MAX_ALIGNMENT || (number & (number - 1)))
    return pf_framework_complain(r, value, false,
                                 "expected a power of two from 1 to %d",
                                 MAX_ALIGNMENT);
  *(uint32_t *)field(key, base) = (uint32_t)number;
  return PF_OK;
}

int pf_fw_choice(struct pf_framework_reader *r, const struct pf_fw_key *key,
                 const pf_json *value, void *base) {
  const char *text = NULL;
  size_t n = 0;
  int code = pf_fw_text_of(r, value, &text);
  for (; !code && key->words[n]; n++) {
    if (strcmp(key->words[n], text) == 0) {
      *(int *)field(key, base) = (int)n; /* an enum from 0 */
      return PF_OK;
    }
  }
  return code ? code
              : pf_framework_complain_word(r, value, false, "word", text,
                                           key->words, n);
}

/* ------------------------------------------------------------------ lists */

int pf_fw_list(struct pf_framework_reader *r, const pf_json *value,
               size_t size, void *list, size_t *n) {
  void *memory;
  if (pf_json_type(r->file->doc, value) != PF_JSON_ARRAY)
    return pf_fw_expected(r, value, "a list");
  if (pf_json_n(value) > MAX_LIST) {
    (void)pf_framework_complain(r, value, false,
                                "the list has %zu entries, %d at the most",
                                pf_json_n(value), MAX_LIST);
    return PF_EINVAL;
  }
  memory = pf_framework_alloc(r, pf_json_n(value), size);
  if (!memory)
    return PF_ENOMEM;
  memcpy(list, &memory, sizeof(memory)); /* a pointer of some type */
  *n = pf_json_n(value);
  return PF_OK;
}

static int texts_of(struct pf_framework_reader *r, const pf_json *value,
                    const char *const **out, size_t *n) {
  const char **list = NULL;
  int code = pf_fw_list(r, value, sizeof(*list), &list, n);
  size_t i = 0;
  for (const pf_json *v = pf_json_first(value); v && !code;
       v = pf_json_next(v))
    code = pf_fw_text_of(r, v, &list[i++]);
  *out = list;
  return code;
}

int pf_fw_texts(struct pf_framework_reader *r, const struct pf_fw_key *key,
                const pf_json *value, void *base) {
  return texts_of(r, value, field(key, base), second(key, base));
}

/* An object of strings: the names are at `offset`, the values right behind
 * them, the number at `offset_n`. */
int pf_fw_pairs(struct pf_framework_reader *r, const struct pf_fw_key *key,
                const pf_json *value, void *base) {
  const char *const **lists = field(key, base);
  const char **names, **values;
  size_t i = 0;
  if (pf_json_type(r->file->doc, value) != PF_JSON_OBJECT)
    return pf_fw_expected(r, value, "an object");
  names = pf_framework_alloc(r, pf_json_n(value), sizeof(*names));
  values = pf_framework_alloc(r, pf_json_n(value), sizeof(*values));
  if (!names || !values)
    return PF_ENOMEM;
  for (const pf_json *v = pf_json_first(value); v; v = pf_json_next(v), i++) {
    names[i] = pf_json_key(v);
    values[i] = pf_json_string(v);
    if (!*names[i] || strchr(names[i], '=') || strchr(names[i], ' '))
      return pf_framework_complain(r, v, true, "\"%s\" is no name", names[i]);
    if (!values[i])
      return pf_fw_expected(r, v, "a string");
  }
  lists[0] = names;
  lists[1] = values;
  *(size_t *)second(key, base) = i;
  return PF_OK;
}

int pf_fw_devices(struct pf_framework_reader *r, const struct pf_fw_key *key,
                  const pf_json *value, void *base) {
  static const char *const words[] = {"host", "cuda", "opencl"};
  static const int kinds[] = {PF_DEVICE_HOST, PF_DEVICE_CUDA,
                              PF_DEVICE_OPENCL};
  enum { N = sizeof(words) / sizeof(words[0]) };
  const char *text = NULL;
  int *list = NULL;
  size_t i = 0;
  int code = pf_fw_list(r, value, sizeof(*list), &list, second(key, base));
  *(const int **)field(key, base) = list;
  if (!code && !pf_json_n(value))
    return pf_framework_complain(r, value, false,
                                 "the list is empty: expected \"host\", "
                                 "\"cuda\" or \"opencl\"");
  for (const pf_json *v = pf_json_first(value); v && !code;
       v = pf_json_next(v), i++) {
    size_t at = 0;
    if ((code = pf_fw_text_of(r, v, &text)) != PF_OK)
      return code;
    while (at < N && strcmp(words[at], text) != 0)
      at++;
    if (at == N)
      return pf_framework_complain_word(r, v, false, "device", text, words, N);
    list[i] = kinds[at];
  }
  return code;
}

int pf_fw_dtypes(struct pf_framework_reader *r, const struct pf_fw_key *key,
                 const pf_json *value, void *base) {
  const char *words[PF_N_DTYPES];
  bool *flags = field(key, base);
  if (pf_json_type(r->file->doc, value) != PF_JSON_ARRAY)
    return pf_fw_expected(r, value, "a list");
  for (int i = 0; i < PF_N_DTYPES; i++)
    words[i] = pf_dtype_name((enum pf_dtype)i);
  for (const pf_json *v = pf_json_first(value); v; v = pf_json_next(v)) {
    const char *text = NULL;
    enum pf_dtype dtype;
    int code = pf_fw_text_of(r, v, &text);
    if (code)
      return code;
    dtype = pf_dtype_find(text);
    if (dtype == PF_DTYPE_NONE)
      return pf_framework_complain_word(r, v, false, "element type", text,
                                        words, PF_N_DTYPES);
    flags[dtype] = true;
  }
  return PF_OK;
}

/* ------------------------------------------------------------------ calls */

int pf_fw_call(struct pf_framework_reader *r, const struct pf_fw_key *key,
               const pf_json *value, void *base) {
  return pf_framework_read_call(r, value, field(key, base));
}

int pf_fw_calls(struct pf_framework_reader *r, const struct pf_fw_key *key,
                const pf_json *value, void *base) {
  struct pf_framework_call *list = NULL;
  size_t i = 0;
  int code = pf_fw_list(r, value, sizeof(*list), &list, second(key, base));
  for (const pf_json *v = pf_json_first(value); v && !code;
       v = pf_json_next(v))
    code = pf_framework_read_call(r, v, &list[i++]);
  *(struct pf_framework_call **)field(key, base) = list;
  return code;
}
