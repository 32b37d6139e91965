/* native:rescale_intensity: stretch a stack to its type's whole range. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "steps/native/native.h"

struct rescale_params {
  double low, high;
};

static const struct pf_param params[] = {
    {.name = "low",
     .help = "percentile that becomes the type's smallest value",
     .type = PF_PARAM_REAL,
     .offset = offsetof(struct rescale_params, low),
     .standard = 0,
     .min = 0,
     .max = 100},
    {.name = "high",
     .help = "percentile that becomes the type's largest value",
     .type = PF_PARAM_REAL,
     .offset = offsetof(struct rescale_params, high),
     .standard = 100,
     .min = 0,
     .max = 100},
    {.name = NULL}};

static int check(const void *given, struct pf_error *err) {
  const struct rescale_params *p = given;
  if (p->low < p->high)
    return PF_OK;
  return pf_error_set(err, PF_EINVAL,
                      "\"low\" (%.15g) must be less than \"high\" (%.15g)",
                      p->low, p->high);
}

/* The stack's finite values by rank. Small integers are counted, others kept
 * as doubles and put in order as far as was asked. */
struct ranking {
  size_t n;       /* finite values */
  double *values; /* or NULL */
  size_t *counts; /* of the values from `first` on, or NULL */
  double first;
};

enum { N_SMALL = 1 << 16 };

static void ranking_finish(struct ranking *r) {
  free(r->values);
  free(r->counts);
}

static void count_values(struct ranking *r, const struct pf_native_stack *in) {
  const size_t total = in->plane * in->depth;
  const size_t size = pf_dtype_size(in->dtype);
  double block[PF_NATIVE_BLOCK];
  for (size_t at = 0; at < total; at += PF_NATIVE_BLOCK) {
    size_t n = total - at;
    if (n > PF_NATIVE_BLOCK)
      n = PF_NATIVE_BLOCK;
    pf_native_load(block, (char *)pf_array_data(in->array) + at * size,
                   in->dtype, n);
    for (size_t i = 0; i < n; i++)
      r->counts[(int32_t)(block[i] - r->first)]++;
  }
  r->n = total;
}

static void keep_values(struct ranking *r, const struct pf_native_stack *in) {
  const size_t total = in->plane * in->depth;
  pf_native_load(r->values, pf_array_data(in->array), in->dtype, total);
  for (size_t i = 0; i < total; i++)
    if (isfinite(r->values[i]))
      r->values[r->n++] = r->values[i];
}

static int ranking_init(struct ranking *r, const struct pf_native_stack *in,
                        struct pf_error *err) {
  const size_t total = in->plane * in->depth;
  memset(r, 0, sizeof(*r));
  if (pf_dtype_size(in->dtype) <= 2) {
    r->counts = calloc(N_SMALL, sizeof(*r->counts));
    r->first = pf_dtype_min(in->dtype);
    if (r->counts)
      count_values(r, in);
  } else {
    r->values = calloc(total, sizeof(*r->values));
    if (r->values)
      keep_values(r, in);
  }
  if (r->counts || r->values)
    return PF_OK;
  return pf_error_set(err, PF_ENOMEM, "no memory for %zu values", total);
}

static double middle_of_three(double a, double b, double c) {
  const double low = a < b ? a : b, high = a < b ? b : a;
  return c < low ? low : c > high ? high : c;
}

/* Reorder `v` so that v[rank] is what sorting would put there: Hoare's
 * selection. */
static double select_rank(double *v, int64_t n, int64_t rank) {
  int64_t first = 0, last = n - 1;
  while (first < last) {
    const double pivot =
        middle_of_three(v[first], v[first + (last - first) / 2], v[last]);
    int64_t i = first, j = last;
    while (i <= j) {
      while (v[i] < pivot)
        i++;
      while (v[j] > pivot)
        j--;
      if (i <= j) {
        const double t = v[i];
        v[i++] = v[j];
        v[j--] = t;
      }
    }
    /* Now first..j are at most the pivot, i..last at least. */
    if (rank > j)
      first = i;
    if (rank < i)
      last = j;
  }
  return v[rank];
}

