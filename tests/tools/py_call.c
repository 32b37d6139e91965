/*
 * Calls one Python step as the engine does, and tells what it sees:
 *
 *   tool_py_call BASE_DIR FUNCTION [NAME=VALUE ...]
 *     python=PATH shape=3,4,5 dtype=uint16 n=1 writable=1 result=image
 *     tables=0 params={...} with=NAME time=0
 *
 * One line of JSON per call, after all calls were made and all results kept:
 * the address and first element of each result, whether it was copied and why,
 * its tables, or its error. time=1 prints the microseconds of a call alone.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/json.h"
#include "bridge/os.h"
#include "plateflow/step.h"
#include "steps/provider.h"
#include "steps/python.h"
#include "steps/table.h"

struct options {
  const char *base_dir, *function, *python, *params, *with;
  int64_t shape[PF_MAX_NDIM];
  int ndim;
  enum pf_dtype dtype;
  int n, writable, time;
  enum pf_result_kind result;
  size_t n_tables;
};

/* One call, kept until all were made. */
struct outcome {
  struct pf_array *stack;
  struct pf_result result;
  struct pf_error err;
  const void *input;
  bool input_is_writable; /* after the call: nobody else holds it */
};

static void parse_shape(struct options *o, const char *text) {
  char *end;
  o->ndim = 0;
  while (o->ndim < PF_MAX_NDIM && *text) {
    o->shape[o->ndim++] = strtoll(text, &end, 10);
    text = *end ? end + 1 : end;
  }
}

static int number(const char *text) {
  return (int)strtol(text, NULL, 10);
}

static bool parse(struct options *o, const char *word) {
  const char *value = strchr(word, '=');
  size_t n = value ? (size_t)(value - word) : 0;
  if (!value++)
    return false;
#define IS(name) (n == strlen(name) && strncmp(word, name, n) == 0)
  if (IS("python"))
    o->python = value;
  else if (IS("params"))
    o->params = value;
  else if (IS("with"))
    o->with = value;
  else if (IS("shape"))
    parse_shape(o, value);
  else if (IS("dtype"))
    o->dtype = pf_dtype_find(value);
  else if (IS("n"))
    o->n = number(value);
  else if (IS("writable"))
    o->writable = number(value);
  else if (IS("time"))
    o->time = number(value);
  else if (IS("result"))
    o->result = (enum pf_result_kind)pf_result_kind_find(value);
  else if (IS("tables"))
    o->n_tables = (size_t)number(value);
  else
    return false;
#undef IS
  return true;
}

static void log_line(void *context, const char *line) {
  (void)context;
  (void)fprintf(stderr, "log: %s\n", line);
}

static int write_file(void *context, const char *name, const void *bytes,
                      size_t n, struct pf_error *err) {
  (void)context;
  if (strchr(name, '/'))
    return pf_error_set(err, PF_ESTEP, "no folders here");
  (void)fprintf(stderr, "write: %s %.*s\n", name, (int)n, (const char *)bytes);
  return PF_OK;
}

static const struct pf_slice_info slice_info = {
    .path = "/plate/A01.tif",
    .page = 2,
    .value = {[PF_WELL] = "A01", [PF_CHANNEL] = "DNA", [PF_Z] = "1"},
    .pixel_size_um = {0.5, 0.25},
    .z_step_um = 2,
    .position_um = {1, 2, 3},
    .time_s = NAN};

static const struct pf_group_info group_info = {
    .step = "smooth",
    .text = "well A01",
    .value = {[PF_WELL] = "A01", [PF_SITE] = "2"},
    .n_slices = 1,
    .slices = &slice_info,
    .seed = UINT64_MAX,
    .device = {1, 0},
    .write = write_file,
    .log = log_line};

/* Elements 0, 1, 2 ... as bytes. */
static void fill(struct pf_array *array) {
  unsigned char *bytes = pf_array_data(array);
  for (size_t i = 0; i < pf_array_n_bytes(array); i++)
    bytes[i] = (unsigned char)i;
}

static void call(struct outcome *out, const struct options *o,
                 struct pf_step_instance *instance, struct pf_array *with) {
  struct pf_with_array array = {o->with, with, NULL};
  struct pf_call c = {.n_with = o->with ? 1 : 0,
                      .with = &array,
                      .info = &group_info,
                      .may_write = o->writable != 0,
                      .result = o->result,
                      .n_tables = o->n_tables};
  if (pf_array_create(&out->stack, o->dtype, o->ndim, o->shape, &out->err))
    return;
  fill(out->stack);
  out->input = pf_array_data(out->stack);
  c.stack = out->stack;
  if (pf_step_call(instance, &c, &out->result, &out->err))
    pf_result_clear(&out->result);
  out->input_is_writable = pf_array_is_writable(out->stack);
  pf_array_unref(&out->stack);
}

static void print_cell(const struct pf_cell *cell, enum pf_column_type type) {
  struct pf_buf text = {0};
  if (cell->state == PF_CELL_EMPTY)
    pf_buf_str(&text, "null");
  else if (type == PF_COLUMN_TEXT)
    pf_buf_json(&text, cell->as.t);
  else if (type == PF_COLUMN_REAL)
    pf_buf_printf(&text, "%.17g", cell->as.r);
  else
    pf_buf_printf(&text, "%" PRId64, cell->as.i);
  (void)fputs(pf_buf_text(&text), stdout);
  pf_buf_free(&text);
}

