// Powers and remainders of one pair of floats, in f64 lanes, without branches.
//
// Polynomials are minimax fits (Lawson iteration) over the interval that each comment names.
#pragma once

#include "backends/cpu/simd/math.h"

namespace rt::cpu::RT_SIMD_ISA {

RT_INLINE double bits_to_double(uint64_t bits) {
  return __builtin_bit_cast(double, bits);
}
RT_INLINE uint64_t double_to_bits(double x) {
  return __builtin_bit_cast(uint64_t, x);
}

/// log2 of a positive normal number: x = 2^e (1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1], log2(1 + f) = f
/// q(f); relative error 1e-10. e is made of bits, because few instruction sets convert 64-bit integers.
RT_INLINE double log2_normal(double x) {
  constexpr uint64_t kOne = 0x3ff0000000000000u, kRootHalf = 0x3fe6a09e667f3bcdu;
  const uint64_t bits = double_to_bits(x) + (kOne - kRootHalf);
  const double e = bits_to_double((bits >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0);
  const double f = bits_to_double((bits & 0x000fffffffffffffu) + kRootHalf) - 1.0;
  double q = -8.63448394575262457e-02;
  q = q * f + 1.54856752172094270e-01;
  q = q * f - 1.56982420767812825e-01;
  q = q * f + 1.59001672971213093e-01;
  q = q * f - 1.79046950997696769e-01;
  q = q * f + 2.06096242030436888e-01;
  q = q * f - 2.40504173592594572e-01;
  q = q * f + 2.88540644043931871e-01;
  q = q * f - 3.60672800565593754e-01;
  q = q * f + 4.80898320723466055e-01;
  q = q * f - 7.21347525213082541e-01;
  q = q * f + 1.44269504093935774e+00;
  return f * q + e;
}

inline constexpr double kWideRounder = 6755399441055744.0;  ///< 1.5 2^52, as kRounder

/// 2^x, rounded to f32 by the caller, who clamps x to [-1000, 1000]: 2^n 2^r, r in [-1/2, 1/2]; relative
/// error 2e-9.
RT_INLINE double exp2_wide(double x) {
  const double shifted = x + kWideRounder;
  const double r = x - (shifted - kWideRounder);
  double q = 1.53458073941416853e-04;
  q = q * r + 1.33999311794554443e-03;
  q = q * r + 9.61848897424679231e-03;
  q = q * r + 5.55032877709050396e-02;
  q = q * r + 2.40226468904760959e-01;
  q = q * r + 6.93147205737187355e-01;
  q = q * r + 1.00000000055418736e+00;
  return q * bits_to_double((double_to_bits(shifted) + 1023) << 52);
}

/// 2^(y log2 |x|) with the sign and the special cases of IEEE 754's pow (C99, annex F.9.4.4).
RT_INLINE float power(float x, float y) {
  const float infinity = __builtin_inff();
  const float magnitude = absolute(x);
  double logarithm = log2_normal(static_cast<double>(magnitude));
  logarithm = magnitude == 0.0f ? -__builtin_inf() : logarithm;
  logarithm = magnitude == infinity ? __builtin_inf() : logarithm;
  double exponent = static_cast<double>(y) * logarithm;
  exponent = exponent < -200.0 ? -200.0 : exponent;
  exponent = exponent > 200.0 ? 200.0 : exponent;
  const auto raised = static_cast<float>(exp2_wide(exponent));
  float value = pick((magnitude != magnitude) | (y != y), __builtin_nanf(""), raised);
  value = pick(magnitude == 1.0f, pick(y == y, 1.0f, y), value);
  // Of 2^24 and more all are even.
  const float small = pick(absolute(y) < 16777216.0f, y, 0.0f);
  const auto whole = static_cast<int32_t>(small);
  const bool fraction = static_cast<float>(whole) != small;
  const uint32_t odd = fraction ? 0u : static_cast<uint32_t>(whole) << 31;
  value = bits_to_float(float_to_bits(value) ^ (odd & float_to_bits(x)));
  value = pick((x < 0.0f) & fraction & (x != -infinity), __builtin_nanf(""), value);
  return pick((y == 0.0f) | (x == 1.0f), 1.0f, value);
}

/// Whether truncated_mod() holds: the quotient's rounding, its product with b and the difference are exact.
RT_INLINE bool small_quotient(float a, float b) {
  return (absolute(a) < absolute(b) * 16777216.0f) & (absolute(b) < __builtin_inff());
}
/// a - b trunc(a / b), with a's sign: the nearest quotient first, then one b back where the rest has changed
/// sign.
RT_INLINE float truncated_mod(float a, float b) {
  const auto x = static_cast<double>(a), y = static_cast<double>(b);
  const double quotient = x / y + kWideRounder - kWideRounder;
  double rest = x - quotient * y;
  const double back = (y < 0.0) != (x < 0.0) ? -y : y;
  rest = (rest != 0.0) & ((rest < 0.0) != (x < 0.0)) ? rest + back : rest;
  return copy_sign(static_cast<float>(rest), a);
}

}  // namespace rt::cpu::RT_SIMD_ISA
