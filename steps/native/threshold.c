/*
 * native:threshold: foreground from background.
 *
 * Otsu's threshold as skimage.filters.threshold_otsu computes it, down to its
 * float32 counts: the arithmetic's types decide between two bins that separate
 * about equally well.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "steps/native/native.h"

enum method { OTSU, FIXED };

struct threshold_params {
  int method;
  double value;
};

static const struct pf_param params[] = {
    {.name = "method",
     .help = "how the threshold is found: Otsu's, or `value`",
     .type = PF_PARAM_CHOICE,
     .offset = offsetof(struct threshold_params, method),
     .standard = OTSU,
     .choices = "otsu|fixed"},
    {.name = "value",
     .help = "the threshold, with method \"fixed\"",
     .type = PF_PARAM_REAL,
     .offset = offsetof(struct threshold_params, value),
     .standard = NAN},
    {.name = NULL}};

static int check(const void *given, struct pf_error *err) {
  const struct threshold_params *p = given;
  if (p->method == FIXED && isnan(p->value))
    return pf_error_set(err, PF_EINVAL,
                        "method \"fixed\" needs the parameter \"value\"");
  if (p->method != FIXED && !isnan(p->value))
    return pf_error_set(err, PF_EINVAL,
                        "\"value\" goes with \"method\": \"fixed\"");
  return PF_OK;
}

/* The finite values of a stack: how many, from where to where. */
struct range {
  size_t n;
  double min, max;
};

/* Calls `visit` with the stack's values, block by block. */
static void for_blocks(const struct pf_native_stack *in,
                       void (*visit)(void *context, const double *v, size_t n),
                       void *context) {
  const size_t total = in->plane * in->depth;
  const size_t size = pf_dtype_size(in->dtype);
  double block[PF_NATIVE_BLOCK];
  for (size_t at = 0; at < total; at += PF_NATIVE_BLOCK) {
    size_t n = total - at;
    if (n > PF_NATIVE_BLOCK)
      n = PF_NATIVE_BLOCK;
    pf_native_load(block, (char *)pf_array_data(in->array) + at * size,
                   in->dtype, n);
    visit(context, block, n);
  }
}

static void widen(void *context, const double *v, size_t n) {
  struct range *range = context;
  for (size_t i = 0; i < n; i++) {
    if (!isfinite(v[i]))
      continue;
    range->min = v[i] < range->min ? v[i] : range->min;
    range->max = v[i] > range->max ? v[i] : range->max;
    range->n++;
  }
}

/* Bins that are not empty, in ascending order. Empty ones change no sum, so
 * they can never be the first to reach the largest variance. */
struct histogram {
  size_t n;
  double *center;
  float *count;
  bool single; /* scikit-image computes in float32 */
};

static void histogram_finish(struct histogram *h) {
  free(h->center);
  free(h->count);
}

/* histogram_finish() comes after failure too. */
static int histogram_init(struct histogram *h, size_t n_bins,
                          struct pf_error *err) {
  memset(h, 0, sizeof(*h));
  h->center = calloc(n_bins, sizeof(*h->center));
  h->count = calloc(n_bins, sizeof(*h->count));
  if (h->center && h->count)
    return PF_OK;
  return pf_error_set(err, PF_ENOMEM, "no memory for %zu bins", n_bins);
}

static void add_bin(struct histogram *h, double center, size_t count) {
  if (!count)
    return;
  h->center[h->n] = center;
  h->count[h->n++] = (float)count;
}

/* Of integers in a range that is worth a counter per value. */
struct counting {
  double min;
  size_t *count;
};

static void count_integers(void *context, const double *v, size_t n) {
  struct counting *c = context;
  for (size_t i = 0; i < n; i++)
    c->count[(int64_t)(v[i] - c->min)]++;
}

