#version 450
#extension GL_GOOGLE_include_directive : require
// Depthwise convolution of 8-bit integers over [N,H,W,C], one input channel per output channel, C a multiple of 16:
// requantize of the sum of (x - zx) w; kPixels neighbours in a row times sixteen channels per invocation. Weight
// [C/16,KH,KW][16], i8. Accumulates in f32, exactly: the host ensures that sums stay below 2^24. kTaps > 0: the
// kernel's width, with dilation 1 and the stride kStride; neighbouring pixels then share loads.
// variants: depthwise_integer_{buffer|texel TEXEL}
#include "common.glsl"
#include "functions.glsl"
#define WORDS 1
#include "load.glsl"
#include "requantize.glsl"
layout(constant_id = 6) const uint kPixels = 4;
layout(constant_id = 7) const uint kTaps = 0;
layout(constant_id = 8) const uint kStride = 1;
layout(constant_id = 9) const uint kFlipX = 0;  // 128: x is signed
layout(constant_id = 10) const int kFlipW = 0;  // 128: the weight was unsigned before it was packed
layout(constant_id = 11) const bool kZeroX = false;
layout(set = 0, binding = 7, std430) readonly buffer Zx { uint x_zero[]; };  // the first byte
layout(push_constant) uniform P {
  uint count, tiles_w, out_h, out_w, in_h, in_w, c16;
  uint kernel_h, kernel_w, stride_h, stride_w;
  int pad_h, pad_w;
  uint dilation_h, dilation_w;
  uint scale_step;
  float alpha, beta;
};
const uint kSpan = kTaps == 0 ? 1 : (kPixels - 1) * kStride + kTaps;

float unsigned_byte(uvec4 words, uint t) { return float((words[t / 4] >> (8 * (t % 4))) & 0xffu); }
float signed_byte(uvec4 words, uint t) { return float(((int(words[t / 4]) << (24 - 8 * (t % 4))) >> 24) + kFlipW); }

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint block = i % c16;
  uint rest = i / c16;
  uint ox = (rest % tiles_w) * kPixels;
  rest /= tiles_w;
  uint oy = rest % out_h;
  uint n = rest / out_h;
  // Padding bytes are the zero point; signed bytes are read with their sign bit flipped.
  uint zero = kZeroX ? byte_of(x_zero[0], 0) ^ kFlipX : kFlipX;
  float acc[kPixels][16];
  [[unroll]] for (uint p = 0; p < kPixels; ++p) [[unroll]] for (uint c = 0; c < 16; ++c) acc[p][c] = 0.0;
  uint at_w = block * kernel_h * kernel_w;
  for (uint ky = 0; ky < kernel_h; ++ky) {
    uint y = uint(int(oy * stride_h + ky * dilation_h) - pad_h);
    bool row_inside = y < in_h;
    uint row = (n * in_h + (row_inside ? y : 0)) * in_w;
    if (kTaps > 0) {
      uvec4 v[kSpan], w[kTaps == 0 ? 1 : kTaps];
      [[unroll]] for (uint p = 0; p < kSpan; ++p) {
        uint x = uint(int(ox * kStride + p) - pad_w);
        bool inside = row_inside && x < in_w;
        v[p] = load_a((row + (inside ? x : 0)) * c16 + block) ^ (kFlipX * 0x01010101u);
        v[p] = inside ? v[p] : uvec4(zero * 0x01010101u);
      }
      [[unroll]] for (uint kx = 0; kx < kTaps; ++kx) w[kx] = load_b(at_w + kx);
      [[unroll]] for (uint c = 0; c < 16; ++c) {
        float value[kSpan];
        [[unroll]] for (uint p = 0; p < kSpan; ++p) value[p] = unsigned_byte(v[p], c) - float(zero);
        [[unroll]] for (uint kx = 0; kx < kTaps; ++kx) {
          float weight = signed_byte(w[kx], c);
          [[unroll]] for (uint p = 0; p < kPixels; ++p) acc[p][c] = fma(value[p * kStride + kx], weight, acc[p][c]);
        }
      }
    } else {
      for (uint kx = 0; kx < kernel_w; ++kx) {
        uvec4 w = load_b(at_w + kx);
        [[unroll]] for (uint p = 0; p < kPixels; ++p) {
          uint x = uint(int((ox + p) * stride_w + kx * dilation_w) - pad_w);
          bool inside = row_inside && x < in_w;
          uvec4 v = load_a((row + (inside ? x : 0)) * c16 + block) ^ (kFlipX * 0x01010101u);
          v = inside ? v : uvec4(zero * 0x01010101u);
          [[unroll]] for (uint c = 0; c < 16; ++c)
            acc[p][c] = fma(unsigned_byte(v, c) - float(zero), signed_byte(w, c), acc[p][c]);
        }
      }
    }
    at_w += kernel_w;
  }
  Requantization r = requantization();
  [[unroll]] for (uint c = 0; c < 16; c += 4) {
    set_channels(r, block * 4 + c / 4, scale_step);
    [[unroll]] for (uint p = 0; p < kPixels; ++p)
      if (ox + p < out_w)
        store_sums((((n * out_h + oy) * out_w + ox + p) * c16 + block) * 4 + c / 4,
                   ivec4(acc[p][c], acc[p][c + 1], acc[p][c + 2], acc[p][c + 3]), r, alpha, beta);
  }
}
