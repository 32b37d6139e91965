/*
 * Casts of runs: one loop per pair of C types, written so that the compiler
 * vectorises it. bool, float16 and bfloat16 go through a neighbour type that
 * holds each of their values exactly.
 *
 * Rounding is half to even because adding and subtracting 1.5 * 2^52 (2^23 for
 * float) rounds that way in the default rounding mode, which nothing here
 * changes; the compiler may not undo it without -ffast-math. Values are
 * brought to within 1 of the target's range first, where this is exact.
 */
#include "bridge/cast_kernels.h"

#include <math.h>
#include <string.h>

#include "bridge/half.h"

#define ARGS                                                                  \
  void *restrict to_, const void *restrict from_, size_t n,                   \
      struct pf_cast_stats *stats

/* Integer to integer; the limits are those that both types have. */
#define CAST_INT_INT(from_name, S, s_min, s_max, to_name, D, d_min, d_max)    \
  static void from_name##_##to_name(ARGS) {                                   \
    const S lo = (S)((__int128)s_min > d_min ? s_min : d_min);                \
    const S hi = (S)((__int128)s_max < d_max ? s_max : d_max);                \
    const S *from = from_;                                                    \
    D *to = to_;                                                              \
    uint32_t n_clipped = 0;                                                   \
    for (size_t i = 0; i < n; i++) {                                          \
      const S x = from[i], up = x < lo ? lo : x, y = up > hi ? hi : up;       \
      to[i] = (D)y;                                                           \
      n_clipped += x != y;                                                    \
    }                                                                         \
    stats->n_clipped += n_clipped;                                            \
  }

/* The compiler forgets what is in `x`. Where it knows the limits, gcc turns
 * the two selects below into branches and back into four: half the speed. */
#define HIDE(x) __asm__("" : "+m"(x))

/*
 * Float to an integer of at most 32 bits. W holds the limits exactly and
 * `magic` rounds in it. The upper limits are odd and the lower ones even, so
 * that half a step beyond is clipped above and rounded below.
 */
#define CAST_FLOAT_INT(from_name, S, W, magic, to_name, D, I, d_min, d_max)   \
  static void from_name##_##to_name(ARGS) {                                   \
    W lo = (W)d_min, hi = (W)d_max;                                           \
    HIDE(lo);                                                                 \
    HIDE(hi);                                                                 \
    const S *from = from_;                                                    \
    D *to = to_;                                                              \
    uint32_t n_clipped = 0, n_changed = 0, n_nan = 0;                         \
    for (size_t i = 0; i < n; i++) {                                          \
      const W x = (W)from[i];                                                 \
      const W up = x > lo ? x : lo, near = up < hi ? up : hi;                 \
      const W even = (near + (magic)) - (magic);                              \
      const int is_number = (float)x == (float)x;                             \
      to[i] = (D)((I)even & -(I)is_number);                                   \
      n_nan += !is_number;                                                    \
      n_clipped += beyond_##W(x, lo, hi);                                     \
      n_changed += differ_##W(x, even);                                       \
    }                                                                         \
    stats->n_nan += n_nan;                                                    \
    stats->n_clipped += n_clipped;                                            \
    stats->n_rounded += n_changed - n_clipped - n_nan;                        \
  }

/* Float to 64 bits, where a double no longer holds the limits: `end` is the
 * first value above. */
#define CAST_FLOAT_INT64(from_name, S, to_name, D, d_min, d_max, end)         \
  static void from_name##_##to_name(ARGS) {                                   \
    const S *from = from_;                                                    \
    D *to = to_;                                                              \
    for (size_t i = 0; i < n; i++) {                                          \
      const double x = (double)from[i], even = round_to_even(x);              \
      const bool fits = even >= (double)d_min && even < (end);                \
      to[i] = fits ? (D)even : even < 0 ? d_min : x == x ? d_max : 0;         \
      stats->n_nan += x != x;                                                 \
      stats->n_clipped += !fits && x == x;                                    \
      stats->n_rounded += fits && even != x;                                  \
    }                                                                         \
  }

#define CAST_INT_FLOAT(from_name, S, s_min, s_max, to_name, D)                \
  static void from_name##_##to_name(ARGS) {                                   \
    const S *from = from_;                                                    \
    D *to = to_;                                                              \
    (void)stats;                                                              \
    for (size_t i = 0; i < n; i++)                                            \
      to[i] = (D)from[i];                                                     \
  }

/* NaN stays; a number that becomes infinite counts as clipped. */
#define CAST_FLOAT_FLOAT(from_name, S, to_name, D)                            \
  static void from_name##_##to_name(ARGS) {                                   \
    const S *from = from_;                                                    \
    D *to = to_;                                                              \
    uint32_t n_before = 0, n_after = 0;                                       \
    for (size_t i = 0; i < n; i++) {                                          \
      const S x = from[i];                                                    \
      const D y = (D)x;                                                       \
      to[i] = y;                                                              \
      /* NaN unless finite */                                                 \
      n_before += (float)(x - x) != 0;                                        \
      n_after += (float)(y - y) != 0;                                         \
    }                                                                         \
    stats->n_clipped += n_after - n_before;                                   \
  }

