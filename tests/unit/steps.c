/* steps/step.c, steps/params.c, steps/registry.c, steps/table.c, the C steps
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "bridge/buf.h"
#include "bridge/json.h"
#include "plateflow/step.h"
#include "steps/table.h"
#include "tests/unit/check.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

/* -- parameters --------------------------------------------------------- */

/* What is reported, joined by " / "; "" where nothing is wrong. */
static const struct {
  const char *step, *params, *reports;
} checks[] = {
    {"gaussian", "{}", ""},
    {"gaussian", "{\"sigma\": 3}", ""},
    {"gaussian", "{\"sigma\": 3.5, \"mode\": \"wrap\"}", ""},
    {"gaussian", "{\"sigma\": -1}",
     "expected a number between 0 and 1000, got -1"},
    {"gaussian", "{\"sigma\": 1000.5}",
     "expected a number between 0 and 1000, got 1000.5"},
    {"gaussian", "{\"sigma\": \"2\"}",
     "expected a number between 0 and 1000, got \"2\""},
    {"gaussian", "{\"sigma\": \"{site}\"}",
     "expected a number between 0 and 1000, got \"{site}\""},
    {"gaussian", "{\"sigma\": [1, 2]}",
     "expected a number between 0 and 1000, got [1,2]"},
    {"gaussian", "{\"sigma\": null}",
     "expected a number between 0 and 1000, got null"},
    {"gaussian", "{\"sigma\": true}",
     "expected a number between 0 and 1000, got true"},
    {"gaussian", "{\"sgma\": 1}",
     "unknown parameter \"sgma\": did you mean \"sigma\"?"},
    {"gaussian", "{\"colour\": 1}",
     "unknown parameter \"colour\": native:gaussian takes sigma, mode, "
     "truncate"},
    {"identity", "{\"x\": 1}",
     "unknown parameter \"x\": native:identity takes none"},
    {"gaussian", "{\"mode\": \"reflekt\"}",
     "expected one of reflect, nearest, constant, mirror, wrap, got "
     "\"reflekt\": did you mean \"reflect\"?"},
    {"gaussian", "{\"mode\": 1}",
     "expected one of reflect, nearest, constant, mirror, wrap, got 1"},
    {"gaussian", "{\"mode\": \"{channel}\"}", ""},
    {"gaussian", "{\"mode\": \"{}\"}",
     "expected one of reflect, nearest, constant, mirror, wrap, got \"{}\""},
    {"gaussian", "{\"sigma\": -1, \"mdoe\": \"wrap\"}",
     "expected a number between 0 and 1000, got -1 / unknown parameter "
     "\"mdoe\": did you mean \"mode\"?"},
    {"gaussian", "[1]", "expected an object of parameters, got [1]"},
    {"gaussian",
     "{\"sigma\": "
     "\"a long value that somebody put here to fill the whole screen with\"}",
     "expected a number between 0 and 1000, got a string"},
    {"label", "{\"min_area\": 20}", ""},
    {"label", "{\"min_area\": 20.0}",
     "expected an integer between 0 and 9.00719925474099e+15, got 20.0"},
    {"label", "{\"min_area\": -1}",
     "expected an integer between 0 and 9.00719925474099e+15, got -1"},
    {"label", "{\"connectivity\": 4}", ""},
    {"label", "{\"connectivity\": \"26\"}", ""},
    {"label", "{\"connectivity\": 5}",
     "expected one of 4, 6, 8, 18, 26, got 5"},
    {"label", "{\"connectivity\": 4.0}",
     "expected one of 4, 6, 8, 18, 26, got 4.0"},
    {"rescale_intensity", "{\"low\": 1, \"high\": 99.5}", ""},
    {"rescale_intensity", "{\"low\": 50, \"high\": 50}",
     "\"low\" (50) must be less than \"high\" (50)"},
    {"rescale_intensity", "{\"low\": 101, \"high\": 50}",
     "expected a number between 0 and 100, got 101"},
    {"threshold", "{\"method\": \"fixed\"}",
     "method \"fixed\" needs the parameter \"value\""},
    {"threshold", "{\"method\": \"fixed\", \"value\": -1e300}", ""},
    {"threshold", "{\"value\": 7}",
     "\"value\" goes with \"method\": \"fixed\""},
    {"threshold", "{\"method\": \"{well}\", \"value\": 7}", ""},
    {"flatfield", "{}",
     "native:flatfield needs the parameter \"image\": image file of the "
     "illumination function"},
    {"flatfield", "{\"image\": 3}", "expected the name of a file, got 3"},
    {"flatfield", "{\"image\": \"\"}",
     "expected the name of a file, got \"\""},
    {"flatfield", "{\"image\": \"/no/such%s\\nfile.tif\"}",
     "there is no file /no/such%s\\x0afile.tif"},
    {"flatfield", "{\"image\": \"/\"}", "there is no file /"},
    {"flatfield", "{\"image\": \"{channel}.tif\"}", ""},
};

