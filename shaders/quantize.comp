#version 450
#extension GL_GOOGLE_include_directive : require
// y = saturate(round(x / scale) + zero), half to even, NaN as 0. S is x's type, R the scale's, T stores the integer, or
// BYTES: four of them, which an invocation computes, are stored as a word. REAL_F16 or REAL_BF16: the quotient is rounded to that type.
// Element (o, e, i) of [outer, extent, inner] has scale o outer_stride + e / block block_stride + i inner_stride.
// variants: quantize_f32_{1 T=uint BYTES|2 T=uint16_t} S=float R=float
// variants: quantize_f16_{1 T=uint BYTES|2 T=uint16_t} S=float16_t R=float16_t REAL_F16
// variants: quantize_bf16_{1 T=uint BYTES|2 T=uint16_t} S=uint16_t R=uint16_t REAL_BF16
// variants: quantize_i32_{1 T=uint BYTES|2 T=uint16_t} S=int R=float
#include "common.glsl"
#include "bytes.glsl"
layout(constant_id = 1) const int kLow = 0;
layout(constant_id = 2) const int kHigh = 255;
layout(constant_id = 3) const uint kHasZero = 0;
layout(set = 0, binding = 0, std430) readonly buffer X { S x[]; };
layout(set = 0, binding = 1, std430) readonly buffer Scale { R scale[]; };
layout(set = 0, binding = 2, std430) readonly buffer Zero { T zero[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint count;
  uint extent, inner, block;
  uint outer_stride, block_stride, inner_stride;
};

#ifdef REAL_BF16
float bf16(float v) {
  uint bits = floatBitsToUint(v);
  return is_nan(v) ? v : uintBitsToFloat((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}
#define READ(v) uintBitsToFloat(uint(v) << 16)
#define ROUND(v) bf16(v)
#elif defined(REAL_F16)
// On the bits, to even: device conversions may round in any direction. Values below f16's normal range become 0 later.
float f16(float v) {
  uint bits = floatBitsToUint(v);
  return is_nan(v) || abs(v) < 6.2e-5 ? v : uintBitsToFloat((bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u);
}
#define READ(v) float(v)
#define ROUND(v) f16(v)
#else
#define READ(v) float(v)
#define ROUND(v) v
#endif

// Device division has an error of a few ulp: one Newton step corrects it.
float divide(float a, float b) {
  precise float q = a / b;
  precise float correction = fma(-q, b, a) / b;
  return abs(q) < 1e9 && !is_nan(correction) ? q + correction : q;
}

#ifdef BYTES
#define ZERO(at) byte_of(zero[(at) / 4], at)
#else
#define ZERO(at) zero[at]
#endif

uint quantized(uint at) {
  uint i = at % inner, e = at / inner % extent, o = at / inner / extent;
  uint group = o * outer_stride + e / block * block_stride + i * inner_stride;
  float q = ROUND(divide(READ(x[at]), READ(scale[group])));
  if (is_nan(q)) q = 0.0;
  int code = int(round_half_even(clamp(q, -131072.0, 131072.0)));
  if (kHasZero != 0) {
    int z = int(ZERO(group));
    code += kLow < 0 && z > kHigh ? z - (kHigh - kLow + 1) : z;
  }
  return uint(clamp(code, kLow, kHigh));
}

void main() {
  uint at = invocation_index();
#ifdef BYTES
  if (4 * at >= count) return;
  uint word = 0;
  [[unroll]] for (uint c = 0; c < 4; ++c) word |= (quantized(min(4 * at + c, count - 1)) & 0xffu) << (8 * c);
  y[at] = word;
#else
  if (at >= count) return;
  y[at] = T(quantized(at));
#endif
}
