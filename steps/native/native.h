/*
 * What the C steps share. Private to steps/.
 *
 * A step's call() takes its stack with pf_native_take(), works on plain C
 * pointers, hands its result over with pf_native_give(), and drops the stack.
 * Threads: everything here may be called from any thread.
 */
#ifndef PF_NATIVE_H
#define PF_NATIVE_H

#include "plateflow/step.h"

/* The element types that steps work on: dtype, C type, suffix of functions.
 * bool comes as uint8, float16 and bfloat16 as float32. */
#define PF_NATIVE_TYPE_MAP(XX)                                                \
  XX(PF_U8, uint8_t, u8)                                                      \
  XX(PF_I8, int8_t, i8)                                                       \
  XX(PF_U16, uint16_t, u16)                                                   \
  XX(PF_I16, int16_t, i16)                                                    \
  XX(PF_U32, uint32_t, u32)                                                   \
  XX(PF_I32, int32_t, i32)                                                    \
  XX(PF_U64, uint64_t, u64)                                                   \
  XX(PF_I64, int64_t, i64)                                                    \
  XX(PF_F32, float, f32)                                                      \
  XX(PF_F64, double, f64)

/* A call's stack as steps like it: on the host, compact, not empty, of a type
 * of the map above. */
struct pf_native_stack {
  struct pf_array *array;      /* owned */
  enum pf_dtype dtype;         /* of the array */
  size_t depth, height, width; /* Z, Y, X, each at least 1 */
  size_t plane;                /* height * width */
  bool may_write;              /* the elements may be overwritten */
  bool is_2d; /* the call's stack was [Y,X]: so must the result be */
};

/* `what` names the array in messages ("stack"). Errors: PF_ESTEP for a shape
 * or a device that steps cannot take, PF_ENOMEM. */
int pf_native_take(struct pf_native_stack *stack, struct pf_array *array,
                   bool may_write, const char *what,
                   struct pf_error *err) PF_MUST_CHECK;
void pf_native_drop(struct pf_native_stack *stack);
/* First element of plane z. */
void *pf_native_plane(const struct pf_native_stack *stack, size_t z);

/* A new host array [depth, height, width] of the stack's height and width. */
int pf_native_create(struct pf_array **out,
                     const struct pf_native_stack *stack, enum pf_dtype dtype,
                     size_t depth, struct pf_error *err) PF_MUST_CHECK;
/* As above with the stack's depth; the stack itself (another reference) where
 * it may be overwritten and has that type. */
int pf_native_create_like(struct pf_array **out,
                          const struct pf_native_stack *stack,
                          enum pf_dtype dtype,
                          struct pf_error *err) PF_MUST_CHECK;
/* Hand `array` (compact, 3D; the reference moves, also after failure) over as
 * the call's result, 2D where the call's stack was. */
int pf_native_give(struct pf_result *result, struct pf_array *array,
                   const struct pf_native_stack *stack,
                   struct pf_error *err) PF_MUST_CHECK;

/* `n` elements as doubles; 64-bit integers are rounded to the nearest. */
void pf_native_load(double *out, const void *in, enum pf_dtype dtype,
                    size_t n);
/* `n` doubles as elements: integers are rounded half to even and saturated,
 * NaN is 0; floats are rounded as IEEE says. */
void pf_native_store(void *out, const double *in, enum pf_dtype dtype,
                     size_t n);
/* 1 where an element is neither 0 nor NaN, else 0. */
void pf_native_mask(uint8_t *out, const void *in, enum pf_dtype dtype,
                    size_t n);

/* Pixels that are worked on at a time, so that a few rows of doubles stay in
 * the first-level cache. */
enum { PF_NATIVE_BLOCK = 1024 };

/* An image that a parameter names, through the reader that was set. */
int pf_step_read_image(struct pf_array **out, const char *path,
                       struct pf_error *err) PF_MUST_CHECK;

#endif