static void collect(void *context, const struct cJSON *value, bool of_key,
                    const char *message) {
  struct pf_buf *all = context;
  (void)value;
  (void)of_key;
  pf_buf_printf(all, "%s%s", all->len ? " / " : "", message);
}

static struct pf_step *open_step(const char *name) {
  char function[64];
  struct pf_error err = PF_ERROR_INIT;
  struct pf_step *step = NULL;
  (void)snprintf(function, sizeof(function), "native:%s", name);
  CHECK_INT(pf_step_open(&step, function, "/", &err), PF_OK);
  pf_error_clear(&err);
  return step;
}

static struct pf_json_doc *parse(const char *text) {
  struct pf_json_doc *doc = NULL;
  CHECK_INT(pf_json_parse(&doc, text, strlen(text), "p.json", NULL), PF_OK);
  return doc;
}

static void test_checks(void) {
  for (size_t i = 0; i < N_OF(checks); i++) {
    struct pf_step *step = open_step(checks[i].step);
    struct pf_json_doc *doc = parse(checks[i].params);
    struct pf_buf all = {0};
    int n = pf_step_check_params(step, doc, pf_json_root(doc), NULL, 0,
                                 collect, &all, NULL);
    CHECK_STR(pf_buf_text(&all), checks[i].reports);
    CHECK_INT(n > 0, checks[i].reports[0] != '\0');
    pf_buf_free(&all);
    pf_json_free(&doc);
    pf_step_unref(&step);
  }
}

/* What pf_step_make() says of the same things. */
static const struct {
  const char *step, *params, *message;
  int line, column;
} makes[] = {
    {"gaussian", "{\"sigma\": 3}", NULL, 0, 0},
    {"gaussian", "{\n  \"sigma\": -1}",
     "sigma: expected a number between 0 and 1000, got -1", 2, 12},
    {"gaussian", "{\n  \"sgma\": -1}",
     "sgma: unknown parameter \"sgma\": did you mean \"sigma\"?", 2, 3},
    {"gaussian", "{\"mode\": \"{channel}\"}",
     "mode: expected one of reflect, nearest, constant, mirror, wrap, got "
     "\"{channel}\"",
     1, 10},
    {"flatfield", "{\"image\": \"{channel}.tif\"}",
     "image: there is no file /{channel}.tif", 1, 11},
    {"flatfield", "{}",
     "native:flatfield needs the parameter \"image\": image file of the "
     "illumination function",
     1, 1},
};

static void test_makes(void) {
  for (size_t i = 0; i < N_OF(makes); i++) {
    struct pf_step *step = open_step(makes[i].step);
    struct pf_json_doc *doc = parse(makes[i].params);
    struct pf_step_instance *instance = NULL;
    struct pf_error err = PF_ERROR_INIT;
    int code = pf_step_make(&instance, step, doc, pf_json_root(doc), &err);
    CHECK_INT(code, makes[i].message ? PF_EINVAL : PF_OK);
    CHECK((instance == NULL) == (code != PF_OK));
    if (makes[i].message)
      CHECK_STR(err.message, makes[i].message);
    CHECK_INT(err.line, makes[i].line);
    CHECK_INT(err.column, makes[i].column);
    pf_step_drop(&instance);
    pf_error_clear(&err);
    pf_json_free(&doc);
    pf_step_unref(&step);
  }
}

