/* What a step returned: shape, depth, element type. */
#include "engine/runner.h"

#include <math.h>
#include <stdlib.h>

#include "engine/key_set.h"

static void shape_text(const struct pf_array *a, struct pf_buf *out) {
  pf_buf_char(out, '(');
  for (int i = 0; i < pf_array_ndim(a); i++)
    pf_buf_printf(out, "%s%lld", i ? ", " : "",
                  (long long)pf_array_shape(a)[i]);
  if (pf_array_ndim(a) == 1)
    pf_buf_char(out, ',');
  pf_buf_char(out, ')');
}

static int shape_error(const struct pf_array *got,
                       const struct pf_array *input, const char *what,
                       struct pf_error *err) {
  struct pf_buf a = {0}, b = {0};
  int result;
  shape_text(got, &a);
  shape_text(input, &b);
  result = pf_error_set(err, PF_ESTEP,
                        "the result has the shape %s and the input %s: %s",
                        pf_buf_text(&a), pf_buf_text(&b), what);
  pf_buf_free(&a);
  pf_buf_free(&b);
  return result;
}

static int depth_error(const struct pf_array *got,
                       const struct pf_array *input, size_t expected,
                       struct pf_error *err) {
  int64_t depth = pf_array_shape(got)[0];
  struct pf_buf what = {0};
  int result;
  pf_buf_printf(&what, "%zu plane(s) were expected; ", expected);
  if (depth == 1)
    pf_buf_str(&what, "write \"yields\": \"one\" in the step");
  else if (depth == pf_array_shape(input)[0])
    pf_buf_str(&what, "write \"yields\": \"same\" in the step");
  else
    pf_buf_str(&what, "write in \"yields\" the component that the planes "
                      "count along");
  result = shape_error(got, input, pf_buf_text(&what), err);
  pf_buf_free(&what);
  return result;
}

static int check_shape(const struct pf_plan_step *step,
                       const struct pf_array *got,
                       const struct pf_array *input, size_t n_expected,
                       struct pf_error *err) {
  const int64_t *in = pf_array_shape(input), *out = pf_array_shape(got);
  if (pf_array_ndim(got) != 3)
    return shape_error(got, input, "a stack is always 3D, [Z,Y,X]", err);
  if (!step->resizes && (in[1] != out[1] || in[2] != out[2]))
    return shape_error(got, input,
                       "Y and X may change only with \"resizes\": true", err);
  if (out[0] == 0 || out[1] == 0 || out[2] == 0)
    return shape_error(got, input, "it is empty", err);
  if (out[0] != (int64_t)n_expected)
    return depth_error(got, input, n_expected, err);
  return PF_OK;
}

/* -- levels: has a cast thrown the picture away? ------------------------ */

enum { N_SAMPLED = 1 << 16, MANY_LEVELS = 16 };

size_t pf_run_count_levels(struct pf_array *array) {
  struct pf_array *as_double = NULL;
  struct pf_key_set set = {0};
  int64_t n = pf_array_size(array), step;
  const double *values;
  size_t levels;
  if (pf_cast(&as_double, array, PF_F64, PF_CAST_PRESERVE, NULL, NULL) !=
      PF_OK)
    return 0;
  values = pf_array_data(as_double);
  step = n > N_SAMPLED ? n / N_SAMPLED : 1;
  for (int64_t i = 0; i < n; i += step) {
    double x = values[i] == 0 ? 0 : values[i]; /* -0 is 0 */
    if (pf_key_set_add(&set, pf_hash64(&x, sizeof(x))) < 0)
      break;
  }
  levels = set.n;
  pf_key_set_free(&set);
  pf_array_unref(&as_double);
  return levels;
}

/* Whether a float image is one of 0..1, give or take what a filter adds. */
static bool in_unit_range(struct pf_array *a) {
  struct pf_array *as_double = NULL;
  bool inside = true;
  if (pf_cast(&as_double, a, PF_F64, PF_CAST_PRESERVE, NULL, NULL) != PF_OK)
    return false;
  for (int64_t i = 0; i < pf_array_size(as_double) && inside; i++) {
    double x = ((const double *)pf_array_data(as_double))[i];
    inside = !(fabs(x) > 1.5);
  }
  pf_array_unref(&as_double);
  return inside;
}

