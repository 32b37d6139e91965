/* Values that one row describes, and what is said about wrong ones. */
#include "engine/pipeline_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_QUOTED = 60, MAX_LISTED = 14 };

const char *const pf_component_words[] = {
#define XX(name, word) word,
    PF_COMPONENT_MAP(XX)
#undef XX
        NULL};

const char *const pf_dtype_words[] = {
#define XX(name, word, n_bytes, dl_code, bits) word,
    PF_DTYPE_MAP(XX)
#undef XX
        NULL};

const char *const pf_cast_mode_words[] = {
#define XX(name, word) word,
    PF_CAST_MODE_MAP(XX)
#undef XX
        NULL};

/* ------------------------------------------------------------ complaints */

void pf_complain(struct pf_reader *r, const pf_json *value, bool of_key,
                 const char *fmt, ...) {
  struct pf_buf text = {0};
  va_list args;
  va_start(args, fmt);
  pf_buf_vprintf(&text, fmt, args);
  va_end(args);
  if (!pf_buf_ok(&text) || pf_report_add(r->report, false, r->doc, value,
                                         of_key, "%s", pf_buf_text(&text)))
    r->no_memory = true;
  pf_buf_free(&text);
}

void pf_add_quoted(struct pf_buf *buf, const char *text) {
  char cut[MAX_QUOTED + 1];
  size_t n = strlen(text);
  if (n <= MAX_QUOTED) {
    pf_buf_json(buf, text);
    return;
  }
  /* Not within a character of several bytes. */
  for (n = MAX_QUOTED; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
    n--;
  memcpy(cut, text, n);
  cut[n] = '\0';
  pf_buf_json(buf, cut);
  pf_buf_str(buf, "...");
}

/* `the string "3"`, `the number 2.5`, `true`, `a list`. */
static void describe(const struct pf_json_doc *doc, const pf_json *value,
                     struct pf_buf *buf) {
  enum pf_json_type type = pf_json_type(doc, value);
  switch (type) {
  case PF_JSON_STRING:
    pf_buf_str(buf, "the string ");
    pf_add_quoted(buf, pf_json_string(value));
    break;
  case PF_JSON_INT:
  case PF_JSON_REAL:
    pf_buf_printf(buf, "the %s ", type == PF_JSON_INT ? "integer" : "number");
    pf_json_write(doc, value, buf);
    break;
  case PF_JSON_BOOL:
    pf_json_write(doc, value, buf);
    break;
  default:
    pf_buf_str(buf, pf_json_type_name(type));
  }
}

void pf_complain_type(struct pf_reader *r, const pf_json *value,
                      const char *what) {
  struct pf_buf got = {0};
  describe(r->doc, value, &got);
  pf_complain(r, value, false, "expected %s, got %s", what, pf_buf_text(&got));
  pf_buf_free(&got);
}

static void add_known(struct pf_buf *buf, const char *word,
                      const char *const *known, size_t n) {
  const char *nearest = pf_nearest_word(word, known, n);
  if (nearest) {
    pf_buf_printf(buf, "; did you mean \"%s\"?", nearest);
    return;
  }
  if (n > MAX_LISTED)
    return;
  for (size_t i = 0; i < n; i++)
    pf_buf_printf(buf, "%s%s", i ? ", " : "; known: ", known[i]);
}

void pf_complain_word(struct pf_reader *r, const pf_json *value, bool of_key,
                      const char *what, const char *word,
                      const char *const *known, size_t n) {
  struct pf_buf text = {0};
  pf_add_quoted(&text, word);
  add_known(&text, word, known, n);
  pf_complain(r, value, of_key, "unknown %s %s", what, pf_buf_text(&text));
  pf_buf_free(&text);
}

void pf_complain_not_yet(struct pf_reader *r, const pf_json *value,
                         bool of_key, const char *what, const char *word) {
  struct pf_buf quoted = {0};
  pf_add_quoted(&quoted, word);
  pf_complain(r, value, of_key, "%s%s is not supported yet", what,
              pf_buf_text(&quoted));
  pf_buf_free(&quoted);
}

/* --------------------------------------------------------------- objects */

static void unknown_key(struct pf_reader *r, const struct pf_key_table *table,
                        const pf_json *member) {
  const char **names = calloc(table->n, sizeof(*names));
  if (!names) {
    r->no_memory = true;
    return;
  }
  for (size_t i = 0; i < table->n; i++)
    names[i] = table->keys[i].name;
  pf_complain_word(r, member, true, "key", pf_json_key(member), names,
                   table->n);
  free(names);
}

static void read_member(struct pf_reader *r, const struct pf_key_table *table,
                        const pf_json *member, void *base) {
  for (size_t i = 0; i < table->n; i++) {
    const struct pf_key *key = &table->keys[i];
    if (strcmp(key->name, pf_json_key(member)) != 0)
      continue;
    if (key->read)
      key->read(r, key, member, (char *)base + key->offset);
    else
      pf_complain_not_yet(r, member, true, "", key->name);
    return;
  }
  unknown_key(r, table, member);
}

bool pf_read_object(struct pf_reader *r, const struct pf_key_table *table,
                    const pf_json *value, void *base) {
  if (pf_json_type(r->doc, value) != PF_JSON_OBJECT) {
    pf_complain_type(r, value, "an object");
    return false;
  }
  for (const pf_json *m = pf_json_first(value); m; m = pf_json_next(m))
    read_member(r, table, m, base);
  for (size_t i = 0; i < table->n; i++)
    if (strcmp(table->keys[i].standard, "required") == 0 &&
        !pf_json_get(value, table->keys[i].name))
      pf_complain(r, value, false, "\"%s\" is missing: %s needs it",
                  table->keys[i].name, table->object);
  return true;
}

void *pf_read_list(struct pf_reader *r, const pf_json *value, const char *what,
                   size_t min, size_t max, size_t size, size_t *n) {
  size_t count = pf_json_n(value);
  void *list = NULL;
  *n = 0;
  if (pf_json_type(r->doc, value) != PF_JSON_ARRAY) {
    pf_complain_type(r, value, what);
  } else if (count < min) {
    pf_complain(r, value, false, "the list is empty: expected %s", what);
  } else if (count > max) {
    pf_complain(r, value, false, "the list has %zu entries, %zu at the most",
                count, max);
  } else {
    list = calloc(count + 1, size);
    *n = list ? count : 0;
    r->no_memory = r->no_memory || !list;
  }
  return list;
}

/* ---------------------------------------------------------------- values */

char *pf_read_copy(struct pf_reader *r, const char *text) {
  char *copy = strdup(text);
  r->no_memory = r->no_memory || !copy;
  return copy;
}

const char *pf_read_text(struct pf_reader *r, const pf_json *value) {
  const char *text = pf_json_string(value);
  if (!text) {
    pf_complain_type(r, value, "a string");
  } else if (!*text) {
    pf_complain(r, value, false, "the string is empty");
    text = NULL;
  }
  return text;
}

int pf_read_word(struct pf_reader *r, const pf_json *value, const char *what,
                 const char *const *words) {
  const char *text = pf_json_string(value);
  int n = 0;
  if (!text) {
    pf_complain_type(r, value, "a string");
    return -1;
  }
  for (; words[n]; n++)
    if (strcmp(words[n], text) == 0)
      return n;
  pf_complain_word(r, value, false, what, text, words, (size_t)n);
  return -1;
}

void pf_read_version(struct pf_reader *r, const struct pf_key *key,
                     const pf_json *value, void *field) {
  (void)field;
  if (pf_json_type(r->doc, value) != PF_JSON_INT)
    pf_complain_type(r, value, key->type);
  else if (pf_json_int(r->doc, value) != key->min)
    pf_complain(r, value, false,
                "version %" PRId64 " of the format is not known; this program "
                "reads version %" PRId64,
                pf_json_int(r->doc, value), key->min);
}

void pf_read_string(struct pf_reader *r, const struct pf_key *key,
                    const pf_json *value, void *field) {
  const char *text = pf_read_text(r, value);
  (void)key;
  if (text)
    *(char **)field = pf_read_copy(r, text);
}

void pf_read_bool(struct pf_reader *r, const struct pf_key *key,
                  const pf_json *value, void *field) {
  if (pf_json_type(r->doc, value) != PF_JSON_BOOL)
    pf_complain_type(r, value, key->type);
  else
    *(int *)field = pf_json_bool(value);
}

void pf_read_int(struct pf_reader *r, const struct pf_key *key,
                 const pf_json *value, void *field) {
  int64_t number = pf_json_int(r->doc, value);
  if (pf_json_type(r->doc, value) != PF_JSON_INT || number < key->min ||
      number > key->max)
    pf_complain_type(r, value, key->type);
  else
    *(int *)field = (int)number;
}

/* The word's index. */
void pf_read_choice(struct pf_reader *r, const struct pf_key *key,
                    const pf_json *value, void *field) {
  struct pf_buf what = {0};
  int at;
  pf_buf_printf(&what, "value of \"%s\":", key->name);
  at = pf_read_word(r, value, pf_buf_text(&what), key->words);
  pf_buf_free(&what);
  if (at >= 0)
    *(int *)field = at;
}

/* The word itself. */
void pf_read_choice_text(struct pf_reader *r, const struct pf_key *key,
                         const pf_json *value, void *field) {
  int at = -1;
  pf_read_choice(r, key, value, &at);
  if (at >= 0)
    *(char **)field = pf_read_copy(r, key->words[at]);
}

/* ----------------------------------------------------------------- names */

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

bool pf_is_name(const char *text) {
  size_t n = strlen(text);
  return n > 0 && n <= PF_MAX_NAME &&
         strspn(text, LETTERS DIGITS "_.-") == n &&
         strchr(LETTERS DIGITS "_", text[0]);
}

bool pf_is_identifier(const char *text, size_t n) {
  return n > 0 && strspn(text, LETTERS DIGITS "_") >= n &&
         strchr(LETTERS "_", text[0]);
}