static const struct {
  const char *step, *with[2], *reports;
} withs[] = {
    {"measure", {"intensity"}, ""},
    {"measure", {NULL}, ""},
    {"measure",
     {"intensities"},
     "native:measure takes no array \"intensities\", only \"intensity\""},
    {"gaussian",
     {"intensity"},
     "native:gaussian takes no array \"intensity\""},
    {"label",
     {"a", "b"},
     "native:label takes no array \"a\" / native:label takes no array \"b\""},
};

static void test_withs(void) {
  for (size_t i = 0; i < N_OF(withs); i++) {
    struct pf_step *step = open_step(withs[i].step);
    struct pf_buf all = {0};
    size_t n = withs[i].with[0] ? withs[i].with[1] ? 2 : 1 : 0;
    (void)pf_step_check_params(step, NULL, NULL, withs[i].with, n, collect,
                               &all, NULL);
    CHECK_STR(pf_buf_text(&all), withs[i].reports);
    pf_buf_free(&all);
    pf_step_unref(&step);
  }
}

/* -- finding steps ------------------------------------------------------ */

static const struct {
  const char *function;
  int code;
  const char *message;
} opens[] = {
    {"native:gaussian", PF_OK, NULL},
    {"native:gausian", PF_EINVAL,
     "there is no step native:gausian: did you mean native:gaussian?"},
    {"native:", PF_EINVAL,
     "there is no step native:: `plateflow steps` lists them"},
    {"native:x\n%s", PF_EINVAL,
     "there is no step native:x\\x0a%s: `plateflow steps` lists them"},
    {"gaussian", PF_EINVAL,
     "\"gaussian\" names no function: did you mean native:gaussian?"},
    {"my_steps.py", PF_EINVAL,
     "\"my_steps.py\" names no function: write native:NAME, "
     "package.module:name or ./file.py:name"},
    {"./my.py:f", PF_EMISSING,
     "./my.py:f is a Python function and no interpreter runs"},
};

static void test_opens(void) {
  for (size_t i = 0; i < N_OF(opens); i++) {
    struct pf_error err = PF_ERROR_INIT;
    struct pf_step *step = NULL;
    CHECK_INT(pf_step_open(&step, opens[i].function, ".", &err),
              opens[i].code);
    CHECK((step == NULL) == (opens[i].code != PF_OK));
    if (opens[i].message)
      CHECK_STR(err.message, opens[i].message);
    pf_error_clear(&err);
    pf_step_unref(&step);
  }
  CHECK_STR(pf_result_kind_name(PF_RESULT_LABELS), "labels");
  CHECK_INT(pf_result_kind_find("none"), PF_RESULT_NONE);
  CHECK_INT(pf_result_kind_find("picture"), -1);
}

/* Rows that the checker, the help and the docs rely on. */
static void test_rows(const struct pf_step_type *type) {
  for (const struct pf_param *row = type->params; row && row->name; row++) {
    const bool number =
        row->type == PF_PARAM_INT || row->type == PF_PARAM_REAL;
    CHECK(row->help && row->help[0]);
    CHECK(row->offset < type->params_size);
    CHECK((row->type == PF_PARAM_CHOICE) == (row->choices != NULL));
    if (number && !(row->min == 0 && row->max == 0))
      CHECK(row->min < row->max && row->standard >= row->min &&
            row->standard <= row->max);
    if (row->required)
      CHECK(row->type == PF_PARAM_STRING || row->type == PF_PARAM_FILE);
  }
}

static void test_step_table(void) {
  size_t n = 0;
  const struct pf_step_type *const *steps = pf_native_steps(&n);
  CHECK(n >= 8);
  for (size_t i = 0; i < n; i++) {
    CHECK(i == 0 || strcmp(steps[i - 1]->name, steps[i]->name) < 0);
    CHECK(steps[i] == pf_native_find(steps[i]->name));
    CHECK(steps[i]->help && steps[i]->help[0]);
    CHECK(steps[i]->memory_types & 1u << PF_MEM_NATIVE);
    CHECK(steps[i]->call != NULL);
    test_rows(steps[i]);
  }
  CHECK(pf_native_find("nothing") == NULL);
}

/* -- calling ------------------------------------------------------------ */

/* NULL where parameters are wrong. */
static struct pf_step_instance *make(const char *name, const char *params) {
  struct pf_step *step = open_step(name);
  struct pf_json_doc *doc = parse(params);
  struct pf_step_instance *instance = NULL;
  struct pf_error err = PF_ERROR_INIT;
  CHECK_INT(pf_step_make(&instance, step, doc, pf_json_root(doc), &err),
            PF_OK);
  pf_error_clear(&err);
  /* Neither the document nor the step must live on. */
  pf_json_free(&doc);
  pf_step_unref(&step);
  return instance;
}

