/* Which device each step runs on: see engine/device.h. */
#include "engine/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/json.h"
#include "engine/plan_private.h"

static const struct pf_device host = {PF_DEVICE_HOST, 0};

bool pf_plan_on_device(const struct pf_plan_step *step) {
  return step->device.type != PF_DEVICE_HOST;
}

const char *pf_device_text(char *text, size_t size, struct pf_device device) {
  const struct pf_device_ops *ops =
      pf_device_ops((enum pf_device_kind)device.type);
  if (device.type == PF_DEVICE_HOST)
    (void)snprintf(text, size, "cpu");
  else
    (void)snprintf(text, size, "%s:%d", ops ? ops->name : "device",
                   (int)device.index);
  return text;
}

/* -- choosing ------------------------------------------------------------ */

/* What a step may ask for. */
struct wish {
  bool cpu;  /* a device on the CPU */
  int index; /* this one; -1: any */
};

/* The better of two: a GPU, then the one with more memory. */
static bool is_better(const struct pf_device_info *a,
                      const struct pf_device_info *b) {
  if (a->is_cpu != b->is_cpu)
    return b->is_cpu;
  return a->total > b->total;
}

static int find_device(const struct pf_device_ops *ops,
                       const struct wish *wish, int *index,
                       struct pf_error *err) {
  struct pf_device_info best = {.is_cpu = true}, info;
  const int n = ops->count(err);
  *index = -1;
  for (int i = 0; i < n; i++) {
    if ((wish->index >= 0 && wish->index != i) ||
        ops->info(i, &info, NULL) != PF_OK || (wish->cpu && !info.is_cpu))
      continue;
    if (*index < 0 || is_better(&info, &best)) {
      best = info;
      *index = i;
    }
  }
  if (n < 1)
    return PF_EMISSING;
  if (*index >= 0)
    return PF_OK;
  if (wish->cpu)
    return pf_error_set(err, PF_EMISSING,
                        "none of the %d %s device(s) is a CPU (Debian: "
                        "pocl-opencl-icd)",
                        n, ops->name);
  return pf_error_set(err, PF_EMISSING,
                      "there is no device %s:%d: there are %d, from %s:0 on",
                      ops->name, wish->index, n, ops->name);
}

static int report_at(const struct pf_plan_step *step, const char *key,
                     const struct pf_pipeline *pipeline,
                     struct pf_report *report, const char *text) {
  const struct cJSON *value = pf_json_get(step->spec->json, key);
  return pf_report_add(report, false, pipeline->doc,
                       value ? value : step->spec->json, false,
                       "step \"%s\" %s", step->spec->name, text);
}

/* The steps that the bridge itself feeds: C, on OpenCL. */
static int check_opencl(const struct pf_plan_step *step,
                        const struct pf_pipeline *pipeline,
                        struct pf_report *report) {
  struct pf_buf text = {0};
  int result = PF_OK;
  if (!step->traits->is_native ||
      !(step->traits->memory_types & 1u << PF_MEM_OPENCL)) {
    pf_buf_printf(&text, "has no form for OpenCL: %s runs on \"%s\"",
                  step->spec->function,
                  pf_memory_type_name(step->traits->input_memory_type));
    result =
        report_at(step, "memory_type", pipeline, report, pf_buf_text(&text));
  } else if (step->spec->slice_by_slice == 1) {
    result = report_at(step, "slice_by_slice", pipeline, report,
                       "cannot be called slice by slice on a device");
  } else if (step->input_type != step->output_type) {
    result = report_at(step, "output_memory_type", pipeline, report,
                       "returns what it takes: write \"memory_type\"");
  }
  pf_buf_free(&text);
  return result;
}

