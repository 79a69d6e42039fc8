#version 450
#extension GL_GOOGLE_include_directive : require
// Gradient of a pool with respect to x in gather form: each input element visits the windows that cover it, in order.
// kMode 0: takes the gradient of the windows whose maximum it was (`where` from pool.comp), 1: its share of each.
#include "common.glsl"
#include "windows.glsl"
layout(set = 0, binding = 0, std430) readonly buffer G { float grad[]; };
layout(set = 0, binding = 0, std430) readonly buffer G4 { vec4 grad4[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y4 { vec4 y4[]; };
layout(set = 0, binding = 2, std430) readonly buffer Where { uint where[]; };
layout(set = 0, binding = 2, std430) readonly buffer Where4 { uvec4 where4[]; };

// The window of which `position` is tap k, or 0xffffffff.
uint window_of(uint position, uint k, uint axis) {
  int t = int(position) + pad[axis] - int(k * dilation[axis]);
  if (t < 0 || uint(t) % stride[axis] != 0) return 0xffffffffu;
  uint window = uint(t) / stride[axis];
  return window < out_extent[axis] ? window : 0xffffffffu;
}

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint c = i % channels;
  uint rest = i / channels;
  uint ix = rest % in_extent[2];
  rest /= in_extent[2];
  uint iy = rest % in_extent[1];
  rest /= in_extent[1];
  uint iz = rest % in_extent[0];
  uint n = rest / in_extent[0];
  uint position = (iz * in_extent[1] + iy) * in_extent[2] + ix;
  vec4 sum = vec4(0.0);
  // Taps backwards, so that windows come in order.
  for (uint kz = kernel[0]; kz-- > 0;) {
    uint oz = window_of(iz, kz, 0);
    for (uint ky = kernel[1]; ky-- > 0;) {
      uint oy = window_of(iy, ky, 1);
      for (uint kx = kernel[2]; kx-- > 0;) {
        uint ox = window_of(ix, kx, 2);
        if (oz == 0xffffffffu || oy == 0xffffffffu || ox == 0xffffffffu) continue;
        uint at = (((n * out_extent[0] + oz) * out_extent[1] + oy) * out_extent[2] + ox) * channels + c;
        vec4 g = kWidth == 4 ? grad4[at] : vec4(grad[at], 0.0, 0.0, 0.0);
        if (kMode == 1) {
          uint n_counted = counted(0, oz) * counted(1, oy) * counted(2, ox);
          sum += g * (n_counted == 0 ? 0.0 : 1.0 / float(n_counted));
        } else {
          uvec4 w = kWidth == 4 ? where4[at] : uvec4(where[at], 0, 0, 0);
          [[unroll]] for (uint d = 0; d < kWidth; ++d) sum[d] += w[d] == position ? g[d] : 0.0;
        }
      }
    }
  }
  if (kWidth == 4) y4[i] = sum;
  else y[i] = sum.x;
}
