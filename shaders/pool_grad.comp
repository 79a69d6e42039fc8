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

// The windows [x, y) from whose first to last tap `position` lies: two divisions for all of them.
uvec2 windows_around(uint position, uint axis) {
  int t = int(position) + pad[axis];
  int before = t - int((kernel[axis] - 1) * dilation[axis]);
  uint first = before <= 0 ? 0 : (uint(before) + stride[axis] - 1) / stride[axis];
  uint end = t < 0 ? 0 : uint(t) / stride[axis] + 1;
  return uvec2(first, min(end, out_extent[axis]));
}

// Whether `position` is a tap of the window; with a dilation it may lie between two.
bool is_tap(uint position, uint window, uint axis) {
  return dilation[axis] == 1 || uint(int(position) + pad[axis] - int(window * stride[axis])) % dilation[axis] == 0;
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
  uvec2 over_z = windows_around(iz, 0), over_y = windows_around(iy, 1), over_x = windows_around(ix, 2);
  for (uint oz = over_z.x; oz < over_z.y; ++oz) {
    if (!is_tap(iz, oz, 0)) continue;
    for (uint oy = over_y.x; oy < over_y.y; ++oy) {
      if (!is_tap(iy, oy, 1)) continue;
      for (uint ox = over_x.x; ox < over_x.y; ++ox) {
        if (!is_tap(ix, ox, 2)) continue;
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
