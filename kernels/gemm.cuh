// Tiled GEMM: tiles are loaded through a multistage buffer in shared memory, multiplied in registers (FMAs or
// tensor cores), and stored by the epilogue. The two inputs are described by operands:
//
//   struct Operand {
//     using Element = T;
//     // contiguous in memory along k, else along the rows
//     static constexpr bool kAlongK;
//     // selects a matrix of the batch
//     void start(int64_t offset);
//     // the part of the address that does not depend on k
//     Cursor cursor(int row) const;
//     // null: zero (outside, or padding)
//     const T* at(const Cursor&, int k) const;
//   };
//
// With vector loads, kWidth adjacent elements starting at at() must be all inside or all outside, and 16-byte
// aligned.
#pragma once

#include "kernels/common.cuh"
#include "kernels/functions.cuh"
#include "kernels/gemm.h"
#include "kernels/ptx.cuh"
#include "kernels/vector.cuh"

namespace librt::cuda {

struct QuotientRemainder {
  int quotient, remainder;
};
RT_DEVICE QuotientRemainder divide(int n, const Divisor& by) {
  const auto u = static_cast<uint32_t>(n);
  const uint32_t quotient = (__umulhi(u, by.multiplier) + u) >> by.shift;
  return {static_cast<int>(quotient), static_cast<int>(u - quotient * by.value)};
}

/// The accumulator type for T. Integers wrap, so 32 unsigned bits suffice for narrow ones.
template <class T>
using SumOf = std::conditional_t<
    std::is_same_v<T, double>, double,
    std::conditional_t<std::is_integral_v<T>, std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>, float>>;

// --- the epilogue

RT_DEVICE int64_t batch_offset(const GemmBatch& batch, int64_t z, int operand) {
  int64_t offset = 0;
  for (int i = batch.rank - 1; i >= 0; --i) {
    offset += z % batch.extent[i] * batch.stride[operand][i];
    z /= batch.extent[i];
  }
  return offset;
}

/// Offsets of the result and bias of one matrix of the batch.
struct ResultOffsets {
  int64_t result, bias;
};

/// Floats in the accumulator's type; integers wrap to T first and support Relu and Clip only.
template <class T>
RT_DEVICE T activated(const FunctionCall& call, SumOf<T> sum) {
  using Value = SumOf<T>;
  if constexpr (std::is_floating_point_v<Value>)
    return narrow<T>(activation_value<Value>(call.function, sum, static_cast<Value>(call.alpha),
                                             static_cast<Value>(call.beta)));
  else
    return integer_function_value<T>(call.function, static_cast<T>(sum), narrow<T>(call.alpha),
                                     narrow<T>(call.beta));
}

template <class T>
RT_DEVICE void store_result(const Gemm& p, const ResultOffsets& offsets, int row, int column, SumOf<T> sum) {
  const Epilogue& e = p.epilogue;
  const int64_t at = offsets.result + static_cast<int64_t>(row) * p.result_row + column;
  if (e.bias != nullptr)
    sum += static_cast<SumOf<T>>(
        widen(static_cast<const T*>(e.bias)[offsets.bias + row * e.bias_row + column * e.bias_column]));
  if (e.residual != nullptr) sum += static_cast<SumOf<T>>(widen(static_cast<const T*>(e.residual)[at]));
  static_cast<T*>(p.result)[at] = activated<T>(e.activation, sum);
}

/// The tile that this block computes.
struct TilePosition {
  int64_t matrix;
  int row, column;     ///< of the tile
  int k_begin, k_end;  ///< of this block's split of k
};
template <int kRows, int kColumns, int kDepth>
RT_DEVICE TilePosition tile_position(const Gemm& p) {
  const unsigned tiles_n = (p.n + kColumns - 1) / kColumns, tiles_m = (p.m + kRows - 1) / kRows;
  const unsigned rest = blockIdx.x / tiles_n;
  const int steps = (p.k + kDepth - 1) / kDepth, part = (steps + p.splits - 1) / p.splits * kDepth;
  TilePosition position;
  position.column = static_cast<int>(blockIdx.x % tiles_n) * kColumns;
  position.row = static_cast<int>(rest % tiles_m) * kRows;
  position.matrix = rest / tiles_m;
  position.k_begin = static_cast<int>(blockIdx.y) * part;
  position.k_end = position.k_begin + part < p.k ? position.k_begin + part : p.k;
  return position;
}

/// Stores a tile of accumulators from shared memory, rows kLead apart.
template <class T, int kRows, int kColumns, int kLead, int kThreads>
RT_DEVICE void store_tile(const Gemm& p, const TilePosition& tile, const SumOf<T>* sums) {
  if (p.splits > 1) {
    auto* partial = static_cast<SumOf<T>*>(p.partial) + (blockIdx.y * p.matrices + tile.matrix) * p.m * p.n;
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kColumns; i += kThreads) {
      const int row = tile.row + i / kColumns, column = tile.column + i % kColumns;
      if (row < p.m && column < p.n)
        partial[static_cast<int64_t>(row) * p.n + column] = sums[i / kColumns * kLead + i % kColumns];
    }
    return;
  }
  const ResultOffsets offsets{batch_offset(p.batch, tile.matrix, GemmBatch::Result),
                              batch_offset(p.batch, tile.matrix, GemmBatch::Bias)};
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kColumns; i += kThreads) {
    const int row = tile.row + i / kColumns, column = tile.column + i % kColumns;
    if (row < p.m && column < p.n)
      store_result<T>(p, offsets, row, column, sums[i / kColumns * kLead + i % kColumns]);
  }
}

