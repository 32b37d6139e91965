/*
 * engine/plan*.c: pipelines over small plates. What a plan does with each
 * group is told in one line, so that a table of pipelines is a table of
 * texts.
 */
#include "engine/plan_private.h"
#include "bridge/os.h"
#include "engine/plate/tiff.h"
#include "tests/unit/check.h"

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

static char base[] = "/tmp/pf-plan-XXXXXX";

/*
 * The plates, in folders of `base`. "stacks": wells A01 and A02, channels 1
 * and 2, z 1 to 3, of which A02 channel 2 lacks z 2. "flat": the same wells
 * and channels, without z. "sites": well A01, sites 1 to 3, two z.
 */
static void write_image(const char *folder, const char *name) {
  static const int64_t shape[2] = {2, 3};
  struct pf_error err = PF_ERROR_INIT;
  struct pf_array *image = NULL;
  char *dir = pf_os_join(base, folder), *path = pf_os_join(dir, name);
  struct pf_tiff_write how = {.path = path};
  CHECK_INT(pf_os_make_dirs(dir, &err), PF_OK);
  CHECK_INT(pf_array_create(&image, PF_U16, 2, shape, &err), PF_OK);
  memset(pf_array_data(image), 0, pf_array_n_bytes(image));
  CHECK_INT(pf_tiff_write(&how, image, NULL, &err), PF_OK);
  pf_error_clear(&err);
  pf_array_unref(&image);
  free(path);
  free(dir);
}

static void write_plates(void) {
  char name[64];
  for (int well = 1; well <= 2; well++)
    for (int channel = 1; channel <= 2; channel++) {
      (void)snprintf(name, sizeof(name), "A%02d_s1_w%d.tif", well, channel);
      write_image("flat", name);
      for (int z = 1; z <= 3; z++) {
        (void)snprintf(name, sizeof(name), "A%02d_s1_w%d_z%d.tif", well,
                       channel, z);
        if (well != 2 || channel != 2 || z != 2)
          write_image("stacks", name);
      }
    }
  for (int site = 1; site <= 3; site++)
    for (int z = 1; z <= 2; z++) {
      (void)snprintf(name, sizeof(name), "A01_s%d_w1_z%d.tif", site, z);
      write_image("sites", name);
    }
}

struct plan_case {
  const char *plate, *steps; /* the list of steps, without brackets */
  const char *only;          /* a channel, or NULL */
  const char *text;          /* what describe() says, or a part of an error */
  bool is_error;
};

#define PROJECT "\"function\": \"native:project\""
#define GAUSSIAN "\"function\": \"native:gaussian\""
#define LABEL "\"function\": \"native:label\", \"result\": \"labels\""
#define IN_A02 "\"where\": {\"well\": \"a2\"}"

/*
 * A line for each group: its name, its slices and a letter per step: R it
 * runs, L it lacks slices, P it is passed on, - nothing. Then the outputs of
 * the steps that run.
 */
