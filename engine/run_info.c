/* What a step's `info` says of its group. */
#include "engine/runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/os.h"
#include "engine/key_set.h"
#include "engine/temporaries.h"

struct info_context {
  struct pf_worker *worker;
  size_t step;
  char *text;
};

/* The journal lists it among the outputs, behind the planes. */
static int list_extra(struct info_context *c, const char *path,
                      struct pf_error *err) {
  struct pf_record *record = c->worker->record;
  uint32_t plane = PF_FIRST_EXTRA + (uint32_t)record->n_outputs;
  char *copy = strdup(path);
  if (!copy)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  return pf_record_add_output(record, (uint32_t)c->step, plane, 0, copy, err);
}

static int name_error(const char *name, const char *what,
                      struct pf_error *err) {
  char *people = pf_name_for_people(name);
  int result = pf_error_set(err, PF_ESTEP, "info.write(): \"%s\" %s",
                            people ? people : "the name", what);
  free(people);
  return result;
}

/* A name is written once: of two groups that write the same one, the last
 * would win, and which that is nobody knows. */
static int claim(struct pf_runner *runner, const char *path, const char *name,
                 struct pf_error *err) {
  int added;
  (void)pthread_mutex_lock(&runner->lock);
  added = pf_key_set_add(&runner->extras, pf_hash64(path, strlen(path)));
  (void)pthread_mutex_unlock(&runner->lock);
  if (added < 0)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  if (!added)
    return name_error(name,
                      "was written before: put the group's components into "
                      "the name",
                      err);
  return PF_OK;
}

/* info.write(): below OUT/files/STEP, so that it cannot meet an image. */
static int write_extra(void *context, const char *name, const void *bytes,
                       size_t n, struct pf_error *err) {
  struct info_context *c = context;
  struct pf_runner *runner = c->worker->runner;
  struct pf_buf path = {0};
  char *folder = NULL;
  int result;
  if (!pf_os_stays_below(name))
    return name_error(name,
                      "is no name below OUT: no leading /, no empty part and "
                      "none that begins with a dot",
                      err);
  pf_buf_printf(&path, "%s/files/%s/%s", runner->out_dir,
                runner->plan->steps[c->step].spec->name, name);
  folder = pf_buf_ok(&path) ? pf_os_dirname(path.data) : NULL;
  if (!folder) {
    pf_buf_free(&path);
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  }
  result = claim(runner, path.data, name, err);
  if (result == PF_OK)
    result = pf_os_make_dirs(folder, err);
  if (result == PF_OK)
    result = pf_temporaries_begin(c->worker->slot, path.data, err);
  if (result == PF_OK)
    result = pf_os_write_file(path.data, bytes, n, err);
  pf_temporaries_end(c->worker->slot);
  if (result == PF_OK)
    result = list_extra(c, path.data + strlen(runner->out_dir) + 1, err);
  free(folder);
  pf_buf_free(&path);
  return result;
}

static void log_line(void *context, const char *line) {
  struct info_context *c = context;
  struct pf_runner *runner = c->worker->runner;
  pf_log_line(runner->log, runner->plan->steps[c->step].spec->name, c->text,
              line, strlen(line));
  if (c->worker->printed.len < PF_MAX_PRINTED)
    pf_buf_printf(&c->worker->printed, "  %s\n", line);
}

static const char *value_of(const struct pf_plan *plan,
                            const struct pf_slice *slice,
                            enum pf_component c) {
  return slice->value[c] == PF_NO_VALUE
             ? NULL
             : pf_plate_value(plan->plate, c, slice->value[c]);
}

static int fill_slices(const struct pf_plan *plan, const uint32_t *positions,
                       size_t n, struct pf_group_info *info,
                       struct pf_error *err) {
  struct pf_slice_info *slices = calloc(n + 1, sizeof(*slices));
  info->slices = slices;
  if (!slices)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t i = 0; i < n; i++) {
    const struct pf_slice *slice = pf_plan_slice(plan, positions[i]);
    struct pf_slice_info *s = &slices[i];
    s->path = pf_plate_path(plan->plate, slice);
    s->page = slice->page;
    for (unsigned c = 0; c < PF_N_COMPONENTS; c++)
      s->value[c] = value_of(plan, slice, (enum pf_component)c);
    s->pixel_size_um[0] = s->pixel_size_um[1] = NAN;
    s->z_step_um = s->time_s = NAN;
    s->position_um[0] = s->position_um[1] = s->position_um[2] = NAN;
    info->n_slices = i + 1;
    if (!s->path)
      return pf_error_set(err, PF_ENOMEM, "out of memory");
  }
  return PF_OK;
}

int pf_run_info(struct pf_worker *worker, const struct pf_group *group,
                size_t s, const uint32_t *positions, size_t n,
                struct pf_group_info *info, struct pf_error *err) {
  struct pf_runner *runner = worker->runner;
  const struct pf_plan *plan = runner->plan;
  const struct pf_plan_step *step = &plan->steps[s];
  const struct pf_slice *slice = pf_plan_slice(plan, group->first);
  struct info_context *context = calloc(1, sizeof(*context));
  struct pf_buf text = {0};
  *info = (struct pf_group_info){.step = step->spec->name,
                                 .device = step->device,
                                 .context = context,
                                 .write = write_extra,
                                 .log = log_line};
  if (!context)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  pf_plan_group_text(plan, group, &text);
  context->worker = worker;
  context->step = s;
  context->text = pf_buf_take(&text);
  if (!context->text)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  info->text = context->text;
  for (unsigned c = 0; c < PF_N_COMPONENTS; c++)
    if (plan->identity & PF_BIT(c))
      info->value[c] = value_of(plan, slice, (enum pf_component)c);
  info->seed = pf_mix64(pf_hash64(info->step, strlen(info->step)) ^
                        pf_hash64(context->text, strlen(context->text)));
  if (step->traits->is_native) /* C steps look at the components alone */
    return PF_OK;
  return fill_slices(plan, positions, n, info, err);
}

void pf_run_info_free(struct pf_group_info *info) {
  struct info_context *context = info->context;
  for (size_t i = 0; i < info->n_slices; i++)
    free((char *)(uintptr_t)info->slices[i].path);
  free((void *)(uintptr_t)info->slices);
  if (context)
    free(context->text);
  free(context);
  *info = (struct pf_group_info){0};
}