static int count_dense(struct histogram *h, const struct pf_native_stack *in,
                       const struct range *range, struct pf_error *err) {
  const size_t n_bins = (size_t)(range->max - range->min) + 1;
  struct counting c = {range->min, calloc(n_bins, sizeof(*c.count))};
  int code = histogram_init(h, n_bins, err);
  if (!code && !c.count)
    code = pf_error_set(err, PF_ENOMEM, "no memory for %zu bins", n_bins);
  if (!code) {
    for_blocks(in, count_integers, &c);
    for (size_t i = 0; i < n_bins; i++)
      add_bin(h, range->min + (double)i, c.count[i]);
  }
  free(c.count);
  return code;
}

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Of integers that spread far: sorted, a bin per value that occurs. */
static int count_sparse(struct histogram *h, const struct pf_native_stack *in,
                        struct pf_error *err) {
  const size_t total = in->plane * in->depth;
  double *values = malloc(total * sizeof(*values));
  int code = histogram_init(h, total, err);
  if (!code && !values)
    code = pf_error_set(err, PF_ENOMEM, "no memory for %zu values", total);
  if (!code) {
    pf_native_load(values, pf_array_data(in->array), in->dtype, total);
    qsort(values, total, sizeof(*values), compare_doubles);
    for (size_t i = 0, end; i < total; i = end) {
      for (end = i + 1; end < total && values[end] == values[i];)
        end++;
      add_bin(h, values[i], end - i);
    }
  }
  free(values);
  return code;
}

enum { N_FLOAT_BINS = 256, MAX_DENSE = 1 << 20 };

/* numpy.histogram's equal bins; of float32 values they are float32. */
struct binning {
  double min, width, edge[N_FLOAT_BINS + 1];
  size_t count[N_FLOAT_BINS];
  bool single;
};

static inline double rounded(double x, bool single) {
  return single ? (double)(float)x : x;
}

static void set_edges(struct binning *b, const struct range *range) {
  const double step = rounded(b->width / N_FLOAT_BINS, b->single);
  for (int i = 0; i < N_FLOAT_BINS; i++) {
    double at = step != 0 ? i * step : i / (double)N_FLOAT_BINS * b->width;
    b->edge[i] = rounded(rounded(at, b->single) + range->min, b->single);
  }
  b->edge[N_FLOAT_BINS] = range->max;
}

/* The computed bin may be one off at an edge: the edges decide. */
static void bin_floats(void *context, const double *v, size_t n) {
  struct binning *b = context;
  for (size_t i = 0; i < n; i++) {
    size_t at;
    if (!isfinite(v[i]))
      continue;
    at = (size_t)(rounded((v[i] - b->min) / b->width, b->single) *
                  N_FLOAT_BINS);
    at = at < N_FLOAT_BINS ? at : N_FLOAT_BINS - 1;
    if (v[i] < b->edge[at] && at > 0)
      at--;
    else if (v[i] >= b->edge[at + 1] && at < N_FLOAT_BINS - 1)
      at++;
    b->count[at]++;
  }
}

static int count_floats(struct histogram *h, const struct pf_native_stack *in,
                        const struct range *range, struct pf_error *err) {
  struct binning b = {.min = range->min, .single = in->dtype == PF_F32};
  int code;
  b.width = rounded(range->max - range->min, b.single);
  if (isinf(b.width))
    return pf_error_set(err, PF_ESTEP,
                        "the values from %g to %g are too far apart for "
                        "Otsu's threshold",
                        range->min, range->max);
  code = histogram_init(h, N_FLOAT_BINS, err);
  if (code)
    return code;
  h->single = b.single;
  set_edges(&b, range);
  for_blocks(in, bin_floats, &b);
  for (int i = 0; i < N_FLOAT_BINS; i++)
    add_bin(h, rounded((b.edge[i] + b.edge[i + 1]) / 2, b.single), b.count[i]);
  return PF_OK;
}

/* Weight and mean of the bins from i on, for every i. */
static void sum_from_above(const struct histogram *h, float *weight,
                           double *mean) {
  float count = 0;
  double sum = 0;
  for (size_t i = h->n; i-- > 0;) {
    count += h->count[i];
    sum += rounded((double)h->count[i] * h->center[i], h->single);
    sum = rounded(sum, h->single);
    weight[i] = count;
    mean[i] = rounded(sum / (double)count, h->single);
  }
}

