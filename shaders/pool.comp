#version 450
#extension GL_GOOGLE_include_directive : require
// kMode 0: maximum (NaN wins), 1: average, 2: the flat position of the first maximum in its image, 0xffffffff for
// a window entirely in the padding.
// variants: pool_{buffer|texel TEXEL}
// variants: pool_halves_{buffer|texel TEXEL} HALVES
#include "common.glsl"
#include "windows.glsl"
#define ELEMENT_ID 6
#include "elements.glsl"
// Small windows are unrolled; 0: the extent is a parameter.
layout(constant_id = 3) const uint kKernelZ = 0;
layout(constant_id = 4) const uint kKernelY = 0;
layout(constant_id = 5) const uint kKernelX = 0;
RT_INPUT(0, x)
RT_OUTPUT(1, y)
#ifdef TEXEL
layout(set = 0, binding = 10) uniform samplerBuffer texel_x;
vec4 load_x4(uint i) {
  vec4 texel = texelFetch(texel_x, int(i));
#ifdef HALVES
  return widened(floatBitsToUint(texel.xy), kElement);
#else
  return texel;
#endif
}
#else
#define load_x4 x_at4
#endif
layout(set = 0, binding = 1, std430) writeonly buffer Where { uint where[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Where4 { uvec4 where4[]; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint c = i % channels;
  uint rest = i / channels;
  uint ox = rest % out_extent[2];
  rest /= out_extent[2];
  uint oy = rest % out_extent[1];
  rest /= out_extent[1];
  uint oz = rest % out_extent[0];
  uint n = rest / out_extent[0];
  vec4 best = vec4(kMode == 1 ? 0.0 : -kInfinity);
  uvec4 argmax = uvec4(0xffffffffu);
  for (uint kz = 0; kz < (kKernelZ > 0 ? kKernelZ : kernel[0]); ++kz) {
    uint z = uint(int(oz * stride[0] + kz * dilation[0]) - pad[0]);
    for (uint ky = 0; ky < (kKernelY > 0 ? kKernelY : kernel[1]); ++ky) {
      uint yy = uint(int(oy * stride[1] + ky * dilation[1]) - pad[1]);
      for (uint kx = 0; kx < (kKernelX > 0 ? kKernelX : kernel[2]); ++kx) {
        uint xx = uint(int(ox * stride[2] + kx * dilation[2]) - pad[2]);
        bool inside = z < in_extent[0] && yy < in_extent[1] && xx < in_extent[2];
        uint position = inside ? (z * in_extent[1] + yy) * in_extent[2] + xx : 0;
        uint at = (n * in_extent[0] * in_extent[1] * in_extent[2] + position) * channels + c;
        vec4 v = kWidth == 4 ? load_x4(at) : vec4(x_at(at), 0.0, 0.0, 0.0);
        if (kMode == 0) {
          [[unroll]] for (uint d = 0; d < kWidth; ++d)
            best[d] = inside && !is_nan(best[d]) && !(best[d] >= v[d]) ? v[d] : best[d];
        } else if (kMode == 1) {
          best += inside ? v : vec4(0.0);
        } else {
          [[unroll]] for (uint d = 0; d < kWidth; ++d) {
            bool wins = inside && (argmax[d] == 0xffffffffu || (!is_nan(best[d]) && (is_nan(v[d]) || v[d] > best[d])));
            best[d] = wins ? v[d] : best[d];
            argmax[d] = wins ? position : argmax[d];
          }
        }
      }
    }
  }
  if (kMode == 1) {
    uint n_counted = counted(0, oz) * counted(1, oy) * counted(2, ox);
    best *= n_counted == 0 ? 0.0 : 1.0 / float(n_counted);
  }
  if (kMode == 2) {
    if (kWidth == 4) where4[i] = argmax;
    else where[i] = argmax.x;
  } else {
    if (kWidth == 4) set_y4(i, best);
    else set_y(i, best.x);
  }
}
