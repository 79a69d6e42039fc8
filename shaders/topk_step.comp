#version 450
#extension GL_GOOGLE_include_directive : require
// One step of topk_block.comp's network over whole rows of `length` entries, a power of two, in device memory: compares
// each entry with its mirror image in runs of 2 apart (kMirror), or with the neighbour `apart`.
// variants: topk_step_{32 K=uint|64 K=uint64_t}
#include "common.glsl"
#include "topk.glsl"
layout(constant_id = 1) const bool kMirror = false;
layout(set = 0, binding = 0, std430) buffer Y { K keys[]; };
layout(set = 0, binding = 1, std430) buffer R { uint positions[]; };
layout(push_constant) uniform P { uint count; uint distance; };

void main() {
  uint i = invocation_index();
  if (i >= count) return;
  uint inside = i & (distance - 1);
  uint first = 2 * (i - inside);
  uint a = first + inside;
  uint b = kMirror ? first + 2 * distance - 1 - inside : a + distance;
  K key_a = keys[a], key_b = keys[b];
  uint position_a = positions[a], position_b = positions[b];
  if (!precedes(key_b, position_b, key_a, position_a)) return;
  keys[a] = key_b;
  keys[b] = key_a;
  positions[a] = position_b;
  positions[b] = position_a;
}
