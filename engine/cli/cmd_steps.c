/* plateflow steps: what there is to use. */
#include "engine/cli/app.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/json.h"
#include "steps/python.h"

/* The first line of a help text. */
static int first_line(const char *text) {
  return (int)strcspn(text, "\n");
}

static const char *type_name(enum pf_param_type type) {
  static const char *const names[] = {"integer", "number", "true or false",
                                      "one of",  "text",   "file"};
  return names[type];
}

static void print_default(FILE *out, const struct pf_param *row) {
  const char *choice = row->choices;
  if (row->required) {
    (void)fprintf(out, "required");
    return;
  }
  if (row->type == PF_PARAM_CHOICE && choice) {
    for (int i = 0; i < (int)row->standard && strchr(choice, '|'); i++)
      choice = strchr(choice, '|') + 1;
    (void)fprintf(out, "default %.*s", (int)strcspn(choice, "|"), choice);
  } else if (row->type == PF_PARAM_BOOL) {
    (void)fprintf(out, "default %s", row->standard != 0 ? "true" : "false");
  } else if ((row->type == PF_PARAM_INT || row->type == PF_PARAM_REAL) &&
             !isnan(row->standard)) {
    (void)fprintf(out, "default %g", row->standard);
  } else {
    (void)fprintf(out, "no default");
  }
}

static void print_params(FILE *out, const struct pf_step_type *type) {
  for (const struct pf_param *row = type->params; row && row->name; row++) {
    (void)fprintf(out, "  %-16s %s", row->name, type_name(row->type));
    if (row->choices)
      (void)fprintf(out, " %s", row->choices);
    if (row->min < row->max)
      (void)fprintf(out, " %g to %g", row->min, row->max);
    (void)fprintf(out, ", ");
    print_default(out, row);
    (void)fprintf(out, "\n    %s\n", row->help);
  }
}

static void print_native(FILE *out, const struct pf_step_type *type) {
  static const char *const yields[] = {"as deep as the input", "one plane",
                                       "along a component"};
  (void)fprintf(out, "native:%s\n%s\n\nresult: %s", type->name, type->help,
                pf_result_kind_name(type->result));
  if (type->result != PF_RESULT_NONE)
    (void)fprintf(out, ", %s", yields[type->yields.kind]);
  if (type->n_tables)
    (void)fprintf(out, "; %u table(s)", type->n_tables);
  for (size_t i = 0; i < type->n_twins; i++)
    (void)fprintf(out, "\nalso with \"memory_type\": \"%s\"",
                  pf_memory_type_name(type->twins[i].memory_type));
  (void)fprintf(out, "\nparameters:\n");
  print_params(out, type);
}

/* The choices of a row, "max|min", as a JSON list; a negative
 * `only` lists all of them, else that one alone is written. */
static void json_choices(const char *choices, int only, struct pf_buf *out) {
  int i = 0;
  if (only < 0)
    pf_buf_char(out, '[');
  for (const char *at = choices; at; i++) {
    int n = (int)strcspn(at, "|");
    if (only < 0 || i == only)
      pf_buf_printf(out, "%s\"%.*s\"", only < 0 && i ? ", " : "", n, at);
    at = at[n] ? at + n + 1 : NULL;
  }
  if (only < 0)
    pf_buf_char(out, ']');
}

/* null: it has none, and may be left out unless it is required. */
static void json_default(const struct pf_param *row, struct pf_buf *out) {
  bool is_number = row->type == PF_PARAM_INT || row->type == PF_PARAM_REAL;
  if (row->type == PF_PARAM_CHOICE)
    json_choices(row->choices, (int)row->standard, out);
  else if (row->type == PF_PARAM_BOOL)
    pf_buf_str(out, row->standard != 0 ? "true" : "false");
  else if (is_number && isfinite(row->standard))
    pf_buf_printf(out, "%.17g", row->standard);
  else
    pf_buf_str(out, "null");
}

