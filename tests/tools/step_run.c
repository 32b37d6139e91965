/*
 * Call one C step on raw pixels, for comparison with other libraries:
 *
 *   step_run FUNCTION PARAMS.json IN.raw DTYPE Z Y X OUT.raw
 *            [INTENSITY.raw DTYPE Z]
 *
 * Z 0 makes the stack 2D. An image that a parameter names is read as raw
 * float64 pixels of the stack's Y and X. Prints one line of JSON: shape, dtype
 * and cast mode of the result, its tables, whether it wrote into its input.
 * Environment: STEP_MAY_WRITE=1 lets it, STEP_SECONDS=N repeats and times,
 * STEP_CHANNELS=a,b names the planes of the intensity.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/buf.h"
#include "bridge/json.h"
#include "bridge/os.h"
#include "plateflow/step.h"
#include "steps/table.h"

static int64_t image_shape[2];

static int read_raw(struct pf_array **out, const char *path,
                    enum pf_dtype dtype, int ndim, const int64_t *shape,
                    struct pf_error *err) {
  char *bytes = NULL;
  size_t size = 0;
  int code = pf_os_read_file(&bytes, &size, path, (size_t)1 << 31, err);
  *out = NULL;
  if (!code)
    code = pf_array_create(out, dtype, ndim, shape, err);
  if (!code && size != pf_array_n_bytes(*out))
    code = pf_error_set(err, PF_EINVAL, "%s has %zu bytes, expected %zu", path,
                        size, pf_array_n_bytes(*out));
  if (!code)
    memcpy(pf_array_data(*out), bytes, size);
  else
    pf_array_unref(out);
  free(bytes);
  return code;
}

static int read_image(struct pf_array **out, const char *path,
                      struct pf_error *err) {
  return read_raw(out, path, PF_F64, 2, image_shape, err);
}

/* Z (0: 2D), Y, X from `args`; the shape begins at the returned index. */
static int read_shape(char **args, int64_t shape[3]) {
  for (int i = 0; i < 3; i++)
    shape[i] = strtoll(args[i], NULL, 10);
  return shape[0] == 0;
}

static void print_cell(struct pf_buf *out, const struct pf_table *table,
                       size_t row, size_t column) {
  const struct pf_cell *cell = &table->cells[row * table->n_columns + column];
  if (cell->state == PF_CELL_EMPTY)
    pf_buf_str(out, "null");
  else if (table->columns[column].type == PF_COLUMN_INT)
    pf_buf_printf(out, "%" PRId64, cell->as.i);
  else if (isnan(cell->as.r))
    pf_buf_str(out, "NaN"); /* as Python's json reads and writes it */
  else
    pf_buf_printf(out, "%.17g", cell->as.r);
}

static void print_table(struct pf_buf *out, const struct pf_table *table) {
  pf_buf_str(out, "{\"columns\": [");
  for (size_t c = 0; c < table->n_columns; c++) {
    pf_buf_str(out, c ? ", " : "");
    pf_buf_json(out, table->columns[c].name);
  }
  pf_buf_str(out, "], \"rows\": [");
  for (size_t r = 0; r < table->n_rows; r++) {
    pf_buf_str(out, r ? ", [" : "[");
    for (size_t c = 0; c < table->n_columns; c++) {
      pf_buf_str(out, c ? ", " : "");
      print_cell(out, table, r, c);
    }
    pf_buf_str(out, "]");
  }
  pf_buf_str(out, "]}");
}

static void print_result(struct pf_buf *out, const struct pf_result *result,
                         const struct pf_step_instance *instance) {
  pf_buf_printf(out, "{\"mode\": \"%s\", \"shape\": [",
                pf_cast_mode_name(pf_step_instance_dtype(instance)));
  for (int i = 0; result->stack && i < pf_array_ndim(result->stack); i++)
    pf_buf_printf(out, "%s%" PRId64, i ? ", " : "",
                  pf_array_shape(result->stack)[i]);
  pf_buf_printf(out, "], \"dtype\": \"%s\", \"tables\": [",
                result->stack ? pf_dtype_name(pf_array_dtype(result->stack))
                              : "");
  for (size_t i = 0; i < result->n_tables; i++) {
    pf_buf_str(out, i ? ", " : "");
    print_table(out, result->tables[i]);
  }
  pf_buf_str(out, "]");
}

