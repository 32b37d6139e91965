/* engine/pipeline*.c, engine/report.c: pipeline files, good, bad and mutated
 */
#include "bridge/buf.h"
#include "bridge/json.h"
#include "plateflow/pipeline.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* One file that is written again and again. */
static char path[] = "/tmp/pf_pipeline_XXXXXX";
static int fd = -1;

static void write_file(const char *text, size_t n) {
  CHECK_INT(ftruncate(fd, 0), 0);
  CHECK_INT(pwrite(fd, text, n, 0), (ssize_t)n);
}

/* Two steps; `step` is put into the second one. */
static void write_step(const char *step) {
  struct pf_buf text = {0};
  pf_buf_str(&text, "{\"plateflow\": 1, \"steps\": [\n"
                    "{\"name\": \"first\", \"function\": \"native:project\", "
                    "\"tables\": [\"spots\"]},\n"
                    "{");
  pf_buf_str(&text, step);
  pf_buf_str(&text, "}]}\n");
  write_file(pf_buf_text(&text), text.len);
  pf_buf_free(&text);
}

#define NAMED "\"name\": \"b\", \"function\": \"native:gaussian\", "
#define PYTHON "\"name\": \"b\", \"function\": \"m:f\", "

/* A second step, the place and the text of the one thing wrong with it. */
static const struct {
  const char *step, *where, *text;
} bad_steps[] = {
    {"\"function\": \"native:gaussian\"", "steps[1]", "\"name\" is missing"},
    {"\"name\": \"b\"", "steps[1]", "\"function\" is missing"},
    {NAMED "\"stak\": [\"z\"]", "steps[1].stak", "did you mean \"stack\"?"},
    {NAMED "\"stack\": \"z\"", "steps[1].stack",
     "expected a list of components, got the string \"z\""},
    {NAMED "\"stack\": [\"zz\"]", "steps[1].stack[0]", "mean \"z\"?"},
    {NAMED "\"stack\": [\"z\", \"z\"]", "steps[1].stack[1]", "already"},
    {NAMED "\"where\": {\"wells\": [\"A01\"]}", "steps[1].where.wells",
     "did you mean \"well\"?"},
    {NAMED "\"where\": {\"well\": []}", "steps[1].where.well", "empty"},
    {NAMED "\"where\": {\"site\": [1.0]}", "steps[1].where.site[0]",
     "got the number 1.0"},
    {NAMED "\"where\": {\"site\": true}", "steps[1].where.site", "got true"},
    {NAMED "\"input\": \"frist\"", "steps[1].input",
     "unknown earlier step \"frist\"; did you mean \"first\"?"},
    {NAMED "\"input\": \"b\"", "steps[1].input", "its own result"},
    {NAMED "\"input\": 0", "steps[1].input", "got the integer 0"},
    {NAMED "\"with\": {\"x\": \"fist\"}", "steps[1].with.x", "\"first\"?"},
    {NAMED "\"with\": {\"x\": \"previous\"}", "steps[1].with.x", "unknown"},
    {NAMED "\"with\": {\"x\": {}}", "steps[1].with.x", "\"from\" is missing"},
    {NAMED "\"with\": {\"x\": {\"from\": \"first\", \"stack\": [1]}}",
     "steps[1].with.x.stack[0]", "expected a string, got the integer 1"},
    {NAMED "\"with\": {\"1x\": \"first\"}", "steps[1].with[\"1x\"]",
     "no parameter's name"},
    {NAMED "\"with\": {\"x\": \"first\"}, \"parameters\": {\"x\": 1}",
     "steps[1].with.x", "\"x\" is in \"parameters\" already"},
    {NAMED "\"parameters\": []", "steps[1].parameters", "got a list"},
    {NAMED "\"parameters\": {\"info\": 1}", "steps[1].parameters.info",
     "filled in by plateflow"},
    {NAMED "\"parameters\": {\"p\": [\"{wel}\"]}", "steps[1].parameters.p[0]",
     "did you mean {well}?"},
    {NAMED "\"parameters\": {\"p\": \"a{b\"}", "steps[1].parameters.p",
     "not closed"},
    {NAMED "\"parameters\": {\"p\": \"{z}\"}", "steps[1].parameters.p",
     "the step stacks \"z\""},
    {NAMED "\"stack\": [\"site\"], \"parameters\": {\"p\": \"{site}\"}",
     "steps[1].parameters.p", "the step stacks \"site\""},
    {NAMED "\"memory_type\": \"numpy\"", "steps[1].memory_type",
     "has the memory type \"native\""},
    {PYTHON "\"memory_type\": \"native\"", "steps[1].memory_type",
     "for native: functions"},
    {PYTHON "\"memory_type\": \"opencl\"", "steps[1].memory_type",
     "the memory type \"opencl\" is for native: functions"},
    {PYTHON "\"memory_type\": \"numpi\"", "steps[1].memory_type", "numpy\"?"},
    {PYTHON "\"memory_type\": [\"cupy\", \"numpy\"]", "steps[1].memory_type",
     "a list of memory types is not supported yet"},
    {PYTHON "\"input_memory_type\": \"numpy\"", "steps[1].input_memory_type",
     "needs \"output_memory_type\" too"},
    {PYTHON "\"device\": \"gpu:0\"", "steps[1].device", "not supported yet"},
    {PYTHON "\"device\": [\"cpu\"]", "steps[1].device", "not supported yet"},
    {PYTHON "\"device\": \"gpu:\"", "steps[1].device", "unknown device"},
    {PYTHON "\"device\": \"opencl:\"", "steps[1].device", "unknown device"},
    {PYTHON "\"device\": \"opencl:1x\"", "steps[1].device", "unknown device"},
    {PYTHON "\"device\": \"opencl:12345\"", "steps[1].device",
     "unknown device"},
    {PYTHON "\"isolate\": true", "steps[1].isolate",
     "\"isolate\" is not supported yet"},
    {PYTHON "\"timeout\": 3", "steps[1].timeout", "not supported yet"},
    {PYTHON "\"memory\": 3", "steps[1].memory", "not supported yet"},
    {PYTHON "\"splittable\": true", "steps[1].splittable", "supported yet"},
    {PYTHON "\"on_oom\": {}", "steps[1].on_oom", "not supported yet"},
    {PYTHON "\"concurrency\": 1025", "steps[1].concurrency",
     "expected an integer from 1 to 1024, got the integer 1025"},
    {PYTHON "\"threads\": \"3\"", "steps[1].threads", "got the string \"3\""},
    {PYTHON "\"threads\": 2.0", "steps[1].threads", "got the number 2.0"},
    {PYTHON "\"sample\": 4294967296", "steps[1].sample", "from 1 to"},
    {PYTHON "\"resizes\": 1", "steps[1].resizes", "expected true or false"},
    {PYTHON "\"result\": \"label\"", "steps[1].result", "\"labels\"?"},
    {PYTHON "\"result\": \"none\", \"tables\": [\"t\"], \"save\": true",
     "steps[1].save", "nothing to save"},
    {PYTHON "\"result\": \"none\", \"tables\": [\"t\"], \"yields\": \"one\"",
     "steps[1].yields", "does not go with"},
    {PYTHON "\"result\": \"labels\", \"dtype\": \"unit\"", "steps[1].dtype",
     "labels are never rescaled"},
    {PYTHON "\"yields\": \"channel\"", "steps[1].yields", "does not stack"},
    {PYTHON "\"stack\": [\"channel\"], \"incomplete\": \"run\"",
     "steps[1].incomplete", "where \"channel\" is stacked"},
    {PYTHON "\"dtype\": \"int12\"", "steps[1].dtype", "did you mean"},
    {PYTHON "\"input_dtype\": \"preserve\"", "steps[1].input_dtype",
     "unknown pixel type"},
    {PYTHON "\"input_dtype\": \"bfloat16\"", "steps[1].input_dtype",
     "not supported yet"},
    {PYTHON "\"keep\": [{\"table\": \"spots\", \"column\": \"n\"}]",
     "steps[1].keep[0]", "\"min\" or \"max\" is missing"},
    {PYTHON "\"keep\": [{\"table\": \"spot\", \"column\": \"n\", \"min\": 1}]",
     "steps[1].keep[0].table", "did you mean \"spots\"?"},
    {PYTHON "\"save\": \"/etc/x\"", "steps[1].save", "below OUT"},
    {PYTHON "\"save\": \"a/../x\"", "steps[1].save", "below OUT"},
    {PYTHON "\"save\": \"{out}\"", "steps[1].save", "unknown placeholder"},
    {PYTHON "\"tables\": [\"spots\"]", "steps[1].tables[0]",
     "in steps[0] already"},
    {PYTHON "\"tables\": [\"t\", \"a/b\", \"t\"]", "steps[1].tables[1]",
     "a table's name"},
    {PYTHON "\"tables\": [\"images\"]", "steps[1].tables[0]", "own"},
    {"\"name\": \"first\", \"function\": \"m:f\"", "steps[1].name",
     "taken by steps[0]"},
    {"\"name\": \"plate\", \"function\": \"m:f\"", "steps[1].name",
     "no step can be called \"plate\""},
    {"\"name\": \".x\", \"function\": \"m:f\"", "steps[1].name", "a name of"},
    {"\"name\": \"a\\nb\", \"function\": \"m:f\"", "steps[1].name",
     "got the string \"a\\nb\""},
    {"\"name\": \"b\", \"function\": \"project\"", "steps[1].function",
     "expected \"native:NAME\""},
    {"\"name\": \"b\", \"function\": \"a:b:c\"", "steps[1].function", ""},
    {"\"name\": \"b\", \"function\": \"a.:c\"", "steps[1].function", ""},
    {"\"name\": \"b\", \"function\": \"./x:f\"", "steps[1].function", ""},
    {"\"name\": \"b\", \"function\": \"./.py:f\"", "steps[1].function", ""},
    {"\"name\": \"b\", \"function\": \"x.py:\"", "steps[1].function", ""},
};

