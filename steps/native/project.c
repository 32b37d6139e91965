/*
 * native:project: one plane from the planes of a stack, pixel by pixel.
 *
 * The planes are read block by block, so that the running results of a block
 * stay in the first-level cache while z passes by.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "steps/native/native.h"

enum method { MAX, MIN, MEAN, SUM, STD, MEDIAN };

struct project_params {
  int method;
};

static const struct pf_param params[] = {
    {.name = "method",
     .help = "what is taken of the values of a pixel",
     .type = PF_PARAM_CHOICE,
     .offset = offsetof(struct project_params, method),
     .standard = MAX,
     .choices = "max|min|mean|sum|std|median"},
    {.name = NULL}};

/* A sum widens its type; casting it back would saturate. */
static enum pf_cast_mode dtype_of(const void *given) {
  const struct project_params *p = given;
  return p->method == SUM ? PF_CAST_NATIVE : PF_CAST_PRESERVE;
}

/* -- max, min, sum: folded plane by plane into a running block ---------- */

/* Fold `n` elements into the running ones; false: a 64-bit sum overflowed. */
typedef bool fold(void *running, const void *in, size_t n);

/* A NaN wins over all and stays, as in NumPy. */
#define EXTREMES(suffix, type)                                                \
  static bool max_##suffix(void *running, const void *in, size_t n) {         \
    type *restrict a = running;                                               \
    const type *restrict b = in;                                              \
    for (size_t i = 0; i < n; i++)                                            \
      a[i] = b[i] > a[i] || b[i] != b[i] ? b[i] : a[i];                       \
    return true;                                                              \
  }                                                                           \
  static bool min_##suffix(void *running, const void *in, size_t n) {         \
    type *restrict a = running;                                               \
    const type *restrict b = in;                                              \
    for (size_t i = 0; i < n; i++)                                            \
      a[i] = b[i] < a[i] || b[i] != b[i] ? b[i] : a[i];                       \
    return true;                                                              \
  }
#define XX(dtype, type, suffix) EXTREMES(suffix, type)
PF_NATIVE_TYPE_MAP(XX)
#undef XX

#define SUM_OF(suffix, type, wide)                                            \
  static bool sum_##suffix(void *running, const void *in, size_t n) {         \
    wide *restrict a = running;                                               \
    const type *restrict b = in;                                              \
    for (size_t i = 0; i < n; i++)                                            \
      a[i] = a[i] + b[i];                                                     \
    return true;                                                              \
  }
#define CHECKED_SUM_OF(suffix, type)                                          \
  static bool sum_##suffix(void *running, const void *in, size_t n) {         \
    type *a = running;                                                        \
    const type *b = in;                                                       \
    bool overflow = false;                                                    \
    for (size_t i = 0; i < n; i++)                                            \
      overflow |= __builtin_add_overflow(a[i], b[i], &a[i]);                  \
    return !overflow;                                                         \
  }
SUM_OF(u8, uint8_t, uint32_t)
SUM_OF(i8, int8_t, int32_t)
SUM_OF(u16, uint16_t, uint32_t)
SUM_OF(i16, int16_t, int32_t)
SUM_OF(u32, uint32_t, uint64_t)
SUM_OF(i32, int32_t, int64_t)
CHECKED_SUM_OF(u64, uint64_t)
CHECKED_SUM_OF(i64, int64_t)
SUM_OF(f32, float, double)
SUM_OF(f64, double, double)

static const struct {
  fold *max, *min, *sum;
  enum pf_dtype sum_dtype;
} folds[PF_N_DTYPES] = {
#define ROW(suffix) max_##suffix, min_##suffix, sum_##suffix
    [PF_U8] = {ROW(u8), PF_U32},   [PF_I8] = {ROW(i8), PF_I32},
    [PF_U16] = {ROW(u16), PF_U32}, [PF_I16] = {ROW(i16), PF_I32},
    [PF_U32] = {ROW(u32), PF_U64}, [PF_I32] = {ROW(i32), PF_I64},
    [PF_U64] = {ROW(u64), PF_U64}, [PF_I64] = {ROW(i64), PF_I64},
    [PF_F32] = {ROW(f32), PF_F64}, [PF_F64] = {ROW(f64), PF_F64},
#undef ROW
};

