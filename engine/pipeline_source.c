/* The keys of one step that say what it gets: slices, arrays, arguments. */
#include "engine/pipeline_read.h"

#include <stdlib.h>
#include <string.h>

void pf_wheres_free(struct pf_where *where, size_t n) {
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < where[i].n_values; k++)
      free(where[i].values[k]);
    free(where[i].values);
  }
  free(where);
}

/* Components in order, none twice; what is wrong is left out. */
static size_t read_components(struct pf_reader *r, const pf_json *value,
                              enum pf_component *components) {
  unsigned seen = 0;
  size_t n = 0;
  if (pf_json_type(r->doc, value) != PF_JSON_ARRAY) {
    pf_complain_type(r, value, "a list of components");
    return 0;
  }
  for (const pf_json *v = pf_json_first(value); v; v = pf_json_next(v)) {
    int at = pf_read_word(r, v, "component", pf_component_words);
    if (at >= 0 && (seen & 1u << at)) {
      pf_complain(r, v, false, "\"%s\" is in the list already",
                  pf_component_words[at]);
    } else if (at >= 0) {
      seen |= 1u << at;
      components[n++] = (enum pf_component)at;
    }
  }
  return n;
}

void pf_read_stack(struct pf_reader *r, const struct pf_key *key,
                   const pf_json *value, void *field) {
  struct pf_step_spec *spec = field;
  (void)key;
  spec->has_stack = true;
  spec->n_stack = read_components(r, value, spec->stack);
}

void pf_read_with_stack(struct pf_reader *r, const struct pf_key *key,
                        const pf_json *value, void *field) {
  struct pf_with *with = field;
  enum pf_component components[PF_N_COMPONENTS];
  size_t n = read_components(r, value, components);
  (void)key;
  with->has_stack = true;
  for (size_t i = 0; i < n; i++)
    with->stack |= 1u << components[i];
}

/* A component's value as text: a non-empty string, or a number from 0. */
static char *read_component_value(struct pf_reader *r, const pf_json *value) {
  const char *text = pf_json_string(value);
  struct pf_buf buf = {0};
  char *copy;
  if (text && *text)
    return pf_read_copy(r, text);
  if (pf_json_type(r->doc, value) != PF_JSON_INT ||
      pf_json_int(r->doc, value) < 0) {
    pf_complain_type(r, value,
                     "a component's value (a non-empty string, or an integer "
                     "from 0)");
    return NULL;
  }
  pf_json_write(r->doc, value, &buf);
  copy = pf_buf_take(&buf);
  r->no_memory = r->no_memory || !copy;
  return copy;
}

static void read_component_values(struct pf_reader *r, const pf_json *value,
                                  struct pf_where *where) {
  bool is_list = pf_json_type(r->doc, value) == PF_JSON_ARRAY;
  size_t n = is_list ? pf_json_n(value) : 1;
  if (n == 0) {
    pf_complain(r, value, false, "the list is empty: no slice could match");
    return;
  }
  where->values = calloc(n, sizeof(*where->values));
  if (!where->values) {
    r->no_memory = true;
    return;
  }
  for (const pf_json *v = is_list ? pf_json_first(value) : value; v;
       v = is_list ? pf_json_next(v) : NULL) {
    char *text = read_component_value(r, v);
    if (text)
      where->values[where->n_values++] = text;
  }
}

static void read_wheres(struct pf_reader *r, const pf_json *value,
                        struct pf_where **out, size_t *n) {
  if (pf_json_type(r->doc, value) != PF_JSON_OBJECT) {
    pf_complain_type(r, value, "an object of component values");
    return;
  }
  *out = calloc(PF_N_COMPONENTS, sizeof(**out));
  if (!*out) {
    r->no_memory = true;
    return;
  }
  for (const pf_json *m = pf_json_first(value); m; m = pf_json_next(m)) {
    const char *word = pf_json_key(m);
    unsigned c = 0;
    while (c < PF_N_COMPONENTS && strcmp(pf_component_words[c], word) != 0)
      c++;
    if (c == PF_N_COMPONENTS) {
      pf_complain_word(r, m, true, "component", word, pf_component_words,
                       PF_N_COMPONENTS);
      continue;
    }
    (*out)[*n].component = (enum pf_component)c;
    (*out)[*n].json = m;
    read_component_values(r, m, &(*out)[(*n)++]);
  }
}

void pf_read_where(struct pf_reader *r, const struct pf_key *key,
                   const pf_json *value, void *field) {
  struct pf_step_spec *spec = field;
  (void)key;
  read_wheres(r, value, &spec->where, &spec->n_where);
}

void pf_read_with_where(struct pf_reader *r, const struct pf_key *key,
                        const pf_json *value, void *field) {
  struct pf_with *with = field;
  (void)key;
  read_wheres(r, value, &with->where, &with->n_where);
}

/* The step that it names is looked up when all names are known. */
void pf_read_source(struct pf_reader *r, const struct pf_key *key,
                    const pf_json *value, void *field) {
  (void)field;
  if (!pf_json_string(value))
    pf_complain_type(r, value, key->type);
}

/* A keyword argument's name; `info` is the engine's. False if it is none. */
static bool check_argument(struct pf_reader *r, const pf_json *member) {
  const char *name = pf_json_key(member);
  bool is_name = pf_is_identifier(name, strlen(name));
  struct pf_buf quoted = {0};
  pf_add_quoted(&quoted, name);
  if (strcmp(name, "info") == 0)
    pf_complain(r, member, true,
                "\"info\" is filled in by plateflow and cannot be given");
  else if (!is_name)
    pf_complain(r, member, true,
                "%s is no parameter's name: letters, digits and _ only",
                pf_buf_text(&quoted));
  pf_buf_free(&quoted);
  return is_name;
}

static void read_with_member(struct pf_reader *r, const pf_json *member,
                             struct pf_with *with) {
  enum pf_json_type type = pf_json_type(r->doc, member);
  if (check_argument(r, member))
    with->name = pf_read_copy(r, pf_json_key(member));
  with->from = PF_INPUT_PLATE;
  with->json = member;
  if (type == PF_JSON_OBJECT)
    (void)pf_read_object(r, &pf_pipeline_keys[PF_KEYS_WITH], member, with);
  else if (type != PF_JSON_STRING)
    pf_complain_type(r, member,
                     "an earlier step's name, \"plate\", or an object");
}

void pf_read_with(struct pf_reader *r, const struct pf_key *key,
                  const pf_json *value, void *field) {
  struct pf_step_spec *spec = field;
  if (pf_json_type(r->doc, value) != PF_JSON_OBJECT) {
    pf_complain_type(r, value, key->type);
    return;
  }
  spec->with = calloc(pf_json_n(value) + 1, sizeof(*spec->with));
  if (!spec->with) {
    r->no_memory = true;
    return;
  }
  for (const pf_json *m = pf_json_first(value); m; m = pf_json_next(m))
    read_with_member(r, m, &spec->with[spec->n_with++]);
}

void pf_read_parameters(struct pf_reader *r, const struct pf_key *key,
                        const pf_json *value, void *field) {
  if (pf_json_type(r->doc, value) != PF_JSON_OBJECT) {
    pf_complain_type(r, value, key->type);
    return;
  }
  *(const struct cJSON **)field = value;
  for (const pf_json *m = pf_json_first(value); m; m = pf_json_next(m))
    (void)check_argument(r, m);
}