static struct pf_array *array_of(enum pf_dtype dtype, int64_t z, int64_t y,
                                 int64_t x, const double *values) {
  const int64_t shape[3] = {z, y, x};
  struct pf_array *doubles = NULL, *array = NULL;
  CHECK_INT(pf_array_create(&doubles, PF_F64, 3, shape, NULL), PF_OK);
  memcpy(pf_array_data(doubles), values, pf_array_n_bytes(doubles));
  CHECK_INT(pf_cast(&array, doubles, dtype, PF_CAST_PRESERVE, NULL, NULL),
            PF_OK);
  pf_array_unref(&doubles);
  return array;
}

/* Z = 3 planes of 2x2, small enough for every type. */
static const double small[12] = {1, 2, 3, 4, 5, 2, 1, 4, 3, 2, 8, 4};

/* Known answers on `small`, the same for every element type. */
static const struct {
  const char *step, *params;
  size_t n;
  double values[12];
  const char *mode;
} answers[] = {
    {"identity", "{}", 12, {1, 2, 3, 4, 5, 2, 1, 4, 3, 2, 8, 4}, "preserve"},
    {"project", "{}", 4, {5, 2, 8, 4}, "preserve"},
    {"project", "{\"method\": \"min\"}", 4, {1, 2, 1, 4}, "preserve"},
    {"project", "{\"method\": \"sum\"}", 4, {9, 6, 12, 12}, "native"},
    {"project", "{\"method\": \"mean\"}", 4, {3, 2, 4, 4}, "preserve"},
    {"project", "{\"method\": \"median\"}", 4, {3, 2, 3, 4}, "preserve"},
    {"gaussian",
     "{\"sigma\": 0}",
     12,
     {1, 2, 3, 4, 5, 2, 1, 4, 3, 2, 8, 4},
     "preserve"},
    {"threshold",
     "{\"method\": \"fixed\", \"value\": 3}",
     12,
     {0, 0, 0, 255, 255, 0, 0, 255, 0, 0, 255, 255},
     "native"},
    {"label", "{}", 12, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, "native"},
    {"label", "{\"min_area\": 13}", 12, {0}, "native"},
};

static void check_values(struct pf_array *got, const double *want, size_t n) {
  struct pf_array *doubles = NULL;
  CHECK_INT(pf_array_size(got), n);
  CHECK_INT(pf_array_ndim(got), 3);
  CHECK_INT(pf_cast(&doubles, got, PF_F64, PF_CAST_PRESERVE, NULL, NULL),
            PF_OK);
  for (size_t i = 0; i < n && (size_t)pf_array_size(got) == n; i++)
    CHECK_INT(((double *)pf_array_data(doubles))[i], want[i]);
  pf_array_unref(&doubles);
}

/* An input that the step does not own keeps its bytes; one that it owns may
 * be the result. Either way the values are the same. */
static void test_answer(size_t i, enum pf_dtype dtype, bool may_write) {
  struct pf_step_instance *step = make(answers[i].step, answers[i].params);
  struct pf_array *stack = array_of(dtype, 3, 2, 2, small);
  struct pf_array *before = NULL;
  struct pf_call call = {.stack = stack, .may_write = may_write};
  struct pf_result result;
  struct pf_error err = PF_ERROR_INIT;
  CHECK_INT(pf_array_copy(&before, stack, NULL), PF_OK);
  CHECK_INT(pf_step_call(step, &call, &result, &err), PF_OK);
  CHECK_STR(pf_cast_mode_name(pf_step_instance_dtype(step)), answers[i].mode);
  if (result.stack)
    check_values(result.stack, answers[i].values, answers[i].n);
  if (!may_write)
    CHECK(memcmp(pf_array_data(before), pf_array_data(stack),
                 pf_array_n_bytes(stack)) == 0);
  pf_result_clear(&result);
  pf_error_clear(&err);
  pf_array_unref(&before);
  pf_array_unref(&stack);
  pf_step_drop(&step);
}

