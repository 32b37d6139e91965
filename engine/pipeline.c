/* Reading a pipeline file: see plateflow/pipeline.h. */
#include "plateflow/pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/os.h"
#include "engine/pipeline_read.h"

static int no_memory(struct pf_error *err) {
  return pf_error_set(err, PF_ENOMEM, "out of memory");
}

/* -------------------------------------------------------------- overrides */

/* The step object that is called `name`, or NULL. */
static const pf_json *find_step(const pf_json *steps, const char *name) {
  for (const pf_json *s = pf_json_first(steps); s; s = pf_json_next(s)) {
    const pf_json *value = pf_json_get(s, "name");
    const char *text = value ? pf_json_string(value) : NULL;
    if (text && strcmp(text, name) == 0)
      return s;
  }
  return NULL;
}

static int unknown_step(struct pf_report *report, const pf_json *steps,
                        const struct pf_override *o, const char *origin) {
  const char **known = calloc(pf_json_n(steps) + 1, sizeof(*known));
  struct pf_buf text = {0};
  const char *nearest;
  size_t n = 0;
  int rc = PF_ENOMEM;
  if (!known)
    return rc;
  for (const pf_json *s = pf_json_first(steps); s; s = pf_json_next(s)) {
    const pf_json *name = pf_json_get(s, "name");
    if (name && pf_json_string(name))
      known[n++] = pf_json_string(name);
  }
  pf_buf_str(&text, "no step is called ");
  pf_add_quoted(&text, o->step);
  nearest = pf_nearest_word(o->step, known, n);
  if (nearest) {
    pf_buf_str(&text, "; did you mean ");
    pf_add_quoted(&text, nearest);
    pf_buf_char(&text, '?');
  }
  if (pf_buf_ok(&text))
    rc = pf_report_add_at(report, 0, 0, origin, pf_buf_text(&text));
  pf_buf_free(&text);
  free(known);
  return rc;
}

/* Put the value into the step's parameters, which may not be there yet. */
static int set_parameter(struct pf_json_doc *doc, struct pf_report *report,
                         const pf_json *step, const struct pf_override *o,
                         const char *origin) {
  struct pf_error err = PF_ERROR_INIT;
  const pf_json *params = pf_json_get(step, "parameters");
  int rc = PF_OK;
  if (!params) {
    rc = pf_json_set(doc, step, "parameters", "{}", origin, &err);
    params = pf_json_get(step, "parameters");
  }
  /* Parameters that are no object are reported when they are read. */
  if (rc == PF_OK && pf_json_type(doc, params) == PF_JSON_OBJECT)
    rc = pf_json_set(doc, params, o->parameter, o->value, origin, &err);
  if (rc == PF_EINVAL)
    rc = pf_report_add_at(report, 0, 0, origin, err.message);
  pf_error_clear(&err);
  return rc;
}

static int apply_override(struct pf_json_doc *doc, struct pf_report *report,
                          const struct pf_override *o) {
  const pf_json *steps = pf_json_get(pf_json_root(doc), "steps");
  const pf_json *step = find_step(steps, o->step);
  struct pf_buf origin = {0};
  int rc = PF_ENOMEM;
  pf_buf_str(&origin, "--set ");
  pf_buf_name(&origin, o->step);
  pf_buf_char(&origin, '.');
  pf_buf_name(&origin, o->parameter);
  if (!pf_buf_ok(&origin))
    goto out;
  if (!step)
    rc = unknown_step(report, steps, o, pf_buf_text(&origin));
  else
    rc = set_parameter(doc, report, step, o, pf_buf_text(&origin));
out:
  pf_buf_free(&origin);
  return rc;
}

/* ---------------------------------------------------------------- reading */

/* "nuclei" of "dir/nuclei.json". */
static char *stem(const char *path) {
  const char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  const char *dot = strrchr(name, '.');
  return strndup(name,
                 dot && dot != name ? (size_t)(dot - name) : strlen(name));
}

