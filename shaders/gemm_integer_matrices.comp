#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_NV_cooperative_matrix : require
#extension GL_NV_integer_cooperative_matrix : require
// gemm_integer.comp with cooperative matrices [kM,kK] [kK,kN] of i8, tiled as in gemm_matrices.comp.
// Both operands are made signed: u8 of A by flipping the top bit, which moves the zero point by 128.
// CONV: as in gemm_integer.comp; the workgroup has a multiple of kStep / 16 lanes, so that each computes the tap of what
// it stages once for all of its rows.
// matrix variants: gemm_integer_matrices
// matrix variants: gemm_integer_matrices_conv CONV
#include "common.glsl"
#include "functions.glsl"
#include "requantize.glsl"
layout(constant_id = 6) const uint kRows = 16;
layout(constant_id = 7) const uint kColumns = 16;
layout(constant_id = 8) const uint kSubgroupsN = 1;
layout(constant_id = 9) const uint kFlipA = 0;   // 128: A is signed
layout(constant_id = 10) const uint kFlipB = 0;  // 128: B was unsigned before it was packed
layout(constant_id = 11) const uint kZeroA = 0;  // zero points: 0: none, 1: per tensor, 2: per row or column
layout(constant_id = 12) const uint kZeroB = 0;
layout(constant_id = 13) const bool kVectorized = false;  // results and channels begin at multiples of four
layout(constant_id = 14) const uint kM = 8;          // multiples of four, like kN and kK
layout(constant_id = 15) const uint kN = 8;
layout(constant_id = 16) const uint kK = 8;
layout(constant_id = 17) const uint kSubgroupsM = 1;
layout(constant_id = 18) const uint kStep = 16;  // extent of k staged at once, a multiple of kK and of sixteen
layout(set = 0, binding = 0, std430) readonly buffer A { uvec4 a4[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { uvec4 b4[]; };
layout(set = 0, binding = 7, std430) readonly buffer Za { uint a_zero[]; };
layout(set = 0, binding = 8, std430) readonly buffer Zb { uint b_zero[]; };
uint zero_of_a(uint at) { return byte_of(a_zero[at / 4], at); }
uint zero_of_b(uint at) { return byte_of(b_zero[at / 4], at); }
#include "gemm_integer.glsl"
const uint kGroupRows = kRows * kSubgroupsM, kGroupColumns = kColumns * kSubgroupsN;
// Rows of A and columns of B, kStep bytes each, as words; 16 bytes of padding avoid bank conflicts.
const uint kPitch = kStep / 4 + 4, kPitchC = kGroupColumns + 4;
shared uint tile_a[kGroupRows * kPitch];
shared uint tile_b[kGroupColumns * kPitch];
shared int tile_c[kGroupRows * kPitchC];
shared int sum_a[kGroupRows];
shared int sum_b[kGroupColumns];
const uint kCountM = kRows / kM, kCountN = kColumns / kN;
#ifdef CONV
#include "staged_windows.glsl"
#endif

int signed_byte(uint word, uint t) { return (int(word) << (24 - 8 * t)) >> 24; }
int sum_of_bytes(uint word) {
  return signed_byte(word, 0) + signed_byte(word, 1) + signed_byte(word, 2) + signed_byte(word, 3);
}

void main() {
  uint group = group_index();
  uint column = group % column_groups * kGroupColumns;
  group /= column_groups;
  uint row = group % row_tiles * kGroupRows;
  uint batch = group / row_tiles;
  if (batch >= batch_extent[0] * batch_extent[1]) return;
  uint inner = batch % batch_extent[1], outer = batch / batch_extent[1];
  uint base_a = outer * batch_a[0] + inner * batch_a[1], base_b = outer * batch_b[0] + inner * batch_b[1];
  uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x;
  bool has_tile = gl_SubgroupID < kSubgroupsM * kSubgroupsN;
  uint subgroup_row = gl_SubgroupID / kSubgroupsN * kRows, subgroup_column = gl_SubgroupID % kSubgroupsN * kColumns;
  const bool kSumsOfA = kZeroB != 0 || kFlipB != 0;
  const uint kBlocks = kStep / 16;
  // Mask that flips the sign bits if A is unsigned.
  uint sign_flip = (kFlipA ^ 128u) * 0x01010101u;

#ifdef CONV
  find_windows(row, lane, lanes);
  uvec4 outside = uvec4(((kZeroA != 0 ? zero_of_a(0) : 0) ^ kFlipA ^ 128u) * 0x01010101u);
  uint blocks = kernel_h * kernel_w * steps;
#else
  uint blocks = steps;
#endif
  for (uint i = lane; i < kGroupRows; i += lanes) sum_a[i] = 0;
  for (uint i = lane; i < kGroupColumns; i += lanes) sum_b[i] = 0;
  icoopmatNV<32, gl_ScopeSubgroup, kM, kN> acc[kCountM * kCountN];
  [[unroll]] for (uint i = 0; i < kCountM * kCountN; ++i) acc[i] = icoopmatNV<32, gl_ScopeSubgroup, kM, kN>(0);
#ifdef CONV
  barrier();
#endif
  for (uint first = 0; first < blocks; first += kBlocks) {
#ifdef CONV
    uint source_block = first + lane % kBlocks, source_tap = source_block / steps;
    ivec2 tap = tap_of(source_tap);
#endif
    for (uint i = lane; i < kGroupRows * kBlocks; i += lanes) {
      uint r = i / kBlocks;
      uvec4 words = uvec4(0);
#ifdef CONV
      uint pixel;
      if (source_block < blocks)
        words = pixel_of(r, tap, pixel) ? a4[base_a + pixel * lda + source_block - source_tap * steps] ^ sign_flip
                                        : outside;
#else
      uint block = first + i % kBlocks;
      if (row + r < m && block < blocks) words = a4[base_a + (row + r) * lda + block] ^ sign_flip;
#endif
      [[unroll]] for (uint w = 0; w < 4; ++w) tile_a[r * kPitch + i % kBlocks * 4 + w] = words[w];
    }
    for (uint i = lane; i < kGroupColumns * kBlocks; i += lanes) {
      uint c = i % kGroupColumns, block = first + i / kGroupColumns;
      uvec4 words = uvec4(0);
      if (column + c < n && block < blocks) words = b4[base_b + block * n + column + c];
      [[unroll]] for (uint w = 0; w < 4; ++w) tile_b[c * kPitch + i / kGroupColumns * 4 + w] = words[w];
    }
    barrier();
    if (kSumsOfA)
      for (uint i = lane; i < kGroupRows; i += lanes)
        for (uint w = 0; w < kStep / 4; ++w) sum_a[i] += sum_of_bytes(tile_a[i * kPitch + w]);
    for (uint i = lane; i < kGroupColumns; i += lanes)
      for (uint w = 0; w < kStep / 4; ++w) sum_b[i] += sum_of_bytes(tile_b[i * kPitch + w]);
    if (has_tile) {
      [[unroll]] for (uint kk = 0; kk < kStep; kk += kK) {
        icoopmatNV<8, gl_ScopeSubgroup, kM, kK> a[kCountM];
        icoopmatNV<8, gl_ScopeSubgroup, kK, kN> b[kCountN];
        [[unroll]] for (uint i = 0; i < kCountM; ++i)
          coopMatLoadNV(a[i], tile_a, (subgroup_row + i * kM) * kPitch + kk / 4, kPitch, false);
        [[unroll]] for (uint j = 0; j < kCountN; ++j)
          coopMatLoadNV(b[j], tile_b, (subgroup_column + j * kN) * kPitch + kk / 4, kPitch, true);
        [[unroll]] for (uint i = 0; i < kCountM; ++i)
          [[unroll]] for (uint j = 0; j < kCountN; ++j)
            acc[i * kCountN + j] = coopMatMulAddNV(a[i], b[j], acc[i * kCountN + j]);
      }
    }
    barrier();
  }
  if (has_tile)
    [[unroll]] for (uint i = 0; i < kCountM; ++i)
      [[unroll]] for (uint j = 0; j < kCountN; ++j)
        coopMatStoreNV(acc[i * kCountN + j], tile_c, (subgroup_row + i * kM) * kPitchC + subgroup_column + j * kN,
                       kPitchC, false);
  barrier();

  Requantization r = requantization();
  // Padding of A's last block past K is -128 here.
  int behind = 128 * int(blocks * 16 - k);
  uint base_c = outer * batch_c[0] + inner * batch_c[1];
  for (uint i = lane; i < kGroupRows * (kGroupColumns / 4); i += lanes) {
    uint at_row = i / (kGroupColumns / 4), at_column = i % (kGroupColumns / 4) * 4;
    uint result_row = row + at_row, result_column = column + at_column;
    if (result_row < m && result_column < n) {
      uint channel = inner * batch_channels + result_column;
      int za = signed_byte(kFlipA ^ 128u, 0);
      if (kZeroA != 0) za = signed_byte(zero_of_a(kZeroA == 1 ? 0 : batch * m + result_row) ^ kFlipA ^ 128u, 0);
      ivec4 sum;
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        int zb = -int(kFlipB);
        if (kZeroB != 0) zb = signed_byte(zero_of_b(kZeroB == 1 ? 0 : min(channel + c, inner * batch_channels + n - 1)) ^ kFlipB, 0);
        sum[c] = tile_c[at_row * kPitchC + at_column + c] - za * sum_b[at_column + c] - zb * (sum_a[at_row] + behind) +
                 int(k) * za * zb;
      }
      uint at = base_c + result_row * ldc + result_column;
      if (kVectorized) {
        set_channels(r, channel / 4, scale_step);
        store_sums(at / 4, sum, r, alpha, beta);
      } else {
        [[unroll]] for (uint c = 0; c < 4; ++c)
          if (result_column + c < n) {
            set_channel(r, channel + c, scale_step);
            store_sum(at + c, sum[c], r, alpha, beta);
          }
      }
    }
  }
}