/* 65535 slices of 16 bits are the most that always fit 32 bits. */
static int check_sum(const struct pf_native_stack *in, struct pf_error *err) {
  if (pf_dtype_size(in->dtype) > 2 || in->depth <= UINT16_MAX)
    return PF_OK;
  return pf_error_set(err, PF_ESTEP,
                      "the sum of %zu slices of %s may not fit %s: cast them "
                      "with \"input_dtype\": \"uint32\"",
                      in->depth, pf_dtype_name(in->dtype),
                      pf_dtype_name(folds[in->dtype].sum_dtype));
}

static int project_folded(struct pf_array *out, enum method method,
                          const struct pf_native_stack *in,
                          struct pf_error *err) {
  fold *step = method == MAX   ? folds[in->dtype].max
               : method == MIN ? folds[in->dtype].min
                               : folds[in->dtype].sum;
  const size_t in_size = pf_dtype_size(in->dtype);
  const size_t out_size = pf_dtype_size(pf_array_dtype(out));
  bool fits = true;
  for (size_t at = 0; at < in->plane; at += PF_NATIVE_BLOCK) {
    size_t n = in->plane - at;
    char *running = (char *)pf_array_data(out) + at * out_size;
    size_t z = 0;
    if (n > PF_NATIVE_BLOCK)
      n = PF_NATIVE_BLOCK;
    if (method == SUM)
      memset(running, 0, n * out_size);
    else
      memcpy(running, (char *)pf_native_plane(in, z++) + at * in_size,
             n * in_size);
    for (; z < in->depth; z++)
      fits &= step(running, (char *)pf_native_plane(in, z) + at * in_size, n);
  }
  if (fits)
    return PF_OK;
  return pf_error_set(err, PF_ESTEP, "the sum of %zu slices overflows %s",
                      in->depth, pf_dtype_name(in->dtype));
}

/* -- mean, std, median: blocks of doubles ------------------------------- */

/* Blocks of one call: `value` holds all planes of a block for the median, one
 * plane otherwise. */
struct blocks {
  double *value, *mean, *spread, *pixel;
};

static void load_block(double *to, const struct pf_native_stack *in, size_t z,
                       size_t at, size_t n) {
  pf_native_load(
      to, (char *)pf_native_plane(in, z) + at * pf_dtype_size(in->dtype),
      in->dtype, n);
}

static void mean_block(struct blocks *b, const struct pf_native_stack *in,
                       size_t at, size_t n) {
  const double depth = (double)in->depth;
  load_block(b->mean, in, 0, at, n);
  for (size_t z = 1; z < in->depth; z++) {
    load_block(b->value, in, z, at, n);
    for (size_t i = 0; i < n; i++)
      b->mean[i] += b->value[i];
  }
  for (size_t i = 0; i < n; i++)
    b->mean[i] /= depth;
}

/* Of the population, in two passes, as NumPy. */
static void std_block(struct blocks *b, const struct pf_native_stack *in,
                      size_t at, size_t n) {
  const double depth = (double)in->depth;
  mean_block(b, in, at, n);
  memset(b->spread, 0, n * sizeof(*b->spread));
  for (size_t z = 0; z < in->depth; z++) {
    load_block(b->value, in, z, at, n);
    for (size_t i = 0; i < n; i++) {
      double off = b->value[i] - b->mean[i];
      b->spread[i] += off * off;
    }
  }
  for (size_t i = 0; i < n; i++)
    b->mean[i] = sqrt(b->spread[i] / depth);
}

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Stacks are shallow as a rule: insertion beats qsort() up to some tens. */
static void sort_doubles(double *v, size_t n) {
  if (n > 48) {
    qsort(v, n, sizeof(*v), compare_doubles);
    return;
  }
  for (size_t i = 1; i < n; i++) {
    double x = v[i];
    size_t j = i;
    for (; j > 0 && v[j - 1] > x; j--)
      v[j] = v[j - 1];
    v[j] = x;
  }
}

