#version 450
#extension GL_GOOGLE_include_directive : require
// y = x rounded to the nearest value of a narrow float format, ties to even.
#include "common.glsl"
layout(constant_id = 1) const uint kMantissa = 3;   // bits after the point
layout(constant_id = 2) const uint kLeast = 121;    // the least biased exponent of a normal number
layout(constant_id = 3) const uint kMinusZero = 1;
layout(set = 0, binding = 0, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { uint y[]; };
layout(push_constant) uniform P {
  uint count;
  float largest, beyond;  // what a magnitude above the largest becomes
  uint for_nan;
};

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint bits = x[i], magnitude = bits & 0x7fffffffu, sign = bits & 0x80000000u;
  if (magnitude > 0x7f800000u) {
    y[i] = for_nan == 0x80000000u ? for_nan : bits;
    return;
  }
  uint exponent = clamp(magnitude >> 23, kLeast, 250u);
  // In units of the last kept place. A subnormal f32, which a device may flush to 0, is far below half a unit.
  float whole = round_half_even(min(uintBitsToFloat(magnitude) * uintBitsToFloat((254u + kMantissa - exponent) << 23), 65536.0));
  float size = whole * uintBitsToFloat((exponent - kMantissa) << 23);
  if (size > largest) size = beyond;
  if (size == 0.0 && kMinusZero == 0) sign = 0;
  y[i] = floatBitsToUint(size) | sign;
}
