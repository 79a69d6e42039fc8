// Elementary functions on one float, written without branches so that the compiler turns a loop over them
// into vector code. Relative errors are below 4 units in the last place where no other is given; NaN gives
// NaN.
//
// Polynomials are minimax fits (Lawson iteration) over the interval that each comment names.
#pragma once

#include <cstdint>

#ifndef RT_SIMD_ISA
#error "RT_SIMD_ISA must name the namespace of this instruction set"
#endif
#define RT_INLINE inline __attribute__((always_inline))

namespace rt::cpu::RT_SIMD_ISA {

RT_INLINE float bits_to_float(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
RT_INLINE uint32_t float_to_bits(float x) {
  return __builtin_bit_cast(uint32_t, x);
}
RT_INLINE float copy_sign(float magnitude, float sign) {
  return bits_to_float((float_to_bits(magnitude) & 0x7fffffffu) | (float_to_bits(sign) & 0x80000000u));
}
RT_INLINE float absolute(float x) {
  return bits_to_float(float_to_bits(x) & 0x7fffffffu);
}
RT_INLINE float pick(bool condition, float yes, float no) {
  return condition ? yes : no;
}
/// NaN if either is.
RT_INLINE float minimum(float a, float b) {
  return ((a < b) | (a != a)) ? a : b;
}
RT_INLINE float maximum(float a, float b) {
  return ((a > b) | (a != a)) ? a : b;
}

/// Into [0, 1].
RT_INLINE float clamp_unit(float x) {
  const float raised = pick(x < 0.0f, 0.0f, x);
  return pick(raised > 1.0f, 1.0f, raised);
}

/// Adding and subtracting 1.5 2^23 rounds to the nearest integer; the low bits of the sum hold it.
inline constexpr float kRounder = 12582912.0f;

struct Reduced {
  float r;  ///< remainder in [-ln 2 / 2, ln 2 / 2]
  int32_t n;
};
/// x = n ln 2 + r, for |x| < 2^13. ln 2 in three parts, so that the products are exact.
RT_INLINE Reduced reduce_exp(float x) {
  const float shifted = x * 1.44269504f + kRounder;
  const float n = shifted - kRounder;
  float r = x - n * 0.693115234375f;
  r = r - n * 3.193318843841553e-05f;
  r = r - n * 1.2996506981721723e-08f;
  return {r, static_cast<int32_t>(float_to_bits(shifted)) - static_cast<int32_t>(float_to_bits(kRounder))};
}
/// exp(r) - 1 on [-ln 2 / 2, ln 2 / 2]: r + r^2 q(r)
RT_INLINE float expm1_reduced(float r) {
  float q = 1.991423230e-04f;
  q = q * r + 1.394611462e-03f;
  q = q * r + 8.333272332e-03f;
  q = q * r + 4.166626898e-02f;
  q = q * r + 1.666666682e-01f;
  q = q * r + 5.000000078e-01f;
  return q * r * r + r;
}
/// x 2^n for n in [-252, 254], through denormals and infinity.
RT_INLINE float scale_by_power(float x, int32_t n) {
  const int32_t half = n >> 1;
  const float first = bits_to_float(static_cast<uint32_t>(half + 127) << 23);
  const float second = bits_to_float(static_cast<uint32_t>(n - half + 127) << 23);
  return x * first * second;
}
/// NaN survives both, because comparisons with it are false.
RT_INLINE float clamp_exp(float x) {
  x = pick(x < -150.0f, -150.0f, x);
  return pick(x > 100.0f, 100.0f, x);
}
RT_INLINE float exp(float x) {
  const float clamped = clamp_exp(x);
  const Reduced e = reduce_exp(clamped);
  // A NaN's bits make n meaningless; n is masked, so that the shift stays defined, and NaN times anything is
  // NaN.
  const int32_t n = clamped == clamped ? e.n : 0;
  return scale_by_power(expm1_reduced(e.r) + 1.0f, n);
}
RT_INLINE float expm1(float x) {
  const float clamped = clamp_exp(x);
  const Reduced e = reduce_exp(clamped);
  const int32_t n = clamped == clamped ? e.n : 0;
  const float power = scale_by_power(1.0f, n);
  return pick(x > 88.5f, exp(x), expm1_reduced(e.r) * power + (power - 1.0f));
}

/// Of positive normal numbers. x = 2^e (1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1]:
/// log x = e ln 2 + f - f^2/2 + f^3 q(f); e_extra is added to e.
RT_INLINE float log_normal(float x, float e_extra) {
  const uint32_t bits = float_to_bits(x) - 0x3f3504f3u;
  const float e = static_cast<float>(static_cast<int32_t>(bits) >> 23) + e_extra;
  const float f = bits_to_float((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float q = 6.746468625e-02f;
  q = q * f - 1.167621805e-01f;
  q = q * f + 1.188856162e-01f;
  q = q * f - 1.240552281e-01f;
  q = q * f + 1.421948912e-01f;
  q = q * f - 1.666799690e-01f;
  q = q * f + 2.000212153e-01f;
  q = q * f - 2.500000963e-01f;
  q = q * f + 3.333331257e-01f;
  const float square = f * f;
  const float y = square * f * q + e * 1.2996506981721723e-08f + e * 3.193318843841553e-05f;
  return y - 0.5f * square + f + e * 0.693115234375f;
}
RT_INLINE float log(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float infinity = __builtin_inff();
  float y = log_normal(pick(tiny, x * 8388608.0f, x), pick(tiny, -23.0f, 0.0f));
  y = pick(x == infinity, infinity, y);
  y = pick(x == 0.0f, -infinity, y);
  return pick((x < 0.0f) | (x != x), __builtin_nanf(""), y);
}
/// log(1 + u) for u in [0, 1]: the rounding error of 1 + u is divided back in.
RT_INLINE float log1p_unit(float u) {
  const float sum = 1.0f + u;
  return log_normal(sum, 0.0f) + (u - (sum - 1.0f)) / sum;
}

RT_INLINE float sigmoid(float x) {
  return 1.0f / (1.0f + exp(-x));
}

/// |x| < 0.625: x + x^3 q(x^2); else 1 - 2 / (exp(2|x|) + 1)
RT_INLINE float tanh(float x) {
  const float magnitude = absolute(x);
  const float square = x * x;
  float q = 2.097008500e-03f;
  q = q * square - 8.128246690e-03f;
  q = q * square + 2.168135148e-02f;
  q = q * square - 5.394334983e-02f;
  q = q * square + 1.333318018e-01f;
  q = q * square - 3.333333018e-01f;
  const float small = x + x * square * q;
  const float large = copy_sign(1.0f - 2.0f / (exp(2.0f * magnitude) + 1.0f), x);
  return pick(magnitude > 0.625f, large, pick(x == x, small, x));
}

/// |x| <= 1: x p(x^2); else 1 - exp(-p(|x|)), where p fits -log(erfc) on [1, 4]
RT_INLINE float erf(float x) {
  const float magnitude = absolute(x);
  const float square = x * x;
  float p = 7.854208306e-05f;
  p = p * square - 8.010292185e-04f;
  p = p * square + 5.188338005e-03f;
  p = p * square - 2.685381678e-02f;
  p = p * square + 1.128358525e-01f;
  p = p * square - 3.761262583e-01f;
  p = p * square + 1.128379166e+00f;
  const float small = x * p;
  const float t = magnitude > 4.0f ? 4.0f : magnitude;
  float l = 2.168148194e-05f;
  l = l * t - 4.412716914e-04f;
  l = l * t + 4.204235347e-03f;
  l = l * t - 2.520736092e-02f;
  l = l * t + 1.084171338e-01f;
  l = l * t + 6.332212602e-01f;
  l = l * t + 1.129577719e+00f;
  l = l * t - 1.878874980e-04f;
  const float large = copy_sign(1.0f - exp(-l), x);
  return pick(magnitude > 1.0f, large, small);
}

/// sin(x + quarter pi/2) for |x| < kTrigLimit; pi/2 in three parts.
inline constexpr float kTrigLimit = 8192.0f;
RT_INLINE float sine(float x, int32_t quarter) {
  const float shifted = x * 0.636619772f + kRounder;
  const float n = shifted - kRounder;
  float r = x - n * 1.5703125f;
  r = r - n * 0.0004837512969970703f;
  r = r - n * 7.549790126404332e-08f;
  const uint32_t k = float_to_bits(shifted) + static_cast<uint32_t>(quarter);
  const float s = r * r;
  float p = 2.718324258e-06f;
  p = p * s - 1.983933642e-04f;
  p = p * s + 8.333329392e-03f;
  p = p * s - 1.666666664e-01f;
  const float sin_r = r + r * s * p;
  float q = -2.721021387e-07f;
  q = q * s + 2.479951983e-05f;
  q = q * s - 1.388888375e-03f;
  q = q * s + 4.166666662e-02f;
  const float cos_r = 1.0f - 0.5f * s + s * s * q;
  const float value = pick((k & 1u) != 0, cos_r, sin_r);
  return pick((k & 2u) != 0, -value, value);
}

/// |x| > 1: pi/2 - atan(1/x); then, above tan(pi/8), pi/4 + atan((t - 1) / (t + 1)); t + t^3 q(t^2) on what
/// is left.
RT_INLINE float atan(float x) {
  const float magnitude = absolute(x);
  const bool inverted = magnitude > 1.0f;
  const float unit = pick(inverted, 1.0f / magnitude, magnitude);
  const bool upper = unit > 0.414213562f;
  const float t = pick(upper, (unit - 1.0f) / (unit + 1.0f), unit);
  const float s = t * t;
  float q = -6.083456145e-02f;
  q = q * s + 1.059600274e-01f;
  q = q * s - 1.424384891e-01f;
  q = q * s + 1.999848945e-01f;
  q = q * s - 3.333331551e-01f;
  const float small = t + t * s * q;
  const float octant = pick(upper, 0.785398163f + small, small);
  const float y = copy_sign(pick(inverted, 1.57079633f - octant, octant), x);
  return pick(x == x, y, x);
}

/// 0.5 x (1 + erf(x / sqrt 2))
RT_INLINE float gelu(float x) {
  return 0.5f * x * (1.0f + erf(x * 0.70710678f));
}
/// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3))
RT_INLINE float gelu_tanh(float x) {
  const float u = x * (x * x * (0.044715f * 1.59576912f) + 1.59576912f);
  return x / (1.0f + exp(-u));
}
/// x sigmoid(x). exp(-x) overflows to infinity for x < -88: x / inf = -0.
RT_INLINE float silu(float x) {
  return x / (1.0f + exp(-x));
}
/// log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|))
RT_INLINE float softplus(float x) {
  const float y = pick(x > 0.0f, x, 0.0f) + log1p_unit(exp(-absolute(x)));
  return pick(x == x, y, x);
}

}  // namespace rt::cpu::RT_SIMD_ISA
