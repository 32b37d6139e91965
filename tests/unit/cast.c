/*
 * bridge/cast.c, bridge/cast_kernels.c, bridge/half.h: every ordered pair of
 * types against a reference in long double, which holds every value of every
 * type exactly.
 */
#include "plateflow/bridge.h"
#include "tests/unit/check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static const long double edges[] = {
    0.0L, -0.0L, 1.0L, -1.0L, 2.0L, 3.0L,
    /* half to even, and what is next to it */
    0.5L, -0.5L, 1.5L, 2.5L, -1.5L, -2.5L, 0.49999997L, 0.4999999999999999L,
    0.75L, -0.25L,
    /* limits, beyond them by a half and by one */
    126.5L, 127.0L, 127.5L, 128.0L, -128.0L, -128.5L, -129.0L, 254.5L, 255.0L,
    255.5L, 256.0L, 32766.5L, 32767.0L, 32767.5L, 32768.0L, -32768.0L,
    -32768.5L, -32769.0L, 65534.5L, 65535.0L, 65535.5L, 65536.0L, 70000.5L,
    2147483646.5L, 2147483647.0L, 2147483647.5L, 2147483648.0L, -2147483648.0L,
    -2147483648.5L, -2147483649.0L, 4294967294.5L, 4294967295.0L,
    4294967295.5L, 4294967296.0L, 9223372036854774784.0L,
    9223372036854775807.0L, 9223372036854775808.0L, -9223372036854775808.0L,
    -9223372036854777856.0L, 18446744073709549568.0L, 18446744073709551615.0L,
    18446744073709551616.0L, 1e20L, -1e20L,
    /* where floats lose bits; the last three would be rounded twice */
    16777217.0L, 16777219.0L, 9007199254740993.0L, 4503599627370495.5L,
    4503599627370496.5L, 0x1.01p63L + 1, 0x1.01p62L + 1, -0x1.01p62L - 1,
    /* limits of floats: normal, subnormal, rounding to infinity */
    65504.0L, 65519.0L, 65520.0L, 0x1p-14L, 0x1p-24L, 0x1p-25L, 0x1.8p-25L,
    0x3p-25L, 0x3ffp-24L, 0x1p-126L, 0x1p-133L, 0x1p-134L, 0x3p-134L,
    0x1p-149L, 0x1p-150L, FLT_MAX, 0x1.ffp127L, 0x1.feffp127L, 0x1.ffffffp127L,
    DBL_MAX, DBL_MIN, 0x1p-1074L, -DBL_MAX, INFINITY, -INFINITY, NAN};

enum {
  N_EDGES = sizeof(edges) / sizeof(edges[0]),
  /* Several runs of the loops, and what is left over from their vectors. */
  N_ROUNDS = 53,
  N_ALL = N_EDGES * N_ROUNDS
};

/* float16 and bfloat16 as numbers, by their definition. */
static long double decode(uint16_t bits, int n_mantissa) {
  int top = (1 << (15 - n_mantissa)) - 1, bias = top / 2;
  int exponent = (bits & 0x7fff) >> n_mantissa;
  int mantissa = bits & ((1 << n_mantissa) - 1);
  long double x = INFINITY;
  if (exponent == top)
    x = mantissa ? (long double)NAN : x;
  else if (exponent)
    x = ldexpl(mantissa + (1 << n_mantissa), exponent - bias - n_mantissa);
  else
    x = ldexpl(mantissa, 1 - bias - n_mantissa);
  return bits & 0x8000 ? -x : x;
}

/* The nearest float with `digits` bits and the exponents of a type. */
static long double nearest(long double x, int digits, int min_exponent,
                           long double max) {
  int exponent = 0;
  long double unit, rounded;
  if (!isfinite(x) || x == 0)
    return x;
  (void)frexpl(x, &exponent);
  if (exponent < min_exponent)
    exponent = min_exponent;
  unit = ldexpl(1, exponent - digits);
  rounded = rintl(x / unit) * unit;
  return fabsl(rounded) > max ? copysignl(INFINITY, x) : rounded;
}

struct range {
  long double min, max;
};