/// Combines the splits of k, then applies the epilogue: one thread per result.
template <class T>
RT_DEVICE void combine_splits(const Gemm& p, int64_t index) {
  const int64_t matrix_size = static_cast<int64_t>(p.m) * p.n, size = p.matrices * matrix_size;
  if (index >= size) return;
  const auto* partial = static_cast<const SumOf<T>*>(p.partial) + index;
  SumOf<T> sum = partial[0];
  for (int s = 1; s < p.splits; ++s) sum += partial[s * size];
  const int64_t matrix = index / matrix_size, within = index % matrix_size;
  const ResultOffsets offsets{batch_offset(p.batch, matrix, GemmBatch::Result),
                              batch_offset(p.batch, matrix, GemmBatch::Bias)};
  store_result<T>(p, offsets, static_cast<int>(within / p.n), static_cast<int>(within % p.n), sum);
}

// --- tiles of an operand

/// A tile of kRows x kDepth elements in its memory layout (contiguous along k, or along the rows), each
/// stored row padded by 16 bytes against bank conflicts.
template <class Operand, int kTileRows, int kTileDepth, int kLoadWidth, int kThreads>
struct TileLoader {
  using T = typename Operand::Element;
  static constexpr int kRows = kTileRows, kDepth = kTileDepth, kWidth = kLoadWidth;
  static constexpr bool kAlongK = Operand::kAlongK;
  static constexpr int kLead =
      (kAlongK ? kDepth : kRows) + static_cast<int>(16 / sizeof(T) > 0 ? 16 / sizeof(T) : 1);
  static constexpr int kElements = (kAlongK ? kRows : kDepth) * kLead;
  static constexpr int kChunks = (kAlongK ? kDepth : kRows) / kWidth;  ///< per stored row
  static constexpr int kStep = kThreads / kChunks;  ///< stored rows between two loads of a thread
  static constexpr int kCount = (kAlongK ? kRows : kDepth) / kStep;  ///< loads per thread
  static_assert(kThreads % kChunks == 0 && (kAlongK ? kRows : kDepth) % kStep == 0);
  static constexpr bool kKeepsCursors = kWidth > 1;
  static constexpr int kCursors = !kKeepsCursors ? 1 : kAlongK ? kCount : 1;

  const Operand& operand;
  typename Operand::Cursor cursors[kCursors];
  int chunk, line, first_row;

  RT_DEVICE TileLoader(const Operand& source, int row) : operand(source), first_row(row) {
    chunk = static_cast<int>(threadIdx.x) % kChunks * kWidth;
    line = static_cast<int>(threadIdx.x) / kChunks;
    if constexpr (kKeepsCursors) {
      RT_UNROLL
      for (int i = 0; i < kCursors; ++i)
        cursors[i] = operand.cursor(kAlongK ? row + line + i * kStep : row + chunk);
    }
  }

