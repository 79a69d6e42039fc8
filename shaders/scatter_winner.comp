#version 450
#extension GL_GOOGLE_include_directive : require
// The last position that writes each row, plus 1; 0 if there is none. A maximum does not depend on the order.
#include "common.glsl"
layout(set = 0, binding = 0, std430) readonly buffer T0 { uint target[]; };
layout(set = 0, binding = 1, std430) buffer W { uint winner[]; };
layout(push_constant) uniform P { uint count; };

void main() {
  uint i = invocation_index();
  if (i < count) atomicMax(winner[target[i]], i + 1);
}
