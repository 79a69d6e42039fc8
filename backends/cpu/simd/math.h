// Elementary functions on one float, branch-free so that the compiler vectorizes loops over them. Relative
// errors are below 4 units in the last place where no other is given; NaN gives NaN.
//
// Polynomials are minimax fits (Lawson iteration) over the interval that each comment names.
#pragma once

#include <cstdint>

#ifndef RT_SIMD_ISA
#error "RT_SIMD_ISA must name the namespace of this instruction set"
#endif
#define RT_INLINE inline __attribute__((always_inline))

namespace librt::cpu::RT_SIMD_ISA {

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
/// Of numbers and of vectors; NaN if either is.
template <class V>
RT_INLINE V minimum(V a, V b) {
  return ((a < b) | (a != a)) ? a : b;
}
template <class V>
RT_INLINE V maximum(V a, V b) {
  return ((a > b) | (a != a)) ? a : b;
}

/// Into [0, 1].
RT_INLINE float clamp_unit(float x) {
  const float raised = pick(x < 0.0f, 0.0f, x);
  return pick(raised > 1.0f, 1.0f, raised);
}

/// Adding and subtracting 1.5 2^23 rounds to the nearest integer; the low bits of the sum hold it.
inline constexpr float kRounder = 12582912.0f;

/// exp(x) = 2 (p half + half): x = n ln 2 + r with r in [-ln 2 / 2, ln 2 / 2], p = exp(r) - 1 = r + r^2 q(r),
/// half = 2^(n - 1 + raise). ln 2 in two parts, so that the larger product is exact. NaN gives p = NaN.
struct Exponential {
  float p, half;
};
inline constexpr float kLeastExponent = -87.0f, kMostExponent = 89.0f;
/// x in [kLeastExponent, kMostExponent]. 2^n below 2^-125 counts as 0; the last n overflows to infinity in
/// exp().
RT_INLINE Exponential exponential(float x, float raise = 0.0f) {
  const float biased = kRounder + 126.0f + raise;  // the low bits of the sum become half's exponent
  const float shifted = x * 1.44269504f + biased;
  const float n = shifted - biased;
  float r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float q = 1.991423230e-04f;
  q = q * r + 1.394611462e-03f;
  q = q * r + 8.333272332e-03f;
  q = q * r + 4.166626898e-02f;
  q = q * r + 1.666666682e-01f;
  q = q * r + 5.000000078e-01f;
  return {q * r * r + r, bits_to_float(float_to_bits(shifted) << 23)};
}
/// NaN survives, because comparisons with it are false.
RT_INLINE float clamp_exponent(float x, float least = kLeastExponent) {
  x = pick(x < least, least, x);
  return pick(x > kMostExponent, kMostExponent, x);
}
/// Covers denormal results: small ones are computed 2^64 times larger first.
RT_INLINE float exp(float x) {
  const bool small = x < -80.0f;
  const Exponential e = exponential(clamp_exponent(x, -110.0f), pick(small, 64.0f, 0.0f));
  return (2.0f * e.p + 2.0f) * e.half * pick(small, 5.42101086e-20f, 1.0f);
}
/// exp(x), but 0 below 1.7e-38.
RT_INLINE float exp_normal(float x) {
  const Exponential e = exponential(clamp_exponent(x));
  return (2.0f * e.p + 2.0f) * e.half;
}
/// exp_normal() of x <= 0.
RT_INLINE float exp_down(float x) {
  const Exponential e = exponential(pick(x < kLeastExponent, kLeastExponent, x));
  return (2.0f * e.p + 2.0f) * e.half;
}
RT_INLINE float expm1(float x) {
  const Exponential e = exponential(clamp_exponent(x));
  return 2.0f * (e.p * e.half + (e.half - 0.5f));
}

/// e ln 2 + log(1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1]: log(1 + f) = f - f^2/2 + f^3 q(f)
RT_INLINE float log_sum(float e, float f) {
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
/// Of positive normal numbers: x = 2^e (1 + f). e_extra is added to e.
RT_INLINE float log_normal(float x, float e_extra) {
  const uint32_t bits = float_to_bits(x) - 0x3f3504f3u;
  const float e = static_cast<float>(static_cast<int32_t>(bits) >> 23) + e_extra;
  return log_sum(e, bits_to_float((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f);
}
RT_INLINE float log(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float infinity = __builtin_inff();
  float y = log_normal(pick(tiny, x * 8388608.0f, x), pick(tiny, -23.0f, 0.0f));
  y = pick(x == infinity, infinity, y);
  y = pick(x == 0.0f, -infinity, y);
  return pick((x < 0.0f) | (x != x), __builtin_nanf(""), y);
}
/// log(1 + u) = u q(u) for u in [0, 1]: 1 + u is never rounded.
RT_INLINE float log1p_unit(float u) {
  float q = -3.243980862e-03f;
  q = q * u + 1.985126263e-02f;
  q = q * u - 5.695915909e-02f;
  q = q * u + 1.060361687e-01f;
  q = q * u - 1.530557012e-01f;
  q = q * u + 1.967593146e-01f;
  q = q * u - 2.495413213e-01f;
  q = q * u + 3.332996227e-01f;
  q = q * u - 4.999990242e-01f;
  q = q * u + 9.999999953e-01f;
  return u * q;
}

RT_INLINE float sigmoid(float x) {
  return 1.0f / (1.0f + exp_normal(-x));
}

/// With e = (exp(2|x|) - 1) / 2: e / (e + 1)
RT_INLINE float tanh(float x) {
  const float magnitude = absolute(x);
  const Exponential parts = exponential(2.0f * pick(magnitude > 9.2f, 9.2f, magnitude));
  const float e = parts.p * parts.half + (parts.half - 0.5f);
  return copy_sign(e / (e + 1.0f), x);
}

/// 1 - exp(-t q(t)), t = |x|, where t q(t) fits -log(erfc t) on [0, 4]; as an expm1, so that small results
/// keep their digits
RT_INLINE float erf(float x) {
  const float magnitude = absolute(x);
  const float t = pick(magnitude > 4.0f, 4.0f, magnitude);
  float q = 4.070793511e-05f;
  q = q * t - 3.810007183e-04f;
  q = q * t + 1.251746900e-03f;
  q = q * t + 2.057156526e-04f;
  q = q * t - 1.932171546e-02f;
  q = q * t + 1.028144136e-01f;
  q = q * t + 6.366164684e-01f;
  q = q * t + 1.128379226e+00f;
  const Exponential e = exponential(-(t * q));
  return copy_sign(2.0f * ((0.5f - e.half) - e.p * e.half), x);
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
  return x / (1.0f + exp_normal(-u));
}
/// x sigmoid(x). exp(-x) overflows to infinity for x < -88: x / inf = -0.
RT_INLINE float silu(float x) {
  return x / (1.0f + exp_normal(-x));
}
/// The derivatives of the three. In that of gelu_tanh, x^2 is bounded where 1 - t^2 is 0, so that their
/// product is 0, too.
RT_INLINE float gelu_slope(float x) {
  return 0.5f * (1.0f + erf(x * 0.70710678f)) + x * (exp_down(-0.5f * x * x) * 0.39894228f);
}
RT_INLINE float gelu_tanh_slope(float x) {
  const float square = pick(x * x > 1e30f, 1e30f, x * x);
  const float t = tanh(x * (square * (0.044715f * 0.79788456f) + 0.79788456f));
  return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * (square * (0.134145f * 0.79788456f) + 0.79788456f);
}
RT_INLINE float silu_slope(float x) {
  const float s = sigmoid(x);
  return s + x * s * (1.0f - s);
}
/// log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|))
RT_INLINE float softplus(float x) {
  const float y = pick(x > 0.0f, x, 0.0f) + log1p_unit(exp(-absolute(x)));
  return pick(x == x, y, x);
}

}  // namespace librt::cpu::RT_SIMD_ISA