static const struct plan_case cases[] = {
    /* grouping */
    {"stacks", "{\"name\": \"a\", " PROJECT "}", NULL,
     "well A01 site 1 channel 1: 3 R images/A01_s1_w1.tif\n"
     "well A01 site 1 channel 2: 3 R images/A01_s1_w2.tif\n"
     "well A02 site 1 channel 1: 3 R images/A02_s1_w1.tif\n"
     "well A02 site 1 channel 2: 2 L\n",
     false},
    {"stacks", "{\"name\": \"a\", " GAUSSIAN ", \"stack\": []}", "2",
     "well A01 site 1 channel 2 z 1: 1 R images/A01_s1_w2_z1.tif\n"
     "well A01 site 1 channel 2 z 2: 1 R images/A01_s1_w2_z2.tif\n"
     "well A01 site 1 channel 2 z 3: 1 R images/A01_s1_w2_z3.tif\n"
     "well A02 site 1 channel 2 z 1: 1 R images/A02_s1_w2_z1.tif\n"
     "well A02 site 1 channel 2 z 3: 1 R images/A02_s1_w2_z3.tif\n",
     false},
    {"flat",
     "{\"name\": \"a\", " PROJECT ", \"stack\": [\"channel\", \"timepoint\"]}",
     NULL,
     "well A01 site 1: 2 R images/A01_s1.tif\n"
     "well A02 site 1: 2 R images/A02_s1.tif\n",
     false},
    {"sites", "{\"name\": \"a\", " PROJECT ", \"stack\": [\"z\", \"site\"]}",
     NULL, "well A01 channel 1: 6 R images/A01_w1.tif\n", false},
    {"sites",
     "{\"name\": \"a\", " PROJECT ", \"stack\": [\"z\", \"site\"], "
     "\"yields\": \"site\"}",
     NULL,
     "well A01 channel 1: 6 R images/A01_s1_w1.tif images/A01_s2_w1.tif "
     "images/A01_s3_w1.tif\n",
     false},
    /* incomplete */
    {"stacks",
     "{\"name\": \"a\", " PROJECT ", \"incomplete\": \"run\"},"
     "{\"name\": \"b\", " GAUSSIAN "}",
     "2",
     "well A01 site 1 channel 2: 3 RR images/A01_s1_w2.tif\n"
     "well A02 site 1 channel 2: 2 RR images/A02_s1_w2.tif\n",
     false},
    {"stacks", "{\"name\": \"a\", " PROJECT ", \"where\": {\"z\": [1, 3]}}",
     "2",
     "well A01 site 1 channel 2: 3 R images/A01_s1_w2.tif\n"
     "well A02 site 1 channel 2: 2 R images/A02_s1_w2.tif\n",
     false},
    /* where */
    {"stacks",
     "{\"name\": \"a\", " PROJECT "}, {\"name\": \"b\", " GAUSSIAN ", " IN_A02
     "}, {\"name\": \"c\", " LABEL ", " IN_A02 "}",
     "1",
     "well A01 site 1 channel 1: 3 RP-\n"
     "well A02 site 1 channel 1: 3 RRR images/A02_s1_w1.tif\n",
     false},
    {"stacks",
     "{\"name\": \"a\", " GAUSSIAN ", " IN_A02 ", \"save\": true}, "
     "{\"name\": \"b\", " PROJECT "}",
     "1",
     "well A01 site 1 channel 1: 3 PR images/A01_s1_w1.tif\n"
     "well A02 site 1 channel 1: 3 RR steps/a/A02_s1_w1_z1.tif "
     "steps/a/A02_s1_w1_z2.tif steps/a/A02_s1_w1_z3.tif "
     "images/A02_s1_w1.tif\n",
     false},
    {"stacks",
     "{\"name\": \"a\", " GAUSSIAN ", " IN_A02 "}, "
     "{\"name\": \"b\", " PROJECT ", \"input\": \"a\"}",
     "1",
     "well A01 site 1 channel 1: 3 P-\n"
     "well A02 site 1 channel 1: 3 RR images/A02_s1_w1.tif\n",
     false},
    {"stacks", "{\"name\": \"a\", " GAUSSIAN ", \"where\": {\"z\": 2}}", "1",
     "well A01 site 1 channel 1: 3 R images/A01_s1_w1_z1.tif "
     "images/A01_s1_w1_z2.tif images/A01_s1_w1_z3.tif\n"
     "well A02 site 1 channel 1: 3 R images/A02_s1_w1_z1.tif "
     "images/A02_s1_w1_z2.tif images/A02_s1_w1_z3.tif\n",
     false},
    {"stacks",
     "{\"name\": \"a\", " LABEL ", \"where\": {\"z\": 1}}, "
     "{\"name\": \"b\", " GAUSSIAN ", \"where\": {\"z\": 3}}",
     "1",
     "well A01 site 1 channel 1: 3 RP\n"
     "well A02 site 1 channel 1: 3 RP\n",
     false},
    {"flat", "{\"name\": \"a\", " PROJECT ", \"where\": {\"channel\": 3}}",
     NULL, "the plate has no channel \"3\" (it has 1, 2)", true},
    {"stacks",
     "{\"name\": \"a\", " PROJECT "}, {\"name\": \"b\", " GAUSSIAN
     ", \"where\": {\"z\": 1}}",
     NULL, "an earlier step has collapsed \"z\"", true},
    {"stacks",
     "{\"name\": \"a\", " PROJECT ", " IN_A02 "}, {\"name\": \"b\", " GAUSSIAN
     "}",
     NULL, "step \"b\" would get well A01 site 1 channel 1 as it was", true},
    /* sample */
    {"stacks", "{\"name\": \"a\", " GAUSSIAN ", \"sample\": 2}", "1",
     "well A01 site 1 channel 1: 3 R images/A01_s1_w1_z1.tif "
     "images/A01_s1_w1_z3.tif\n"
     "well A02 site 1 channel 1: 3 R images/A02_s1_w1_z1.tif "
     "images/A02_s1_w1_z3.tif\n",
     false},
    /* yields, and what later steps may stack */
    {"stacks",
     "{\"name\": \"a\", " PROJECT "}, {\"name\": \"b\", " GAUSSIAN
     ", \"stack\": [\"z\"]}",
     NULL, "\"z\" cannot be stacked", true},
    {"sites",
     "{\"name\": \"a\", " PROJECT
     ", \"yields\": \"site\", \"stack\": [\"z\"]}",
     NULL, "the step does not stack \"site\"", true},
    {"stacks",
     "{\"name\": \"a\", " PROJECT "}, {\"name\": \"b\", " GAUSSIAN
     ", \"stack\": [\"channel\"]}",
     NULL, "grouping anew is not supported yet", true},
    {"sites",
     "{\"name\": \"a\", " GAUSSIAN ", \"stack\": [\"z\", \"site\"]}, "
     "{\"name\": \"b\", " PROJECT ", \"stack\": [\"site\", \"z\"]}",
     NULL, "step \"b\" orders its stack unlike the steps before it", true},
    {"sites",
     "{\"name\": \"a\", " GAUSSIAN ", \"stack\": [\"z\", \"site\"]}, "
     "{\"name\": \"b\", " PROJECT
     ", \"stack\": [\"z\", \"timepoint\", \"site\"]}",
     NULL, "well A01 channel 1: 6 RR images/A01_w1.tif\n", false},
    /* names of outputs */
    {"flat",
     "{\"name\": \"a\", " GAUSSIAN
     ", \"save\": \"{well}/{{{channel}}}_{channel}\"}",
     "2",
     "well A01 site 1 channel 2: 1 R images/A01/{2}_2.tif\n"
     "well A02 site 1 channel 2: 1 R images/A02/{2}_2.tif\n",
     false},
    {"flat", "{\"name\": \"a\", " GAUSSIAN ", \"save\": \"x.tiff\"}", "2",
     "two results of step \"a\" would be written to OUT/images/x.tiff, the "
     "second for well A01 site 1 channel 2",
     true},
    {"stacks", "{\"name\": \"a\", " GAUSSIAN ", \"save\": \"{well}_{z}\"}",
     NULL, "would be written to OUT/images/A01_1.tif", true},
    {"stacks", "{\"name\": \"a\", " PROJECT ", \"save\": \"{well}_{z}\"}",
     NULL, "{z} in \"save\": the result has no z any more", true},
    {"flat", "{\"name\": \"a\", " GAUSSIAN ", \"save\": \"{well}_{z}\"}", NULL,
     "{z} in \"save\": the plate has no z", true},
    /* with */
    {"stacks",
     "{\"name\": \"a\", " PROJECT ", " IN_A02 "}, {\"name\": \"b\", " PROJECT
     ", \"input\": \"plate\"}, {\"name\": \"l\", " LABEL
     "}, {\"name\": \"m\", \"function\": \"native:measure\", "
     "\"result\": \"none\", \"with\": {\"intensity\": \"a\"}, "
     "\"tables\": [\"t\"]}",
     "1",
     "step \"a\" has no result for well A01 site 1 channel 1, which step "
     "\"m\" processes",
     true},
    {"stacks",
     "{\"name\": \"m\", \"function\": \"native:measure\", "
     "\"tables\": [\"t\"]}, "
     "{\"name\": \"b\", " PROJECT "}",
     NULL, "takes its input from \"m\", which returns no image", true},
};