/* Whether two values differ; NaN does from all. */
static inline bool differ_float(float a, float b) {
  return a != b;
}

/*
 * Without SSE4 a loop that counts comparisons of doubles is not vectorised,
 * one that counts comparisons of floats is. The factor keeps the smallest
 * difference from vanishing; large ones become infinite.
 */
static inline bool differ_double(double a, double b) {
  return (float)((a - b) * 0x1p1000) != 0;
}

/* Whether a number is rounded to something outside lo..hi; NaN is not. */
static inline bool beyond_float(float x, float lo, float hi) {
  return (x >= hi + 0.5f) | (x < lo - 0.5f);
}

static inline bool beyond_double(double x, double lo, double hi) {
  /* Scaled, the distances that matter are the same as floats. */
  return ((float)((x - (hi + 0.5)) * 0x1p1000) >= 0) |
         ((float)((x - (lo - 0.5)) * 0x1p1000) < 0);
}

static inline double round_to_even(double x) {
  const double magic = copysign(0x1p52, x);
  return fabs(x) < 0x1p52 ? (x + magic) - magic : x; /* NaN stays */
}

/* Name, C type, smallest and largest value; what follows XX is put first. */
#define INTS(XX, ...)                                                         \
  XX(__VA_ARGS__, U8, uint8_t, 0, UINT8_MAX)                                  \
  XX(__VA_ARGS__, I8, int8_t, INT8_MIN, INT8_MAX)                             \
  XX(__VA_ARGS__, U16, uint16_t, 0, UINT16_MAX)                               \
  XX(__VA_ARGS__, I16, int16_t, INT16_MIN, INT16_MAX)                         \
  XX(__VA_ARGS__, U32, uint32_t, 0, UINT32_MAX)                               \
  XX(__VA_ARGS__, I32, int32_t, INT32_MIN, INT32_MAX)                         \
  XX(__VA_ARGS__, U64, uint64_t, 0, UINT64_MAX)                               \
  XX(__VA_ARGS__, I64, int64_t, INT64_MIN, INT64_MAX)

/* All targets of one integer source. */
#define FROM_INT(name, S, s_min, s_max)                                       \
  INTS(CAST_INT_INT, name, S, s_min, s_max)                                   \
  CAST_INT_INT(name, S, s_min, s_max, BOOL, uint8_t, 0, 1)                    \
  CAST_INT_FLOAT(name, S, s_min, s_max, F32, float)                           \
  CAST_INT_FLOAT(name, S, s_min, s_max, F64, double)

/* All targets of one float source. W is for targets of 8 and 16 bits. */
#define FROM_FLOAT(name, S, W, magic)                                         \
  CAST_FLOAT_INT(name, S, W, magic, BOOL, uint8_t, int32_t, 0, 1)             \
  CAST_FLOAT_INT(name, S, W, magic, U8, uint8_t, int32_t, 0, UINT8_MAX)       \
  CAST_FLOAT_INT(name, S, W, magic, I8, int8_t, int32_t, INT8_MIN, INT8_MAX)  \
  CAST_FLOAT_INT(name, S, W, magic, U16, uint16_t, int32_t, 0, UINT16_MAX)    \
  CAST_FLOAT_INT(name, S, W, magic, I16, int16_t, int32_t, INT16_MIN,         \
                 INT16_MAX)                                                   \
  CAST_FLOAT_INT(name, S, double, 0x1.8p52, U32, uint32_t, int64_t, 0,        \
                 UINT32_MAX)                                                  \
  CAST_FLOAT_INT(name, S, double, 0x1.8p52, I32, int32_t, int32_t, INT32_MIN, \
                 INT32_MAX)                                                   \
  CAST_FLOAT_INT64(name, S, U64, uint64_t, 0, UINT64_MAX, 0x1p64)             \
  CAST_FLOAT_INT64(name, S, I64, int64_t, INT64_MIN, INT64_MAX, 0x1p63)       \
  CAST_FLOAT_FLOAT(name, S, F32, float)                                       \
  CAST_FLOAT_FLOAT(name, S, F64, double)

FROM_INT(U8, uint8_t, 0, UINT8_MAX)
FROM_INT(I8, int8_t, INT8_MIN, INT8_MAX)
FROM_INT(U16, uint16_t, 0, UINT16_MAX)
FROM_INT(I16, int16_t, INT16_MIN, INT16_MAX)
FROM_INT(U32, uint32_t, 0, UINT32_MAX)
FROM_INT(I32, int32_t, INT32_MIN, INT32_MAX)
FROM_INT(U64, uint64_t, 0, UINT64_MAX)
FROM_INT(I64, int64_t, INT64_MIN, INT64_MAX)
FROM_FLOAT(F32, float, float, 0x1.8p23f)
FROM_FLOAT(F64, double, double, 0x1.8p52)

/* Into the type that a source goes through. */

static void BOOL_U8(ARGS) {
  const uint8_t *from = from_;
  uint8_t *to = to_;
  (void)stats;
  for (size_t i = 0; i < n; i++) /* any byte but 0 is true */
    to[i] = from[i] != 0;
}