static int choose_opencl(struct pf_plan_step *step, struct pf_error *err) {
  const char *name = step->spec->device;
  struct wish wish = {.index = -1};
  int index = -1, result;
  if (name && strncmp(name, "opencl:", 7) == 0)
    wish.index = (int)strtol(name + 7, NULL, 10);
  else if (name)
    wish.cpu = strcmp(name, "cpu") == 0;
  result = find_device(pf_device_ops(PF_DEVICE_OPENCL), &wish, &index, err);
  if (result == PF_OK)
    step->device = (struct pf_device){PF_DEVICE_OPENCL, index};
  else
    pf_error_prefix(err, "step \"%s\"", step->spec->name);
  return result;
}

/* One call at a time on a GPU; a device on the CPU takes what workers give. */
static void limit_calls(struct pf_plan_step *step) {
  struct pf_device_info info = {.is_cpu = true};
  const struct pf_device_ops *ops =
      pf_device_ops((enum pf_device_kind)step->device.type);
  if (!step->spec->concurrency &&
      ops->info(step->device.index, &info, NULL) == PF_OK && !info.is_cpu)
    step->concurrency = 1;
}

int pf_plan_choose_device(struct pf_plan_step *step,
                          const struct pf_pipeline *pipeline,
                          struct pf_report *report, struct pf_error *err) {
  const char *name = step->spec->device;
  const size_t n_errors = report->n_errors;
  int result;
  step->device = host;
  if (step->input_type != PF_MEM_OPENCL &&
      step->output_type != PF_MEM_OPENCL) {
    if (name && strncmp(name, "opencl:", 7) == 0 &&
        report_at(step, "device", pipeline, report,
                  "runs on OpenCL devices only with \"memory_type\": "
                  "\"opencl\"") != PF_OK)
      return pf_error_set(err, PF_ENOMEM, "out of memory");
    return PF_OK;
  }
  if (check_opencl(step, pipeline, report) != PF_OK)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  if (report->n_errors > n_errors)
    return PF_OK;
  result = choose_opencl(step, err);
  if (result == PF_OK)
    limit_calls(step);
  return result;
}

/* -- where stacks stay --------------------------------------------------- */

static bool is_same(struct pf_device a, struct pf_device b) {
  return a.type == b.type && a.index == b.index;
}

bool pf_plan_stays(const struct pf_plan *plan, size_t step) {
  const struct pf_plan_step *from = &plan->steps[step];
  if (!pf_plan_on_device(from) || from->saved)
    return false;
  for (size_t i = step + 1; i < plan->n_steps; i++)
    if (plan->steps[i].input == (int)step &&
        is_same(plan->steps[i].device, from->device))
      return true;
  return false;
}

static bool shares_host(struct pf_device device) {
  struct pf_device_info info = {.shares_host = false};
  const struct pf_device_ops *ops =
      pf_device_ops((enum pf_device_kind)device.type);
  return ops && ops->info(device.index, &info, NULL) == PF_OK &&
         info.shares_host;
}

bool pf_plan_device_way(const struct pf_plan *plan,
                        const struct pf_plan_step *step, struct pf_buf *out) {
  const struct pf_plan_step *from =
      step->input < 0 ? NULL : &plan->steps[step->input];
  const bool is_from = from && pf_plan_on_device(from);
  char text[32];
  if (!pf_plan_on_device(step) && !is_from)
    return false;
  if (is_from && is_same(from->device, step->device) &&
      pf_plan_stays(plan, (size_t)step->input)) {
    pf_buf_printf(out, "stays on %s",
                  pf_device_text(text, sizeof(text), step->device));
    return true;
  }
  if (is_from)
    pf_buf_printf(out, "%s from %s",
                  shares_host(from->device) ? "shared" : "copied",
                  pf_device_text(text, sizeof(text), from->device));
  if (pf_plan_on_device(step))
    pf_buf_printf(out, "%s%s %s", is_from ? ", " : "",
                  shares_host(step->device) ? "shared with" : "copied to",
                  pf_device_text(text, sizeof(text), step->device));
  return true;
}