  /// Elements [k, k_end) along k; the rest of the tile is zero.
  RT_DEVICE void load(T* tile, int k, int k_end) {
    RT_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const int at_line = line + i * kStep;
      const int at_k = k + (kAlongK ? chunk : at_line);
      T* to = tile + at_line * kLead + chunk;
      const T* from = nullptr;
      if constexpr (kKeepsCursors) {
        if (at_k < k_end) from = operand.at(cursors[kAlongK ? i : 0], at_k);
        ptx::copy_async_16(to, from != nullptr ? from : operand.base, from != nullptr ? 16 : 0);
      } else {
        if (at_k < k_end) from = operand.at(operand.cursor(first_row + (kAlongK ? at_line : chunk)), at_k);
        *to = from != nullptr ? *from : T{};
      }
    }
  }
};

// --- GEMM with FMAs on CUDA cores

/// 64 x 64 results by 128 threads with 8 x 4 each.
struct PlainTile {
  static constexpr int kRows = 64, kColumns = 64, kDepth = 16, kThreads = 128;
  static constexpr int kThreadRows = 8, kThreadColumns = 4;
  static constexpr int kLanesM = kRows / kThreadRows, kLanesN = kColumns / kThreadColumns;
  static constexpr int kStages = 2;
};

/// Row `i` of a thread: if the tile is contiguous along k, adjacent lanes have adjacent rows; else a lane has
/// four adjacent rows.
template <bool kAlongK, int kLanes>
RT_DEVICE constexpr int row_of(int lane, int i) {
  return kAlongK ? lane + i * kLanes : i / 4 * (4 * kLanes) + lane * 4 + i % 4;
}

/// Four steps along k of a thread's rows.
template <class Loader, int kCount, int kLanes>
struct PlainFragment {
  using T = typename Loader::T;
  Vector<T, 4> values[kCount];
  RT_DEVICE void load(const T* tile, int lane, int k) {
    RT_UNROLL
    for (int i = 0; i < kCount; ++i) {
      if constexpr (Loader::kAlongK)
        values[i] = load_vector<4>(tile + row_of<true, kLanes>(lane, i) * Loader::kLead + k);
      else
        values[i] =
            load_vector<4>(tile + (k + i % 4) * Loader::kLead + row_of<false, kLanes>(lane, i / 4 * 4));
    }
  }
  RT_DEVICE T at(int row, int k) const {
    if constexpr (Loader::kAlongK)
      return values[row][k];
    else
      return values[row / 4 * 4 + k][row % 4];
  }
};

template <class First, class Second, int kWidth>
struct PlainGemm {
  using T = typename First::Element;
  using Value = SumOf<T>;
  using Tile = PlainTile;
  using LoaderA = TileLoader<First, Tile::kRows, Tile::kDepth, kWidth, Tile::kThreads>;
  using LoaderB = TileLoader<Second, Tile::kColumns, Tile::kDepth, kWidth, Tile::kThreads>;
  /// Blocks per multiprocessor: 128 registers per thread, more where elements are converted, have 64 bits or
  /// are loaded one by one.
  static constexpr int kBlocks = sizeof(Value) == 8 ? 2 : std::is_same_v<T, float> && kWidth > 1 ? 4 : 3;
  static constexpr int kStage = LoaderA::kElements + LoaderB::kElements;
  static constexpr int kSumLead = Tile::kColumns + 4;
  static constexpr unsigned kRing = Tile::kStages * kStage * sizeof(T);
  static constexpr unsigned kSums = Tile::kRows * kSumLead * sizeof(Value);
  static constexpr unsigned kSharedBytes = kRing > kSums ? kRing : kSums;

