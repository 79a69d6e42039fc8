#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_NV_cooperative_matrix : require
// C = epilogue(A B) of f16 with cooperative matrices [kM,kK] [kK,kN] and f32 accumulators: kSubgroupsM x kSubgroupsN
// subgroups of a workgroup compute kRows x kColumns each. Tiles of both operands are staged in shared memory, with zeros
// beyond the edges; accumulators return through it to the epilogue, which the lanes share in groups of four elements.
// A is [M,K] or, kTransposedA, [K,M]; B is [K,N] or, kTransposedB, [N,K]; rows are whole groups of four elements.
// CONV: A is an image [N,H,W,C], whose rows are output pixels; k runs over taps and channels, and the workgroup has a
// multiple of kStep / 4 lanes, so that each computes the tap of what it stages once for all of its rows.
// rewrite.cpp rewrites the SPIR-V to VK_KHR_cooperative_matrix.
// matrix variants: gemm_matrices
// matrix variants: gemm_matrices_conv CONV
#include "common.glsl"
#include "functions.glsl"
#define SIXTEEN_BITS 1
#include "load.glsl"
#include "epilogue.glsl"
#ifdef CONV
#include "gemm_windows.glsl"
#else
#include "gemm.glsl"
#endif
layout(constant_id = 1) const uint kRows = 16;     // a multiple of kM
layout(constant_id = 2) const uint kColumns = 16;  // a multiple of kN
layout(constant_id = 3) const uint kSubgroupsN = 1;
layout(constant_id = 4) const uint kForm = 0;  // 1: n is a multiple of four and the bias, if any, lies along it
layout(constant_id = 11) const uint kM = 8;    // multiples of four, like kN and kK
layout(constant_id = 12) const uint kN = 8;
layout(constant_id = 13) const uint kK = 8;
layout(constant_id = 14) const uint kSubgroupsM = 1;
layout(constant_id = 15) const uint kStep = 16;  // extent of k staged at once, a multiple of kK
layout(constant_id = 16) const bool kTransposedA = false;
layout(constant_id = 17) const bool kTransposedB = false;
const uint kGroupRows = kRows * kSubgroupsM, kGroupColumns = kColumns * kSubgroupsN;
// Rows of the staged tiles in groups of four; 16 bytes of padding avoid bank conflicts.
const uint kVec4sA = (kTransposedA ? kGroupRows : kStep) / 4, kVec4sB = (kTransposedB ? kStep : kGroupColumns) / 4;
const uint kRowsA = kTransposedA ? kStep : kGroupRows, kRowsB = kTransposedB ? kGroupColumns : kStep;
const uint kPitchA = kVec4sA + 2, kPitchB = kVec4sB + 2, kPitchC = kGroupColumns + 4;
shared uvec2 tile_a[kRowsA * kPitchA];
shared uvec2 tile_b[kRowsB * kPitchB];
shared float tile_c[kGroupRows * kPitchC];
const uint kCountM = kRows / kM, kCountN = kColumns / kN;
#ifdef CONV
#include "staged_windows.glsl"
#endif

