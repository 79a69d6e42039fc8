#version 450
#extension GL_GOOGLE_include_directive : require
// The 6x6 patches of [N,H,W,C] that tiles of 4x4 results read, transformed: [36,tiles,C]. Zeros outside of the image.
// c counts channels or, TEXEL, vec4s of them, one for each invocation.
// variants: winograd_patches_{buffer V=float|texel V=vec4 TEXEL}
#include "common.glsl"
#include "winograd.glsl"
layout(push_constant) uniform P {
  uint count, tiles_h, tiles_w, in_h, in_w, c;
  int pad_h, pad_w;
};
#ifdef TEXEL
layout(set = 0, binding = 10) uniform samplerBuffer x;
V load(uint at) { return texelFetch(x, int(at)); }
#else
layout(set = 0, binding = 0, std430) readonly buffer X { V x[]; };
V load(uint at) { return x[at]; }
#endif
layout(set = 0, binding = 1, std430) writeonly buffer Y { V y[]; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint channel = i % c;
  uint tile = i / c;
  uint row = tile / tiles_w;
  int left = int(tile % tiles_w * 4) - pad_w, top = int(row % tiles_h * 4) - pad_h;
  uint image = row / tiles_h * in_h;
  V half_way[6][6];
  [[unroll]] for (int h = 0; h < 6; ++h) {
    bool inside_h = uint(top + h) < in_h;
    uint from = (image + (inside_h ? uint(top + h) : 0)) * in_w;
    V line[6];
    [[unroll]] for (int w = 0; w < 6; ++w) {
      bool inside = inside_h && uint(left + w) < in_w;
      V value = load((from + (inside ? uint(left + w) : 0)) * c + channel);
      line[w] = inside ? value : V(0.0);
    }
    patch_points(line, half_way[h]);
  }
  [[unroll]] for (uint w = 0; w < 6; ++w) {
    V column[6], points[6];
    [[unroll]] for (uint h = 0; h < 6; ++h) column[h] = half_way[h][w];
    patch_points(column, points);
    [[unroll]] for (uint h = 0; h < 6; ++h) y[(h * 6 + w) * count + i] = points[h];
  }
}