  RT_DEVICE static void run(First first, Second second, const Gemm& p) {
    const TilePosition position = tile_position<Tile::kRows, Tile::kColumns, Tile::kDepth>(p);
    first.start(batch_offset(p.batch, position.matrix, GemmBatch::First));
    second.start(batch_offset(p.batch, position.matrix, GemmBatch::Second));
    LoaderA load_a(first, position.row);
    LoaderB load_b(second, position.column);
    T* ring = dynamic_shared<T>();
    const int lane_n = static_cast<int>(threadIdx.x) % Tile::kLanesN,
              lane_m = static_cast<int>(threadIdx.x) / Tile::kLanesN;
    const int steps = position.k_begin < position.k_end
                          ? (position.k_end - position.k_begin + Tile::kDepth - 1) / Tile::kDepth
                          : 0;
    const auto load = [&](int step) {
      T* stage = ring + step % Tile::kStages * kStage;
      if (step < steps) {
        load_a.load(stage, position.k_begin + step * Tile::kDepth, position.k_end);
        load_b.load(stage + LoaderA::kElements, position.k_begin + step * Tile::kDepth, position.k_end);
      }
      ptx::copy_async_commit();
    };
    Value sums[Tile::kThreadRows][Tile::kThreadColumns] = {};
    load(0);
    for (int step = 0; step < steps; ++step) {
      ptx::copy_async_wait<0>();
      __syncthreads();
      load(step + 1);
      const T* stage = ring + step % Tile::kStages * kStage;
      RT_UNROLL
      for (int k = 0; k < Tile::kDepth; k += 4) {
        PlainFragment<LoaderA, Tile::kThreadRows, Tile::kLanesM> a;
        PlainFragment<LoaderB, Tile::kThreadColumns, Tile::kLanesN> b;
        a.load(stage, lane_m, k);
        b.load(stage + LoaderA::kElements, lane_n, k);
        RT_UNROLL
        for (int q = 0; q < 4; ++q) RT_UNROLL
        for (int i = 0; i < Tile::kThreadRows; ++i) RT_UNROLL
        for (int j = 0; j < Tile::kThreadColumns; ++j)
          sums[i][j] += static_cast<Value>(widen(a.at(i, q))) * static_cast<Value>(widen(b.at(j, q)));
      }
    }
    ptx::copy_async_wait<0>();
    __syncthreads();
    Value* shared_sums = dynamic_shared<Value>();
    RT_UNROLL
    for (int i = 0; i < Tile::kThreadRows; ++i) RT_UNROLL
    for (int j = 0; j < Tile::kThreadColumns; ++j)
      shared_sums[row_of<LoaderA::kAlongK, Tile::kLanesM>(lane_m, i) * kSumLead +
                  row_of<LoaderB::kAlongK, Tile::kLanesN>(lane_n, j)] = sums[i][j];
    __syncthreads();
    store_tile<T, Tile::kRows, Tile::kColumns, kSumLead, Tile::kThreads>(p, position, shared_sums);
  }
};

// --- GEMM on tensor cores

/// 16-bit operands, or f32 rounded to TF32; f32 accumulators: kRows x 64 results by four warps.
template <int kTileRows, class T>
struct TensorTile {
  static constexpr int kRows = kTileRows, kColumns = 64, kThreads = 128, kStages = 3;
  static constexpr int kDepth = 64 / static_cast<int>(sizeof(T));
  static constexpr int kStep = 32 / static_cast<int>(sizeof(T));  ///< k of one instruction
  static constexpr int kWarpRows = kRows / 2, kWarpColumns = 32;
};

/// An element of an f32 tile, converted for tensor cores.
template <class Loader>
RT_DEVICE uint32_t tf32_at(const float* tile, int row, int k) {
  return ptx::to_tf32(tile[Loader::kAlongK ? row * Loader::kLead + k : k * Loader::kLead + row]);
}

/// The A fragments of `kCount` 16-row blocks for one step along k.
template <class Loader, int kCount>
RT_DEVICE void load_first(uint32_t (&fragment)[kCount][4], const typename Loader::T* tile, int row, int k,
                          int lane) {
  if constexpr (std::is_same_v<typename Loader::T, float>) {
    RT_UNROLL
    for (int i = 0; i < kCount; ++i) RT_UNROLL
    for (int e = 0; e < 4; ++e)
      fragment[i][e] = tf32_at<Loader>(tile, row + i * 16 + lane / 4 + e % 2 * 8, k + lane % 4 + e / 2 * 4);
  } else {
    RT_UNROLL
    for (int i = 0; i < kCount; ++i) {
      if constexpr (Loader::kAlongK)
        ptx::load_matrix_x4(fragment[i],
                            tile + (row + i * 16 + lane % 16) * Loader::kLead + k + lane / 16 * 8);
      else
        ptx::load_matrix_x4_transposed(fragment[i], tile + (k + lane % 8 + lane / 16 * 8) * Loader::kLead +
                                                        row + i * 16 + lane / 8 % 2 * 8);
    }
  }
}
/// The B fragments of `kCount` 8-column blocks, an even number.
template <class Loader, int kCount>
RT_DEVICE void load_second(uint32_t (&fragment)[kCount][2], const typename Loader::T* tile, int column, int k,
                           int lane) {
  static_assert(kCount % 2 == 0);
  if constexpr (std::is_same_v<typename Loader::T, float>) {
    RT_UNROLL
    for (int j = 0; j < kCount; ++j) RT_UNROLL
    for (int e = 0; e < 2; ++e)
      fragment[j][e] = tf32_at<Loader>(tile, column + j * 8 + lane / 4, k + lane % 4 + e * 4);
  } else {
    RT_UNROLL
    for (int j = 0; j < kCount; j += 2) {
      uint32_t pair[4];
      if constexpr (Loader::kAlongK)
        ptx::load_matrix_x4(
            pair, tile + (column + j * 8 + lane / 16 * 8 + lane % 8) * Loader::kLead + k + lane / 8 % 2 * 8);
      else
        ptx::load_matrix_x4_transposed(
            pair, tile + (k + lane % 16) * Loader::kLead + column + j * 8 + lane / 16 * 8);
      fragment[j][0] = pair[0];
      fragment[j][1] = pair[1];
      fragment[j + 1][0] = pair[2];
      fragment[j + 1][1] = pair[3];
    }
  }
}

