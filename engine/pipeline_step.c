/* The keys of one step, each checked by itself. */
#include "engine/pipeline_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bridge/os.h"

static void step_init(struct pf_step_spec *spec, const pf_json *value) {
  *spec = (struct pf_step_spec){.input_memory_type = PF_MEM_NONE,
                                .output_memory_type = PF_MEM_NONE,
                                .input = PF_INPUT_PREVIOUS,
                                .result = -1,
                                .resizes = -1,
                                .input_dtype = PF_DTYPE_NONE,
                                .slice_by_slice = -1,
                                .dtype = PF_N_CAST_MODES,
                                .dtype_type = PF_DTYPE_NONE,
                                .save = -1,
                                .json = value};
}

void pf_step_spec_finish(struct pf_step_spec *spec) {
  free(spec->name);
  free(spec->function);
  pf_wheres_free(spec->where, spec->n_where);
  for (size_t i = 0; i < spec->n_with; i++) {
    free(spec->with[i].name);
    pf_wheres_free(spec->with[i].where, spec->with[i].n_where);
  }
  free(spec->with);
  free(spec->device);
  for (size_t i = 0; i < spec->n_keep; i++) {
    free(spec->keep[i].table);
    free(spec->keep[i].column);
  }
  free(spec->keep);
  free(spec->save_template);
  for (size_t i = 0; i < spec->n_tables; i++)
    free(spec->tables[i]);
  free(spec->tables);
}

void pf_read_steps(struct pf_reader *r, const struct pf_key *key,
                   const pf_json *value, void *field) {
  struct pf_pipeline *pipeline = field;
  size_t i = 0;
  pipeline->steps =
      pf_read_list(r, value, key->type, (size_t)key->min, (size_t)key->max,
                   sizeof(*pipeline->steps), &pipeline->n_steps);
  if (!pipeline->steps)
    return;
  for (const pf_json *v = pf_json_first(value); v; v = pf_json_next(v), i++) {
    step_init(&pipeline->steps[i], v);
    (void)pf_read_object(r, &pf_pipeline_keys[PF_KEYS_STEP], v,
                         &pipeline->steps[i]);
  }
}

static bool has_control(const char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < 0x20 || *text == 0x7f)
      return true;
  return false;
}

/* A name for a step or a table. A wrong one is kept where messages can show
 * it, so that what refers to it is not reported too. */
static char *read_name(struct pf_reader *r, const pf_json *value,
                       const char *type) {
  const char *text = pf_json_string(value);
  if (!text || !pf_is_name(text))
    pf_complain_type(r, value, type);
  return text && !has_control(text) ? pf_read_copy(r, text) : NULL;
}

void pf_read_name(struct pf_reader *r, const struct pf_key *key,
                  const pf_json *value, void *field) {
  char *name = read_name(r, value, key->type);
  *(char **)field = name;
  if (name && (strcmp(name, "previous") == 0 || strcmp(name, "plate") == 0))
    pf_complain(r, value, false,
                "no step can be called \"%s\": the word has a meaning of its "
                "own in \"input\"",
                name);
}

/* -------------------------------------------------------------- functions */

/* "package.module", `n` bytes. */
static bool is_module(const char *text, size_t n) {
  while (n > 0) {
    size_t part = strcspn(text, ".:");
    if (!pf_is_identifier(text, part))
      return false;
    if (part == n)
      return true;
    if (text[part] != '.')
      return false;
    text += part + 1;
    n -= part + 1;
  }
  return false;
}

/* "./file.py", `n` bytes. */
static bool is_file(const char *text, size_t n) {
  size_t dots = strspn(text, ".");
  return (dots == 1 || dots == 2) && text[dots] == '/' && n > dots + 4 &&
         memcmp(text + n - 3, ".py", 3) == 0 && text[n - 4] != '/' &&
         !has_control(text);
}

static bool is_function(const char *text) {
  const char *colon = strrchr(text, ':');
  size_t n = colon ? (size_t)(colon - text) : 0;
  if (!colon || !pf_is_identifier(colon + 1, strlen(colon + 1)))
    return false;
  return text[0] == '.' ? is_file(text, n) : is_module(text, n);
}

void pf_read_function(struct pf_reader *r, const struct pf_key *key,
                      const pf_json *value, void *field) {
  const char *text = pf_json_string(value);
  if (text && is_function(text))
    *(char **)field = pf_read_copy(r, text);
  else
    pf_complain_type(r, value, key->type);
}

