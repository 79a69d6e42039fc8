#version 450
#extension GL_GOOGLE_include_directive : require
// Chains positions with equal targets: next[i] is the next one, or 0xffffffff; first[i] tells whether i begins a chain.
// Equal targets occur only inside a group: positions (o group + j) stride + i for all j < group.
#include "common.glsl"
layout(set = 0, binding = 0, std430) readonly buffer T0 { uint target[]; };
layout(set = 0, binding = 1, std430) writeonly buffer N { uint next[]; };
layout(set = 0, binding = 2, std430) writeonly buffer F { uint first[]; };
layout(push_constant) uniform P { uint count; uint group; uint stride; };

void main() {
  uint i = invocation_number();
  if (i >= count) return;
  uint mine = target[i];
  uint rank = i / stride % group;
  bool begins = true;
  for (uint j = 1; j <= rank && begins; ++j) begins = target[i - j * stride] != mine;
  uint following = 0xffffffffu;
  for (uint j = 1; j < group - rank && following == 0xffffffffu; ++j)
    if (target[i + j * stride] == mine) following = i + j * stride;
  next[i] = following;
  first[i] = begins ? 1 : 0;
}
