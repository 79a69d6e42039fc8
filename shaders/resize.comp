#version 450
#extension GL_GOOGLE_include_directive : require
// Interpolation of up to three spatial axes of x [N,S..,C] by tables of kTaps (index, weight) pairs for each output
// coordinate of each axis; the tables are computed on the host in double precision. An index of 0xffffffff selects the
// extrapolation value.
#include "common.glsl"
layout(constant_id = 1) const uint kTaps = 2;
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 2, std430) readonly buffer Table { uvec2 table[]; };
layout(push_constant) uniform P { uint count; uint channels; uint in_extent[3]; uint out_extent[3]; uint start[3]; float extrapolation; };

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
  if (table[start[0] + oz * kTaps].x == 0xffffffffu || table[start[1] + oy * kTaps].x == 0xffffffffu ||
      table[start[2] + ox * kTaps].x == 0xffffffffu) {
    y[i] = extrapolation;
    return;
  }
  float sum = 0.0;
  for (uint tz = 0; tz < kTaps; ++tz) {
    uvec2 z = table[start[0] + oz * kTaps + tz];
    if (uintBitsToFloat(z.y) == 0.0) continue;
    for (uint ty = 0; ty < kTaps; ++ty) {
      uvec2 v = table[start[1] + oy * kTaps + ty];
      if (uintBitsToFloat(v.y) == 0.0) continue;
      for (uint tx = 0; tx < kTaps; ++tx) {
        uvec2 u = table[start[2] + ox * kTaps + tx];
        float weight = uintBitsToFloat(z.y) * uintBitsToFloat(v.y) * uintBitsToFloat(u.y);
        if (weight == 0.0) continue;
        uint at = ((n * in_extent[0] + z.x) * in_extent[1] + v.x) * in_extent[2] + u.x;
        sum += weight * x[at * channels + c];
      }
    }
  }
  y[i] = sum;
}