static double median_of(double *v, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (isnan(v[i]))
      return v[i];
  sort_doubles(v, n);
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void median_block(struct blocks *b, const struct pf_native_stack *in,
                         size_t at, size_t n) {
  for (size_t z = 0; z < in->depth; z++)
    load_block(b->value + z * n, in, z, at, n);
  for (size_t i = 0; i < n; i++) {
    for (size_t z = 0; z < in->depth; z++)
      b->pixel[z] = b->value[z * n + i];
    b->mean[i] = median_of(b->pixel, in->depth);
  }
}

typedef void block_fn(struct blocks *, const struct pf_native_stack *, size_t,
                      size_t);

static block_fn *const block_fns[] = {
    [MEAN] = mean_block, [STD] = std_block, [MEDIAN] = median_block};

static int project_blocks(struct pf_array *out, enum method method,
                          const struct pf_native_stack *in,
                          struct pf_error *err) {
  const enum pf_dtype dtype = pf_array_dtype(out);
  const size_t planes = method == MEDIAN ? in->depth : 1;
  struct blocks b = {
      .value = calloc(planes, PF_NATIVE_BLOCK * sizeof(double)),
      .mean = calloc(PF_NATIVE_BLOCK, sizeof(double)),
      .spread = calloc(PF_NATIVE_BLOCK, sizeof(double)),
      .pixel = calloc(in->depth, sizeof(double)),
  };
  int code = PF_OK;
  if (!b.value || !b.mean || !b.spread || !b.pixel) {
    code = pf_error_set(err, PF_ENOMEM, "no memory for a projection");
    goto out;
  }
  for (size_t at = 0; at < in->plane; at += PF_NATIVE_BLOCK) {
    size_t n = in->plane - at;
    if (n > PF_NATIVE_BLOCK)
      n = PF_NATIVE_BLOCK;
    block_fns[method](&b, in, at, n);
    pf_native_store((char *)pf_array_data(out) + at * pf_dtype_size(dtype),
                    b.mean, dtype, n);
  }
out:
  free(b.value);
  free(b.mean);
  free(b.spread);
  free(b.pixel);
  return code;
}

/* ----------------------------------------------------------------------- */

static enum pf_dtype result_type(enum method method, enum pf_dtype in) {
  switch (method) {
  case MAX:
  case MIN:
    return in;
  case SUM:
    return folds[in].sum_dtype;
  default:
    return in == PF_F32 ? PF_F32 : PF_F64;
  }
}

static int project(struct pf_array **out, enum method method,
                   const struct pf_native_stack *in, struct pf_error *err) {
  int code = method == SUM ? check_sum(in, err) : PF_OK;
  if (!code)
    code = pf_native_create(out, in, result_type(method, in->dtype), 1, err);
  if (code)
    return code;
  if (block_fns[method])
    return project_blocks(*out, method, in, err);
  return project_folded(*out, method, in, err);
}

static int call(void *instance, const void *given, const struct pf_call *call,
                struct pf_result *result, struct pf_error *err) {
  const enum method method =
      (enum method)((const struct project_params *)given)->method;
  struct pf_native_stack in;
  struct pf_array *out = NULL;
  int code = pf_native_take(&in, call->stack, call->may_write, "stack", err);
  (void)instance;
  if (code)
    return code;
  if (in.depth == 1 && (method == MAX || method == MIN))
    out = pf_array_ref(in.array);
  else
    code = project(&out, method, &in, err);
  if (!code) {
    code = pf_native_give(result, out, &in, err);
    out = NULL;
  }
  pf_array_unref(&out);
  pf_native_drop(&in);
  return code;
}

const struct pf_step_type pf_native_project = {
    .name = "project",
    .help =
        "Project a stack along z.\n"
        "max and min keep the pixel type. sum gives uint32 from 8 and 16 bit "
        "(int32 from signed), 64 bit from 32 bit, float64 from floats; one "
        "that overflows is an error. mean, std (of the population) and median "
        "are computed in float64. A NaN makes its pixel NaN, as in NumPy.",
    .params = params,
    .params_size = sizeof(struct project_params),
    .result = PF_RESULT_IMAGE,
    .yields = {.kind = PF_YIELDS_ONE},
    .any_depth = true,
    .dtype = PF_CAST_PRESERVE,
    .memory_types = 1u << PF_MEM_NATIVE,
    .dtype_of = dtype_of,
    .call = call,
};
