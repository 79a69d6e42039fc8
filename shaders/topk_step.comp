#version 450
#extension GL_GOOGLE_include_directive : require
// One step of topk_block.comp's network over whole rows of `length` entries, a power of two, in device memory: compares
// each entry with its mirror image in runs of 2 apart (kMirror), or with the neighbour `apart`.
#include "common.glsl"
#include "topk.glsl"
layout(constant_id = 1) const bool kMirror = false;
layout(set = 0, binding = 0, std430) buffer Y { K keys[]; };
layout(set = 0, binding = 1, std430) buffer R { uint places[]; };
layout(push_constant) uniform P { uint count; uint apart; };

void main() {
  uint i = invocation_number();
  if (i >= count) return;
  uint inside = i & (apart - 1);
  uint first = 2 * (i - inside);
  uint a = first + inside;
  uint b = kMirror ? first + 2 * apart - 1 - inside : a + apart;
  K key_a = keys[a], key_b = keys[b];
  uint place_a = places[a], place_b = places[b];
  if (!precedes(key_b, place_b, key_a, place_a)) return;
  keys[a] = key_b;
  keys[b] = key_a;
  places[a] = place_b;
  places[b] = place_a;
}