/* Reads `path`; the pipeline must be there exactly if there are no errors. */
static struct pf_pipeline *read_file(struct pf_report *report,
                                     const struct pf_override *overrides,
                                     size_t n) {
  struct pf_pipeline *p = NULL;
  struct pf_error err = PF_ERROR_INIT;
  int rc = pf_pipeline_read(&p, path, overrides, n, report, &err);
  CHECK_INT(rc, report->n_errors ? PF_EINVAL : PF_OK);
  CHECK_INT(rc, err.code);
  CHECK_INT(p != NULL, rc == PF_OK);
  if (rc != PF_OK)
    CHECK(err.message && *err.message);
  pf_error_clear(&err);
  return p;
}

static void check_message(const struct pf_report *report, const char *where,
                          const char *text) {
  for (size_t i = 0; i < report->n; i++)
    if (strcmp(report->messages[i].where, where) == 0 &&
        strstr(report->messages[i].text, text))
      return;
  CHECK_STR(where, text);
  for (size_t i = 0; i < report->n; i++)
    printf("  %s: %s\n", report->messages[i].where, report->messages[i].text);
}

static void test_bad_steps(void) {
  for (size_t i = 0; i < sizeof(bad_steps) / sizeof(bad_steps[0]); i++) {
    struct pf_report report = {0};
    struct pf_pipeline *p;
    write_step(bad_steps[i].step);
    p = read_file(&report, NULL, 0);
    check_message(&report, bad_steps[i].where, bad_steps[i].text);
    for (size_t k = 0; k < report.n; k++)
      CHECK_INT(report.messages[k].line, 3);
    pf_report_clear(&report);
    pf_pipeline_destroy(&p);
  }
}

