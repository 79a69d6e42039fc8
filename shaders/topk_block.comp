#version 450
#extension GL_GOOGLE_include_directive : require
// Sorts blocks of kBlock entries, a power of two, in shared memory, and keeps the first `keep` of each: one workgroup per
// block, `blocks` of them per row. Bitonic sort (Batcher) in the form whose every comparison is ascending: stage
// `size` compares entry i with its mirror image in runs of `size`, then with neighbours at size / 4, size / 8, ..
// LOAD: entries are made from x [outer,length,inner] along the middle axis, stored as T and compared as V. Otherwise they
// are the row's `length` entries of the input buffers, whose runs of kSorted are sorted already; kSorted = kBlock: the
// last stage's mirror is done too.
// variants: topk_load_{f32 T=float V=float FLOAT|f16 T=float16_t V=float FLOAT|u8 T=uint8_t V=uint|u32 T=uint V=uint} LOAD K=uint
// variants: topk_load_{i8 T=int8_t V=int|i32 T=int V=int} LOAD K=uint SIGNED SIZE=4
// variants: topk_load_i64 LOAD K=uint64_t T=int64_t V=int64_t SIGNED SIZE=8
// variants: topk_merge_{32 K=uint|64 K=uint64_t}
#include "common.glsl"
#include "topk.glsl"
layout(constant_id = 1) const uint kBlock = 1024;
layout(constant_id = 2) const uint kSorted = 1;
layout(constant_id = 3) const bool kLargest = true;
#ifdef LOAD
layout(set = 0, binding = 0, std430) readonly buffer X { T x[]; };
#else
layout(set = 0, binding = 0, std430) readonly buffer X { K old_keys[]; };
layout(set = 0, binding = 3, std430) readonly buffer Q { uint old_positions[]; };
#endif
layout(set = 0, binding = 1, std430) writeonly buffer Y { K keys[]; };
layout(set = 0, binding = 2, std430) writeonly buffer R { uint positions[]; };
layout(push_constant) uniform P { uint rows; uint blocks; uint length; uint inner; uint keep; };
shared K block_keys[kBlock];
shared uint block_positions[kBlock];

#ifdef LOAD
K key_of(V value) {
#ifdef FLOAT
  uint bits = floatBitsToUint(float(value));
  if (is_nan(float(value))) bits = 0xffffffffu;
  else if (bits == 0x80000000u) bits = 0x80000000u;  // -0 is 0
  else bits = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
#else
#ifdef SIGNED
  K bits = K(value) ^ (K(1) << (8 * SIZE - 1));
#else
  K bits = K(value);
#endif
#endif
  return kLargest ? ~bits : bits;
}
#endif

void compare(uint a, uint b) {
  K key_a = block_keys[a], key_b = block_keys[b];
  uint position_a = block_positions[a], position_b = block_positions[b];
  if (!precedes(key_b, position_b, key_a, position_a)) return;
  block_keys[a] = key_b;
  block_keys[b] = key_a;
  block_positions[a] = position_b;
  block_positions[b] = position_a;
}

void main() {
  uint group = group_index();
  uint lane = gl_LocalInvocationID.x;
  uint row = group / blocks;
  uint block = group % blocks;
  for (uint i = lane; i < kBlock; i += gl_WorkGroupSize.x) {
    uint at = block * kBlock + i;
    bool inside = row < rows && at < length;
#ifdef LOAD
    block_keys[i] = inside ? key_of(V(x[(row / inner * length + at) * inner + row % inner])) : ~K(0);
    block_positions[i] = inside ? at : 0xffffffffu;
#else
    block_keys[i] = inside ? old_keys[row * length + at] : ~K(0);
    block_positions[i] = inside ? old_positions[row * length + at] : 0xffffffffu;
#endif
  }
  barrier();
  for (uint size = min(2 * kSorted, kBlock); size <= kBlock; size *= 2) {
    if (kSorted < kBlock) {
      for (uint c = lane; c < kBlock / 2; c += gl_WorkGroupSize.x) {
        uint inside = c & (size / 2 - 1);
        uint first = 2 * (c - inside);
        compare(first + inside, first + size - 1 - inside);
      }
      barrier();
    }
    for (uint step = kSorted < kBlock ? size / 4 : size / 2; step > 0; step /= 2) {
      for (uint c = lane; c < kBlock / 2; c += gl_WorkGroupSize.x) {
        uint a = 2 * c - (c & (step - 1));
        compare(a, a + step);
      }
      barrier();
    }
  }
  if (row >= rows) return;
  for (uint i = lane; i < keep; i += gl_WorkGroupSize.x) {
    keys[(row * blocks + block) * keep + i] = block_keys[i];
    positions[(row * blocks + block) * keep + i] = block_positions[i];
  }
}
