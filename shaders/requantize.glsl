// Stores an i32 accumulator as it is, as a float r = f(sum scale + bias), or quantized: saturate(round(r / y_scale) +
// zero), half to even. Quantized values are stored as the unsigned integers of their bits, in words.
#include "bytes.glsl"
layout(constant_id = 1) const uint kResult = 0;    // 0: accumulators, 1: floats, 2: quantized
layout(constant_id = 2) const int kLow = 0;        // the least quantized value
layout(constant_id = 3) const uint kFunction = 0;  // as in functions.glsl
layout(constant_id = 4) const bool kHasBias = false;
layout(constant_id = 5) const bool kHasZero = false;
layout(set = 0, binding = 2, std430) writeonly buffer Sums { int sums[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Sums4 { ivec4 sums4[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Reals { float reals[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Reals4 { vec4 reals4[]; };
layout(set = 0, binding = 2, std430) buffer Quantized4 { uint quantized4[]; };
layout(set = 0, binding = 3, std430) readonly buffer Scale { float scale[]; };
layout(set = 0, binding = 3, std430) readonly buffer Scale4 { vec4 scale4[]; };
layout(set = 0, binding = 4, std430) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 4, std430) readonly buffer Bias4 { vec4 bias4[]; };
layout(set = 0, binding = 5, std430) readonly buffer YScale { float y_scale[]; };
layout(set = 0, binding = 6, std430) readonly buffer YZero { uint y_zero[]; };  // the first byte

struct Requantization {
  vec4 scale, bias;  // of a channel (in x), or of four neighbours
  float y_scale;
  int y_zero;
};

// What all channels share, loaded once.
Requantization requantization() {
  Requantization r = Requantization(vec4(1.0), vec4(0.0), 1.0, 0);
  if (kResult == 2) r.y_scale = y_scale[0];
  if (kHasZero) r.y_zero = int(byte_of(y_zero[0], 0));
  if (kLow < 0 && r.y_zero > 127) r.y_zero -= 256;
  return r;
}

// scale_step: 0 per tensor, 1 per channel.
void set_channel(inout Requantization r, uint channel, uint scale_step) {
  if (kResult != 0) r.scale.x = scale[channel * scale_step];
  if (kHasBias) r.bias.x = bias[channel];
}

// For the channels from 4 * channel4 on.
void set_channels(inout Requantization r, uint channel4, uint scale_step) {
  if (kResult != 0) r.scale = scale_step == 0 ? vec4(scale[0]) : scale4[channel4];
  if (kHasBias) r.bias = bias4[channel4];
}

float real_of(int sum, float channel_scale, float channel_bias, float alpha, float beta) {
  return apply_function(kFunction, float(sum) * channel_scale + channel_bias, alpha, beta);
}

uint quantize(float real, Requantization r) {
  float q = real / r.y_scale;
  q = is_nan(q) ? 0.0 : clamp(q, -1024.0, 1024.0);
  return uint(clamp(int(round_half_even(q)) + r.y_zero, kLow, kLow + 255)) & 0xffu;
}

// The word of a quantized value may be shared by invocations: the result is filled with zeros before the dispatch.
void store_sum(uint at, int sum, Requantization r, float alpha, float beta) {
  if (kResult == 0) {
    sums[at] = sum;
    return;
  }
  float real = real_of(sum, r.scale.x, r.bias.x, alpha, beta);
  if (kResult == 1) reals[at] = real;
  else atomicOr(quantized4[at / 4], quantize(real, r) << (8 * (at % 4)));
}

// Accumulators of four neighbouring channels, at 4 * at4.
void store_sums(uint at4, ivec4 sum, Requantization r, float alpha, float beta) {
  if (kResult == 0) {
    sums4[at4] = sum;
    return;
  }
  vec4 real;
  [[unroll]] for (uint c = 0; c < 4; ++c) real[c] = real_of(sum[c], r.scale[c], r.bias[c], alpha, beta);
  if (kResult == 1) {
    reals4[at4] = real;
    return;
  }
  uint word = 0;
  [[unroll]] for (uint c = 0; c < 4; ++c) word |= quantize(real[c], r) << (8 * c);
  quantized4[at4] = word;
}