/* Whole files; `line` 0: not looked at. */
static const struct {
  const char *text;
  int line, column;
  const char *where, *message;
} bad_files[] = {
    {"", 1, 1, "", "empty"},
    {"[]", 1, 1, "", "expected an object, got a list"},
    {"{}", 1, 1, "", "\"plateflow\" is missing: a pipeline needs it"},
    {"{}", 1, 1, "", "\"steps\" is missing"},
    {"{\"plateflow\": 2}", 1, 15, "plateflow", "reads version 1"},
    {"{\"plateflow\": 1.0}", 1, 15, "plateflow", "got the number 1.0"},
    {"{\"plateflow\": \"1\"}", 1, 15, "plateflow", "got the string \"1\""},
    {"{\n \"steps\":\n []}", 3, 2, "steps", "the list is empty"},
    {"{\"steps\": {}}", 1, 11, "steps", "got an object"},
    {"{\"steps\": [3]}", 1, 12, "steps[0]", "expected an object"},
    {"{\"name\": \"\"}", 1, 10, "name", "empty"},
    {"{\"Steps\": []}", 1, 2, "Steps", "did you mean \"steps\"?"},
    {"{\"plate\": []}", 1, 11, "plate", "expected an object"},
    {"{\"plate\": {\"layout\": \"pattern\"}}", 1, 11, "plate",
     "\"pattern\" is missing"},
    {"{\"plate\": {\"pattern\": \"x\"}}", 1, 12, "plate.pattern", "only"},
    {"{\"plate\": {\"planes\": \"slice\"}}", 1, 22, "plate.planes",
     "did you mean \"slices\"?"},
    {"{\"plate\": {\"pages\": \"site\"}}", 1, 21, "plate.pages",
     "unknown value of \"pages\": \"site\"; known: z, channel, timepoint"},
    {"{\"plate\": {\"exclude\": \"x.csv\"}}", 1, 12, "plate.exclude",
     "\"exclude\" is not supported yet"},
    {"{\"plate\": {\"metadata\": \"x.csv\"}}", 1, 12, "plate.metadata", "yet"},
    {"{\"plate\": {\"channels\": {\"1\": \"\"}}}", 1, 30,
     "plate.channels[\"1\"]", "empty"},
    {"{\"plate\": {\"channels\": {\"\": \"x\"}}}", 1, 25,
     "plate.channels[\"\"]", "empty"},
    {"{\"plate\": {\"channels\": {\"1\": \"x\", \"2\": \"x\"}}}", 1, 40,
     "plate.channels[\"2\"]", "channel \"1\" has the same name"},
    {"{\"a\": 1,\n \"a\": 2}", 2, 2, "", "a second time"},
    {"{\"a\": 1} x", 1, 10, "", "expected the end"},
};

