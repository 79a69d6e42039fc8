#version 450
#extension GL_GOOGLE_include_directive : require
// An optimizer step with block-quantized states, kBlocksPerGroup blocks per workgroup, one after the other: the states
// are dequantized, the step is made, the largest magnitudes become the new scales, and the states are quantized again as in
// block_quantize.comp.
#include "common.glsl"
layout(constant_id = 4) const uint kBlock = 256;
layout(constant_id = 5) const uint kNegative = 0;  // bit i: state i is signed
layout(constant_id = 6) const uint kBlocksPerGroup = 1;
layout(set = 0, binding = 0, std430) readonly buffer P0 { float p[]; };
layout(set = 0, binding = 1, std430) readonly buffer G { float grad[]; };
// scalars[] of optimizer_scalars.comp; from 16 on the signed codebook, from 272 on the unsigned one.
layout(set = 0, binding = 2, std430) readonly buffer N { float scalars[]; };
layout(set = 0, binding = 3, std430) writeonly buffer P1 { float new_p[]; };
layout(set = 0, binding = 4, std430) buffer A { uint8_t a[]; };
layout(set = 0, binding = 5, std430) buffer B { uint8_t b[]; };
layout(set = 0, binding = 6, std430) buffer C { uint8_t c[]; };
layout(set = 0, binding = 7, std430) buffer SA { float a_scales[]; };
layout(set = 0, binding = 8, std430) buffer SB { float b_scales[]; };
layout(set = 0, binding = 9, std430) buffer SC { float c_scales[]; };
layout(push_constant) uniform P {
  uint count;
  float beta1, beta2, one_minus_beta1, one_minus_beta2;
  float epsilon, decay, momentum;
  uint negative_levels, positive_levels;  // of the codebooks
};
#define REAL float
#include "optimizer.glsl"

shared float moments[3 * kBlock];  // each element is read by the invocation that wrote it
shared float partial[gl_WorkGroupSize.x];
// Midpoints between neighbouring codebook values, as binary search trees: the children of [k] are [2 k], for values
// below the midpoint times the scale, and [2 k + 1]. The tree of the unsigned codebook begins at 256.
shared float trees[512];

bool negative(uint state) { return (kNegative >> state & 1u) != 0; }
uint book(uint state) { return negative(state) ? 16 : 272; }
uint levels(uint state) { return negative(state) ? negative_levels : positive_levels; }

float dequantize(uint state, uint quantized, float scale) {
  return scalars[book(state) + min(quantized, levels(state) - 1)] * scale;
}

// The maximum over all invocations.
float largest(float value) {
  uint lane = gl_LocalInvocationID.x;
  barrier();
  partial[lane] = value;
  for (uint width = gl_WorkGroupSize.x / 2; width > 0; width /= 2) {
    barrier();
    if (lane < width) partial[lane] = max_keep_nan(partial[lane], partial[lane + width]);
  }
  barrier();
  return partial[0];
}

void fill_trees() {
  for (uint i = gl_LocalInvocationID.x; i < 512; i += gl_WorkGroupSize.x) {
    uint k = i & 255u, first = i < 256 ? 16 : 272, count = i < 256 ? negative_levels : positive_levels;
    uint level = max(findMSB(k), 0);
    uint upper = (2 * (k - (1u << level)) + 1) << (7 - level);
    float middle = kInfinity;
    if (k > 0 && upper < count) middle = 0.5 * (scalars[first + upper - 1] + scalars[first + upper]);
    trees[i] = middle;
  }
  barrier();
}

bool reaches(float v, float middle, float scale) {
  precise float threshold = middle * scale;
  return v >= threshold;
}

// The first three levels are passed in, so that they need no load per element.
uint quantize(uint state, float v, float scale, float root, vec2 second, vec4 third) {
  uint tree = negative(state) ? 0 : 256;
  bool above = reaches(v, root, scale);
  bool next = reaches(v, above ? second.y : second.x, scale);
  vec2 pair = above ? third.zw : third.xy;
  uint node = 4u + (above ? 2u : 0u) + (next ? 1u : 0u);
  node = 2 * node + (reaches(v, next ? pair.y : pair.x, scale) ? 1u : 0u);
  [[unroll]] for (uint level = 3; level < 8; ++level)
    node = 2 * node + (reaches(v, trees[tree + node], scale) ? 1u : 0u);
  uint quantized = is_nan(v) || is_nan(scale) ? 0 : min(node - 256, levels(state) - 1);
  return !negative(state) && v > 0.0 && !is_nan(v) ? max(quantized, 1u) : quantized;
}

void step_block(uint block) {
  uint lane = gl_LocalInvocationID.x;
  uint begin = block * kBlock, end = min(begin + kBlock, count);
  float scale0 = has(0) ? a_scales[block] : 0.0;
  float scale1 = has(1) ? b_scales[block] : 0.0;
  float scale2 = has(2) ? c_scales[block] : 0.0;
  for (uint i = begin + lane; i < end; i += gl_WorkGroupSize.x) {
    float parameter = p[i];
    float s0 = has(0) ? dequantize(0, a[i], scale0) : 0.0;
    float s1 = has(1) ? dequantize(1, b[i], scale1) : 0.0;
    float s2 = has(2) ? dequantize(2, c[i], scale2) : 0.0;
    step_elements(parameter, grad[i], s0, s1, s2);
    new_p[i] = parameter;
    if (has(0)) moments[i - begin] = s0;
    if (has(1)) moments[kBlock + i - begin] = s1;
    if (has(2)) moments[2 * kBlock + i - begin] = s2;
  }
  if (skips) return;  // the same for all workgroups
  [[unroll]] for (uint state = 0; state < 3; ++state) {
    if (!has(state)) continue;
    float most = 0.0;
    for (uint i = lane; i < end - begin; i += gl_WorkGroupSize.x)
      most = max_keep_nan(most, abs(moments[state * kBlock + i]));
    float scale = largest(most);
    if (lane == 0) {
      if (state == 0) a_scales[block] = scale;
      else if (state == 1) b_scales[block] = scale;
      else c_scales[block] = scale;
    }
    uint tree = negative(state) ? 0 : 256;
    float root = trees[tree + 1];
    vec2 second = vec2(trees[tree + 2], trees[tree + 3]);
    vec4 third = vec4(trees[tree + 4], trees[tree + 5], trees[tree + 6], trees[tree + 7]);
    for (uint i = lane; i < end - begin; i += gl_WorkGroupSize.x) {
      uint quantized = quantize(state, moments[state * kBlock + i], scale, root, second, third);
      if (state == 0) a[begin + i] = uint8_t(quantized);
      else if (state == 1) b[begin + i] = uint8_t(quantized);
      else c[begin + i] = uint8_t(quantized);
    }
  }
}

void main() {
  load_scalars();
  fill_trees();
  uint first = group_index() * kBlocksPerGroup;
  for (uint block = first; block < first + kBlocksPerGroup && block * kBlock < count; ++block) step_block(block);
}
