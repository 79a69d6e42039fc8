#version 450
#extension GL_GOOGLE_include_directive : require
// y = (x - zero) scale. T stores the integer, or BYTES: four in a word. R is the scale's and the result's type; REAL_BF16: R holds bf16 bits.
// Scales are indexed as in quantize.comp.
// variants: dequantize_{f32 R=float|f16 R=float16_t REAL_F16|bf16 R=uint16_t REAL_BF16}_{1 T=uint BYTES|2 T=uint16_t|4 T=int}
#include "common.glsl"
#include "bytes.glsl"
layout(constant_id = 1) const int kHigh = 255;     // the largest integer, of kRange values
layout(constant_id = 2) const int kRange = 0;      // 0: T is a 32-bit integer
layout(constant_id = 3) const uint kHasZero = 0;
layout(set = 0, binding = 0, std430) readonly buffer X { T x[]; };
layout(set = 0, binding = 1, std430) readonly buffer Scale { R scale[]; };
layout(set = 0, binding = 2, std430) readonly buffer Zero { T zero[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Y { R y[]; };
layout(push_constant) uniform P {
  uint count;
  uint extent, inner, block;
  uint outer_stride, block_stride, inner_stride;
};

#ifdef BYTES
#define INTEGER(values, at) int(byte_of(values[(at) / 4], at))
#else
#define INTEGER(values, at) int(values[at])
#endif

int sign_extend(int v) { return kRange != 0 && v > kHigh ? v - kRange : v; }

void main() {
  uint at = invocation_index();
  if (at >= count) return;
  uint i = at % inner, e = at / inner % extent, o = at / inner / extent;
  uint group = o * outer_stride + e / block * block_stride + i * inner_stride;
  int difference = sign_extend(INTEGER(x, at));
  if (kHasZero != 0) difference -= sign_extend(INTEGER(zero, group));
#ifdef REAL_BF16
  float v = float(difference) * uintBitsToFloat(uint(scale[group]) << 16);
  uint bits = floatBitsToUint(v);
  y[at] = R(is_nan(v) ? (bits >> 16) | 0x40u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#else
  y[at] = R(float(difference) * float(scale[group]));
#endif
}