static double value_at(struct ranking *r, size_t rank) {
  size_t i = 0;
  if (r->values)
    return select_rank(r->values, (int64_t)r->n, (int64_t)rank);
  for (size_t seen = r->counts[0]; seen <= rank; seen += r->counts[i])
    i++;
  return r->first + (double)i;
}

/* numpy.percentile's default ("linear") definition. */
static double percentile(struct ranking *r, double percent) {
  const double at = percent / 100 * (double)(r->n - 1);
  const size_t below = (size_t)floor(at);
  const double part = at - (double)below;
  const double a = value_at(r, below);
  const double b = below + 1 < r->n ? value_at(r, below + 1) : a;
  return part < 0.5 ? a + (b - a) * part : b - (b - a) * (1 - part);
}

struct mapping {
  double in_low, in_high, out_low, out_high;
};

static int find_mapping(struct mapping *map, const struct rescale_params *p,
                        const struct pf_native_stack *in,
                        struct pf_error *err) {
  const bool is_float = pf_dtype_is_float(in->dtype);
  struct ranking ranking;
  int code = ranking_init(&ranking, in, err);
  memset(map, 0, sizeof(*map));
  if (!code && ranking.n > 0) {
    map->in_low = percentile(&ranking, p->low);
    map->in_high = percentile(&ranking, p->high);
  }
  map->out_low = is_float ? 0 : pf_dtype_min(in->dtype);
  map->out_high = is_float ? 1 : pf_dtype_max(in->dtype);
  ranking_finish(&ranking);
  return code;
}

/* A constant stack becomes out_low. NaN stays NaN. */
static void rescale(double *v, size_t n, const struct mapping *map) {
  const double in_range = map->in_high - map->in_low;
  const double out_range = map->out_high - map->out_low;
  for (size_t i = 0; i < n; i++) {
    double x = v[i];
    x = x < map->in_low ? map->in_low : x;
    x = x > map->in_high ? map->in_high : x;
    x = in_range > 0 ? (x - map->in_low) / in_range : x * 0;
    v[i] = x * out_range + map->out_low;
  }
}

static void rescale_stack(struct pf_array *out,
                          const struct pf_native_stack *in,
                          const struct mapping *map) {
  const size_t size = pf_dtype_size(in->dtype);
  const size_t total = in->plane * in->depth;
  double block[PF_NATIVE_BLOCK];
  for (size_t at = 0; at < total; at += PF_NATIVE_BLOCK) {
    size_t n = total - at;
    if (n > PF_NATIVE_BLOCK)
      n = PF_NATIVE_BLOCK;
    pf_native_load(block, (char *)pf_array_data(in->array) + at * size,
                   in->dtype, n);
    rescale(block, n, map);
    pf_native_store((char *)pf_array_data(out) + at * size, block, in->dtype,
                    n);
  }
}

static int call(void *instance, const void *given, const struct pf_call *call,
                struct pf_result *result, struct pf_error *err) {
  struct pf_native_stack in;
  struct mapping map;
  struct pf_array *out = NULL;
  int code = pf_native_take(&in, call->stack, call->may_write, "stack", err);
  (void)instance;
  if (code)
    return code;
  code = find_mapping(&map, given, &in, err);
  if (!code)
    code = pf_native_create_like(&out, &in, in.dtype, err);
  if (!code) {
    rescale_stack(out, &in, &map);
    code = pf_native_give(result, out, &in, err);
  }
  pf_native_drop(&in);
  return code;
}

const struct pf_step_type pf_native_rescale_intensity = {
    .name = "rescale_intensity",
    .help =
        "Stretch intensities between two percentiles to the type's range.\n"
        "Percentiles are of the whole stack's finite values, as "
        "numpy.percentile; what is beyond them is clipped. Floats become "
        "0..1. A constant stack becomes the smallest value. NaN stays NaN.",
    .params = params,
    .params_size = sizeof(struct rescale_params),
    .result = PF_RESULT_IMAGE,
    .yields = {.kind = PF_YIELDS_SAME},
    .any_depth = true,
    .dtype = PF_CAST_PRESERVE,
    .memory_types = 1u << PF_MEM_NATIVE,
    .check = check,
    .call = call,
};
