#version 450
#extension GL_GOOGLE_include_directive : require
// Y = X W + bias in f32 with kBits-bit weights, one scale per group along K; one register tile of kRows rows and four
// columns per invocation. kLanesN lanes of the workgroup run along N, the others along M.
// X is [M,K]; W is [K/16][N][16] i8, or [K/32][N][16] bytes of two weights, even k in the low nibble, both stored
// plus 8; scales are [K/group][N/4] vec4. A group is a multiple of a step's 32 k.
// SUBGROUP: the workgroup is one subgroup of kLanesN lanes, at most eight.
// variants: gemm_weights_{buffer|texel TEXEL|subgroup TEXEL SUBGROUP}
#include "common.glsl"
#include "load.glsl"
layout(constant_id = 1) const uint kRows = 8;
layout(constant_id = 2) const uint kLanesN = 8;
layout(constant_id = 3) const uint kBits = 8;
layout(constant_id = 4) const bool kBias = false;
layout(constant_id = 5) const bool kVectorized = false;  // n is a multiple of four
#ifdef TEXEL
layout(set = 0, binding = 12) uniform samplerBuffer texel_scale;
vec4 load_scale(uint i) { return texelFetch(texel_scale, int(i)); }
#else
layout(set = 0, binding = 2, std430) readonly buffer Scale { vec4 scale[]; };
vec4 load_scale(uint i) { return scale[i]; }
#endif
layout(set = 0, binding = 3, std430) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Y4 { vec4 y4[]; };
layout(push_constant) uniform P {
  uint m, n, k;
  uint groups, steps_of_group;  // a step is 32 k
  uint row_tiles, column_groups;
};
const uint kBlocks = kBits / 4;  // 16 bytes of a column in a step
const uint kStepVec4s = 8;         // vec4s of a row in a step

void main() {
  uint group = group_index();
  uint column_group = group % column_groups;
  uint lane = gl_LocalInvocationID.x;
#ifdef SUBGROUP
  uint row = group / column_groups * kRows;
#else
  uint row = (group / column_groups * (gl_WorkGroupSize.x / kLanesN) + lane / kLanesN) * kRows;
#endif
  if (group / column_groups >= row_tiles) return;
  uint column = (column_group * kLanesN + lane % kLanesN) * 4;
#ifndef SUBGROUP
  if (row >= m || column >= n) return;
#endif
#ifdef SUBGROUP
  // The vec4s of x that a step needs, distributed over the lanes.
  const uint kOwn = kRows * kStepVec4s / kLanesN;
  uint at_x[kOwn];
  [[unroll]] for (uint i = 0; i < kOwn; ++i) {
    uint number = i * kLanesN + gl_SubgroupInvocationID;
    at_x[i] = min(row + number / kStepVec4s, m - 1) * (k / 4) + number % kStepVec4s;
  }
#else
  uint at_x[kRows];
  [[unroll]] for (uint i = 0; i < kRows; ++i) at_x[i] = min(row + i, m - 1) * (k / 4);
#endif
  uint at_w[4];
  [[unroll]] for (uint c = 0; c < 4; ++c) at_w[c] = min(column + c, n - 1);

  vec4 acc[kRows];
  [[unroll]] for (uint i = 0; i < kRows; ++i) acc[i] = vec4(0.0);
  uint step_index = 0;
  for (uint g = 0; g < groups; ++g) {
    vec4 part[kRows];
    [[unroll]] for (uint i = 0; i < kRows; ++i) part[i] = vec4(0.0);
    for (uint s = 0; s < steps_of_group; ++s) {
#ifdef SUBGROUP
      vec4 own[kOwn];
      [[unroll]] for (uint i = 0; i < kOwn; ++i) own[i] = load_a(at_x[i] + step_index * kStepVec4s);
#endif
      uvec4 w[kBlocks * 4];
      [[unroll]] for (uint b = 0; b < kBlocks; ++b)
        [[unroll]] for (uint c = 0; c < 4; ++c)
          w[b * 4 + c] = floatBitsToUint(load_b((step_index * kBlocks + b) * n + at_w[c]));
      [[unroll]] for (uint v = 0; v < kStepVec4s; ++v) {
        vec4 x[kRows];
        [[unroll]] for (uint i = 0; i < kRows; ++i) {
#ifdef SUBGROUP
          uint number = i * kStepVec4s + v;
          [[unroll]] for (uint t = 0; t < 4; ++t)
            x[i][t] = subgroupShuffle(own[number / kLanesN][t], number % kLanesN);
#else
          x[i] = load_a(at_x[i] + step_index * kStepVec4s + v);
#endif
        }
        [[unroll]] for (uint c = 0; c < 4; ++c) {
          vec4 q;
          [[unroll]] for (uint t = 0; t < 4; ++t) {
            uint at = v * 4 + t;
            if (kBits == 8)
              q[t] = float((int(w[at / 16 * 4 + c][at % 16 / 4]) << (24 - 8 * (at % 4))) >> 24);
            else
              q[t] = float((w[c][at / 8] >> (4 * (at % 8))) & 15u) - 8.0;
          }
          [[unroll]] for (uint i = 0; i < kRows; ++i)
            [[unroll]] for (uint t = 0; t < 4; ++t) part[i][c] = fma(x[i][t], q[t], part[i][c]);
        }
      }
      ++step_index;
    }
    vec4 factor = load_scale(g * ((n + 3) / 4) + min(column, n - 1) / 4);
    [[unroll]] for (uint i = 0; i < kRows; ++i) acc[i] = fma(part[i], factor, acc[i]);
  }

  if (column >= n) return;
  vec4 added = vec4(0.0);
  if (kBias)
    [[unroll]] for (uint c = 0; c < 4; ++c) added[c] = bias[min(column + c, n - 1)];
  [[unroll]] for (uint i = 0; i < kRows; ++i)
    if (row + i < m) {
      vec4 four = acc[i] + added;
      if (kVectorized) {
        y4[((row + i) * n + column) / 4] = four;
      } else {
        [[unroll]] for (uint c = 0; c < 4; ++c)
          if (column + c < n) y[(row + i) * n + column + c] = four[c];
      }
    }
}
