/* Compiling a plan, part 3: names of outputs, and clashes among them. */
#include "engine/plan_private.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/json.h"
#include "bridge/os.h"
#include "engine/key_set.h"

/* The component of "{name}" at `text`, and how long the placeholder is. */
static enum pf_component placeholder(const char *text, size_t *length) {
  const char *end = strchr(text, '}');
  char word[32];
  *length = 0;
  if (!end || (size_t)(end - text) > sizeof(word))
    return PF_N_COMPONENTS;
  memcpy(word, text + 1, (size_t)(end - text - 1));
  word[end - text - 1] = '\0';
  *length = (size_t)(end - text) + 1;
  return pf_component_find(word);
}

/* A value may hold a slash ("w1/w2"): in a file's name it would be a folder.
 */
static void add_value(const char *value, bool in_name, struct pf_buf *out) {
  for (; *value; value++)
    pf_buf_char(out, in_name && *value == '/' ? '_' : *value);
}

static size_t fill_one(const struct pf_plan *plan,
                       const struct pf_slice *slice, const char *out_dir,
                       bool in_name, const char *text, struct pf_buf *out) {
  size_t length = 0;
  enum pf_component c = placeholder(text, &length);
  if (c < PF_N_COMPONENTS) {
    if (slice->value[c] != PF_NO_VALUE)
      add_value(pf_plate_value(plan->plate, c, slice->value[c]), in_name, out);
    return length;
  }
  if (out_dir && strncmp(text, "{out}", 5) == 0) {
    pf_buf_str(out, out_dir);
    return 5;
  }
  pf_buf_char(out, '{');
  return 1;
}

void pf_plan_fill(const struct pf_plan *plan, const struct pf_slice *slice,
                  const char *out_dir, bool in_name, const char *text,
                  struct pf_buf *out) {
  while (*text) {
    if ((text[0] == '{' && text[1] == '{') ||
        (text[0] == '}' && text[1] == '}')) {
      pf_buf_char(out, text[0]);
      text += 2;
    } else if (text[0] == '{') {
      text += fill_one(plan, slice, out_dir, in_name, text, out);
    } else {
      pf_buf_char(out, *text++);
    }
  }
}

static void append_template(const struct pf_plan *plan,
                            const struct pf_plan_step *step,
                            const struct pf_slice *slice, struct pf_buf *out) {
  const char *text = step->spec->save_template;
  size_t n = strlen(text);
  pf_plan_fill(plan, slice, NULL, true, text, out);
  if (n < 4 || (strcmp(text + n - 4, ".tif") != 0 &&
                (n < 5 || strcmp(text + n - 5, ".tiff") != 0)))
    pf_buf_str(out, ".tif");
}

char *pf_plan_output_name(const struct pf_plan *plan,
                          const struct pf_plan_step *step,
                          const struct pf_slice *slice) {
  struct pf_buf name = {0};
  char *below = NULL;
  pf_buf_printf(&name, "%s/", step->folder);
  if (step->spec->save_template) {
    append_template(plan, step, slice, &name);
  } else {
    below = pf_plate_output_name(plan->plate, slice, step->lost, ".tif");
    if (!below)
      name.failed = true;
    else
      pf_buf_str(&name, below);
    free(below);
  }
  return pf_buf_take(&name);
}

/* Which components the template may name; the rest of it was checked when the
 * pipeline was read. */
static void check_template(struct pf_plan *plan, struct pf_plan_step *step,
                           struct pf_report *report) {
  const char *text = step->spec->save_template;
  const struct cJSON *place = pf_json_get(step->spec->json, "save");
  for (const char *p = strchr(text, '{'); p; p = strchr(p, '{')) {
    size_t length = 0;
    enum pf_component c;
    if (p[1] == '{') {
      p += 2;
      continue;
    }
    c = placeholder(p++, &length);
    if (c >= PF_N_COMPONENTS)
      continue;
    if (!(plan->present & PF_BIT(c)))
      (void)pf_report_add(report, false, plan->pipeline->doc, place, false,
                          "{%s} in \"save\": the plate has no %s",
                          pf_component_name(c), pf_component_name(c));
    else if (step->lost & PF_BIT(c))
      (void)pf_report_add(report, false, plan->pipeline->doc, place, false,
                          "{%s} in \"save\": the result has no %s any more",
                          pf_component_name(c), pf_component_name(c));
  }
}