/* The absolute folder of a file that could be read. */
static int find_folder(char **out, const char *path, struct pf_error *err) {
  char *dir = pf_os_dirname(path), *name = pf_name_for_people(path);
  int rc = PF_OK;
  *out = dir ? realpath(dir, NULL) : NULL;
  if (!dir || !name)
    rc = no_memory(err);
  else if (!*out)
    rc = pf_error_set(err, PF_EINVAL, "cannot find the folder of %s: %s", name,
                      strerror(errno));
  free(dir);
  free(name);
  return rc;
}

/* Move a broken or unreadable file's error into the report. */
static int report_file(struct pf_report *report, struct pf_error *why,
                       struct pf_error *err) {
  int rc = PF_EINVAL;
  if (why->code == PF_ENOMEM || why->code == PF_EBUG ||
      pf_report_add_at(report, why->line, why->column, "", why->message) !=
          PF_OK)
    rc = why->code == PF_EBUG ? PF_EBUG : PF_ENOMEM;
  why->code = (enum pf_code)rc;
  pf_error_move(err, why);
  return rc;
}

/* The first error becomes `err`; all are in the report. */
static int summarize(const char *path, struct pf_report *report,
                     struct pf_error *err) {
  const struct pf_message *first = NULL;
  pf_report_sort(report);
  for (size_t i = 0; i < report->n && !first; i++)
    if (!report->messages[i].is_warning)
      first = &report->messages[i];
  if (!first)
    return PF_OK;
  pf_error_set(err, PF_EINVAL, "%s%s%s", first->where,
               *first->where ? ": " : "", first->text);
  pf_error_at_file(err, path, first->line, first->column);
  return PF_EINVAL;
}

static int read_document(struct pf_reader *r, struct pf_error *err) {
  struct pf_pipeline *p = r->pipeline;
  const pf_json *root = pf_json_root(p->doc);
  r->doc = p->doc;
  if (pf_read_object(r, &pf_pipeline_keys[PF_KEYS_ROOT], root, p))
    pf_check_pipeline(r);
  if (!p->name)
    p->name = stem(p->file);
  return r->no_memory || !p->name ? no_memory(err) : PF_OK;
}

int pf_pipeline_read(struct pf_pipeline **out, const char *path,
                     const struct pf_override *overrides, size_t n_overrides,
                     struct pf_report *report, struct pf_error *err) {
  struct pf_error why = PF_ERROR_INIT;
  struct pf_pipeline *p = calloc(1, sizeof(*p));
  struct pf_reader r = {.pipeline = p, .report = report};
  int rc = PF_OK;
  *out = NULL;
  if (p)
    p->file = strdup(path);
  if (!p || !p->file) {
    rc = no_memory(err);
    goto out;
  }
  if (pf_json_read(&p->doc, path, &why) != PF_OK ||
      find_folder(&p->base_dir, path, &why) != PF_OK) {
    rc = report_file(report, &why, err);
    goto out;
  }
  for (size_t i = 0; i < n_overrides && rc == PF_OK; i++)
    rc = apply_override(p->doc, report, &overrides[i]);
  if (rc != PF_OK) {
    rc = no_memory(err);
    goto out;
  }
  rc = read_document(&r, err);
  if (rc == PF_OK)
    rc = summarize(path, report, err);
  if (rc == PF_OK) {
    *out = p;
    p = NULL;
  }
out:
  pf_error_clear(&why);
  pf_pipeline_destroy(&p);
  return rc;
}

void pf_pipeline_destroy(struct pf_pipeline **pipeline) {
  struct pf_pipeline *p = pipeline ? *pipeline : NULL;
  if (!p)
    return;
  for (size_t i = 0; i < p->n_steps; i++)
    pf_step_spec_finish(&p->steps[i]);
  free(p->steps);
  for (size_t i = 0; i < p->n_channels; i++) {
    free(p->channel_values[i]);
    free(p->channel_names[i]);
  }
  free(p->channel_values);
  free(p->channel_names);
  free(p->file);
  free(p->base_dir);
  free(p->name);
  free(p->layout);
  free(p->pattern);
  free(p->pages);
  free(p->planes);
  pf_json_free(&p->doc);
  free(p);
  *pipeline = NULL;
}