static void add_outputs(const struct pf_plan *plan, size_t s,
                        const struct pf_group *group, const enum pf_flow *flow,
                        struct pf_buf *out) {
  uint32_t slices[64];
  size_t n;
  CHECK(group->n <= 64);
  n = pf_plan_result_slices(plan, s, group, flow, slices);
  for (size_t i = 0; i < n; i++) {
    char *name = pf_plan_output_name(plan, &plan->steps[s],
                                     pf_plan_slice(plan, slices[i]));
    pf_buf_printf(out, " %s", name ? name : "");
    free(name);
  }
}

static void describe_group(const struct pf_plan *plan,
                           const struct pf_group *group, struct pf_buf *out) {
  enum pf_flow flow[8];
  bool lacks[8];
  CHECK(plan->n_steps <= 8);
  pf_plan_group_text(plan, group, out);
  pf_buf_printf(out, ": %u ", group->n);
  pf_plan_flow(plan, group, flow);
  for (size_t s = 0; s < plan->n_steps; s++) {
    lacks[s] = flow[s] == PF_FLOW_RUNS && pf_plan_lacks(plan, s, group);
    pf_buf_char(out, lacks[s] ? 'L' : "-PR"[flow[s]]);
  }
  for (size_t s = 0; s < plan->n_steps; s++)
    if (flow[s] == PF_FLOW_RUNS && !lacks[s] && plan->steps[s].saved)
      add_outputs(plan, s, group, flow, out);
  pf_buf_char(out, '\n');
}

