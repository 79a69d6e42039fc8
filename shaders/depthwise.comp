#version 450
#extension GL_GOOGLE_include_directive : require
// Depthwise convolution over [N,H,W,C], one input channel per output channel: kPixels neighbours in a row times four
// channels per invocation. Weight [KH,KW,C]. kTaps > 0: the kernel's width, with dilation 1 and the stride kStride;
// neighbouring pixels then share loads.
// variants: depthwise_{buffer|texel TEXEL}
#include "common.glsl"
#include "functions.glsl"
#define SIXTEEN_BITS 1
#include "load.glsl"
#include "epilogue.glsl"
layout(constant_id = 1) const uint kPixels = 4;
layout(constant_id = 2) const uint kTaps = 0;
layout(constant_id = 3) const uint kStride = 1;
const uint kSpan = kTaps == 0 ? 1 : (kPixels - 1) * kStride + kTaps;
layout(push_constant) uniform P {
  uint count, tiles_w, out_h, out_w, in_h, in_w, c4;
  uint kernel_h, kernel_w, stride_h, stride_w;
  int pad_h, pad_w;
  uint dilation_h, dilation_w;
  float alpha, beta;
};

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint channel = i % c4;
  uint rest = i / c4;
  uint ox = (rest % tiles_w) * kPixels;
  rest /= tiles_w;
  uint oy = rest % out_h;
  uint n = rest / out_h;
  vec4 acc[kPixels];
  [[unroll]] for (uint p = 0; p < kPixels; ++p) acc[p] = vec4(0.0);
  for (uint ky = 0; ky < kernel_h; ++ky) {
    uint y = uint(int(oy * stride_h + ky * dilation_h) - pad_h);
    bool row_inside = y < in_h;
    uint row = (n * in_h + (row_inside ? y : 0)) * in_w;
    if (kTaps > 0) {
      vec4 v[kSpan];
      [[unroll]] for (uint p = 0; p < kSpan; ++p) {
        uint x = uint(int(ox * kStride + p) - pad_w);
        bool inside = row_inside && x < in_w;
        v[p] = load_a((row + (inside ? x : 0)) * c4 + channel);
        v[p] = inside ? v[p] : vec4(0.0);
      }
      [[unroll]] for (uint kx = 0; kx < kTaps; ++kx) {
        vec4 w = load_b((ky * kTaps + kx) * c4 + channel);
        [[unroll]] for (uint p = 0; p < kPixels; ++p) acc[p] = fma(v[p * kStride + kx], w, acc[p]);
      }
    } else {
      for (uint kx = 0; kx < kernel_w; ++kx) {
        vec4 w = load_b((ky * kernel_w + kx) * c4 + channel);
        [[unroll]] for (uint p = 0; p < kPixels; ++p) {
          uint x = uint(int((ox + p) * stride_w + kx * dilation_w) - pad_w);
          bool inside = row_inside && x < in_w;
          vec4 v = load_a((row + (inside ? x : 0)) * c4 + channel);
          acc[p] = fma(inside ? v : vec4(0.0), w, acc[p]);
        }
      }
    }
  }
  vec4 bias_here = vec4(0.0);
  if (kBias) bias_here = load_bias4(channel);
  [[unroll]] for (uint p = 0; p < kPixels; ++p)
    if (ox + p < out_w) {
      uint at4 = ((n * out_h + oy) * out_w + ox + p) * c4 + channel;
      store_vec4(at4, at4, bias_here, acc[p], alpha, beta);
    }
}
