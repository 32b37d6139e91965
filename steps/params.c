/* Parameters of C steps: see steps/params.h. */
#include "steps/params.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/os.h"

/* One pass over the parameters; checking and parsing differ in `report`. */
struct filling {
  const struct pf_step_type *type;
  const struct pf_json_doc *doc;
  const char *base_dir;
  bool placeholders; /* "{well}" stands for a value that is not known yet */
  bool has_unknown;  /* one was met, so the struct is not complete */
  bool out_of_memory;
  int n_reports;
  pf_param_report *report;
  void *context;
};

static void say(struct filling *f, const pf_json *value, bool of_key,
                struct pf_buf *text) {
  if (!pf_buf_ok(text)) {
    f->out_of_memory = true;
    return;
  }
  f->n_reports++;
  f->report(f->context, value, of_key, pf_buf_text(text));
}

/* "{word}" somewhere in the text. */
static bool has_placeholder(const char *text) {
  while ((text = strchr(text, '{'))) {
    size_t n = strspn(++text, "abcdefghijklmnopqrstuvwxyz_");
    if (n && text[n] == '}')
      return true;
  }
  return false;
}

/* ", got VALUE"; a long value only by its type, as it may be hostile. */
static void add_got(const struct filling *f, const pf_json *value,
                    struct pf_buf *why) {
  const char *type = pf_json_type_name(pf_json_type(f->doc, value));
  struct pf_buf text = {0};
  pf_json_write(f->doc, value, &text);
  pf_buf_printf(why, ", got %s", text.len > 60 ? type : pf_buf_text(&text));
  pf_buf_free(&text);
}

/* " between 0 and 1000", or what of it the row says. */
static void add_range(const struct pf_param *row, struct pf_buf *why) {
  if (row->min == 0 && row->max == 0)
    return;
  if (isinf(row->max))
    pf_buf_printf(why, " of at least %.15g", row->min);
  else if (isinf(row->min))
    pf_buf_printf(why, " of at most %.15g", row->max);
  else
    pf_buf_printf(why, " between %.15g and %.15g", row->min, row->max);
}

static bool in_range(const struct pf_param *row, double value) {
  return (row->min == 0 && row->max == 0) ||
         (value >= row->min && value <= row->max);
}

static bool read_int(struct filling *f, const struct pf_param *row,
                     const pf_json *value, void *slot, struct pf_buf *why) {
  int64_t number;
  if (pf_json_type(f->doc, value) == PF_JSON_INT) {
    number = pf_json_int(f->doc, value);
    if (in_range(row, (double)number)) {
      memcpy(slot, &number, sizeof(number));
      return true;
    }
  }
  pf_buf_str(why, "expected an integer");
  add_range(row, why);
  add_got(f, value, why);
  return false;
}

static bool read_real(struct filling *f, const struct pf_param *row,
                      const pf_json *value, void *slot, struct pf_buf *why) {
  enum pf_json_type type = pf_json_type(f->doc, value);
  if (type == PF_JSON_INT || type == PF_JSON_REAL) {
    double number = pf_json_real(value);
    if (in_range(row, number)) {
      memcpy(slot, &number, sizeof(number));
      return true;
    }
  }
  pf_buf_str(why, "expected a number");
  add_range(row, why);
  add_got(f, value, why);
  return false;
}

static bool read_bool(struct filling *f, const struct pf_param *row,
                      const pf_json *value, void *slot, struct pf_buf *why) {
  bool truth;
  (void)row;
  if (pf_json_type(f->doc, value) == PF_JSON_BOOL) {
    truth = pf_json_bool(value);
    memcpy(slot, &truth, sizeof(truth));
    return true;
  }
  pf_buf_str(why, "expected true or false");
  add_got(f, value, why);
  return false;
}

enum { MAX_CHOICES = 32 };

/* The words of "a|b|c" in `copy`, which is cut up; returns their number. */
static size_t split_choices(char *copy, const char *words[MAX_CHOICES]) {
  size_t n = 0;
  char *rest = NULL;
  for (char *word = strtok_r(copy, "|", &rest); word && n < MAX_CHOICES;
       word = strtok_r(NULL, "|", &rest))
    words[n++] = word;
  return n;
}

static void refuse_choice(const struct filling *f, const pf_json *value,
                          const char *given, const char *const *words,
                          size_t n, struct pf_buf *why) {
  const char *nearest = given ? pf_nearest_word(given, words, n) : NULL;
  pf_buf_str(why, "expected one of ");
  for (size_t i = 0; i < n; i++)
    pf_buf_printf(why, "%s%s", i ? ", " : "", words[i]);
  add_got(f, value, why);
  if (nearest)
    pf_buf_printf(why, ": did you mean \"%s\"?", nearest);
}