static void json_param(const struct pf_param *row, struct pf_buf *out) {
  pf_buf_printf(out,
                "{\"name\": \"%s\", \"type\": \"%s\", "
                "\"required\": %s, \"default\": ",
                row->name, type_name(row->type),
                row->required ? "true" : "false");
  json_default(row, out);
  if (row->choices) {
    pf_buf_str(out, ", \"choices\": ");
    json_choices(row->choices, -1, out);
  }
  if (row->min < row->max && isfinite(row->min))
    pf_buf_printf(out, ", \"minimum\": %.17g", row->min);
  if (row->min < row->max && isfinite(row->max))
    pf_buf_printf(out, ", \"maximum\": %.17g", row->max);
  pf_buf_str(out, ", \"help\": ");
  pf_buf_json(out, row->help);
  pf_buf_char(out, '}');
}

static void json_native(const struct pf_step_type *type, struct pf_buf *out) {
  static const char *const yields[] = {"same", "one", "along"};
  pf_buf_printf(out,
                "{\"function\": \"native:%s\", \"memory_type\": "
                "\"native\", \"result\": \"%s\", \"yields\": \"%s\", "
                "\"resizes\": %s, \"dtype\": ",
                type->name, pf_result_kind_name(type->result),
                yields[type->yields.kind], type->resizes ? "true" : "false");
  if (type->dtype_of) /* depends on the parameters */
    pf_buf_str(out, "null");
  else
    pf_buf_json(out, pf_cast_mode_name(type->dtype));
  pf_buf_str(out, ", \"twins\": [");
  for (size_t i = 0; i < type->n_twins; i++)
    pf_buf_printf(out, "%s\"%s\"", i ? ", " : "",
                  pf_memory_type_name(type->twins[i].memory_type));
  pf_buf_printf(out, "], \"volume\": %s, \"tables\": %u, \"help\": ",
                type->any_depth ? "true" : "false", type->n_tables);
  pf_buf_json(out, type->help);
  pf_buf_str(out, ", \"parameters\": [");
  for (const struct pf_param *row = type->params; row && row->name; row++) {
    pf_buf_str(out, row == type->params ? "" : ", ");
    json_param(row, out);
  }
  pf_buf_str(out, "]}");
}

/* Steps that installed packages register; looked at in a child process. */
static int python_steps(struct app *app, struct pf_json_doc **doc,
                        struct pf_error *err) {
  struct pf_python_options options = {.python = app->options.python,
                                      .threads = 0};
  char *answer = NULL;
  int result =
      pf_python_describe(&answer, &options, "{\"entry_points\": true}", err);
  if (result == PF_OK)
    result = pf_json_parse(doc, answer, strlen(answer), "steps", err);
  free(answer);
  return result;
}

static const char *text_of(const pf_json *object, const char *key) {
  const pf_json *value = pf_json_get(object, key);
  const char *text = value ? pf_json_string(value) : NULL;
  return text ? text : "";
}

static void list_all(struct app *app, const struct pf_json_doc *doc) {
  size_t n = 0;
  const struct pf_step_type *const *types = pf_native_steps(&n);
  for (size_t i = 0; i < n; i++)
    (void)fprintf(app->out, "native:%-20s %.*s\n", types[i]->name,
                  first_line(types[i]->help), types[i]->help);
  if (!doc)
    return;
  for (const pf_json *v =
           pf_json_first(pf_json_get(pf_json_root(doc), "entry_points"));
       v; v = pf_json_next(v))
    (void)fprintf(app->out, "%-27s %.*s\n", text_of(v, "function"),
                  first_line(text_of(v, "help")), text_of(v, "help"));
}

static void json_all(struct app *app, const struct pf_json_doc *doc) {
  struct pf_buf out = {0};
  size_t n = 0;
  const struct pf_step_type *const *types = pf_native_steps(&n);
  pf_buf_str(&out, "{\"native\": [");
  for (size_t i = 0; i < n; i++) {
    pf_buf_str(&out, i ? ",\n  " : "\n  ");
    json_native(types[i], &out);
  }
  pf_buf_str(&out, "],\n \"python\": ");
  if (doc && pf_json_get(pf_json_root(doc), "entry_points"))
    pf_json_write(doc, pf_json_get(pf_json_root(doc), "entry_points"), &out);
  else
    pf_buf_str(&out, "[]");
  pf_buf_str(&out, "}\n");
  (void)fputs(pf_buf_text(&out), app->out);
  pf_buf_free(&out);
}

