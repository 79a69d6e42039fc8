#version 450
#extension GL_GOOGLE_include_directive : require
// y = f(a, b) over integers and bool with broadcasting; overflow wraps. S is the element type; T,
// of at least 32 bits, computes: devices may store small types and not compute with them.
// variants: binary_{i32 T=int SIGNED|i64 T=int64_t SIGNED|u8 T=uint S=uint8_t}
#include "common.glsl"
#include "axes.glsl"
#include "function_numbers.glsl"
#ifndef S
#define S T
#endif
layout(constant_id = 1) const uint kFunction = 0;
layout(constant_id = 2) const uint kRank = 1;
layout(set = 0, binding = 0, std430) readonly buffer A { S a[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { S b[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { S y[]; };
layout(push_constant) uniform P { uint count; uint extent[6]; uint stride_a[6]; uint stride_b[6]; };

// Division by zero is undefined; returning 0 avoids a trap on software (CPU) devices.
T quotient(T u, T v) {
#ifdef SIGNED
  if (v == T(-1)) return T(0) - u;
#endif
  return v == T(0) ? T(0) : u / v;
}

T remainder_of(T u, T v, bool truncated) {
  T r = u - quotient(u, v) * v;
#ifdef SIGNED
  if (!truncated && r != T(0) && (r < T(0)) != (v < T(0))) r += v;
#endif
  return v == T(0) ? T(0) : r;
}

T power(T base, T exponent) {
#ifdef SIGNED
  if (exponent < T(0)) return base == T(1) ? T(1) : (base == T(-1) ? ((exponent & T(1)) == T(0) ? T(1) : T(-1)) : T(0));
#endif
  T result = T(1);
  T factor = base;
  T left = exponent;
  while (left != T(0)) {
    if ((left & T(1)) != T(0)) result *= factor;
    factor *= factor;
    left >>= T(1);
  }
  return result;
}

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint rest = i, at_a = 0, at_b = 0;
  RT_FOR_AXES_REVERSED(axis) {
    uint here = RT_INDEX_OF(axis, rest);
    rest /= extent[axis];
    at_a += here * stride_a[axis];
    at_b += here * stride_b[axis];
  }
  T u = T(a[at_a]);
  T v = T(b[at_b]);
  T r = u;
  switch (kFunction) {
    case kBinaryAdd: r = u + v; break;
    case kBinarySub: r = u - v; break;
    case kBinaryMul: r = u * v; break;
    case kBinaryDiv: r = quotient(u, v); break;
    case kBinaryPow: r = power(u, v); break;
    case kBinaryMinimum: r = v < u ? v : u; break;
    case kBinaryMaximum: r = u < v ? v : u; break;
    case kBinaryMod: r = remainder_of(u, v, false); break;
    case kBinaryModTruncated: r = remainder_of(u, v, true); break;
    case kBinaryAnd: r = T(u != T(0) && v != T(0)); break;
    case kBinaryOr: r = T(u != T(0) || v != T(0)); break;
    case kBinaryXor: r = T((u != T(0)) != (v != T(0))); break;
  }
  y[i] = S(r);
}