static void test_bad_files(void) {
  for (size_t i = 0; i < sizeof(bad_files) / sizeof(bad_files[0]); i++) {
    struct pf_report report = {0};
    struct pf_pipeline *p;
    bool found = false;
    write_file(bad_files[i].text, strlen(bad_files[i].text));
    p = read_file(&report, NULL, 0);
    check_message(&report, bad_files[i].where, bad_files[i].message);
    for (size_t k = 0; k < report.n; k++)
      found = found || (report.messages[k].line == bad_files[i].line &&
                        report.messages[k].column == bad_files[i].column);
    if (!found)
      CHECK_STR(bad_files[i].text, "(another place)");
    pf_report_clear(&report);
    pf_pipeline_destroy(&p);
  }
}

/* Every key that works, on lines of its own; also what is mutated below. */
static const char whole[] =
    "{\"plateflow\": 1, \"name\": \"all\",\n"
    " \"plate\": {\"layout\": \"pattern\", \"pattern\": "
    "\"{well}_{site}.tif\",\n"
    "  \"pages\": \"channel\", \"planes\": \"both\",\n"
    "  \"channels\": {\"1\": \"DNA\", \"2\": \"ER\"}},\n"
    " \"steps\": [\n"
    "  {\"name\": \"flat\", \"function\": \"./my steps.py:Flat\",\n"
    "   \"memory_type\": \"numpy\", \"stack\": [\"channel\", \"z\"],\n"
    "   \"where\": {\"well\": [\"A01\", \"b2\"], \"site\": 3}, \n"
    "   \"input\": \"plate\", \"yields\": \"z\", \"resizes\": true,\n"
    "   \"parameters\": {\"a\": 3, \"b\": 3.0, \"c\": \"{{x}} "
    "{well}{out}\"},\n"
    "   \"input_dtype\": \"float32\", \"slice_by_slice\": false,\n"
    "   \"dtype\": \"uint16\", \"device\": \"cpu\", \"concurrency\": 2,\n"
    "   \"threads\": 4, \"incomplete\": \"stop\", \"sample\": 5,\n"
    "   \"save\": \"{well}/{site}_{z}.tif\", \"tables\": [\"t1\", \"t2\"]},\n"
    "  {\"name\": \"label\", \"function\": \"native:label\",\n"
    "   \"input_memory_type\": \"native\", \"output_memory_type\": "
    "\"native\",\n"
    "   \"stack\": [], \"result\": \"labels\", \"yields\": \"same\",\n"
    "   \"dtype\": \"native\", \"save\": false,\n"
    "   \"keep\": [{\"table\": \"t2\", \"column\": \"n\", \"max\": 9}]},\n"
    "  {\"name\": \"measure\", \"function\": \"a.b:c\", \"result\": "
    "\"none\",\n"
    "   \"input\": \"label\", \"with\": {\"i\": \"flat\", \"j\": {\n"
    "    \"from\": \"plate\", \"stack\": [\"z\"], \"where\": {\"channel\": "
    "1}}},\n"
    "   \"tables\": [\"t3\"]}]}\n";

