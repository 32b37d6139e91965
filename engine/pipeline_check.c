/* What several keys, or several steps, must say together. */
#include "engine/pipeline_read.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A step of the pipeline being checked. */
struct at {
  struct pf_reader *r;
  struct pf_step_spec *spec;
  size_t i;
};

static const pf_json *member(const struct at *at, const char *key) {
  return pf_json_get(at->spec->json, key);
}

static const struct pf_step_spec *step_at(const struct at *at, size_t i) {
  return &at->r->pipeline->steps[i];
}

static unsigned stacked(const struct pf_step_spec *spec) {
  unsigned bits = spec->has_stack ? 0 : 1u << PF_Z;
  for (size_t i = 0; i < spec->n_stack; i++)
    bits |= 1u << spec->stack[i];
  return bits;
}

static void check_name(const struct at *at) {
  const char *name = at->spec->name;
  for (size_t j = 0; name && j < at->i; j++)
    if (step_at(at, j)->name && strcmp(step_at(at, j)->name, name) == 0) {
      pf_complain(at->r, member(at, "name"), false,
                  "the name \"%s\" is taken by steps[%zu]", name, j);
      return;
    }
}

/* ---------------------------------------------------------------- sources */

static void unknown_source(const struct at *at, const pf_json *value,
                           bool previous) {
  const char **known = calloc(at->i + 2, sizeof(*known));
  size_t n = 0;
  if (!known) {
    at->r->no_memory = true;
    return;
  }
  known[n++] = "plate";
  if (previous)
    known[n++] = "previous";
  for (size_t j = 0; j < at->i; j++)
    if (step_at(at, j)->name)
      known[n++] = step_at(at, j)->name;
  pf_complain_word(at->r, value, false, "earlier step", pf_json_string(value),
                   known, n);
  free(known);
}

/* A step that exists, but not before this one. */
static void late_source(const struct at *at, const pf_json *value, size_t j) {
  if (j == at->i)
    pf_complain(at->r, value, false, "a step cannot take its own result");
  else
    pf_complain(at->r, value, false,
                "step \"%s\" comes later (steps[%zu]): only the plate and "
                "earlier steps have results here",
                step_at(at, j)->name, j);
}

static void check_has_image(const struct at *at, const pf_json *value,
                            size_t j) {
  const struct pf_step_spec *from = step_at(at, j);
  if (from->result != PF_RESULT_NONE)
    return;
  if (value)
    pf_complain(at->r, value, false,
                "that step returns tables only (\"result\": \"none\"): name "
                "another one, or \"plate\"");
  else
    pf_complain(at->r, at->spec->json, false,
                "the step before returns tables only (\"result\": \"none\"): "
                "say with \"input\" what this step takes");
}

/* The step that a text names, PF_INPUT_PLATE or, where `previous` allows it,
 * PF_INPUT_PREVIOUS; the plate also after a complaint. */
static int find_source(const struct at *at, const pf_json *value,
                       bool previous) {
  const char *text = value ? pf_json_string(value) : NULL;
  if (!text || strcmp(text, "plate") == 0)
    return PF_INPUT_PLATE;
  if (strcmp(text, "previous") == 0 && previous)
    return PF_INPUT_PREVIOUS;
  for (size_t j = 0; j < at->r->pipeline->n_steps; j++) {
    const char *name = step_at(at, j)->name;
    if (!name || strcmp(name, text) != 0)
      continue;
    if (j < at->i) {
      check_has_image(at, value, j);
      return (int)j;
    }
    late_source(at, value, j);
    return PF_INPUT_PLATE;
  }
  unknown_source(at, value, previous);
  return PF_INPUT_PLATE;
}

static void check_input(const struct at *at) {
  const pf_json *input = member(at, "input");
  at->spec->input =
      input ? find_source(at, input, true) : (int)PF_INPUT_PREVIOUS;
  if (at->spec->input == PF_INPUT_PREVIOUS && at->i > 0)
    check_has_image(at, input, at->i - 1);
}

static void check_with(const struct at *at) {
  for (size_t k = 0; k < at->spec->n_with; k++) {
    struct pf_with *with = &at->spec->with[k];
    const pf_json *from = with->json;
    if (pf_json_type(at->r->doc, from) == PF_JSON_OBJECT)
      from = pf_json_get(from, "from");
    with->from = find_source(at, from, false);
    if (with->name && pf_json_get(at->spec->parameters, with->name))
      pf_complain(at->r, with->json, true,
                  "\"%s\" is in \"parameters\" already", with->name);
  }
}

/* ------------------------------------------------------------ memory types */

static void check_memory_keys(const struct at *at) {
  static const char *const apart[] = {"input_memory_type",
                                      "output_memory_type"};
  const pf_json *both = member(at, "memory_type");
  for (size_t i = 0; i < 2; i++) {
    const pf_json *one = member(at, apart[i]);
    if (one && both)
      pf_complain(at->r, one, true,
                  "\"%s\" does not go with \"memory_type\": say one or the "
                  "other",
                  apart[i]);
    else if (one && !member(at, apart[1 - i]))
      pf_complain(at->r, one, true, "\"%s\" needs \"%s\" too", apart[i],
                  apart[1 - i]);
  }
}

/* C functions take C's memory or their twin's, Python functions a framework's.
 */
static void check_memory_type(const struct at *at, const char *key,
                              enum pf_memory_type type) {
  const pf_json *value = member(at, key);
  bool is_native;
  if (!value || !at->spec->function || type == PF_MEM_NONE)
    return;
  is_native = strncmp(at->spec->function, "native:", 7) == 0;
  if (is_native && type != PF_MEM_NATIVE && type != PF_MEM_OPENCL)
    pf_complain(at->r, value, false,
                "a native: function has the memory type \"native\" or, on a "
                "device, \"opencl\"");
  else if (!is_native && (type == PF_MEM_NATIVE || type == PF_MEM_OPENCL))
    pf_complain(at->r, value, false,
                "the memory type \"%s\" is for native: functions",
                pf_memory_type_name(type));
}