/* The first bin with the largest variance between it and below, and above. */
static int best_bin(double *threshold, const struct histogram *h,
                    struct pf_error *err) {
  float *weight = calloc(h->n, sizeof(*weight));
  double *mean = calloc(h->n, sizeof(*mean));
  float count = 0;
  double sum = 0, best = -1;
  int code = PF_OK;
  if (!weight || !mean) {
    code = pf_error_set(err, PF_ENOMEM, "no memory for %zu bins", h->n);
    goto out;
  }
  sum_from_above(h, weight, mean);
  *threshold = h->center[0];
  for (size_t i = 0; i + 1 < h->n; i++) {
    double apart, variance;
    count += h->count[i];
    sum += rounded((double)h->count[i] * h->center[i], h->single);
    sum = rounded(sum, h->single);
    apart = rounded(sum / (double)count, h->single) - mean[i + 1];
    apart = rounded(apart, h->single);
    variance = rounded(apart * apart, h->single);
    variance = rounded((double)(count * weight[i + 1]) * variance, h->single);
    if (variance > best) {
      best = variance;
      *threshold = h->center[i];
    }
  }
out:
  free(weight);
  free(mean);
  return code;
}

/* A stack of one value has that as its threshold, so that nothing is above. */
static int otsu(double *threshold, const struct pf_native_stack *in,
                struct pf_error *err) {
  struct range range = {0, INFINITY, -INFINITY};
  struct histogram h = {0};
  int code;
  for_blocks(in, widen, &range);
  *threshold = range.n ? range.max : 0;
  if (!range.n || range.min == range.max)
    return PF_OK;
  if (pf_dtype_is_float(in->dtype))
    code = count_floats(&h, in, &range, err);
  else if (range.max - range.min < MAX_DENSE)
    code = count_dense(&h, in, &range, err);
  else
    code = count_sparse(&h, in, err);
  if (!code)
    code = best_bin(threshold, &h, err);
  histogram_finish(&h);
  return code;
}

struct painting {
  double threshold;
  uint8_t *at;
};

/* NaN is above nothing. */
static void paint(void *context, const double *v, size_t n) {
  struct painting *p = context;
  for (size_t i = 0; i < n; i++)
    p->at[i] = v[i] > p->threshold ? UINT8_MAX : 0;
  p->at += n;
}

static int call(void *instance, const void *given, const struct pf_call *call,
                struct pf_result *result, struct pf_error *err) {
  const struct threshold_params *p = given;
  struct painting painting = {p->value, NULL};
  struct pf_native_stack in;
  struct pf_array *out = NULL;
  int code = pf_native_take(&in, call->stack, call->may_write, "stack", err);
  (void)instance;
  if (code)
    return code;
  if (p->method == OTSU)
    code = otsu(&painting.threshold, &in, err);
  if (!code)
    code = pf_native_create_like(&out, &in, PF_U8, err);
  if (!code) {
    painting.at = pf_array_data(out);
    for_blocks(&in, paint, &painting);
    code = pf_native_give(result, out, &in, err);
  }
  pf_native_drop(&in);
  return code;
}

const struct pf_step_type pf_native_threshold = {
    .name = "threshold",
    .help =
        "Set pixels above a threshold to 255, all others to 0 (uint8).\n"
        "One threshold per stack. Otsu's is scikit-image's: a bin per value "
        "for integers, 256 bins for floats. NaN and infinity take no part in "
        "finding it; NaN is never above. 64-bit integers are compared as "
        "float64.",
    .params = params,
    .params_size = sizeof(struct threshold_params),
    .result = PF_RESULT_IMAGE,
    .yields = {.kind = PF_YIELDS_SAME},
    .any_depth = true,
    .dtype = PF_CAST_NATIVE,
    .memory_types = 1u << PF_MEM_NATIVE,
    .check = check,
    .call = call,
};
