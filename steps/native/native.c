/* What the C steps share: see steps/native/native.h. */
#include "steps/native/native.h"

#include <math.h>
#include <string.h>

#include "bridge/buf.h"

enum { HOST = 1 }; /* DLPack's kDLCPU */

static int check_shape(const struct pf_array *array, const char *what,
                       struct pf_error *err) {
  const int64_t *shape = pf_array_shape(array);
  const int ndim = pf_array_ndim(array);
  struct pf_buf text = {0};
  if (pf_array_device(array).type != HOST)
    return pf_error_set(err, PF_EBUG, "the %s is not in host memory", what);
  if ((ndim == 2 || ndim == 3) && pf_array_size(array) > 0)
    return PF_OK;
  for (int i = 0; i < ndim; i++)
    pf_buf_printf(&text, "%s%lld", i ? ", " : "", (long long)shape[i]);
  pf_error_set(err, PF_ESTEP,
               "expected a %s [Z,Y,X] with pixels in it, got shape [%s]", what,
               pf_buf_text(&text));
  pf_buf_free(&text);
  return PF_ESTEP;
}

/* The type that steps work on instead of those not in the map. */
static enum pf_dtype working_type(enum pf_dtype dtype) {
  if (dtype == PF_BOOL)
    return PF_U8;
  return dtype == PF_F16 || dtype == PF_BF16 ? PF_F32 : dtype;
}

/* A reference to `array`, or a compact copy of a working type. */
static int take_compact(struct pf_array **out, struct pf_array *array,
                        struct pf_error *err) {
  const enum pf_dtype dtype = pf_array_dtype(array);
  if (working_type(dtype) != dtype)
    return pf_cast(out, array, working_type(dtype), PF_CAST_PRESERVE, NULL,
                   err);
  if (!pf_array_is_compact(array))
    return pf_array_copy(out, array, err);
  *out = pf_array_ref(array);
  return PF_OK;
}

int pf_native_take(struct pf_native_stack *stack, struct pf_array *array,
                   bool may_write, const char *what, struct pf_error *err) {
  const int64_t *shape = pf_array_shape(array);
  struct pf_array *taken = NULL;
  int code;
  memset(stack, 0, sizeof(*stack));
  code = check_shape(array, what, err);
  if (code)
    return code;
  code = take_compact(&taken, array, err);
  if (code)
    return code;
  stack->is_2d = pf_array_ndim(array) == 2;
  stack->depth = stack->is_2d ? 1 : (size_t)*shape++;
  stack->height = (size_t)shape[0];
  stack->width = (size_t)shape[1];
  stack->plane = stack->height * stack->width;
  stack->dtype = pf_array_dtype(taken);
  stack->may_write = taken != array || may_write;
  stack->may_write &= !pf_array_is_read_only(taken);
  stack->array = taken;
  return PF_OK;
}

void pf_native_drop(struct pf_native_stack *stack) {
  pf_array_unref(&stack->array);
}

void *pf_native_plane(const struct pf_native_stack *stack, size_t z) {
  return (char *)pf_array_data(stack->array) +
         z * stack->plane * pf_dtype_size(stack->dtype);
}

int pf_native_create(struct pf_array **out,
                     const struct pf_native_stack *stack, enum pf_dtype dtype,
                     size_t depth, struct pf_error *err) {
  const int64_t shape[3] = {(int64_t)depth, (int64_t)stack->height,
                            (int64_t)stack->width};
  return pf_array_create(out, dtype, 3, shape, err);
}

int pf_native_create_like(struct pf_array **out,
                          const struct pf_native_stack *stack,
                          enum pf_dtype dtype, struct pf_error *err) {
  if (!stack->may_write || stack->dtype != dtype)
    return pf_native_create(out, stack, dtype, stack->depth, err);
  *out = pf_array_ref(stack->array);
  return PF_OK;
}

int pf_native_give(struct pf_result *result, struct pf_array *array,
                   const struct pf_native_stack *stack, struct pf_error *err) {
  const int64_t shape[2] = {(int64_t)stack->height, (int64_t)stack->width};
  int code = PF_OK;
  if (stack->is_2d && pf_array_ndim(array) == 3) {
    code = pf_array_reshape(&result->stack, array, 2, shape, err);
    pf_array_unref(&array);
  } else {
    result->stack = array;
  }
  return code;
}