static const struct range ranges[PF_N_DTYPES] = {
    [PF_BOOL] = {0, 1},
    [PF_U8] = {0, UINT8_MAX},
    [PF_I8] = {INT8_MIN, INT8_MAX},
    [PF_U16] = {0, UINT16_MAX},
    [PF_I16] = {INT16_MIN, INT16_MAX},
    [PF_U32] = {0, UINT32_MAX},
    [PF_I32] = {INT32_MIN, INT32_MAX},
    [PF_U64] = {0, (long double)UINT64_MAX},
    [PF_I64] = {(long double)INT64_MIN, (long double)INT64_MAX},
};

/* What a value must become, and what is counted. */
static long double expected(long double x, enum pf_dtype to,
                            struct pf_cast_stats *stats) {
  long double y = x;
  if (pf_dtype_is_float(to)) {
    y = to == PF_F16    ? nearest(x, 11, -13, 65504)
        : to == PF_BF16 ? nearest(x, 8, -125, 0x1.fep127L)
        : to == PF_F32  ? (long double)(float)x
                        : (long double)(double)x;
    stats->n_clipped += isinf(y) && !isinf(x);
    return y;
  }
  if (isnan(x)) {
    stats->n_nan++;
    return 0;
  }
  y = rintl(x);
  if (y < ranges[to].min || y > ranges[to].max) {
    stats->n_clipped++;
    return y < ranges[to].min ? ranges[to].min : ranges[to].max;
  }
  stats->n_rounded += y != x;
  return y + 0.0L; /* integers have no -0 */
}

#define FOR_TYPES(XX)                                                         \
  XX(U8, uint8_t)                                                             \
  XX(I8, int8_t)                                                              \
  XX(U16, uint16_t)                                                           \
  XX(I16, int16_t)                                                            \
  XX(U32, uint32_t)                                                           \
  XX(I32, int32_t)                                                            \
  XX(U64, uint64_t)                                                           \
  XX(I64, int64_t)                                                            \
  XX(F32, float)                                                              \
  XX(F64, double)

static long double load(const void *data, enum pf_dtype type, size_t i) {
  switch (type) {
#define XX(name, T)                                                           \
  case PF_##name:                                                             \
    return (long double)((const T *)data)[i];
    FOR_TYPES(XX)
#undef XX
  case PF_BOOL:
    return ((const uint8_t *)data)[i] != 0;
  case PF_F16:
    return decode(((const uint16_t *)data)[i], 10);
  case PF_BF16:
    return decode(((const uint16_t *)data)[i], 7);
  default:
    return NAN;
  }
}

/* The 16-bit float next to `x`, found by trying them all: no code shared with
 * what is tested. */
static uint16_t encode(long double x, int n_mantissa) {
  long double best = INFINITY;
  uint16_t found = 0;
  for (int i = 0; i < 0x8000; i++) {
    long double off = fabsl(decode((uint16_t)i, n_mantissa) - fabsl(x));
    if (off < best) {
      best = off;
      found = (uint16_t)i;
    }
  }
  if (isnan(x))
    found = 0x7fff;
  if (isinf(x))
    found = (uint16_t)(((1 << (15 - n_mantissa)) - 1) << n_mantissa);
  return (uint16_t)(found | (signbit(x) ? 0x8000 : 0));
}

/* Put some value of the type near `x` into an array. */
static void store(void *data, enum pf_dtype type, size_t i, long double x) {
  if (!pf_dtype_is_float(type)) {
    x = isnan(x) ? 7 : truncl(x);
    x = x < ranges[type].min   ? ranges[type].min
        : x > ranges[type].max ? ranges[type].max
                               : x;
  }
  switch (type) {
#define XX(name, T)                                                           \
  case PF_##name:                                                             \
    ((T *)data)[i] = (T)x;                                                    \
    break;
    FOR_TYPES(XX)
#undef XX
  case PF_BOOL: /* any byte but 0 is true */
    ((uint8_t *)data)[i] = (uint8_t)(x != 0 ? i % 255 + 1 : 0);
    break;
  case PF_F16:
    ((uint16_t *)data)[i] = encode(x, 10);
    break;
  case PF_BF16:
    ((uint16_t *)data)[i] = encode(x, 7);
    break;
  default:
    break;
  }
}

static struct pf_array *make(enum pf_dtype type, int ndim,
                             const int64_t *shape) {
  struct pf_array *array = NULL;
  struct pf_error err = PF_ERROR_INIT;
  if (pf_array_create(&array, type, ndim, shape, &err) != PF_OK)
    abort();
  return array;
}

