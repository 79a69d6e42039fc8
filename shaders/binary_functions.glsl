// Functions of two f32. kBinaryAdd and so on are the values of BinaryFunction in runtime/core/binary_function.h.
#include "function_numbers.glsl"
float exact_pow(float a, float b) {
  if (b == 0.0 || a == 1.0) return 1.0;
  if (is_nan(a) || is_nan(b)) return uintBitsToFloat(0x7fc00000u);
  bool whole = abs(b) >= 16777216.0 || floor(b) == b;
  bool odd = whole && abs(b) < 16777216.0 && (int(b) & 1) != 0;
  if (whole && abs(b) <= 64.0) {  // by squaring: exact if the result is representable
    float result = 1.0;
    float factor = a;
    for (uint left = uint(abs(b)); left != 0u; left >>= 1) {
      if ((left & 1u) != 0u) result *= factor;
      factor *= factor;
    }
    return b < 0.0 ? 1.0 / result : result;
  }
  if (a < 0.0 && !whole) return a == -kInfinity ? (b < 0.0 ? 0.0 : kInfinity) : uintBitsToFloat(0x7fc00000u);
  if (b == 0.5 && a >= 0.0) return sqrt(a);
  // a = 2^e m: b log2(a) in two parts, so that the rounding of a large product does not reach the mantissa.
  float magnitude = abs(a);
  if (magnitude == 0.0) return b < 0.0 ? (odd && floatBitsToInt(a) < 0 ? -kInfinity : kInfinity) : 0.0;
  if (magnitude == kInfinity) return b < 0.0 ? 0.0 : (odd && a < 0.0 ? -kInfinity : kInfinity);
  float r = exact_exp(b * exact_log(magnitude));
  return odd && a < 0.0 ? -r : r;
}

float remainder_of(float a, float b, bool truncated) {
  if (b == 0.0 || is_nan(a) || is_nan(b) || abs(a) == kInfinity) return uintBitsToFloat(0x7fc00000u);
  if (abs(b) == kInfinity) return truncated || a == 0.0 || (a < 0.0) == (b < 0.0) ? a : b;
  float q = trunc(a / b);
  float r = fma(-q, b, a);
  // The rounded quotient may be off by one.
  if (abs(r) >= abs(b)) r -= (r < 0.0) == (b < 0.0) ? b : -b;
  if (r != 0.0 && (r < 0.0) != (a < 0.0)) r += (a < 0.0) == (b < 0.0) ? b : -b;
  if (!truncated && r != 0.0 && (r < 0.0) != (b < 0.0)) r += b;
  return r;
}

// The derivatives of Gelu, of its tanh form, where x^2 is bounded so that its product with 1 - t^2 = 0 is 0, and of
// Silu.
float gelu_slope(float x) {
  return 0.5 * (1.0 + exact_erf(x * 0.70710678)) + x * (exact_exp(-0.5 * x * x) * 0.39894228);
}
float gelu_tanh_slope(float x) {
  float square = x * x > 1e30 ? 1e30 : x * x;
  float t = exact_tanh(x * (square * 0.03567740814 + 0.7978845608));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * (square * 0.1070322244 + 0.7978845608);
}
float silu_slope(float x) {
  float s = sigmoid(x);
  return s + x * s * (1.0 - s);
}

// Those that take a few operations; the others return a.
float apply_short_binary(uint f, float a, float b) {
  switch (f) {
    case kBinaryAdd: return a + b;
    case kBinarySub: return a - b;
    case kBinaryMul: return a * b;
    case kBinaryDiv: return a / b;
    case kBinaryMinimum: return min_keep_nan(a, b);
    case kBinaryMaximum: return max_keep_nan(a, b);
    case kBinaryReluGrad: return b > 0.0 ? a : 0.0;
  }
  return a;
}

float apply_binary(uint f, float a, float b) {
  switch (f) {
    case kBinaryPow: return exact_pow(a, b);
    case kBinaryMod: return remainder_of(a, b, false);
    case kBinaryModTruncated: return remainder_of(a, b, true);
    case kBinaryGeluGrad: return a * gelu_slope(b);
    case kBinaryGeluTanhGrad: return a * gelu_tanh_slope(b);
    case kBinarySiluGrad: return a * silu_slope(b);
  }
  return apply_short_binary(f, a, b);
}
