#version 450
#extension GL_GOOGLE_include_directive : require
// Joins the chains of scatter_chain.comp to y [rows,inner], which holds the data: y = y + update (0), y * update (3),
// or the larger (1) or smaller (2) one, in the order of the updates [positions,inner].
#include "common.glsl"
#include "reduce.glsl"
layout(constant_id = 1) const uint kFunction = 0;
layout(set = 0, binding = 0, std430) readonly buffer U { T updates[]; };
layout(set = 0, binding = 1, std430) buffer Y { T y[]; };
layout(set = 0, binding = 2, std430) readonly buffer T0 { uint target[]; };
layout(set = 0, binding = 3, std430) readonly buffer N { uint next[]; };
layout(set = 0, binding = 4, std430) readonly buffer F { uint first[]; };
layout(push_constant) uniform P { uint count; uint inner; };

void main() {
  uint i = invocation_number();
  if (i >= count) return;
  uint position = i / inner;
  if (first[position] == 0) return;
  uint at = target[position] * inner + i % inner;
  T total = y[at];
  for (uint j = position; j != 0xffffffffu; j = next[j]) total = reduce_step(kFunction, total, updates[j * inner + i % inner]);
  y[at] = total;
}