static void describe(const struct pf_plan *plan, struct pf_buf *out) {
  struct pf_group group;
  uint64_t n = 0;
  for (uint64_t id = 0; id < plan->n_all; id++) {
    pf_plan_group(plan, id, &group);
    if (!pf_plan_selects(plan, &group))
      continue;
    describe_group(plan, &group, out);
    n++;
  }
  CHECK_INT(pf_plan_n_groups(plan), n);
}

static int read_pipeline(struct pf_pipeline **out, const char *steps,
                         struct pf_report *report) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_buf text = {0};
  char *path = pf_os_join(base, "p.json");
  int result;
  pf_buf_printf(&text, "{\"plateflow\": 1, \"steps\": [%s]}", steps);
  CHECK_INT(pf_os_write_file(path, text.data, text.len, &err), PF_OK);
  result = pf_pipeline_read(out, path, NULL, 0, report, &err);
  pf_error_clear(&err);
  pf_buf_free(&text);
  free(path);
  return result;
}

/* The first error's text into `out`, or what the plan does. */
static int compile(const struct plan_case *c, struct pf_buf *out) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_report report = {0};
  struct pf_pipeline *pipeline = NULL;
  struct pf_plate *plate = NULL;
  struct pf_plan *plan = NULL;
  struct pf_only only = {PF_CHANNEL, 1, &c->only};
  struct pf_plan_options options = {NULL, c->only ? 1 : 0, &only};
  char *path = pf_os_join(base, c->plate);
  int result = read_pipeline(&pipeline, c->steps, &report);
  CHECK_INT(pf_plate_open(&plate, path, &(struct pf_plate_options){0}, &err),
            PF_OK);
  if (result == PF_OK)
    result = pf_plan_compile(&plan, pipeline, plate, &options, &report, &err);
  CHECK(!plan == (result != PF_OK));
  for (size_t i = 0; i < report.n; i++)
    if (!report.messages[i].is_warning)
      pf_buf_printf(out, "%s\n", report.messages[i].text);
  if (plan)
    describe(plan, out);
  pf_plan_destroy(&plan);
  pf_plate_unref(&plate);
  pf_pipeline_destroy(&pipeline);
  pf_report_clear(&report);
  pf_error_clear(&err);
  free(path);
  return result;
}

static void test_cases(void) {
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct pf_buf text = {0};
    CHECK_INT(compile(&cases[i], &text),
              cases[i].is_error ? PF_EINVAL : PF_OK);
    if (!cases[i].is_error || !strstr(pf_buf_text(&text), cases[i].text))
      CHECK_STR(pf_buf_text(&text), cases[i].text);
    pf_buf_free(&text);
  }
}

/* `sample` takes the middles of equal parts, always the same ones. */
static void test_sample(void) {
  static const struct {
    uint32_t n, limit;
    const char *taken;
  } rows[] = {
      {5, 0, "0 1 2 3 4 "}, {5, 1, "2 "},       {5, 2, "1 3 "},
      {5, 3, "0 2 4 "},     {5, 4, "0 1 3 4 "}, {5, 5, "0 1 2 3 4 "},
      {5, 9, "0 1 2 3 4 "}, {6, 2, "1 4 "},     {1, 1, "0 "},
  };
  struct pf_step_spec spec = {0};
  struct pf_plan_step step = {.spec = &spec};
  struct pf_plan plan = {0};
  struct pf_plate *plate = NULL;
  struct pf_error err = PF_ERROR_INIT;
  char *path = pf_os_join(base, "sites");
  CHECK_INT(pf_plate_open(&plate, path, &(struct pf_plate_options){0}, &err),
            PF_OK);
  plan.plate = plate;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    uint32_t list[8] = {0, 1, 2, 3, 4, 5};
    struct pf_buf text = {0};
    size_t n;
    spec.sample = rows[i].limit;
    n = pf_plan_choose(&plan, &step, list, rows[i].n, list);
    for (size_t k = 0; k < n; k++)
      pf_buf_printf(&text, "%u ", list[k]);
    CHECK_STR(pf_buf_text(&text), rows[i].taken);
    pf_buf_free(&text);
  }
  pf_plate_unref(&plate);
  pf_error_clear(&err);
  free(path);
}

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *ftw) {
  (void)st;
  (void)type;
  (void)ftw;
  return remove(path);
}

int main(void) {
  if (!mkdtemp(base))
    return 1;
  write_plates();
  test_cases();
  test_sample();
  (void)nftw(base, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
  return check_done();
}
