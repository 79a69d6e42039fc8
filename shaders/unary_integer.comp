#version 450
#extension GL_GOOGLE_include_directive : require
// y = f(x) over integers and bool. S is the element type; T, of at least 32 bits, computes.
// variants: unary_{i32 T=int SIGNED|i64 T=int64_t SIGNED|u8 T=uint S=uint8_t}
#include "common.glsl"
#include "function_numbers.glsl"
#ifndef S
#define S T
#endif
layout(constant_id = 1) const uint kFunction = 0;
layout(set = 0, binding = 0, std430) readonly buffer X { S x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { S y[]; };
layout(push_constant) uniform P { uint count; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  T v = T(x[i]);
  T zero = T(0);
  T r = v;
  if (kFunction == kFunctionRelu) r = v > zero ? v : zero;
  else if (kFunction == kFunctionAbs) r = v < zero ? T(zero - v) : v;
  else if (kFunction == kFunctionNeg) r = T(zero - v);
  else if (kFunction == kFunctionSign) r = v > zero ? T(1) : (v < zero ? T(zero - T(1)) : zero);
  else if (kFunction == kFunctionNot) r = v == zero ? T(1) : zero;
  y[i] = S(r);
}