template <class T>
RT_DEVICE void multiply(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, float>)
    ptx::mma_16x8x8_tf32(sums, a, b);
  else
    ptx::mma_16x8x16(sums, a, b, T{});
}

template <class First, class Second, int kWidth, int kTileRows>
struct TensorGemm {
  using T = typename First::Element;
  using Tile = TensorTile<kTileRows, T>;
  using LoaderA = TileLoader<First, Tile::kRows, Tile::kDepth, kWidth, Tile::kThreads>;
  using LoaderB = TileLoader<Second, Tile::kColumns, Tile::kDepth, kWidth, Tile::kThreads>;
  /// Blocks per multiprocessor: 128 registers per thread; 64 accumulators per thread need more, and so do
  /// addresses of single elements.
  static constexpr int kBlocks = kTileRows == 128 || kWidth == 1 ? 3 : 4;
  static constexpr int kStage = LoaderA::kElements + LoaderB::kElements;
  static constexpr int kSumLead = Tile::kColumns + 4;
  static constexpr unsigned kRing = Tile::kStages * kStage * sizeof(T);
  static constexpr unsigned kSums = Tile::kRows * kSumLead * sizeof(float);
  static constexpr unsigned kSharedBytes = kRing > kSums ? kRing : kSums;

  RT_DEVICE static void run(First first, Second second, const Gemm& p) {
    constexpr int kCountM = Tile::kWarpRows / 16, kCountN = Tile::kWarpColumns / 8;
    const TilePosition position = tile_position<Tile::kRows, Tile::kColumns, Tile::kDepth>(p);
    first.start(batch_offset(p.batch, position.matrix, GemmBatch::First));
    second.start(batch_offset(p.batch, position.matrix, GemmBatch::Second));
    LoaderA load_a(first, position.row);
    LoaderB load_b(second, position.column);
    T* ring = dynamic_shared<T>();
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int warp_row = warp % 2 * Tile::kWarpRows, warp_column = warp / 2 * Tile::kWarpColumns;
    const int steps = position.k_begin < position.k_end
                          ? (position.k_end - position.k_begin + Tile::kDepth - 1) / Tile::kDepth
                          : 0;
    const auto load = [&](int step) {
      T* stage = ring + step % Tile::kStages * kStage;
      if (step < steps) {
        load_a.load(stage, position.k_begin + step * Tile::kDepth, position.k_end);
        load_b.load(stage + LoaderA::kElements, position.k_begin + step * Tile::kDepth, position.k_end);
      }
      ptx::copy_async_commit();
    };
    float sums[kCountM][kCountN][4] = {};
    RT_UNROLL
    for (int step = 0; step < Tile::kStages - 1; ++step) load(step);
    for (int step = 0; step < steps; ++step) {
      ptx::copy_async_wait<Tile::kStages - 2>();
      __syncthreads();
      load(step + Tile::kStages - 1);
      const T* stage = ring + step % Tile::kStages * kStage;
      RT_UNROLL
      for (int k = 0; k < Tile::kDepth; k += Tile::kStep) {
        uint32_t a[kCountM][4], b[kCountN][2];
        load_first<LoaderA>(a, stage, warp_row, k, lane);
        load_second<LoaderB>(b, stage + LoaderA::kElements, warp_column, k, lane);
        RT_UNROLL
        for (int i = 0; i < kCountM; ++i) RT_UNROLL
        for (int j = 0; j < kCountN; ++j) multiply<T>(sums[i][j], a[i], b[j]);
      }
    }
    ptx::copy_async_wait<0>();
    __syncthreads();
    auto* shared_sums = dynamic_shared<float>();
    RT_UNROLL
    for (int i = 0; i < kCountM; ++i) RT_UNROLL
    for (int j = 0; j < kCountN; ++j) RT_UNROLL
    for (int e = 0; e < 4; ++e)
      shared_sums[(warp_row + i * 16 + lane / 4 + e / 2 * 8) * kSumLead + warp_column + j * 8 + lane % 4 * 2 +
                  e % 2] = sums[i][j][e];
    __syncthreads();
    store_tile<T, Tile::kRows, Tile::kColumns, kSumLead, Tile::kThreads>(p, position, shared_sums);
  }
};