/* -------------------------------------------------- memory types, devices */

/* The built-in ones, and those of the user's file of frameworks. */
static enum pf_memory_type memory_type(struct pf_reader *r,
                                       const pf_json *value) {
  const char *words[PF_MEM_END + 1] = {NULL};
  enum pf_memory_type type;
  size_t n = 0;
  int at;
  if (pf_json_type(r->doc, value) == PF_JSON_ARRAY) {
    pf_complain(r, value, false,
                "a list of memory types is not supported yet");
    return PF_MEM_NONE;
  }
  for (int i = 0; i < PF_MEM_END; i++)
    if (pf_memory_type_exists((enum pf_memory_type)i))
      words[n++] = pf_memory_type_name((enum pf_memory_type)i);
  at = pf_read_word(r, value, "memory type", words);
  type = at < 0 ? PF_MEM_NONE : pf_memory_type_find(words[at]);
  if (type == PF_MEM_CUDA) {
    pf_complain_not_yet(r, value, false, "memory type ", words[at]);
    return PF_MEM_NONE;
  }
  return type;
}

void pf_read_memory_types(struct pf_reader *r, const struct pf_key *key,
                          const pf_json *value, void *field) {
  struct pf_step_spec *spec = field;
  enum pf_memory_type type = memory_type(r, value);
  (void)key;
  spec->input_memory_type = spec->output_memory_type = type;
}

void pf_read_memory_type(struct pf_reader *r, const struct pf_key *key,
                         const pf_json *value, void *field) {
  (void)key;
  *(enum pf_memory_type *)field = memory_type(r, value);
}

/* "gpu:0": the kind and a number of at most 4 digits. */
static bool is_device(const char *text, const char *kind) {
  const size_t n = strlen(kind);
  size_t n_digits;
  if (strncmp(text, kind, n) != 0)
    return false;
  n_digits = strspn(text + n, "0123456789");
  return n_digits >= 1 && n_digits <= 4 && !text[n + n_digits];
}

void pf_read_device(struct pf_reader *r, const struct pf_key *key,
                    const pf_json *value, void *field) {
  static const char *const words[] = {"auto", "cpu", NULL};
  const char *text = pf_json_string(value);
  int at;
  (void)key;
  if (pf_json_type(r->doc, value) == PF_JSON_ARRAY) {
    pf_complain(r, value, false, "a list of devices is not supported yet");
  } else if (text && is_device(text, "gpu:")) {
    pf_complain_not_yet(r, value, false, "device ", text);
  } else if (text && is_device(text, "opencl:")) {
    *(char **)field = pf_read_copy(r, text);
  } else {
    at = pf_read_word(r, value, "device", words);
    if (at >= 0)
      *(char **)field = pf_read_copy(r, words[at]);
  }
}

/* ------------------------------------------------------------ pixel types */

static enum pf_dtype known_dtype(struct pf_reader *r, const pf_json *value,
                                 int at) {
  if (at == PF_BF16) {
    pf_complain_not_yet(r, value, false, "pixel type ", pf_dtype_words[at]);
    return PF_DTYPE_NONE;
  }
  return at < 0 ? PF_DTYPE_NONE : (enum pf_dtype)at;
}

void pf_read_input_dtype(struct pf_reader *r, const struct pf_key *key,
                         const pf_json *value, void *field) {
  int at = pf_read_word(r, value, "pixel type", pf_dtype_words);
  (void)key;
  *(enum pf_dtype *)field = known_dtype(r, value, at);
}

/* A cast's mode or a type: one list of words, so that one is suggested. */
void pf_read_dtype(struct pf_reader *r, const struct pf_key *key,
                   const pf_json *value, void *field) {
  struct pf_step_spec *spec = field;
  const char *words[PF_N_CAST_MODES + PF_N_DTYPES + 1] = {NULL};
  int at;
  (void)key;
  for (size_t i = 0; i < PF_N_CAST_MODES; i++)
    words[i] = pf_cast_mode_words[i];
  for (size_t i = 0; i < PF_N_DTYPES; i++)
    words[PF_N_CAST_MODES + i] = pf_dtype_words[i];
  at = pf_read_word(r, value, "value of \"dtype\":", words);
  if (at >= (int)PF_N_CAST_MODES)
    spec->dtype_type = known_dtype(r, value, at - (int)PF_N_CAST_MODES);
  else if (at >= 0)
    spec->dtype = (enum pf_cast_mode)at;
}