static int list_steps(struct app *app) {
  struct pf_json_doc *doc = NULL;
  struct pf_error err = PF_ERROR_INIT;
  /* Without an interpreter there still are the C steps. */
  if (python_steps(app, &doc, &err) != PF_OK)
    (void)fprintf(app->err, "plateflow: no Python steps: %s\n", err.message);
  pf_error_clear(&err);
  if (app->options.json)
    json_all(app, doc);
  else
    list_all(app, doc);
  pf_json_free(&doc);
  return 0;
}

static int explain_native(struct app *app, const char *name) {
  const struct pf_step_type *type = pf_native_find(name);
  struct pf_buf out = {0};
  if (!type) {
    size_t n = 0;
    const struct pf_step_type *const *types = pf_native_steps(&n);
    (void)fprintf(app->err,
                  "plateflow: there is no step \"native:%s\"; there "
                  "are",
                  name);
    for (size_t i = 0; i < n; i++)
      (void)fprintf(app->err, " %s", types[i]->name);
    (void)fprintf(app->err, "\n");
    return 2;
  }
  if (!app->options.json) {
    print_native(app->out, type);
    return 0;
  }
  json_native(type, &out);
  (void)fprintf(app->out, "%s\n", pf_buf_text(&out));
  pf_buf_free(&out);
  return 0;
}

/* What the child said of one function; its error becomes ours. */
static int print_python(struct app *app, const pf_json *step,
                        struct pf_error *err) {
  const pf_json *failed = pf_json_get(step, "error");
  if (failed) {
    bool missing = strcmp(text_of(failed, "code"), "EMISSING") == 0;
    (void)pf_error_set(err, missing ? PF_EMISSING : PF_EINVAL, "%s",
                       text_of(failed, "message"));
    if (*text_of(failed, "detail"))
      pf_error_detail(err, text_of(failed, "detail"));
    return (int)err->code;
  }
  (void)fprintf(app->out, "%s%s\n%s\n", text_of(step, "function"),
                text_of(step, "signature"), text_of(step, "doc"));
  return PF_OK;
}

static int explain_python(struct app *app, const char *name) {
  struct pf_python_options options = {.python = app->options.python,
                                      .threads = 0};
  struct pf_error err = PF_ERROR_INIT;
  struct pf_json_doc *doc = NULL;
  struct pf_buf request = {0};
  const pf_json *step = NULL;
  char *answer = NULL;
  int result;
  pf_buf_str(&request, "{\"functions\": [{\"function\": ");
  pf_buf_json(&request, name);
  pf_buf_str(&request, "}]}");
  result = pf_python_describe(&answer, &options, pf_buf_text(&request), &err);
  if (result == PF_OK)
    result = pf_json_parse(&doc, answer, strlen(answer), "steps", &err);
  if (result == PF_OK) {
    step = pf_json_first(pf_json_get(pf_json_root(doc), "functions"));
    if (!step)
      result = pf_error_set(&err, PF_EBUG, "Python said nothing of %s", name);
  }
  if (result == PF_OK && app->options.json) {
    pf_buf_reset(&request);
    pf_json_write(doc, step, &request);
    (void)fprintf(app->out, "%s\n", pf_buf_text(&request));
  } else if (result == PF_OK) {
    result = print_python(app, step, &err);
  }
  pf_json_free(&doc);
  pf_buf_free(&request);
  free(answer);
  return result == PF_OK ? 0 : print_error(app, &err);
}

int cmd_steps(struct app *app) {
  const char *name;
  if (!app->options.n_arguments)
    return list_steps(app);
  name = app->options.arguments[0];
  if (strncmp(name, "native:", 7) == 0)
    return explain_native(app, name + 7);
  if (strchr(name, ':'))
    return explain_python(app, name);
  return explain_native(app, name);
}