static bool same(long double a, long double b) {
  return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static void check_values(const struct pf_array *in, const struct pf_array *out,
                         const struct pf_cast_stats *stats) {
  enum pf_dtype from = pf_array_dtype(in), to = pf_array_dtype(out);
  struct pf_cast_stats expect = {0};
  int n_wrong = 0;
  for (size_t i = 0; i < N_ALL; i++) {
    long double x = load(pf_array_data(in), from, i);
    long double y = load(pf_array_data(out), to, i);
    long double z = expected(x, to, &expect);
    if (same(y, z) || n_wrong++ > 3)
      continue;
    check_fail(__FILE__, __LINE__, "the value is right");
    (void)printf("  %s %.20Lg to %s: %.20Lg, not %.20Lg\n",
                 pf_dtype_name(from), x, pf_dtype_name(to), y, z);
  }
  CHECK_INT(n_wrong, 0);
  CHECK_INT(stats->n_clipped, expect.n_clipped);
  CHECK_INT(stats->n_rounded, expect.n_rounded);
  CHECK_INT(stats->n_nan, expect.n_nan);
}

static void test_pairs(void) {
  int64_t shape[1] = {N_ALL};
  for (int from = 0; from < PF_N_DTYPES; from++) {
    struct pf_array *in = make((enum pf_dtype)from, 1, shape);
    size_t size = pf_dtype_size((enum pf_dtype)from);
    char *data = pf_array_data(in);
    for (size_t i = 0; i < N_EDGES; i++)
      store(data, (enum pf_dtype)from, i, edges[i]);
    for (size_t i = 1; i < N_ROUNDS; i++)
      memcpy(data + i * N_EDGES * size, data, N_EDGES * size);
    for (int to = 0; to < PF_N_DTYPES; to++) {
      struct pf_error err = PF_ERROR_INIT;
      struct pf_cast_stats stats = {0};
      struct pf_array *out = NULL;
      CHECK_INT(
          pf_cast(&out, in, (enum pf_dtype)to, PF_CAST_PRESERVE, &stats, &err),
          PF_OK);
      CHECK_INT(out == in, from == to);
      CHECK_INT(pf_array_dtype(out), to);
      if (from != to)
        check_values(in, out, &stats);
      pf_array_unref(&out);
    }
    pf_array_unref(&in);
  }
}

/* Every float16 and bfloat16 there is, to float64 and back. */
static void test_halves(void) {
  static const enum pf_dtype types[] = {PF_F16, PF_BF16};
  int64_t shape[1] = {65536};
  for (size_t t = 0; t < 2; t++) {
    struct pf_array *in = make(types[t], 1, shape), *wide = NULL, *back = NULL;
    struct pf_error err = PF_ERROR_INIT;
    uint16_t *values = pf_array_data(in);
    int n_wrong = 0;
    for (int i = 0; i < 65536; i++)
      values[i] = (uint16_t)i;
    CHECK_INT(pf_cast(&wide, in, PF_F64, PF_CAST_PRESERVE, NULL, &err), PF_OK);
    CHECK_INT(pf_cast(&back, wide, types[t], PF_CAST_PRESERVE, NULL, &err),
              PF_OK);
    for (int i = 0; i < 65536; i++) {
      double x = ((double *)pf_array_data(wide))[i];
      uint16_t bits = ((uint16_t *)pf_array_data(back))[i];
      if (isnan(x))
        n_wrong += !isnan(decode(bits, types[t] == PF_F16 ? 10 : 7));
      else
        n_wrong += bits != i;
    }
    CHECK_INT(n_wrong, 0);
    pf_array_unref(&in);
    pf_array_unref(&wide);
    pf_array_unref(&back);
  }
}

enum { N_SMALL = 4 };

static const struct mode_case {
  enum pf_dtype from, to;
  enum pf_cast_mode mode;
  double in[N_SMALL], out[N_SMALL];
  struct pf_cast_stats stats;
} mode_cases[] = {
    {PF_F64,
     PF_U8,
     PF_CAST_RESCALE,
     {0, 1, 2, 4},
     {0, 64, 128, 255},
     {0, 2, 0}},
    {PF_F32,
     PF_U16,
     PF_CAST_RESCALE,
     {-1, 1, 0, -1},
     {0, 65535, 32768, 0},
     {0, 1, 0}},
    {PF_U16,
     PF_U16,
     PF_CAST_RESCALE,
     {10, 20, 10, 20},
     {0, 65535, 0, 65535},
     {0, 0, 0}},
    {PF_F64,
     PF_I8,
     PF_CAST_RESCALE,
     {0, 1, 0, 1},
     {-128, 127, -128, 127},
     {0, 0, 0}},
    {PF_F64,
     PF_I8,
     PF_CAST_RESCALE,
     {7, 7, 7, 7},
     {-128, -128, -128, -128},
     {0, 0, 0}},
    {PF_U8,
     PF_F32,
     PF_CAST_RESCALE,
     {0, 255, 51, 0},
     {0, 1, 0.2f, 0},
     {0, 0, 0}},
    {PF_F64,
     PF_U8,
     PF_CAST_RESCALE,
     {NAN, INFINITY, 1, 3},
     {0, 255, 0, 255},
     {1, 0, 1}},
    {PF_F64,
     PF_U8,
     PF_CAST_RESCALE,
     {-INFINITY, 1, 3, 2},
     {0, 0, 255, 128},
     {1, 1, 0}},
    {PF_F64,
     PF_U8,
     PF_CAST_RESCALE,
     {NAN, INFINITY, -INFINITY, NAN},
     {0, 255, 0, 0},
     {2, 0, 2}},
    {PF_F64,
     PF_F64,
     PF_CAST_RESCALE,
     {NAN, INFINITY, 1, 3},
     {NAN, INFINITY, 0, 1},
     {0, 0, 0}},
    {PF_F64,
     PF_U8,
     PF_CAST_RESCALE,
     {-DBL_MAX, DBL_MAX, 0, 0},
     {0, 255, 128, 128},
     {0, 2, 0}},
    {PF_F32,
     PF_U16,
     PF_CAST_UNIT,
     {0, 1, 0.5, 1.5},
     {0, 65535, 32768, 65535},
     {1, 1, 0}},
    {PF_F64,
     PF_U8,
     PF_CAST_UNIT,
     {-0.1, NAN, 1, 0.25},
     {0, 0, 255, 64},
     {1, 1, 1}},
    {PF_BOOL, PF_U8, PF_CAST_UNIT, {1, 0, 1, 0}, {255, 0, 255, 0}, {0, 0, 0}},
    {PF_F64,
     PF_F32,
     PF_CAST_UNIT,
     {0.5, 2, -1, 0},
     {0.5, 2, -1, 0},
     {0, 0, 0}},
    {PF_U16, PF_U16, PF_CAST_UNIT, {1, 2, 3, 4}, {1, 2, 3, 4}, {0, 0, 0}},
    {PF_F64,
     PF_U8,
     PF_CAST_NATIVE,
     {0.5, 2, -1, 0},
     {0.5, 2, -1, 0},
     {0, 0, 0}},
};

static void test_modes(void) {
  int64_t shape[2] = {2, 2};
  for (size_t i = 0; i < sizeof(mode_cases) / sizeof(mode_cases[0]); i++) {
    const struct mode_case *row = &mode_cases[i];
    struct pf_array *in = make(row->from, 2, shape), *out = NULL;
    struct pf_error err = PF_ERROR_INIT;
    struct pf_cast_stats stats = {0};
    int n_failed = check_failures;
    for (size_t k = 0; k < N_SMALL; k++)
      store(pf_array_data(in), row->from, k, row->in[k]);
    CHECK_INT(pf_cast(&out, in, row->to, row->mode, &stats, &err), PF_OK);
    CHECK_INT(pf_array_dtype(out),
              row->mode == PF_CAST_NATIVE ? row->from : row->to);
    for (size_t k = 0; k < N_SMALL; k++)
      CHECK(
          same(load(pf_array_data(out), pf_array_dtype(out), k), row->out[k]));
    CHECK_INT(stats.n_clipped, row->stats.n_clipped);
    CHECK_INT(stats.n_rounded, row->stats.n_rounded);
    CHECK_INT(stats.n_nan, row->stats.n_nan);
    if (check_failures > n_failed)
      (void)printf("  in row %zu\n", i);
    pf_array_unref(&out);
    pf_array_unref(&in);
  }
}

/* Layouts of an int32 buffer of 0, 1, 2 ..., and the sum of position * value
 * in C order, which tells the order. */
static const struct layout_case {
  int ndim;
  int64_t first, shape[3], strides[3];
} layout_cases[] = {
    {1, 0, {5000}, {1}},
    {1, 4999, {5000}, {-1}},
    {1, 0, {1000}, {5}},
    {2, 0, {70, 60}, {60, 1}},
    {2, 0, {60, 70}, {1, 60}},
    {2, 7, {20, 30}, {100, 2}},
    {3, 0, {3, 40, 40}, {1600, 40, 1}},
    {3, 0, {3, 4, 5}, {1, 3, 12}},
    {3, 0, {1, 1, 1}, {0, 0, 0}},
    {3, 0, {4, 1000, 2}, {0, 5, 1}},
    {2, 0, {3, 1000}, {1500, 1}},
    {2, 0, {0, 5}, {5, 1}},
    {0, 3, {0}, {0}},
};

static int32_t element(const struct layout_case *row, int64_t i) {
  int64_t at = row->first;
  for (int d = row->ndim - 1; d >= 0; d--) {
    at += i % row->shape[d] * row->strides[d];
    i /= row->shape[d];
  }
  return (int32_t)at;
}

static void test_layouts(void) {
  static int32_t buffer[6000];
  for (int i = 0; i < 6000; i++)
    buffer[i] = i;
  for (size_t i = 0; i < sizeof(layout_cases) / sizeof(layout_cases[0]); i++) {
    const struct layout_case *row = &layout_cases[i];
    struct pf_array_desc desc = {buffer + row->first, PF_I32,       row->ndim,
                                 row->shape,          row->strides, {1, 0},
                                 PF_MEM_NUMPY,        false};
    struct pf_array *in = NULL, *out = NULL, *copy = NULL;
    struct pf_error err = PF_ERROR_INIT;
    int n_wrong = 0;
    CHECK_INT(pf_array_wrap(&in, &desc, NULL, NULL, &err), PF_OK);
    CHECK_INT(pf_cast(&out, in, PF_F64, PF_CAST_PRESERVE, NULL, &err), PF_OK);
    CHECK_INT(pf_array_copy(&copy, in, &err), PF_OK);
    CHECK(pf_array_is_compact(out) && pf_array_is_compact(copy));
    for (int64_t k = 0; k < pf_array_size(in); k++) {
      n_wrong += ((double *)pf_array_data(out))[k] != element(row, k);
      n_wrong += ((int32_t *)pf_array_data(copy))[k] != element(row, k);
    }
    CHECK_INT(n_wrong, 0);
    pf_array_unref(&in);
    pf_array_unref(&out);
    pf_array_unref(&copy);
  }
}

static void test_names(void) {
  for (int i = 0; i < PF_N_CAST_MODES; i++)
    CHECK_INT(pf_cast_mode_find(pf_cast_mode_name((enum pf_cast_mode)i)), i);
  CHECK_INT(pf_cast_mode_find("round"), PF_N_CAST_MODES);
  for (int i = 0; i < PF_N_DTYPES; i++) {
    enum pf_dtype type = (enum pf_dtype)i;
    CHECK_INT(pf_dtype_find(pf_dtype_name(type)), i);
    if (pf_dtype_is_float(type))
      continue;
    CHECK(pf_dtype_max(type) == (double)ranges[i].max);
    CHECK(pf_dtype_min(type) == (double)ranges[i].min);
    CHECK_INT(pf_dtype_is_signed(type), ranges[i].min < 0);
  }
  CHECK_INT(pf_dtype_find("uint12"), PF_DTYPE_NONE);
  CHECK_INT(pf_dtype_size(PF_DTYPE_NONE), 0);
  for (int i = 0; i < PF_N_MEMORY_TYPES; i++)
    CHECK_INT(pf_memory_type_find(pf_memory_type_name((enum pf_memory_type)i)),
              i);
  CHECK_INT(pf_memory_type_find("numba"), PF_MEM_NONE);
  CHECK(pf_memory_type_is_python(PF_MEM_NUMPY));
  CHECK(!pf_memory_type_is_python(PF_MEM_NATIVE));
  CHECK(!pf_memory_type_is_python(PF_MEM_NONE));
}

int main(void) {
  test_names();
  test_pairs();
  test_halves();
  test_modes();
  test_layouts();
  return check_done();
}
