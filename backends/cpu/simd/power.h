// Powers and remainders of floats, in f64 lanes.
//
// Polynomials are minimax fits (Lawson iteration) over the interval that each
// comment names.
#pragma once

#include "backends/cpu/simd/vector.h"

namespace librt::cpu::RT_SIMD_ISA {

inline constexpr double kWideRounder = 6755399441055744.0;  ///< 1.5 2^52, as kRounder

// Explicit vectors, because the branches of the special cases keep compilers from vectorizing.
using Wide = Vector<double>;
using WideBits = Vector<uint64_t>;
inline constexpr int kPairs = kLanes<double>;  ///< computed at a time
using Narrow = Vector<float, kVectorBytes / 2>;
using NarrowBits = Vector<uint32_t, kVectorBytes / 2>;
using NarrowInts = Vector<int32_t, kVectorBytes / 2>;

/// log2 of positive normal numbers: x = 2^e (1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1], log2(1 + f) = f q(f);
/// relative error 1e-10. e is built from bits, because few instruction sets convert 64-bit integers.
RT_INLINE Wide log2_normal(Wide x) {
  constexpr uint64_t kOne = 0x3ff0000000000000u, kRootHalf = 0x3fe6a09e667f3bcdu;
  const WideBits bits = reinterpret_cast<WideBits>(x) + (kOne - kRootHalf);
  const Wide e = reinterpret_cast<Wide>((bits >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0);
  const Wide f = reinterpret_cast<Wide>((bits & 0x000fffffffffffffu) + kRootHalf) - 1.0;
  Wide q = f * -8.63448394575262457e-02 + 1.54856752172094270e-01;
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

/// 2^x for x in [-1000, 1000]: 2^n 2^r, r in [-1/2, 1/2]; relative error 2e-9.
RT_INLINE Wide exp2_wide(Wide x) {
  const Wide shifted = x + kWideRounder;
  const Wide r = x - (shifted - kWideRounder);
  Wide q = r * 1.53458073941416853e-04 + 1.33999311794554443e-03;
  q = q * r + 9.61848897424679231e-03;
  q = q * r + 5.55032877709050396e-02;
  q = q * r + 2.40226468904760959e-01;
  q = q * r + 6.93147205737187355e-01;
  q = q * r + 1.00000000055418736e+00;
  return q * reinterpret_cast<Wide>((reinterpret_cast<WideBits>(shifted) + 1023) << 52);
}

/// 2^(y log2 |x|) with the sign and the special cases of IEEE 754's pow (C99,
/// annex F.9.4.4).
RT_INLINE Narrow power(Narrow x, Narrow y) {
  const float infinity = __builtin_inff();
  const Narrow zero = {}, one = zero + 1.0f, nan = zero + __builtin_nanf("");
  const Narrow magnitude = reinterpret_cast<Narrow>(reinterpret_cast<NarrowBits>(x) & 0x7fffffffu);
  const Wide wide = __builtin_convertvector(magnitude, Wide);
  Wide logarithm = log2_normal(wide);
  logarithm = wide == 0.0 ? Wide{} - __builtin_inf() : logarithm;
  logarithm = wide == __builtin_inf() ? Wide{} + __builtin_inf() : logarithm;
  Wide exponent = __builtin_convertvector(y, Wide) * logarithm;
  exponent = wide == 1.0 ? Wide{} : exponent;  // also where y is infinite
  exponent = exponent < -200.0 ? Wide{} - 200.0 : exponent;
  exponent = exponent > 200.0 ? Wide{} + 200.0 : exponent;
  Narrow value = __builtin_convertvector(exp2_wide(exponent), Narrow);
  // Floats of 2^24 and more are all even.
  const Narrow y_magnitude = reinterpret_cast<Narrow>(reinterpret_cast<NarrowBits>(y) & 0x7fffffffu);
  const Narrow small = y_magnitude < 16777216.0f ? y : zero;
  const NarrowInts whole = __builtin_convertvector(small, NarrowInts);
  const NarrowInts is_whole = __builtin_convertvector(whole, Narrow) == small;
  const NarrowBits sign = reinterpret_cast<NarrowBits>(whole) << 31 & reinterpret_cast<NarrowBits>(x) &
                          reinterpret_cast<NarrowBits>(is_whole);
  value = reinterpret_cast<Narrow>(reinterpret_cast<NarrowBits>(value) ^ sign);
  value = (((x < 0.0f) & (x != -infinity) & ~is_whole) | (x != x) | (y != y)) ? nan : value;
  return ((y == 0.0f) | (x == 1.0f)) ? one : value;
}

/// Whether truncated_mod() holds: the quotient's rounding, its product with b and the difference are exact.
RT_INLINE bool small_quotient(float a, float b) {
  const float magnitude = absolute(b);
  const bool small = absolute(a) < magnitude * 16777216.0f, finite = magnitude < __builtin_inff();
  return small & finite;
}
/// a - b trunc(a / b), with a's sign: the nearest quotient first, then one b back where the remainder has
/// changed sign.
RT_INLINE float truncated_mod(float a, float b) {
  const auto x = static_cast<double>(a), y = static_cast<double>(b);
  const double quotient = x / y + kWideRounder - kWideRounder;
  double rest = x - quotient * y;
  const double back = (y < 0.0) != (x < 0.0) ? -y : y;
  rest = ((rest != 0.0) & ((rest < 0.0) != (x < 0.0))) ? rest + back : rest;
  return copy_sign(static_cast<float>(rest), a);
}

}  // namespace librt::cpu::RT_SIMD_ISA
