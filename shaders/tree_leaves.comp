#version 450
#extension GL_GOOGLE_include_directive : require
// The leaf of each row [rows,features] in each tree: see TreeLeaves in schema/ops.fbs. One invocation for a row and a tree.
#include "common.glsl"
#include "indices.glsl"
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { int y[]; };
layout(set = 0, binding = 2, std430) readonly buffer N { ivec4 nodes[]; };
layout(set = 0, binding = 3, std430) readonly buffer T { float threshold[]; };
layout(set = 0, binding = 4, std430) readonly buffer R { int roots[]; };
layout(push_constant) uniform P { uint count; uint trees; int features; int node_count; uint levels; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint row = i / trees * uint(features);
  uint at = selected_position(roots[i % trees], node_count);
  for (uint level = 0; level < levels; ++level) {
    ivec4 node = nodes[at];
    float value = x[row + selected_position(node.x, features)], limit = threshold[at];
    // Less, equal, NaN: bits of the comparison.
    int relation = is_nan(value) ? 4 : (is_nan(limit) ? 0 : (value < limit ? 1 : (value == limit ? 2 : 0)));
    uint next = selected_position((relation & node.w) != 0 ? node.y : node.z, node_count);
    if (next == at) break;  // and in all steps that follow
    at = next;
  }
  y[i] = int(at);
}
