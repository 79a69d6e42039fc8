// Binary functions of f32, with the ids of backends/vulkan/ops/binary.cpp.
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

float apply_binary(uint f, float a, float b) {
  switch (f) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return a / b;
    case 4: return exact_pow(a, b);
    case 5: return min_keep_nan(a, b);
    case 6: return max_keep_nan(a, b);
    case 7: return remainder_of(a, b, false);
    case 8: return remainder_of(a, b, true);
  }
  return a;
}