static void F16_F32(ARGS) {
  const uint16_t *from = from_;
  float *to = to_;
  (void)stats;
  for (size_t i = 0; i < n; i++)
    to[i] = pf_float_of_f16(from[i]);
}

static void BF16_F32(ARGS) {
  const uint16_t *from = from_;
  float *to = to_;
  (void)stats;
  for (size_t i = 0; i < n; i++)
    to[i] = pf_float_of_bf16(from[i]);
}

/* Out of the type that a target goes through. */

static void F64_F16(ARGS) {
  const double *from = from_;
  uint16_t *to = to_;
  uint64_t n_clipped = 0;
  for (size_t i = 0; i < n; i++) {
    to[i] = pf_f16_of(from[i]);
    n_clipped += (to[i] & 0x7fff) == 0x7c00 && isfinite(from[i]);
  }
  stats->n_clipped += n_clipped;
}

static void F64_BF16(ARGS) {
  const double *from = from_;
  uint16_t *to = to_;
  uint64_t n_clipped = 0;
  for (size_t i = 0; i < n; i++) {
    to[i] = pf_bf16_of(from[i]);
    n_clipped += (to[i] & 0x7fff) == 0x7f80 && isfinite(from[i]);
  }
  stats->n_clipped += n_clipped;
}

/*
 * 64-bit integers on their way through a double to fewer bits: rounding twice
 * could differ from rounding once, unless the first leaves its last bit set
 * whenever it dropped something.
 */
static uint64_t keep_53_bits(uint64_t x) {
  return x >> 53 ? (x & ~0x7ffULL) | ((uint64_t)((x & 0x7ff) != 0) << 11) : x;
}

static void U64_odd_F64(ARGS) {
  const uint64_t *from = from_;
  double *to = to_;
  (void)stats;
  for (size_t i = 0; i < n; i++)
    to[i] = (double)keep_53_bits(from[i]);
}

static void I64_odd_F64(ARGS) {
  const int64_t *from = from_;
  double *to = to_;
  (void)stats;
  for (size_t i = 0; i < n; i++) {
    const uint64_t bits = (uint64_t)from[i];
    to[i] = from[i] < 0 ? -(double)keep_53_bits(0 - bits)
                        : (double)keep_53_bits(bits);
  }
}

typedef void kernel(void *restrict to, const void *restrict from, size_t n,
                    struct pf_cast_stats *stats);

#define ROW(name)                                                             \
  [PF_##name] = {                                                             \
      [PF_BOOL] = name##_BOOL, [PF_U8] = name##_U8,   [PF_I8] = name##_I8,    \
      [PF_U16] = name##_U16,   [PF_I16] = name##_I16, [PF_U32] = name##_U32,  \
      [PF_I32] = name##_I32,   [PF_U64] = name##_U64, [PF_I64] = name##_I64,  \
      [PF_F32] = name##_F32,   [PF_F64] = name##_F64,                         \
  }

/* [from][to]; NULL where the pair goes through another type. */
static kernel *const kernels[PF_N_DTYPES][PF_N_DTYPES] = {
    ROW(U8),
    ROW(I8),
    ROW(U16),
    ROW(I16),
    ROW(U32),
    ROW(I32),
    ROW(U64),
    ROW(I64),
    ROW(F32),
    ROW(F64),
    [PF_BOOL] = {[PF_U8] = BOOL_U8},
    [PF_F16] = {[PF_F32] = F16_F32},
    [PF_BF16] = {[PF_F32] = BF16_F32},
};

struct detour {
  enum pf_dtype type;
  kernel *kernel;
};

/* By source: what it becomes first. */
static const struct detour before[PF_N_DTYPES] = {
    [PF_BOOL] = {PF_U8, BOOL_U8},
    [PF_F16] = {PF_F32, F16_F32},
    [PF_BF16] = {PF_F32, BF16_F32},
};

/* By target: its last step, from float64. */
static kernel *const last[PF_N_DTYPES] = {
    [PF_F16] = F64_F16,
    [PF_BF16] = F64_BF16,
};

static kernel *to_f64(enum pf_dtype from) {
  return from == PF_U64   ? U64_odd_F64
         : from == PF_I64 ? I64_odd_F64
                          : kernels[from][PF_F64];
}

void pf_cast_run(void *to, enum pf_dtype to_type, const void *from,
                 enum pf_dtype from_type, size_t n,
                 struct pf_cast_stats *stats) {
  /* Held as the type with the strictest alignment. */
  double first[PF_WALK_ELEMS], second[PF_WALK_ELEMS];
  if (to_type == from_type) {
    memcpy(to, from, n * pf_dtype_size(to_type));
    return;
  }
  if (before[from_type].kernel && !kernels[from_type][to_type]) {
    before[from_type].kernel(first, from, n, stats);
    from = first;
    from_type = before[from_type].type;
  }
  if (last[to_type]) {
    to_f64(from_type)(second, from, n, stats);
    last[to_type](to, second, n, stats);
  } else {
    kernels[from_type][to_type](to, from, n, stats);
  }
}