static void report_unsafe(struct pf_plan *plan, struct pf_plan_step *step,
                          const char *name, struct pf_report *report) {
  struct pf_buf people = {0};
  pf_buf_name(&people, name);
  (void)pf_report_add(report, false, plan->pipeline->doc, step->spec->json,
                      false,
                      "a result of step \"%s\" would be written to OUT/%s: no "
                      "part of a name may be empty or begin with a dot; give "
                      "another \"save\" template",
                      step->spec->name, pf_buf_text(&people));
  pf_buf_free(&people);
}

static void report_clash(struct pf_plan *plan, struct pf_plan_step *step,
                         const struct pf_group *group, const char *name,
                         struct pf_report *report) {
  struct pf_buf text = {0}, people = {0};
  pf_plan_group_text(plan, group, &text);
  pf_buf_name(&people, name);
  (void)pf_report_add(
      report, false, plan->pipeline->doc, step->spec->json, false,
      "two results of step \"%s\" would be written to OUT/%s, "
      "the second for %s: tell them apart with a \"save\" "
      "template",
      step->spec->name, pf_buf_text(&people), pf_buf_text(&text));
  pf_buf_free(&text);
  pf_buf_free(&people);
}

/* 1: something was reported, 0: all is well, -1: out of memory. */
static int check_name(struct pf_plan *plan, struct pf_plan_step *step,
                      const struct pf_group *group, const char *name,
                      struct pf_key_set *names, struct pf_report *report) {
  int added;
  /* What stands in the place of a component may be anything. */
  if (!pf_os_stays_below(name)) {
    report_unsafe(plan, step, name, report);
    return 1;
  }
  added = pf_key_set_add(names, pf_hash64(name, strlen(name)));
  if (added == 0)
    report_clash(plan, step, group, name, report);
  return added < 0 ? -1 : !added;
}

static int check_group(struct pf_plan *plan, size_t s,
                       const struct pf_group *group, const enum pf_flow *flow,
                       uint32_t *slices, struct pf_key_set *names,
                       struct pf_report *report) {
  struct pf_plan_step *step = &plan->steps[s];
  size_t n = pf_plan_result_slices(plan, s, group, flow, slices);
  for (size_t i = 0; i < n; i++) {
    char *name =
        pf_plan_output_name(plan, step, pf_plan_slice(plan, slices[i]));
    int result =
        name ? check_name(plan, step, group, name, names, report) : -1;
    free(name);
    if (result != 0)
      return result;
  }
  return 0;
}

static int check_step(struct pf_plan *plan, size_t s, uint32_t *slices,
                      enum pf_flow *flow, struct pf_report *report,
                      struct pf_error *err) {
  struct pf_key_set names = {0};
  struct pf_group group;
  int result = 0;
  for (uint64_t id = 0; id < plan->n_all && result == 0; id++) {
    pf_plan_group(plan, id, &group);
    pf_plan_flow(plan, &group, flow);
    if (flow[s] == PF_FLOW_RUNS)
      result = check_group(plan, s, &group, flow, slices, &names, report);
  }
  pf_key_set_free(&names);
  return result < 0 ? pf_error_set(err, PF_ENOMEM, "out of memory") : PF_OK;
}

int pf_plan_check_names(struct pf_plan *plan, struct pf_report *report,
                        struct pf_error *err) {
  uint32_t deepest = 1;
  uint32_t *slices = NULL;
  enum pf_flow *flow = calloc(plan->n_steps + 1, sizeof(*flow));
  int result = PF_OK;
  for (uint64_t id = 0; id < plan->n_all; id++)
    if (plan->starts[id + 1] - plan->starts[id] > deepest)
      deepest = plan->starts[id + 1] - plan->starts[id];
  slices = calloc(deepest, sizeof(*slices));
  if (!slices || !flow)
    result = pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t s = 0; s < plan->n_steps && result == PF_OK; s++) {
    struct pf_plan_step *step = &plan->steps[s];
    if (!step->saved)
      continue;
    if (step->spec->save_template)
      check_template(plan, step, report);
    result = check_step(plan, s, slices, flow, report, err);
  }
  free(slices);
  free(flow);
  return result;
}