static void check_first(const struct pf_step_spec *s) {
  CHECK_STR(s->function, "./my steps.py:Flat");
  CHECK_INT(s->input_memory_type, PF_MEM_NUMPY);
  CHECK_INT(s->output_memory_type, PF_MEM_NUMPY);
  CHECK(s->has_stack && s->n_stack == 2);
  CHECK_INT(s->stack[0], PF_CHANNEL);
  CHECK_INT(s->stack[1], PF_Z);
  CHECK_INT(s->n_where, 2);
  CHECK_INT(s->where[0].component, PF_WELL);
  CHECK_INT(s->where[0].n_values, 2);
  CHECK_STR(s->where[0].values[1], "b2");
  CHECK_STR(s->where[1].values[0], "3");
  CHECK_INT(s->input, PF_INPUT_PLATE);
  CHECK_INT(s->result, -1);
  CHECK(s->has_yields && s->yields.kind == PF_YIELDS_ALONG);
  CHECK_INT(s->yields.along, PF_Z);
  CHECK_INT(s->resizes, 1);
  CHECK_INT(s->input_dtype, PF_F32);
  CHECK_INT(s->slice_by_slice, 0);
  CHECK_INT(s->dtype, PF_N_CAST_MODES);
  CHECK_INT(s->dtype_type, PF_U16);
  CHECK_STR(s->device, "cpu");
  CHECK_INT(s->concurrency, 2);
  CHECK_INT(s->threads, 4);
  CHECK_INT(s->incomplete, PF_INCOMPLETE_STOP);
  CHECK_INT(s->sample, 5);
  CHECK_INT(s->save, 1);
  CHECK_STR(s->save_template, "{well}/{site}_{z}.tif");
  CHECK_INT(s->n_tables, 2);
  CHECK_STR(s->tables[1], "t2");
}