void main() {
  uint group = group_index();
  uint column = group % column_groups * kGroupColumns;
  group /= column_groups;
  uint row = group % row_tiles * kGroupRows;
  uint batch = group / row_tiles;
  if (batch >= batch_extent[0] * batch_extent[1]) return;
  Bases base = bases_of(batch);
  uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x;
  // Where a device's subgroups are smaller than reported, the last ones are idle.
  bool works = gl_SubgroupID < kSubgroupsM * kSubgroupsN;
  uint row_here = gl_SubgroupID / kSubgroupsN * kRows, column_here = gl_SubgroupID % kSubgroupsN * kColumns;

#ifdef CONV
  find_windows(row, lane, lanes);
  barrier();
#endif
  fcoopmatNV<32, gl_ScopeSubgroup, kM, kN> acc[kCountM * kCountN];
  [[unroll]] for (uint i = 0; i < kCountM * kCountN; ++i) acc[i] = fcoopmatNV<32, gl_ScopeSubgroup, kM, kN>(0.0);

  for (uint first = 0; first < k; first += kStep) {
    // The first row and group of four of each tile.
    uint row_a = kTransposedA ? first : row, vec4_a = (kTransposedA ? row : first) / 4;
    uint row_b = kTransposedB ? column : first, vec4_b = (kTransposedB ? first : column) / 4;
    uint rows_of_a = kTransposedA ? k : m, vec4s_of_a = ((kTransposedA ? m : k) + 3) / 4;
    uint rows_of_b = kTransposedB ? n : k, vec4s_of_b = ((kTransposedB ? k : n) + 3) / 4;
#ifdef CONV
    uint vec4_of_k = first / 4 + lane % kVec4sA, source_tap = vec4_of_k / channels4;
    ivec2 tap = tap_of(source_tap);
    for (uint i = lane; i < kRowsA * kVec4sA; i += lanes) {
      uint pixel;
      uvec2 four = uvec2(0);
      if (vec4_of_k * 4 < k && pixel_of(i / kVec4sA, tap, pixel))
        four = a2[pixel * channels4 + vec4_of_k - source_tap * channels4];
      tile_a[i / kVec4sA * kPitchA + i % kVec4sA] = four;
    }
#else
    for (uint i = lane; i < kRowsA * kVec4sA; i += lanes) {
      uint r = row_a + i / kVec4sA, f = vec4_a + i % kVec4sA;
      uvec2 four = uvec2(0);
      if (r < rows_of_a && f < vec4s_of_a) four = a2[base.a + r * lda + f];
      tile_a[i / kVec4sA * kPitchA + i % kVec4sA] = four;
    }
#endif
    for (uint i = lane; i < kRowsB * kVec4sB; i += lanes) {
      uint r = row_b + i / kVec4sB, f = vec4_b + i % kVec4sB;
      uvec2 four = uvec2(0);
      if (r < rows_of_b && f < vec4s_of_b) four = b2[base.b + r * ldb + f];
      tile_b[i / kVec4sB * kPitchB + i % kVec4sB] = four;
    }
    barrier();
    if (works) {
      [[unroll]] for (uint kk = 0; kk < kStep; kk += kK) {
        fcoopmatNV<16, gl_ScopeSubgroup, kM, kK> a[kCountM];
        fcoopmatNV<16, gl_ScopeSubgroup, kK, kN> b[kCountN];
        [[unroll]] for (uint i = 0; i < kCountM; ++i) {
          uint r = row_here + i * kM;
          if (kTransposedA) coopMatLoadNV(a[i], tile_a, kk * kPitchA + r / 4, kPitchA, true);
          else coopMatLoadNV(a[i], tile_a, r * kPitchA + kk / 4, kPitchA, false);
        }
        [[unroll]] for (uint j = 0; j < kCountN; ++j) {
          uint c = column_here + j * kN;
          if (kTransposedB) coopMatLoadNV(b[j], tile_b, c * kPitchB + kk / 4, kPitchB, true);
          else coopMatLoadNV(b[j], tile_b, kk * kPitchB + c / 4, kPitchB, false);
        }
        [[unroll]] for (uint i = 0; i < kCountM; ++i)
          [[unroll]] for (uint j = 0; j < kCountN; ++j)
            acc[i * kCountN + j] = coopMatMulAddNV(a[i], b[j], acc[i * kCountN + j]);
      }
    }
    barrier();
  }

  if (works)
    [[unroll]] for (uint i = 0; i < kCountM; ++i)
      [[unroll]] for (uint j = 0; j < kCountN; ++j)
        coopMatStoreNV(acc[i * kCountN + j], tile_c, (row_here + i * kM) * kPitchC + column_here + j * kN, kPitchC, false);
  barrier();
  const uint kVec4sC = kGroupColumns / 4;
  for (uint i = lane; i < kGroupRows * kVec4sC; i += lanes) {
    uint r = row + i / kVec4sC, c = column + i % kVec4sC * 4;
    if (r < m && c < n) {
      vec4 four;
      [[unroll]] for (uint t = 0; t < 4; ++t) four[t] = tile_c[i / kVec4sC * kPitchC + i % kVec4sC * 4 + t];
      uint at = base.c + r * ldc + c;
      if (kForm == 1) {
        vec4 bias_here = vec4(0.0);
        if (kBias) bias_here = load_bias4((base.bias + c) / 4);
        store_vec4(at / 4, (at + residual_shift) / 4, bias_here, four, alpha, beta);
      } else {
        [[unroll]] for (uint t = 0; t < 4; ++t)
          if (c + t < n)
            store_result(at + t, at + t + residual_shift, base.bias + r * bias_row + (c + t) * bias_column, four[t], alpha,
                         beta);
      }
    }
  }
}
