#version 450
#extension GL_GOOGLE_include_directive : require
// y = x in another type. S and T are the types, macros give their kinds: SOURCE_FLOAT, TARGET_FLOAT, TARGET_BOOL.
// SOURCE_BF16 and TARGET_BF16: the element is the upper half of an f32, rounded to nearest even.
// Floats become integers by truncation with saturation (LOW, HIGH in f32), NaN becomes 0; integers wrap.
#include "common.glsl"
layout(set = 0, binding = 0, std430) readonly buffer X { S x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P { uint count; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
#ifdef SOURCE_BF16
#define V float
  V v = uintBitsToFloat(uint(x[i]) << 16);
#else
#define V S
  V v = x[i];
#endif
#if defined(TARGET_BOOL)
  y[i] = v != V(0) ? T(1) : T(0);
#elif defined(TARGET_BF16)
  uint bits = floatBitsToUint(float(v));
  uint rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  y[i] = T(is_nan(float(v)) ? (bits >> 16) | 0x40u : rounded);  // a NaN stays a quiet NaN
#elif defined(SOURCE_FLOAT) && !defined(TARGET_FLOAT)
  float f = float(v);
  if (is_nan(f)) y[i] = T(0);
  else if (f <= LOW_AS_FLOAT) y[i] = LOW;
  else if (f >= HIGH_AS_FLOAT) y[i] = HIGH;
  else y[i] = T(f);
#else
  y[i] = T(v);
#endif
}