static void test_answers(void) {
  for (size_t i = 0; i < N_OF(answers); i++)
    for (int dtype = PF_U8; dtype < PF_N_DTYPES; dtype++) {
      test_answer(i, (enum pf_dtype)dtype, false);
      test_answer(i, (enum pf_dtype)dtype, true);
    }
}

/* Stacks that steps refuse, with the shape in the message. */
static void test_bad_stacks(void) {
  static const struct {
    int ndim;
    int64_t shape[4];
    const char *message;
  } bad[] = {
      {3, {0, 2, 2}, "got shape [0, 2, 2]"},
      {3, {2, 0, 2}, "got shape [2, 0, 2]"},
      {1, {5}, "got shape [5]"},
      {4, {1, 1, 1, 1}, "got shape [1, 1, 1, 1]"},
  };
  struct pf_step_instance *step = make("project", "{\"method\": \"mean\"}");
  for (size_t i = 0; i < N_OF(bad); i++) {
    struct pf_array *stack = NULL;
    struct pf_result result;
    struct pf_error err = PF_ERROR_INIT;
    struct pf_call call = {0};
    CHECK_INT(pf_array_create(&stack, PF_U8, bad[i].ndim, bad[i].shape, NULL),
              PF_OK);
    call.stack = stack;
    CHECK_INT(pf_step_call(step, &call, &result, &err), PF_ESTEP);
    CHECK(err.message && strstr(err.message, bad[i].message));
    CHECK(result.stack == NULL);
    pf_error_clear(&err);
    pf_array_unref(&stack);
  }
  pf_step_drop(&step);
}

/* A stack that is no compact array, as a plane cut out of a larger one is. */
static void test_strided(void) {
  static uint16_t pixels[4][6] = {{1, 9, 2, 9, 3, 9}, {4, 9, 5, 9, 6, 9}};
  const int64_t shape[3] = {2, 1, 3}, strides[3] = {6, 6, 2};
  const struct pf_array_desc desc = {.data = pixels,
                                     .dtype = PF_U16,
                                     .ndim = 3,
                                     .shape = shape,
                                     .strides = strides,
                                     .device = {1, 0},
                                     .memory_type = PF_MEM_NUMPY};
  static const double want[] = {5, 7, 9};
  struct pf_step_instance *step = make("project", "{\"method\": \"sum\"}");
  struct pf_array *stack = NULL;
  struct pf_result result;
  struct pf_call call = {0};
  CHECK_INT(pf_array_wrap(&stack, &desc, NULL, NULL, NULL), PF_OK);
  call.stack = stack;
  CHECK_INT(pf_step_call(step, &call, &result, NULL), PF_OK);
  check_values(result.stack, want, 3);
  pf_result_clear(&result);
  pf_array_unref(&stack);
  pf_step_drop(&step);
}

/* -- files that parameters name ----------------------------------------- */

/* Gives 2x2 whatever the file holds. */
static int read_two_by_two(struct pf_array **out, const char *path,
                           struct pf_error *err) {
  static const double values[] = {1, 2, 3, 2};
  struct pf_array *stack = array_of(PF_U16, 1, 2, 2, values);
  CHECK_INT(path[0], '/');
  int code = pf_array_plane(out, stack, 0, err);
  pf_array_unref(&stack);
  return code;
}

static void test_reader(void) {
  static const double wide[6] = {1, 2, 3, 4, 5, 6};
  char path[] = "/tmp/pf-steps-XXXXXX";
  int file = mkstemp(path);
  char params[64];
  struct pf_step *step = open_step("flatfield");
  struct pf_step_instance *instance = NULL;
  struct pf_array *stack = array_of(PF_U8, 1, 2, 3, wide);
  struct pf_call call = {.stack = stack};
  struct pf_result result;
  struct pf_error err = PF_ERROR_INIT;
  struct pf_json_doc *doc;
  /* Relative to the pipeline's folder, which open_step() says is "/". */
  (void)snprintf(params, sizeof(params), "{\"image\": \"%s\"}", path + 1);
  doc = parse(params);
  CHECK(file >= 0);
  CHECK_INT(pf_step_make(&instance, step, doc, pf_json_root(doc), &err),
            PF_EMISSING);
  pf_error_clear(&err);
  pf_step_set_image_reader(read_two_by_two);
  CHECK_INT(pf_step_make(&instance, step, doc, pf_json_root(doc), &err),
            PF_OK);
  CHECK_INT(pf_step_call(instance, &call, &result, &err), PF_ESTEP);
  CHECK_STR(err.message, "the stack's planes are [2, 3], the illumination is "
                         "[2, 2]");
  pf_error_clear(&err);
  pf_step_set_image_reader(NULL);
  pf_step_drop(&instance);
  pf_step_unref(&step);
  pf_json_free(&doc);
  pf_array_unref(&stack);
  (void)close(file);
  (void)unlink(path);
}