static bool read_choice(struct filling *f, const struct pf_param *row,
                        const pf_json *value, void *slot, struct pf_buf *why) {
  const char *words[MAX_CHOICES];
  const char *given = NULL;
  struct pf_buf number = {0};
  char *copy = strdup(row->choices);
  int chosen = -1;
  size_t n;
  if (!copy) {
    f->out_of_memory = true;
    return true;
  }
  n = split_choices(copy, words);
  if (pf_json_type(f->doc, value) == PF_JSON_STRING) {
    given = pf_json_string(value);
  } else if (pf_json_type(f->doc, value) == PF_JSON_INT) {
    pf_json_write(f->doc, value, &number);
    given = pf_buf_text(&number);
  }
  for (size_t i = 0; given && i < n; i++)
    if (strcmp(given, words[i]) == 0)
      chosen = (int)i;
  if (chosen >= 0)
    memcpy(slot, &chosen, sizeof(chosen));
  else
    refuse_choice(f, value, number.len ? NULL : given, words, n, why);
  pf_buf_free(&number);
  free(copy);
  return chosen >= 0;
}

/* Put a malloc'd string (NULL: no memory) into a struct's slot. */
static bool keep_string(struct filling *f, char *text, void *slot) {
  memcpy(slot, &text, sizeof(text));
  f->out_of_memory |= !text;
  return true;
}

static bool read_string(struct filling *f, const struct pf_param *row,
                        const pf_json *value, void *slot, struct pf_buf *why) {
  (void)row;
  if (pf_json_type(f->doc, value) == PF_JSON_STRING)
    return keep_string(f, strdup(pf_json_string(value)), slot);
  pf_buf_str(why, "expected a text");
  add_got(f, value, why);
  return false;
}

/* The path as an absolute one; NULL if memory ran out. */
static char *absolute_path(const char *base_dir, const char *name) {
  char *base = realpath(base_dir ? base_dir : ".", NULL);
  char *path = pf_os_join(base ? base : ".", name);
  free(base);
  return path;
}

static bool read_file(struct filling *f, const struct pf_param *row,
                      const pf_json *value, void *slot, struct pf_buf *why) {
  char *path;
  (void)row;
  if (pf_json_type(f->doc, value) != PF_JSON_STRING ||
      !*pf_json_string(value)) {
    pf_buf_str(why, "expected the name of a file");
    add_got(f, value, why);
    return false;
  }
  path = absolute_path(f->base_dir, pf_json_string(value));
  if (!path || pf_os_is_file(path))
    return keep_string(f, path, slot);
  pf_buf_str(why, "there is no file ");
  pf_buf_name(why, path);
  free(path);
  return false;
}

typedef bool read_value(struct filling *f, const struct pf_param *row,
                        const pf_json *value, void *slot, struct pf_buf *why);

static const struct {
  read_value *read;
  bool is_text; /* placeholders may stand in it */
  bool is_owned;
} kinds[] = {
    [PF_PARAM_INT] = {read_int, false, false},
    [PF_PARAM_REAL] = {read_real, false, false},
    [PF_PARAM_BOOL] = {read_bool, false, false},
    [PF_PARAM_CHOICE] = {read_choice, true, false},
    [PF_PARAM_STRING] = {read_string, true, true},
    [PF_PARAM_FILE] = {read_file, true, true},
};

static void *slot_of(void *params, const struct pf_param *row) {
  return (char *)params + row->offset;
}

static void set_default(const struct pf_param *row, void *slot) {
  int64_t integer;
  int choice;
  bool truth;
  switch (row->type) {
  case PF_PARAM_INT:
    integer = (int64_t)row->standard;
    memcpy(slot, &integer, sizeof(integer));
    break;
  case PF_PARAM_REAL:
    memcpy(slot, &row->standard, sizeof(row->standard));
    break;
  case PF_PARAM_BOOL:
    truth = row->standard != 0;
    memcpy(slot, &truth, sizeof(truth));
    break;
  case PF_PARAM_CHOICE:
    choice = (int)row->standard;
    memcpy(slot, &choice, sizeof(choice));
    break;
  case PF_PARAM_STRING:
  case PF_PARAM_FILE: /* NULL, as the struct was zeroed */
    break;
  }
}

enum { MAX_ROWS = 64 };

/* Names of the rows, for suggestions and lists. */
static size_t row_names(const struct pf_param *rows, const char **names) {
  size_t n = 0;
  for (; rows && rows->name && n < MAX_ROWS; rows++)
    names[n++] = rows->name;
  return n;
}

static void report_unknown(struct filling *f, const pf_json *value) {
  const char *names[MAX_ROWS];
  size_t n = row_names(f->type->params, names);
  const char *nearest = pf_nearest_word(pf_json_key(value), names, n);
  struct pf_buf text = {0};
  pf_buf_str(&text, "unknown parameter ");
  pf_buf_json(&text, pf_json_key(value));
  if (nearest)
    pf_buf_printf(&text, ": did you mean \"%s\"?", nearest);
  else if (n == 0)
    pf_buf_printf(&text, ": native:%s takes none", f->type->name);
  else
    pf_buf_printf(&text, ": native:%s takes ", f->type->name);
  for (size_t i = 0; !nearest && i < n; i++)
    pf_buf_printf(&text, "%s%s", i ? ", " : "", names[i]);
  say(f, value, true, &text);
  pf_buf_free(&text);
}

static const struct pf_param *find_row(const struct pf_step_type *type,
                                       const char *name) {
  for (const struct pf_param *row = type->params; row && row->name; row++)
    if (strcmp(row->name, name) == 0)
      return row;
  return NULL;
}