/* -- elements to doubles ----------------------------------------------- */

#define XX(dtype, type, suffix)                                               \
  static void load_##suffix(double *restrict out, const type *restrict in,    \
                            size_t n) {                                       \
    for (size_t i = 0; i < n; i++)                                            \
      out[i] = (double)in[i];                                                 \
  }                                                                           \
  static void mask_##suffix(uint8_t *restrict out, const type *restrict in,   \
                            size_t n) {                                       \
    for (size_t i = 0; i < n; i++)                                            \
      out[i] = (uint8_t)((in[i] != 0) & (in[i] == in[i]));                    \
  }
PF_NATIVE_TYPE_MAP(XX)
#undef XX

void pf_native_load(double *out, const void *in, enum pf_dtype dtype,
                    size_t n) {
  switch (dtype) {
#define XX(code, type, suffix)                                                \
  case code:                                                                  \
    load_##suffix(out, in, n);                                                \
    break;
    PF_NATIVE_TYPE_MAP(XX)
#undef XX
  default: /* pf_native_take() lets no other type pass */
    break;
  }
}

void pf_native_mask(uint8_t *out, const void *in, enum pf_dtype dtype,
                    size_t n) {
  switch (dtype) {
#define XX(code, type, suffix)                                                \
  case code:                                                                  \
    mask_##suffix(out, in, n);                                                \
    break;
    PF_NATIVE_TYPE_MAP(XX)
#undef XX
  default:
    break;
  }
}

/* -- doubles to elements ----------------------------------------------- */

/*
 * Adding and taking away 1.5 * 2^52 rounds half to even for |x| < 2^51, as the
 * sum has no bits left below 1; unlike rint() it is one vector instruction
 * everywhere.
 */
static inline double round_even(double x) {
  const double magic = 6755399441055744.0;
  return (x + magic) - magic;
}

/* Into lo..hi, NaN to 0. */
static inline double clamp(double x, double lo, double hi) {
  x = x == x ? x : 0;
  x = x > lo ? x : lo;
  return x < hi ? x : hi;
}

#define STORE(suffix, type, through, lo, hi)                                  \
  static void store_##suffix(type *restrict out, const double *restrict in,   \
                             size_t n) {                                      \
    for (size_t i = 0; i < n; i++)                                            \
      out[i] = (type)(through)round_even(clamp(in[i], lo, hi));               \
  }
STORE(u8, uint8_t, int32_t, 0, UINT8_MAX)
STORE(i8, int8_t, int32_t, INT8_MIN, INT8_MAX)
STORE(u16, uint16_t, int32_t, 0, UINT16_MAX)
STORE(i16, int16_t, int32_t, INT16_MIN, INT16_MAX)
STORE(u32, uint32_t, int64_t, 0, UINT32_MAX)
STORE(i32, int32_t, int32_t, INT32_MIN, INT32_MAX)
#undef STORE

/* The largest integers are no doubles: 2^64 and 2^63 are the first beyond. */
static void store_u64(uint64_t *out, const double *in, size_t n) {
  for (size_t i = 0; i < n; i++) {
    double x = rint(clamp(in[i], 0, 0x1p64));
    out[i] = x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
  }
}

static void store_i64(int64_t *out, const double *in, size_t n) {
  for (size_t i = 0; i < n; i++) {
    double x = rint(clamp(in[i], -0x1p63, 0x1p63));
    out[i] = x >= 0x1p63 ? INT64_MAX : (int64_t)x;
  }
}

static void store_f32(float *restrict out, const double *restrict in,
                      size_t n) {
  for (size_t i = 0; i < n; i++)
    out[i] = (float)in[i];
}

static void store_f64(double *out, const double *in, size_t n) {
  memcpy(out, in, n * sizeof(*out));
}

void pf_native_store(void *out, const double *in, enum pf_dtype dtype,
                     size_t n) {
  switch (dtype) {
#define XX(code, type, suffix)                                                \
  case code:                                                                  \
    store_##suffix(out, in, n);                                               \
    break;
    PF_NATIVE_TYPE_MAP(XX)
#undef XX
  default:
    break;
  }
}