/* Seconds per call, repeated for at least `seconds`. */
static double time_calls(struct pf_step_instance *instance,
                         const struct pf_call *call, double seconds) {
  const double start = pf_os_seconds();
  double spent = 0;
  int n = 0;
  while (spent < seconds) {
    struct pf_result result;
    if (pf_step_call(instance, call, &result, NULL))
      return -1;
    pf_result_clear(&result);
    spent = pf_os_seconds() - start;
    n++;
  }
  return n ? spent / n : 0;
}

static const char *channels[64];

/* The names in STEP_CHANNELS, which is cut up. */
static const char *const *read_channels(void) {
  char *text = getenv("STEP_CHANNELS");
  char *rest = NULL;
  size_t n = 0;
  if (!text)
    return NULL;
  for (char *name = strtok_r(text, ",", &rest); name && n < 63;
       name = strtok_r(NULL, ",", &rest))
    channels[n++] = name;
  return channels;
}

/* What main() opens, in the order in which it is let go. */
struct session {
  struct pf_json_doc *doc;
  struct pf_step *step;
  struct pf_step_instance *instance;
  struct pf_array *stack, *intensity;
  struct pf_result result;
};

static int open_session(struct session *s, struct pf_call *call,
                        struct pf_with_array *with, char **args, int n_args,
                        struct pf_error *err) {
  int64_t shape[3];
  const int skip = read_shape(args + 5, shape);
  int code;
  image_shape[0] = shape[1];
  image_shape[1] = shape[2];
  code = read_raw(&s->stack, args[3], pf_dtype_find(args[4]), 3 - skip,
                  shape + skip, err);
  if (!code && n_args > 11) {
    shape[0] = strtoll(args[11], NULL, 10);
    code = read_raw(&s->intensity, args[9], pf_dtype_find(args[10]), 3, shape,
                    err);
    *with = (struct pf_with_array){"intensity", s->intensity, read_channels()};
    call->with = with;
    call->n_with = 1;
  }
  call->stack = s->stack;
  call->may_write = getenv("STEP_MAY_WRITE") != NULL;
  if (!code)
    code = pf_json_read(&s->doc, args[2], err);
  if (!code)
    code = pf_step_open(&s->step, args[1], ".", err);
  if (!code)
    code =
        pf_step_make(&s->instance, s->step, s->doc, pf_json_root(s->doc), err);
  return code;
}

static int run_session(struct session *s, const struct pf_call *call,
                       const char *out_path, struct pf_error *err) {
  const char *seconds = getenv("STEP_SECONDS");
  struct pf_buf out = {0};
  int code = pf_step_call(s->instance, call, &s->result, err);
  if (code)
    return code;
  print_result(&out, &s->result, s->instance);
  pf_buf_printf(&out, ", \"in_place\": %s",
                s->result.stack && pf_array_overlaps(s->result.stack, s->stack)
                    ? "true"
                    : "false");
  if (seconds)
    pf_buf_printf(&out, ", \"seconds\": %.6f",
                  time_calls(s->instance, call, strtod(seconds, NULL)));
  pf_buf_str(&out, "}");
  (void)puts(pf_buf_text(&out));
  pf_buf_free(&out);
  if (s->result.stack)
    code = pf_os_write_file(out_path, pf_array_data(s->result.stack),
                            pf_array_n_bytes(s->result.stack), err);
  return code;
}

int main(int n_args, char **args) {
  struct pf_error err = PF_ERROR_INIT;
  struct session s = {0};
  struct pf_call call = {0};
  struct pf_with_array with = {0};
  int code;
  if (n_args < 9) {
    (void)fprintf(stderr, "step_run: see the head of step_run.c\n");
    return 2;
  }
  pf_step_set_image_reader(read_image);
  code = open_session(&s, &call, &with, args, n_args, &err);
  if (!code)
    code = run_session(&s, &call, args[8], &err);
  if (code) {
    char *text = pf_error_format(&err);
    (void)fprintf(stderr, "%s\n", text ? text : "no memory");
    free(text);
  }
  pf_result_clear(&s.result);
  pf_step_drop(&s.instance);
  pf_step_unref(&s.step);
  pf_json_free(&s.doc);
  pf_array_unref(&s.stack);
  pf_array_unref(&s.intensity);
  pf_error_clear(&err);
  return code ? pf_code_exit_status((enum pf_code)code) : 0;
}