// --- launching

namespace {

template <class Scheme, class First, class Second>
__global__ void __launch_bounds__(Scheme::Tile::kThreads, Scheme::kBlocks)
    gemm_kernel(First first, Second second, Gemm p) {
  Scheme::run(first, second, p);
}
template <class T>
__global__ void __launch_bounds__(kElementwiseThreads) combine_splits_kernel(Gemm p) {
  combine_splits<T>(p, global_index());
}

}  // namespace

template <class T>
cudaError_t launch_combine_splits(const Gemm& p, cudaStream_t stream) {
  return launch(combine_splits_kernel<T>, launch_each(p.matrices * p.m * p.n, stream), p);
}

template <class Scheme, class First, class Second>
cudaError_t launch_gemm(const First& first, const Second& second, const Gemm& p, cudaStream_t stream) {
  using Tile = typename Scheme::Tile;
  const int64_t tiles = ceil_div(p.m, Tile::kRows) * ceil_div(p.n, Tile::kColumns) * p.matrices;
  const LaunchConfig config{dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(p.splits)),
                            dim3(Tile::kThreads), Scheme::kSharedBytes, stream};
  const cudaError_t error = launch(gemm_kernel<Scheme, First, Second>, config, first, second, p);
  if (error != cudaSuccess || p.splits == 1) return error;
  return launch_combine_splits<typename First::Element>(p, stream);
}

/// FMAs on CUDA cores. with_operands(f) calls f(first, second) with the operands' types; `vectors`: both can
/// be loaded in vectors of 16 bytes.
template <int kWidth, class WithOperands>
cudaError_t launch_plain(const Gemm& p, bool vectors, cudaStream_t stream, WithOperands&& with_operands) {
  return with_operands([&](const auto& first, const auto& second) {
    using First = std::remove_cvref_t<decltype(first)>;
    using Second = std::remove_cvref_t<decltype(second)>;
    if (vectors) return launch_gemm<PlainGemm<First, Second, kWidth>>(first, second, p, stream);
    return launch_gemm<PlainGemm<First, Second, 1>>(first, second, p, stream);
  });
}

/// Tensor cores, in tiles of 64 or 128 rows; f32 as TF32.
template <class WithOperands>
cudaError_t launch_tensor(const Gemm& p, bool vectors, bool tall, cudaStream_t stream,
                          WithOperands&& with_operands) {
  return with_operands([&](const auto& first, const auto& second) {
    using First = std::remove_cvref_t<decltype(first)>;
    using Second = std::remove_cvref_t<decltype(second)>;
    constexpr int kWidth = kVectorWidth<typename First::Element>;
    if (!vectors) return launch_gemm<TensorGemm<First, Second, 1, 64>>(first, second, p, stream);
    if (tall) return launch_gemm<TensorGemm<First, Second, kWidth, 128>>(first, second, p, stream);
    return launch_gemm<TensorGemm<First, Second, kWidth, 64>>(first, second, p, stream);
  });
}

// --- matrices

/// A stored matrix with leading dimension `stride`.
template <class T, bool kAlong>
struct MatrixOperand {
  using Element = T;
  static constexpr bool kAlongK = kAlong;
  struct Cursor {
    const T* row;  ///< null: outside
  };
  const T* base;
  int64_t stride;
  int rows;

  RT_DEVICE void start(int64_t offset) { base += offset; }
  RT_DEVICE Cursor cursor(int row) const {
    return {row < rows ? base + (kAlong ? row * stride : static_cast<int64_t>(row)) : nullptr};
  }
  RT_DEVICE const T* at(const Cursor& cursor, int k) const {
    return cursor.row == nullptr ? nullptr : cursor.row + (kAlong ? static_cast<int64_t>(k) : k * stride);
  }
};

}  // namespace librt::cuda