static void check_memory_types(const struct at *at) {
  check_memory_keys(at);
  check_memory_type(at, "memory_type", at->spec->input_memory_type);
  check_memory_type(at, "input_memory_type", at->spec->input_memory_type);
  check_memory_type(at, "output_memory_type", at->spec->output_memory_type);
}

/* ---------------------------------------------------------------- results */

static void check_stack(const struct at *at) {
  const struct pf_step_spec *spec = at->spec;
  unsigned bits = stacked(spec);
  if (spec->incomplete == PF_INCOMPLETE_RUN && (bits & 1u << PF_CHANNEL))
    pf_complain(at->r, member(at, "incomplete"), false,
                "\"run\" is not possible where \"channel\" is stacked: the "
                "function could not tell which one is missing");
  if (spec->has_yields && spec->yields.kind == PF_YIELDS_ALONG &&
      !(bits & 1u << spec->yields.along))
    pf_complain(at->r, member(at, "yields"), false,
                "the step does not stack \"%s\", so its result cannot count "
                "along it",
                pf_component_words[spec->yields.along]);
}

static void check_result(const struct at *at) {
  const struct pf_step_spec *spec = at->spec;
  const pf_json *dtype = member(at, "dtype");
  if (spec->result == PF_RESULT_NONE && spec->has_yields)
    pf_complain(at->r, member(at, "yields"), true,
                "\"yields\" does not go with \"result\": \"none\"");
  if (spec->result == PF_RESULT_NONE && spec->save == 1)
    pf_complain(at->r, member(at, "save"), true,
                "there is nothing to save: \"result\" is \"none\"");
  if (spec->result == PF_RESULT_LABELS &&
      (spec->dtype == PF_CAST_RESCALE || spec->dtype == PF_CAST_UNIT))
    pf_complain(at->r, dtype, false, "labels are never rescaled");
  /* Where the key is there but wrong, that was said. */
  if (spec->result == PF_RESULT_NONE && spec->n_tables == 0 &&
      pf_json_n(member(at, "tables")) == 0 &&
      pf_report_add(at->r->report, true, at->r->doc, member(at, "result"),
                    false,
                    "the step returns neither an image nor tables: is "
                    "\"tables\" missing?"))
    at->r->no_memory = true;
}

/* ----------------------------------------------------------------- tables */

/* Whether the step has the table, before its table number `n`. */
static bool has_table(const struct pf_step_spec *spec, size_t n,
                      const char *name) {
  for (size_t k = 0; k < n && k < spec->n_tables; k++)
    if (strcmp(spec->tables[k], name) == 0)
      return true;
  return false;
}

/* The table that takes the name, before table number `n`, or NULL. Names that
 * differ in case alone are one table to the journal, and one file on some
 * shares. */
static const char *find_clash(const struct pf_step_spec *spec, size_t n,
                              const char *name) {
  for (size_t k = 0; k < n && k < spec->n_tables; k++)
    if (strcasecmp(spec->tables[k], name) == 0)
      return spec->tables[k];
  return NULL;
}

static void check_tables(const struct at *at) {
  const pf_json *v = pf_json_first(member(at, "tables"));
  for (size_t k = 0; k < at->spec->n_tables; k++) {
    const char *name = at->spec->tables[k];
    /* Elements that were refused have no table. */
    while (!pf_json_string(v) || strcmp(pf_json_string(v), name) != 0)
      v = pf_json_next(v);
    for (size_t j = 0; j <= at->i; j++) {
      const char *other =
          find_clash(step_at(at, j), j == at->i ? k : SIZE_MAX, name);
      if (!other)
        continue;
      pf_complain(at->r, v, false, "the table \"%s\" is in steps[%zu] already",
                  other, j);
      break;
    }
    v = pf_json_next(v);
  }
}

static void unknown_table(const struct at *at, const pf_json *value) {
  size_t n = 0, max = 0;
  const char **known;
  for (size_t j = 0; j <= at->i; j++)
    max += step_at(at, j)->n_tables;
  known = calloc(max + 1, sizeof(*known));
  if (!known) {
    at->r->no_memory = true;
    return;
  }
  for (size_t j = 0; j <= at->i; j++)
    for (size_t k = 0; k < step_at(at, j)->n_tables; k++)
      known[n++] = step_at(at, j)->tables[k];
  pf_complain_word(at->r, value, false, "table", pf_json_string(value), known,
                   n);
  free(known);
}

static void check_keep(const struct at *at) {
  for (const pf_json *v = pf_json_first(member(at, "keep")); v;
       v = pf_json_next(v)) {
    const pf_json *table = pf_json_get(v, "table");
    const char *name = table ? pf_json_string(table) : NULL;
    bool found = !name || !*name;
    for (size_t j = 0; j <= at->i && !found; j++)
      found = has_table(step_at(at, j), SIZE_MAX, name);
    if (!found)
      unknown_table(at, table);
  }
}

void pf_check_pipeline(struct pf_reader *r) {
  for (size_t i = 0; i < r->pipeline->n_steps; i++) {
    struct at at = {r, &r->pipeline->steps[i], i};
    check_name(&at);
    check_input(&at);
    check_with(&at);
    check_memory_types(&at);
    check_stack(&at);
    check_result(&at);
    check_tables(&at);
    check_keep(&at);
    if (at.spec->parameters)
      pf_check_placeholders(r, at.spec->parameters, stacked(at.spec), true);
  }
}
