#version 450
#extension GL_GOOGLE_include_directive : require
// Rotary embedding of x [batch,heads,queries,width] by cos and sin [batch or 1,queries,pairs]: one invocation for each
// pair (i, i + pairs), or (2i, 2i + 1) if interleaved, and for each element after the pairs, which is copied.
#include "common.glsl"
layout(constant_id = 1) const bool kInterleaved = false;
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 2, std430) readonly buffer C { float cosines[]; };
layout(set = 0, binding = 3, std430) readonly buffer S { float sines[]; };
layout(push_constant) uniform P { uint count; uint heads; uint queries; uint width; uint pairs; uint table_batch; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint items = width - pairs;
  uint item = i % items, row = i / items;
  uint base = row * width;
  if (item >= pairs) {
    y[base + pairs + item] = x[base + pairs + item];
    return;
  }
  uint at = ((row / (heads * queries)) * table_batch + row % queries) * pairs + item;
  uint first = base + (kInterleaved ? 2 * item : item), second = first + (kInterleaved ? 1 : pairs);
  float a = x[first], b = x[second], c = cosines[at], s = sines[at];
  y[first] = a * c - b * s;
  y[second] = a * s + b * c;
}
