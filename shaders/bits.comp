#version 450
#extension GL_GOOGLE_include_directive : require
// Bitwise operators on integers with broadcasting. S is the element
// type, WIDTH its bits; T, of at least 32 bits, computes. A shift by WIDTH or more, or by less than 0, gives 0; a right shift of a signed type, its sign.
// variants: bits_{u8 T=uint S=uint8_t WIDTH=8|u16 T=uint S=uint16_t WIDTH=16|u32 T=uint32_t WIDTH=32|u64 T=uint64_t WIDTH=64}
// variants: bits_{i8 T=int S=int8_t WIDTH=8|i16 T=int S=int16_t WIDTH=16|i32 T=int32_t WIDTH=32|i64 T=int64_t WIDTH=64} SIGNED
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
  bool inside = v >= T(0) && v < T(WIDTH);
  T sign_of_u = T(0);
#ifdef SIGNED
  if (u < T(0)) sign_of_u = T(-1);
#endif
  T r = u;
  switch (kFunction) {
    case kBinaryBitwiseAnd: r = u & v; break;
    case kBinaryBitwiseOr: r = u | v; break;
    case kBinaryBitwiseXor: r = u ^ v; break;
    case kBinaryShiftLeft: r = inside ? u << v : T(0); break;
    case kBinaryShiftRight: r = inside ? u >> v : sign_of_u; break;
  }
  y[i] = S(r);
}