static void check_others(const struct pf_step_spec *s) {
  CHECK_INT(s[1].input_memory_type, PF_MEM_NATIVE);
  CHECK_INT(s[1].output_memory_type, PF_MEM_NATIVE);
  CHECK(s[1].has_stack && s[1].n_stack == 0);
  CHECK_INT(s[1].input, PF_INPUT_PREVIOUS);
  CHECK_INT(s[1].result, PF_RESULT_LABELS);
  CHECK_INT(s[1].dtype, PF_CAST_NATIVE);
  CHECK_INT(s[1].dtype_type, PF_DTYPE_NONE);
  CHECK_INT(s[1].save, 0);
  CHECK(!s[1].save_template && !s[1].device && !s[1].parameters);
  CHECK_INT(s[1].n_keep, 1);
  CHECK(isinf(s[1].keep[0].min) && s[1].keep[0].max == 9.0);
  CHECK_INT(s[2].input_memory_type, PF_MEM_NONE);
  CHECK_INT(s[2].input, 1);
  CHECK_INT(s[2].n_with, 2);
  CHECK_STR(s[2].with[0].name, "i");
  CHECK_INT(s[2].with[0].from, 0);
  CHECK(!s[2].with[0].has_stack);
  CHECK_INT(s[2].with[1].from, -1);
  CHECK(s[2].with[1].has_stack);
  CHECK_INT(s[2].with[1].stack, 1u << PF_Z);
  CHECK_STR(s[2].with[1].where[0].values[0], "1");
  CHECK_INT(s[2].save, -1);
}

static void test_whole(void) {
  struct pf_report report = {0};
  struct pf_pipeline *p;
  write_file(whole, strlen(whole));
  p = read_file(&report, NULL, 0);
  CHECK_INT(report.n, 0);
  if (p) {
    CHECK_STR(p->name, "all");
    CHECK_STR(p->file, path);
    CHECK_STR(p->base_dir, "/tmp");
    CHECK_STR(p->layout, "pattern");
    CHECK_STR(p->pages, "channel");
    CHECK_STR(p->planes, "both");
    CHECK_INT(p->n_channels, 2);
    CHECK_STR(p->channel_values[1], "2");
    CHECK_STR(p->channel_names[1], "ER");
    CHECK_INT(p->n_steps, 3);
    check_first(&p->steps[0]);
    check_others(p->steps);
  }
  for (size_t i = 0; i < report.n; i++)
    printf("%s: %s\n", report.messages[i].where, report.messages[i].text);
  pf_report_clear(&report);
  pf_pipeline_destroy(&p);
}

static void test_warning(void) {
  struct pf_report report = {0};
  struct pf_pipeline *p;
  write_step(PYTHON "\"result\": \"none\"");
  p = read_file(&report, NULL, 0);
  CHECK(p != NULL);
  CHECK_INT(report.n, 1);
  CHECK_INT(report.n_errors, 0);
  check_message(&report, "steps[1].result", "is \"tables\" missing?");
  pf_report_clear(&report);
  pf_pipeline_destroy(&p);
}

static void test_overrides(void) {
  static const struct pf_override good[] = {
      {"b", "sigma", "3"},  {"b", "sigma", "2"},      {"first", "s", "otsu"},
      {"b", "x", "[1, 2]"}, {"first", "t", "{well}"},
  };
  static const struct pf_override bad[] = {
      {"frist", "x", "1"}, {"b", "x", "{\"y\": \"{wel}\"}"}, {"b", "9", "1"}};
  struct pf_report report = {0};
  struct pf_pipeline *p;
  write_step(NAMED "\"parameters\": {\"sigma\": 1.5}");
  p = read_file(&report, good, 5);
  if (p) {
    const pf_json *sigma = pf_json_get(p->steps[1].parameters, "sigma");
    CHECK_INT(pf_json_type(p->doc, sigma), PF_JSON_INT);
    CHECK_INT(pf_json_int(p->doc, sigma), 2);
    CHECK_STR(pf_json_string(pf_json_get(p->steps[0].parameters, "s")),
              "otsu");
    CHECK_INT(pf_json_n(pf_json_get(p->steps[1].parameters, "x")), 2);
  }
  pf_report_clear(&report);
  pf_pipeline_destroy(&p);
  p = read_file(&report, bad, 3);
  CHECK_INT(report.n_errors, 3);
  check_message(&report, "--set frist.x", "did you mean \"first\"?");
  check_message(&report, "--set b.x.y", "did you mean {well}?");
  check_message(&report, "--set b.9", "no parameter's name");
  for (size_t i = 0; i < report.n; i++)
    CHECK_INT(report.messages[i].line, 0);
  pf_report_clear(&report);
  pf_pipeline_destroy(&p);
}