/* ---------------------------------------------------------------- results */

void pf_read_yields(struct pf_reader *r, const struct pf_key *key,
                    const pf_json *value, void *field) {
  struct pf_step_spec *spec = field;
  const char *words[PF_N_COMPONENTS + 3] = {"same", "one"};
  int at;
  (void)key;
  for (size_t i = 0; i < PF_N_COMPONENTS; i++)
    words[i + 2] = pf_component_words[i];
  at = pf_read_word(r, value, "value of \"yields\":", words);
  if (at < 0)
    return;
  spec->has_yields = true;
  spec->yields.kind = at == 0   ? PF_YIELDS_SAME
                      : at == 1 ? PF_YIELDS_ONE
                                : PF_YIELDS_ALONG;
  if (at >= 2)
    spec->yields.along = (enum pf_component)(at - 2);
}

void pf_read_sample(struct pf_reader *r, const struct pf_key *key,
                    const pf_json *value, void *field) {
  int64_t number = pf_json_int(r->doc, value);
  if (pf_json_type(r->doc, value) != PF_JSON_INT || number < key->min ||
      number > key->max)
    pf_complain_type(r, value, key->type);
  else
    *(uint32_t *)field = (uint32_t)number;
}

void pf_read_limit(struct pf_reader *r, const struct pf_key *key,
                   const pf_json *value, void *field) {
  enum pf_json_type type = pf_json_type(r->doc, value);
  if (type != PF_JSON_INT && type != PF_JSON_REAL)
    pf_complain_type(r, value, key->type);
  else
    *(double *)field = pf_json_real(value);
}

void pf_read_keep(struct pf_reader *r, const struct pf_key *key,
                  const pf_json *value, void *field) {
  struct pf_step_spec *spec = field;
  size_t i = 0;
  spec->keep = pf_read_list(r, value, key->type, 0, (size_t)key->max,
                            sizeof(*spec->keep), &spec->n_keep);
  if (!spec->keep)
    return;
  for (const pf_json *v = pf_json_first(value); v; v = pf_json_next(v), i++) {
    struct pf_keep *keep = &spec->keep[i];
    keep->min = -(double)INFINITY;
    keep->max = (double)INFINITY;
    if (!pf_read_object(r, &pf_pipeline_keys[PF_KEYS_KEEP], v, keep))
      continue;
    if (!pf_json_get(v, "min") && !pf_json_get(v, "max"))
      pf_complain(r, v, false, "\"min\" or \"max\" is missing");
    else if (keep->min > keep->max)
      pf_complain(r, v, false, "\"min\" is above \"max\": nothing is kept");
  }
}

void pf_read_save(struct pf_reader *r, const struct pf_key *key,
                  const pf_json *value, void *field) {
  struct pf_step_spec *spec = field;
  const char *text = pf_json_string(value);
  if (pf_json_type(r->doc, value) == PF_JSON_BOOL) {
    spec->save = pf_json_bool(value);
  } else if (!text) {
    pf_complain_type(r, value, key->type);
  } else if (!pf_os_stays_below(text) || has_control(text)) {
    pf_complain(r, value, false,
                "\"save\" must name files below OUT: no leading /, no empty "
                "part, none that begins with a dot, no control characters");
  } else {
    spec->save = 1;
    spec->save_template = pf_read_copy(r, text);
    pf_check_placeholders(r, value, 0, false);
  }
}

void pf_read_tables(struct pf_reader *r, const struct pf_key *key,
                    const pf_json *value, void *field) {
  struct pf_step_spec *spec = field;
  size_t i = 0, n = 0;
  spec->tables = pf_read_list(r, value, key->type, 0, (size_t)key->max,
                              sizeof(*spec->tables), &n);
  if (!spec->tables)
    return;
  for (const pf_json *v = pf_json_first(value); v; v = pf_json_next(v)) {
    char *name = read_name(r, v,
                           "a table's name of at most 64 letters, digits, _, "
                           ". and -, starting with a letter, a digit or _");
    if (name && strcasecmp(name, "images") == 0)
      pf_complain(
          r, v, false,
          "the table \"images\" is plateflow's own: one row per field");
    if (name)
      spec->tables[i++] = name;
  }
  spec->n_tables = i;
}
