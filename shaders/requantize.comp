#version 450
#extension GL_GOOGLE_include_directive : require
// i32 sums as codes or real numbers: r = f(sum scale + bias), y = saturate(round(r / y_scale) + zero), half to even.
// Codes are stored as the unsigned integers of their bits; with REAL the result is r.
#include "common.glsl"
#include "functions.glsl"
layout(constant_id = 1) const int kLow = 0;
layout(constant_id = 2) const uint kFunction = 0;  // as in conv.comp
layout(constant_id = 3) const uint kHasBias = 0;
layout(constant_id = 4) const uint kHasZero = 0;
layout(set = 0, binding = 0, std430) readonly buffer Sums { int sums[]; };
layout(set = 0, binding = 1, std430) readonly buffer Scale { float scale[]; };
layout(set = 0, binding = 2, std430) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3, std430) readonly buffer YScale { float y_scale[]; };
layout(set = 0, binding = 4, std430) readonly buffer Zero { uint8_t zero[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Y {
#ifdef REAL
  float y[];
#else
  uint8_t y[];
#endif
};
layout(push_constant) uniform P {
  uint count;
  uint channels;
  uint scale_step;
  float alpha, beta;
};

void main() {
  uint i = invocation_number();
  if (i >= count) return;
  uint c = i % channels;
  float r = float(sums[i]) * scale[c * scale_step];
  if (kHasBias != 0) r += bias[c];
  r = apply_function(kFunction, r, alpha, beta);
#ifdef REAL
  y[i] = r;
#else
  int zero_point = kHasZero != 0 ? int(zero[0]) : 0;
  if (kLow < 0 && zero_point > 127) zero_point -= 256;
  float q = is_nan(r) ? 0.0 : clamp(r / y_scale[0], -1024.0, 1024.0);
  y[i] = uint8_t(uint(clamp(int(roundEven(q)) + zero_point, kLow, kLow + 255)));
#endif
}
