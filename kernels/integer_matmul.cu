// 8-bit integer GEMM on tensor cores, in tiles of 64 x 64 results.
//
// An unsigned byte u is converted to the signed byte u - 128, and so is its zero point. With zero points za
// and zb,
//   sum (a - za)(b - zb) = sum a b - zb sum a - za sum b + K za zb,
// where the sums of a and of b are matmuls with ones. Padding of an image is its zero point, so that it adds
// nothing.
//
// Accumulators go through shared memory to threads arranged along the rows of the result, so that stores are
// coalesced and the epilogue (requantize.cuh) is instantiated once.
#include "kernels/integer_matmul.h"

#include "kernels/conv_operands.cuh"
#include "kernels/requantize.cuh"
#include "kernels/vector.cuh"

namespace librt::cuda {
namespace {

struct Tile {
  static constexpr int kRows = 64, kColumns = 64, kDepth = 64, kThreads = 128;
  static constexpr int kLead = kDepth + 16;
  static constexpr int kWarpRows = 32, kWarpColumns = 32;
  static constexpr int kSumLead = kColumns + 4;
  static constexpr unsigned kSharedBytes = kRows * kSumLead * sizeof(int32_t);
  static_assert(kSharedBytes >= (kRows + kColumns) * kLead, "factors and sums take turns");
};

/// The bytes of a tile along k, for either memory layout. `padding` is the value outside, `tail` the value
/// past k_end.
template <class Operand, int kWidth>
RT_DEVICE void load_tile(uint8_t* tile, const Operand& operand, int row, int k, int k_end, uint8_t padding,
                         uint8_t tail) {
  constexpr int kChunks = Tile::kDepth / kWidth;
  for (int i = static_cast<int>(threadIdx.x); i < Tile::kRows * kChunks; i += Tile::kThreads) {
    // Coalesced reads.
    const int r = Operand::kAlongK ? i / kChunks : i % Tile::kRows;
    const int c = (Operand::kAlongK ? i % kChunks : i / Tile::kRows) * kWidth;
    uint8_t* to = tile + r * Tile::kLead + c;
    const bool inside = k + c < k_end;
    const uint8_t* from = inside ? operand.at(operand.cursor(row + r), k + c) : nullptr;
    if constexpr (kWidth == 16) {
      if (from != nullptr) {
        ptx::copy_async_16(to, from);
      } else {
        const uint32_t word = (inside ? padding : tail) * 0x01010101u;
        *reinterpret_cast<uint4*>(to) = make_uint4(word, word, word, word);
      }
    } else {
      *to = from != nullptr ? *from : inside ? padding : tail;
    }
  }
}

/// Per-operand state of a block.
struct OperandState {
  const uint8_t* zero_points;
  int64_t zero_stride;
  uint8_t flip;  ///< 0x80 where the bytes are unsigned
  RT_DEVICE int zero(int64_t offset, int row) const {
    return zero_points == nullptr ? static_cast<int8_t>(flip)
                                  : static_cast<int8_t>(zero_points[offset + row * zero_stride] ^ flip);
  }
};

OperandState operand_state(const IntegerOperand& f) {
  return {static_cast<const uint8_t*>(f.zero_point), f.zero_stride,
          static_cast<uint8_t>(f.is_signed ? 0 : 0x80)};
}

constexpr uint32_t kOnes = 0x01010101u;

template <class First, class Second, int kFirstWidth, int kSecondWidth>
__global__ void __launch_bounds__(Tile::kThreads, 4)
    integer_matmul_kernel(First first, Second second, OperandState a_state, OperandState b_state, Gemm p,
                          GemmBatch zero_batch, Requantization requantization) {
  constexpr int kCountM = Tile::kWarpRows / 16, kCountN = Tile::kWarpColumns / 8;
  auto* tile_a = dynamic_shared<uint8_t>();
  auto* tile_b = tile_a + Tile::kRows * Tile::kLead;
  const TilePosition position = tile_position<Tile::kRows, Tile::kColumns, Tile::kDepth>(p);
  first.start(batch_offset(p.batch, position.matrix, GemmBatch::First));
  second.start(batch_offset(p.batch, position.matrix, GemmBatch::Second));
  const int64_t zero_a = batch_offset(zero_batch, position.matrix, GemmBatch::First);
  const int64_t zero_b = batch_offset(zero_batch, position.matrix, GemmBatch::Second);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp % 2 * Tile::kWarpRows, warp_column = warp / 2 * Tile::kWarpColumns;
  const uint8_t padding = a_state.zero_points == nullptr ? uint8_t{0} : a_state.zero_points[zero_a];
  int sums[kCountM][kCountN][4] = {}, sums_a[kCountM][4] = {}, sums_b[kCountN][4] = {};
  const uint32_t flip_a = a_state.flip * kOnes, flip_b = b_state.flip * kOnes;
  const uint32_t ones_a[4] = {kOnes, kOnes, kOnes, kOnes}, ones_b[2] = {kOnes, kOnes};
  for (int k = 0; k < p.k; k += Tile::kDepth) {
    load_tile<First, kFirstWidth>(tile_a, first, position.row, k, p.k, padding, a_state.flip);
    load_tile<Second, kSecondWidth>(tile_b, second, position.column, k, p.k, b_state.flip, b_state.flip);
    ptx::copy_async_commit();
    ptx::copy_async_wait<0>();
    __syncthreads();
    RT_UNROLL
    for (int step = 0; step < Tile::kDepth; step += 32) {
      uint32_t a[kCountM][4], b[kCountN][2];
      RT_UNROLL
      for (int i = 0; i < kCountM; ++i) {
        ptx::load_matrix_x4(a[i],
                            tile_a + (warp_row + i * 16 + lane % 16) * Tile::kLead + step + lane / 16 * 16);
        RT_UNROLL
        for (int e = 0; e < 4; ++e) a[i][e] ^= flip_a;
        ptx::mma_16x8x32_s8(sums_a[i], a[i], ones_b);
      }
      RT_UNROLL
      for (int j = 0; j < kCountN; ++j) {
        ptx::load_matrix_x2(
            b[j], tile_b + (warp_column + j * 8 + lane % 8) * Tile::kLead + step + lane / 8 % 2 * 16);
        b[j][0] ^= flip_b;
        b[j][1] ^= flip_b;
        ptx::mma_16x8x32_s8(sums_b[j], ones_a, b[j]);
      }
      RT_UNROLL
      for (int i = 0; i < kCountM; ++i) RT_UNROLL
      for (int j = 0; j < kCountN; ++j) ptx::mma_16x8x32_s8(sums[i][j], a[i], b[j]);
    }
    __syncthreads();
  }
  auto* tile = dynamic_shared<int32_t>();
  RT_UNROLL
  for (int i = 0; i < kCountM; ++i) RT_UNROLL
  for (int e = 0; e < 4; ++e) {
    const int row = warp_row + i * 16 + lane / 4 + e / 2 * 8;
    const int za = position.row + row < p.m ? a_state.zero(zero_a, position.row + row) : 0;
    RT_UNROLL
    for (int j = 0; j < kCountN; ++j) {
      const int column = warp_column + j * 8 + lane % 4 * 2 + e % 2;
      const int zb = position.column + column < p.n ? b_state.zero(zero_b, position.column + column) : 0;
      // Unsigned, because accumulators may wrap.
      const uint32_t value = static_cast<uint32_t>(sums[i][j][e]) -
                             static_cast<uint32_t>(zb) * static_cast<uint32_t>(sums_a[i][e]) -
                             static_cast<uint32_t>(za) * static_cast<uint32_t>(sums_b[j][e]) +
                             static_cast<uint32_t>(p.k) * static_cast<uint32_t>(za * zb);
      tile[row * Tile::kSumLead + column] = static_cast<int32_t>(value);
    }
  }
  __syncthreads();
  const int64_t start = batch_offset(p.batch, position.matrix, GemmBatch::Result);
  const int64_t channels = batch_offset(p.batch, position.matrix, GemmBatch::Bias);
  for (int i = static_cast<int>(threadIdx.x); i < Tile::kRows * Tile::kColumns; i += Tile::kThreads) {
    const int row = i / Tile::kColumns, column = i % Tile::kColumns;
    if (position.row + row < p.m && position.column + column < p.n)
      store_requantized(
          requantization, p.result,
          start + static_cast<int64_t>(position.row + row) * p.result_row + position.column + column,
          tile[row * Tile::kSumLead + column], channels + position.column + column);
  }
}

template <int kFirstWidth, int kSecondWidth, class First, class Second>
cudaError_t run(const First& first, const Second& second, const IntegerMatmulArguments& a,
                cudaStream_t stream) {
  const Gemm& p = a.gemm;
  const int64_t tiles = ceil_div(p.m, Tile::kRows) * ceil_div(p.n, Tile::kColumns) * p.matrices;
  return launch(integer_matmul_kernel<First, Second, kFirstWidth, kSecondWidth>,
                {dim3(static_cast<unsigned>(tiles)), dim3(Tile::kThreads), Tile::kSharedBytes, stream}, first,
                second, operand_state(a.first), operand_state(a.second), p, a.zero_batch, a.requantization);
}

__global__ void __launch_bounds__(kElementwiseThreads)
    less_128_each(const uint8_t* bytes, uint8_t* result, int64_t count) {
  constexpr int kWidth = kVectorWidth<uint8_t>;
  const int64_t first = global_index() * kWidth;
  if (first >= count) return;
  auto vector = load_before<kWidth>(bytes, first, count);
  RT_UNROLL
  for (int i = 0; i < kWidth; ++i) vector[i] ^= 0x80;
  store_before(result, vector, first, count);
}

__global__ void __launch_bounds__(kElementwiseThreads)
    finish_each(const int32_t* sums, const int32_t* column_sums, OperandState state, Gemm p,
                Requantization requantization) {
  const int64_t i = global_index();
  if (i >= int64_t{1} * p.m * p.n) return;
  const int row = static_cast<int>(i / p.n), column = static_cast<int>(i % p.n);
  const uint32_t sum = static_cast<uint32_t>(sums[i]) -
                       static_cast<uint32_t>(state.zero(0, row)) * static_cast<uint32_t>(column_sums[column]);
  store_requantized(requantization, p.result, i, static_cast<int32_t>(sum), column);
}

bool starts_aligned(const GemmBatch& batch, GemmBatch::Operand operand) {
  for (int i = 0; i < batch.rank; ++i)
    if (batch.stride[operand][i] % 16 != 0) return false;
  return true;
}

}  // namespace

cudaError_t matmul_integer(const IntegerMatmulArguments& a, cudaStream_t stream) {
  const Gemm& p = a.gemm;
  const MatrixOperand<uint8_t, true> first{static_cast<const uint8_t*>(a.first.bytes), p.k, p.m};
  const MatrixOperand<uint8_t, false> second{static_cast<const uint8_t*>(a.second.bytes), p.n, p.n};
  if (p.k % 16 == 0 && starts_aligned(p.batch, GemmBatch::First)) return run<16, 1>(first, second, a, stream);
  return run<1, 1>(first, second, a, stream);
}

cudaError_t conv_integer(const IntegerMatmulArguments& a, const ConvWindows& w, cudaStream_t stream) {
  const WindowOperand<uint8_t, false> first{static_cast<const uint8_t*>(a.first.bytes), conv_side(w, false),
                                            Divisor(w.group_in())};
  const MatrixOperand<uint8_t, true> second{static_cast<const uint8_t*>(a.second.bytes), a.gemm.k,
                                            w.group_out()};
  if (w.group_in() % 16 == 0) return run<16, 16>(first, second, a, stream);
  return run<1, 1>(first, second, a, stream);
}

cudaError_t less_128(const void* bytes, void* result, int64_t count, cudaStream_t stream) {
  return launch(less_128_each, launch_each(ceil_div(count, kVectorWidth<uint8_t>), stream),
                static_cast<const uint8_t*>(bytes), static_cast<uint8_t*>(result), count);
}

cudaError_t finish_integer_matmul(const IntegerMatmulArguments& a, const int32_t* sums,
                                  const int32_t* column_sums, cudaStream_t stream) {
  const Gemm& p = a.gemm;
  return launch(finish_each, launch_each(int64_t{1} * p.m * p.n, stream), sums, column_sums,
                operand_state(a.first), p, a.requantization);
}

}  // namespace librt::cuda