/* The canary: a float result of many levels that the cast made a few, while
 * the input had many, is a filter whose scale is not the camera's. */
static int check_levels(struct pf_array *before, struct pf_array *after,
                        size_t in, struct pf_error *err) {
  size_t had, got;
  if (!pf_dtype_is_float(pf_array_dtype(before)) ||
      pf_dtype_is_float(pf_array_dtype(after)))
    return PF_OK;
  had = pf_run_count_levels(before);
  got = pf_run_count_levels(after);
  if (had < MANY_LEVELS || got * 10 > had)
    return PF_OK;
  if (in < MANY_LEVELS || got * 10 > in)
    return PF_OK;
  return pf_error_set(
      err, PF_EINVAL,
      "the result has %zu levels as %s, but only %zu after it was cast to %s "
      "(the input has %zu): write \"dtype\": \"%s\" in the step, or "
      "\"dtype\": \"native\" to keep it as it is",
      had, pf_dtype_name(pf_array_dtype(before)), got,
      pf_dtype_name(pf_array_dtype(after)), in,
      in_unit_range(before) ? "unit" : "rescale");
}

/* -- element type ------------------------------------------------------- */

static int cast_labels(struct pf_array **stack, struct pf_error *err) {
  struct pf_array *labels = NULL;
  enum pf_dtype dtype = pf_array_dtype(*stack);
  struct pf_cast_stats mine = {0, 0, 0};
  int result;
  if (pf_dtype_is_float(dtype))
    return pf_error_set(err, PF_ESTEP,
                        "a label image has an integer type, not %s",
                        pf_dtype_name(dtype));
  result = pf_cast(&labels, *stack, PF_U32, PF_CAST_PRESERVE, &mine, err);
  if (result == PF_OK && mine.n_clipped)
    result = pf_error_set(err, PF_ESTEP,
                          "%llu labels are negative or beyond uint32",
                          (unsigned long long)mine.n_clipped);
  if (result != PF_OK) {
    pf_array_unref(&labels);
    return result;
  }
  pf_array_unref(stack);
  *stack = labels;
  return PF_OK;
}

static int cast_image(const struct pf_plan_step *step, struct pf_array **stack,
                      enum pf_dtype dtype, enum pf_cast_mode mode,
                      struct pf_cast_stats *stats, struct pf_error *err) {
  struct pf_array *image = NULL;
  enum pf_dtype to = dtype;
  int result;
  if (step->dtype_type != PF_DTYPE_NONE) {
    to = step->dtype_type;
    mode = PF_CAST_PRESERVE;
  }
  if (mode == PF_CAST_NATIVE)
    return PF_OK;
  result = pf_cast(&image, *stack, to, mode, stats, err);
  if (result != PF_OK)
    return result;
  pf_array_unref(stack);
  *stack = image;
  return PF_OK;
}

static void add_stats(struct pf_step_run *run,
                      const struct pf_cast_stats *stats) {
  if (!stats->n_clipped && !stats->n_rounded && !stats->n_nan)
    return;
  (void)pthread_mutex_lock(&run->lock);
  run->cast.n_clipped += stats->n_clipped;
  run->cast.n_rounded += stats->n_rounded;
  run->cast.n_nan += stats->n_nan;
  (void)pthread_mutex_unlock(&run->lock);
}

int pf_run_check(struct pf_worker *worker, size_t s, struct pf_array **stack,
                 const struct pf_expect *expect, struct pf_error *err) {
  const struct pf_plan_step *step = &worker->runner->plan->steps[s];
  struct pf_cast_stats stats = {0, 0, 0};
  struct pf_array *before = NULL;
  int result = check_shape(step, *stack, expect->input, expect->n_planes, err);
  if (result != PF_OK) {
    /* Not what the pipeline says: every group would show the same. */
    if (expect->canary && err)
      err->code = PF_EINVAL;
    return err ? (int)err->code : result;
  }
  if (expect->n_levels)
    before = pf_array_ref(*stack);
  if (step->result == PF_RESULT_LABELS)
    result = cast_labels(stack, err);
  else
    result = cast_image(step, stack, expect->dtype, expect->mode, &stats, err);
  if (result == PF_OK && before)
    result = check_levels(before, *stack, expect->n_levels, err);
  pf_array_unref(&before);
  add_stats(&worker->runner->steps[s], &stats);
  return result;
}