/* -- tables ------------------------------------------------------------- */

static void test_table(void) {
  struct pf_table *table = NULL;
  struct pf_error err = PF_ERROR_INIT;
  CHECK_INT(pf_table_create(&table, NULL), PF_OK);
  CHECK_INT(pf_table_add_column(table, "n", PF_COLUMN_INT, NULL), PF_OK);
  CHECK_INT(pf_table_add_column(table, "t", PF_COLUMN_TEXT, NULL), PF_OK);
  CHECK_INT(pf_table_add_column(table, "n", PF_COLUMN_INT, &err), PF_EINVAL);
  CHECK_STR(err.message, "two columns of a table are called \"n\"");
  pf_error_clear(&err);
  CHECK_INT(pf_table_add_column(table, "", PF_COLUMN_INT, &err), PF_EINVAL);
  pf_error_clear(&err);
  for (int i = 0; i < 100; i++)
    CHECK_INT(pf_table_add_rows(table, 7, NULL), PF_OK);
  CHECK_INT(table->n_rows, 700);
  CHECK_INT(pf_table_cell(table, 699, 1)->state, PF_CELL_EMPTY);
  CHECK_INT(pf_table_set_text(table, 699, 1, "first", NULL), PF_OK);
  CHECK_INT(pf_table_set_text(table, 699, 1, "text", NULL), PF_OK);
  CHECK_STR(pf_table_cell(table, 699, 1)->as.t, "text");
  CHECK_INT(pf_table_cell(table, 699, 1)->state, PF_CELL_SET);
  CHECK_INT(pf_table_add_column(table, "late", PF_COLUMN_INT, &err), PF_EBUG);
  pf_error_clear(&err);
  CHECK_INT(pf_table_add_rows(table, SIZE_MAX / 8, &err), PF_ENOMEM);
  pf_error_clear(&err);
  CHECK_INT(table->n_rows, 700);
  pf_table_destroy(&table);
  CHECK(table == NULL);
  pf_table_destroy(&table);
  CHECK_STR(pf_column_type_name(PF_COLUMN_REAL), "real");
}

/* The channel of the intensity, the column's name. */
static const struct {
  const char *channel, *column;
} measured[] = {
    {NULL, "intensity_mean"},
    {"DNA", "intensity_mean_DNA"},
};

static void test_measure_names(void) {
  struct pf_step_instance *step = make("measure", "{}");
  struct pf_array *stack = array_of(PF_U32, 3, 2, 2, small);
  struct pf_with_array with = {"intensity", stack, NULL};
  struct pf_call call = {.stack = stack, .n_with = 1, .with = &with};
  for (size_t i = 0; i < N_OF(measured); i++) {
    const char *const channels[3] = {measured[i].channel, measured[i].channel,
                                     measured[i].channel};
    struct pf_result result;
    with.channels = measured[i].channel ? channels : NULL;
    CHECK_INT(pf_step_call(step, &call, &result, NULL), PF_OK);
    CHECK(result.stack == NULL);
    CHECK_INT(result.n_tables, 1);
    CHECK_INT(result.tables[0]->n_columns, 9);
    CHECK_INT(result.tables[0]->n_rows, 6);
    CHECK_STR(result.tables[0]->columns[4].name, "centroid-2");
    CHECK_STR(result.tables[0]->columns[5].name, measured[i].column);
    pf_result_clear(&result);
  }
  pf_array_unref(&stack);
  pf_step_drop(&step);
}

int main(void) {
  test_checks();
  test_makes();
  test_withs();
  test_opens();
  test_step_table();
  test_answers();
  test_bad_stacks();
  test_strided();
  test_reader();
  test_table();
  test_measure_names();
  return check_done();
}