static void print_table(struct pf_table *table) {
  (void)printf("{\"columns\": [");
  for (size_t c = 0; c < table->n_columns; c++)
    (void)printf("%s[\"%s\", \"%s\"]", c ? ", " : "", table->columns[c].name,
                 pf_column_type_name(table->columns[c].type));
  (void)printf("], \"rows\": [");
  for (size_t r = 0; r < table->n_rows; r++) {
    (void)printf("%s[", r ? ", " : "");
    for (size_t c = 0; c < table->n_columns; c++) {
      (void)printf("%s", c ? ", " : "");
      print_cell(pf_table_cell(table, r, c), table->columns[c].type);
    }
    (void)printf("]");
  }
  (void)printf("]}");
}

static void print_stack(const struct pf_array *stack) {
  (void)printf("\"dtype\": \"%s\", \"shape\": [",
               pf_dtype_name(pf_array_dtype(stack)));
  for (int i = 0; i < pf_array_ndim(stack); i++)
    (void)printf("%s%lld", i ? ", " : "", (long long)pf_array_shape(stack)[i]);
  (void)printf("], \"address\": %" PRIuPTR ", \"read_only\": %d, "
               "\"writable\": %d, \"bytes\": [",
               (uintptr_t)pf_array_data(stack), pf_array_is_read_only(stack),
               pf_array_is_writable(stack));
  for (size_t i = 0; i < pf_array_n_bytes(stack) && i < 64; i++)
    (void)printf("%s%u", i ? ", " : "",
                 ((const unsigned char *)pf_array_data(stack))[i]);
  (void)printf("], ");
}

static void print_error(const struct pf_error *err) {
  struct pf_buf text = {0};
  pf_buf_str(&text, "\"message\": ");
  pf_buf_json(&text, err->message ? err->message : "");
  pf_buf_str(&text, ", \"detail\": ");
  pf_buf_json(&text, err->detail ? err->detail : "");
  (void)printf("\"code\": \"%s\", %s", pf_code_name(err->code),
               pf_buf_text(&text));
  pf_buf_free(&text);
}

static void print_outcome(struct outcome *out) {
  (void)printf("{\"input\": %" PRIuPTR ", \"input_is_free\": %d, ",
               (uintptr_t)out->input, out->input_is_writable);
  if (out->result.stack)
    print_stack(out->result.stack);
  (void)printf("\"copied\": \"%s\", \"tables\": [",
               out->result.copied ? out->result.copied_why : "");
  for (size_t i = 0; i < out->result.n_tables; i++) {
    (void)printf("%s", i ? ", " : "");
    print_table(out->result.tables[i]);
  }
  (void)printf("], ");
  print_error(&out->err);
  (void)printf("}\n");
  pf_result_clear(&out->result);
  pf_error_clear(&out->err);
}

static void report(void *context, const struct cJSON *value, bool of_key,
                   const char *message) {
  int *n = context;
  (void)of_key;
  (*n)++;
  (void)printf("{\"reported\": \"%s\", \"key\": \"%s\"}\n", message,
               value ? pf_json_key(value) : "");
}

static int fail(struct pf_error *err) {
  (void)printf("{");
  print_error(err);
  (void)printf("}\n");
  pf_error_clear(err);
  return 1;
}

static void measure(const struct options *o,
                    struct pf_step_instance *instance) {
  struct outcome out = {0};
  double start = pf_os_seconds();
  for (int i = 0; i < o->n; i++) {
    call(&out, o, instance, NULL);
    pf_result_clear(&out.result);
  }
  (void)printf("%.2f\n", 1e6 * (pf_os_seconds() - start) / o->n);
  pf_error_clear(&out.err);
}

static int call_all(const struct options *o, struct pf_step_instance *instance,
                    struct pf_error *err) {
  struct outcome *outcomes = calloc((size_t)o->n, sizeof(*outcomes));
  struct pf_array *with = NULL;
  if (!outcomes || pf_array_create(&with, o->dtype, o->ndim, o->shape, err)) {
    free(outcomes);
    return fail(err);
  }
  fill(with);
  for (int i = 0; i < o->n; i++)
    call(&outcomes[i], o, instance, with);
  for (int i = 0; i < o->n; i++)
    print_outcome(&outcomes[i]);
  pf_array_unref(&with);
  free(outcomes);
  return 0;
}

static int run(const struct options *o, struct pf_error *err) {
  struct pf_python_options python = {.python = o->python, .threads = 1};
  struct pf_step_instance *instance = NULL;
  struct pf_json_doc *doc = NULL;
  struct pf_step *step = NULL;
  int status = 0, n = 0;
  if (pf_json_parse(&doc, o->params, strlen(o->params), "params", err) ||
      pf_python_start(&python, err) ||
      pf_step_open(&step, o->function, o->base_dir, err) ||
      pf_step_check_params(step, doc, pf_json_root(doc), &o->with,
                           o->with ? 1 : 0, report, &n, err) < 0 ||
      (!n && pf_step_make(&instance, step, doc, pf_json_root(doc), err))) {
    status = fail(err);
  } else if (instance && o->time) {
    measure(o, instance);
  } else if (instance) {
    status = call_all(o, instance, err);
  }
  pf_step_drop(&instance);
  pf_step_unref(&step);
  pf_json_free(&doc);
  pf_python_finish();
  return status;
}

int main(int argc, char **argv) {
  struct options o = {.shape = {3, 4, 5},
                      .ndim = 3,
                      .dtype = PF_U16,
                      .n = 1,
                      .writable = 1,
                      .params = "{}"};
  struct pf_error err = PF_ERROR_INIT;
  if (argc < 3)
    return 2;
  o.base_dir = argv[1];
  o.function = argv[2];
  for (int i = 3; i < argc; i++)
    if (!parse(&o, argv[i])) {
      (void)fprintf(stderr, "what is %s?\n", argv[i]);
      return 2;
    }
  return run(&o, &err);
}