static void test_missing_file(void) {
  struct pf_report report = {0};
  struct pf_pipeline *p = NULL;
  struct pf_error err = PF_ERROR_INIT;
  CHECK_INT(
      pf_pipeline_read(&p, "/nonexistent/p.json", NULL, 0, &report, &err),
      PF_EINVAL);
  CHECK(!p && report.n == 1 && report.messages[0].line == 0);
  CHECK(strstr(err.message, "/nonexistent/p.json"));
  pf_error_clear(&err);
  pf_report_clear(&report);
}

static void test_sort(void) {
  struct pf_report report = {0};
  struct pf_json_doc *doc = NULL;
  const char *text = "[1,\n 2,3]", *expected = "0ab1c2d3";
  const pf_json *v;
  CHECK_INT(pf_json_parse(&doc, text, strlen(text), "x", NULL), PF_OK);
  v = pf_json_first(pf_json_root(doc));
  (void)pf_report_add(&report, false, doc, pf_json_next(pf_json_next(v)),
                      false, "d");
  (void)pf_report_add(&report, false, doc, v, false, "a");
  (void)pf_report_add(&report, true, doc, v, false, "b");
  (void)pf_report_add(&report, false, doc, pf_json_next(v), false, "c");
  (void)pf_report_add(&report, false, NULL, NULL, false, "0");
  pf_report_sort(&report);
  CHECK_INT(report.n, 5);
  CHECK_INT(report.n_errors, 4);
  for (size_t i = 0, k = 0; i < report.n; i++, k++) {
    while (expected[k] >= '1' && expected[k] <= '9')
      k++;
    CHECK_INT(report.messages[i].text[0], expected[k]);
  }
  pf_report_clear(&report);
  pf_json_free(&doc);
}

/* Any text is a pipeline or has an error with its place. */
static void check_any(const char *text, size_t n) {
  struct pf_report report = {0};
  struct pf_pipeline *p;
  write_file(text, n);
  p = read_file(&report, NULL, 0);
  for (size_t i = 0; i < report.n; i++)
    if (report.messages[i].line < 1 || report.messages[i].column < 1)
      CHECK_STR(report.messages[i].text, "(no place)");
  pf_report_clear(&report);
  pf_pipeline_destroy(&p);
}

static void test_mutations(void) {
  static const char bytes[] = "\"{],0\\\xff";
  char copy[sizeof(whole)];
  size_t n = strlen(whole);
  for (size_t i = 0; i < n; i++) {
    check_any(whole, i); /* a prefix */
    memcpy(copy, whole, i);
    memcpy(copy + i, whole + i + 1, n - i);
    check_any(copy, n - 1); /* one byte less */
    memcpy(copy, whole, sizeof(whole));
    for (size_t k = 0; k < sizeof(bytes); k++) { /* the NUL too */
      copy[i] = bytes[k];
      check_any(copy, n);
    }
    copy[i] = (char)(whole[i] ^ 1);
    check_any(copy, n);
  }
}

int main(void) {
  fd = mkstemp(path);
  if (fd < 0)
    return 1;
  test_bad_steps();
  test_bad_files();
  test_whole();
  test_warning();
  test_overrides();
  test_missing_file();
  test_sort();
  test_mutations();
  (void)close(fd);
  (void)unlink(path);
  return check_done();
}