static void fill_member(struct filling *f, const pf_json *value,
                        void *params) {
  const struct pf_param *row = find_row(f->type, pf_json_key(value));
  struct pf_buf why = {0};
  if (!row) {
    report_unknown(f, value);
    return;
  }
  if (f->placeholders && kinds[row->type].is_text &&
      pf_json_type(f->doc, value) == PF_JSON_STRING &&
      has_placeholder(pf_json_string(value))) {
    f->has_unknown = true;
    return;
  }
  if (!kinds[row->type].read(f, row, value, slot_of(params, row), &why))
    say(f, value, false, &why);
  pf_buf_free(&why);
}

static void report_missing(struct filling *f, const pf_json *params) {
  for (const struct pf_param *row = f->type->params; row && row->name; row++) {
    struct pf_buf text = {0};
    if (!row->required || pf_json_get(params, row->name))
      continue;
    pf_buf_printf(&text, "native:%s needs the parameter \"%s\": %s",
                  f->type->name, row->name, row->help);
    say(f, params, false, &text);
    pf_buf_free(&text);
  }
}

/* What the rows cannot say; only of a struct that is complete. */
static void check_together(struct filling *f, const pf_json *params,
                           const void *filled) {
  struct pf_error wrong = PF_ERROR_INIT;
  struct pf_buf text = {0};
  if (!f->type->check || f->n_reports || f->has_unknown || f->out_of_memory)
    return;
  if (f->type->check(filled, &wrong)) {
    pf_buf_str(&text, wrong.message ? wrong.message : "wrong parameters");
    say(f, params, false, &text);
  }
  pf_error_clear(&wrong);
  pf_buf_free(&text);
}

static int fill(struct filling *f, void **out, const pf_json *params,
                struct pf_error *err) {
  size_t size = f->type->params_size ? f->type->params_size : 1;
  struct pf_buf text = {0};
  void *filled = calloc(1, size);
  *out = filled;
  if (!filled)
    return pf_error_set(err, PF_ENOMEM, "no memory for parameters");
  for (const struct pf_param *row = f->type->params; row && row->name; row++)
    set_default(row, slot_of(filled, row));
  if (params && pf_json_type(f->doc, params) != PF_JSON_OBJECT) {
    pf_buf_str(&text, "expected an object of parameters");
    add_got(f, params, &text);
    say(f, params, false, &text);
    pf_buf_free(&text);
  } else {
    for (const pf_json *value = pf_json_first(params); value;
         value = pf_json_next(value))
      fill_member(f, value, filled);
    report_missing(f, params);
  }
  check_together(f, params, filled);
  if (f->out_of_memory)
    return pf_error_set(err, PF_ENOMEM, "no memory for parameters");
  return PF_OK;
}

void pf_params_free(void **params, const struct pf_step_type *type) {
  if (!params || !*params)
    return;
  for (const struct pf_param *row = type->params; row && row->name; row++) {
    char *text = NULL;
    if (!kinds[row->type].is_owned)
      continue;
    memcpy(&text, slot_of(*params, row), sizeof(text));
    free(text);
  }
  free(*params);
  *params = NULL;
}

int pf_params_check(const struct pf_step_type *type, const char *base_dir,
                    const struct pf_json_doc *doc, const pf_json *params,
                    pf_param_report *report, void *context,
                    struct pf_error *err) {
  struct filling f = {.type = type,
                      .doc = doc,
                      .base_dir = base_dir,
                      .placeholders = true,
                      .report = report,
                      .context = context};
  void *scratch = NULL;
  int code = fill(&f, &scratch, params, err);
  pf_params_free(&scratch, type);
  return code ? -1 : f.n_reports;
}

struct first_report {
  const struct pf_json_doc *doc;
  struct pf_error *err;
};

/* The first report becomes the error, with its place. */
static void report_error(void *context, const pf_json *value, bool of_key,
                         const char *message) {
  struct first_report *first = context;
  struct pf_buf place = {0};
  int line = 0, column = 0;
  if (first->err && first->err->code)
    return;
  if (!value) {
    pf_error_set(first->err, PF_EINVAL, "%s", message);
    return;
  }
  pf_json_path(first->doc, value, &place);
  pf_json_place(first->doc, value, of_key, &line, &column);
  pf_error_set(first->err, PF_EINVAL, "%s%s%s", pf_buf_text(&place),
               place.len ? ": " : "", message);
  pf_error_at_file(first->err, pf_json_file(first->doc), line, column);
  pf_buf_free(&place);
}

int pf_params_parse(void **out, const struct pf_step_type *type,
                    const char *base_dir, const struct pf_json_doc *doc,
                    const pf_json *params, struct pf_error *err) {
  struct first_report first = {doc, err};
  struct filling f = {.type = type,
                      .doc = doc,
                      .base_dir = base_dir,
                      .report = report_error,
                      .context = &first};
  int code = fill(&f, out, params, err);
  if (!code && f.n_reports)
    code = PF_EINVAL;
  if (code)
    pf_params_free(out, type);
  return code;
}
