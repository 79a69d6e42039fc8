#version 450
#extension GL_GOOGLE_include_directive : require
// From flat positions in an image, [N,O..,C], 0xffffffff for none, to i64 positions in the flattened [N,C,S..], -1 for
// none; kColumnMajor counts the spatial axes from the first one on. Positions fit in the low word.
#include "common.glsl"
layout(constant_id = 1) const bool kColumnMajor = false;
layout(set = 0, binding = 0, std430) readonly buffer W { uint where[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { uvec2 y[]; };
layout(push_constant) uniform P { uint count; uint channels; uint windows; uint extent[3]; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint at = where[i];
  if (at == 0xffffffffu) {
    y[i] = uvec2(at);
    return;
  }
  uint image = i / channels / windows;
  if (kColumnMajor)
    at = at / (extent[1] * extent[2]) + (at / extent[2] % extent[1] + at % extent[2] * extent[1]) * extent[0];
  y[i] = uvec2((image * channels + i % channels) * extent[0] * extent[1] * extent[2] + at, 0);
}
