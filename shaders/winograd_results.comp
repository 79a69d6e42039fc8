#version 450
#extension GL_GOOGLE_include_directive : require
// Tiles of 4x4 results [N,H,W,C] from their points [36,tiles,C]. c counts channels or, TEXEL, vec4s of them, one for each
// invocation.
// variants: winograd_results_{buffer V=float|texel V=vec4 TEXEL}
#include "common.glsl"
#include "functions.glsl"
#include "epilogue.glsl"
#include "winograd.glsl"
layout(push_constant) uniform P {
  uint count, tiles_h, tiles_w, out_h, out_w, c;
  float alpha, beta;
};
#ifdef TEXEL
layout(set = 0, binding = 10) uniform samplerBuffer points;
V load(uint at) { return texelFetch(points, int(at)); }
#else
layout(set = 0, binding = 0, std430) readonly buffer Points { V points[]; };
V load(uint at) { return points[at]; }
#endif

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint channel = i % c;
  uint tile = i / c;
  uint row = tile / tiles_w;
  uint left = tile % tiles_w * 4, top = row % tiles_h * 4;
  uint image = row / tiles_h * out_h;
  V half_way[4][6];
  [[unroll]] for (uint w = 0; w < 6; ++w) {
    V column[6], results[4];
    [[unroll]] for (uint h = 0; h < 6; ++h) column[h] = load((h * 6 + w) * count + i);
    points_results(column, results);
    [[unroll]] for (uint h = 0; h < 4; ++h) half_way[h][w] = results[h];
  }
#ifdef TEXEL
  vec4 bias_here = vec4(0.0);
  if (kBias) bias_here = load_bias4(channel);
#endif
  [[unroll]] for (uint h = 0; h < 4; ++h)
    if (top + h < out_h) {
      V line[4];
      points_results(half_way[h], line);
      [[unroll]] for (uint w = 0; w < 4; ++w)
        if (left + w < out_w) {
          uint at = ((image + top + h) * out_w + left + w) * c + channel;
#ifdef TEXEL
          store_vec4(at, at, bias_here, line[w], alpha, beta);
#else
          store_result(at, at, channel, line[w], alpha, beta);
#endif
        }
    }
}
