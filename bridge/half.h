/*
 * float16 and bfloat16 in software, bit for bit what IEEE 754 asks for: no
 * instruction for them is common to the machines that we run on.
 */
#ifndef PF_HALF_H
#define PF_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint64_t pf_bits64(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}

static inline float pf_float_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

/*
 * Round half to even to a 16-bit float with `n_mantissa` bits of mantissa; its
 * exponent has the other 15 - n_mantissa, in IEEE's layout.
 */
static inline uint16_t pf_round_to_16(double x, int n_mantissa) {
  const int shift = 52 - n_mantissa;
  const int bias = (1 << (14 - n_mantissa)) - 1;
  const uint64_t infinity = (uint64_t)(2 * bias + 1) << n_mantissa;
  const uint64_t rebias = (uint64_t)(1023 - bias) << 52;
  const uint64_t all = pf_bits64(x);
  const uint64_t sign = all >> 48 & 0x8000, bits = all & ~(1ULL << 63);
  uint64_t rounded;
  if (bits > 0x7ffULL << 52) /* NaN, made quiet */
    return (uint16_t)(sign | infinity | 1ULL << (n_mantissa - 1));
  if (bits < rebias + (1ULL << 52)) { /* below the smallest normal number */
    /* A double whose last bit weighs as much as the result's last bit: the
     * addition rounds. */
    const uint64_t unit = rebias + ((uint64_t)(shift + 1) << 52);
    double magic, sum;
    memcpy(&magic, &unit, sizeof(magic));
    memcpy(&sum, &bits, sizeof(sum));
    sum += magic;
    return (uint16_t)(sign | (pf_bits64(sum) - unit));
  }
  rounded = bits + ((1ULL << (shift - 1)) - 1) + (bits >> shift & 1);
  rounded = (rounded - rebias) >> shift;
  return (uint16_t)(sign | (rounded < infinity ? rounded : infinity));
}

static inline uint16_t pf_f16_of(double x) {
  return pf_round_to_16(x, 10);
}

static inline uint16_t pf_bf16_of(double x) {
  return pf_round_to_16(x, 7);
}

static inline float pf_float_of_f16(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
  const uint32_t exponent = half >> 10 & 31, mantissa = half & 0x3ff;
  if (exponent == 0) {
    const float x = (float)mantissa * 0x1p-24f;
    return sign ? -x : x;
  }
  if (exponent == 31)
    return pf_float_of_bits(sign | 0x7f800000 | mantissa << 13);
  return pf_float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

static inline float pf_float_of_bf16(uint16_t bf16) {
  return pf_float_of_bits((uint32_t)bf16 << 16);
}

#endif
