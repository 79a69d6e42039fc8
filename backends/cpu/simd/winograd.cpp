// Winograd's convolution of 3x3 windows in tiles of 4x4 results (Lavin & Gray 2016), made for few tiles and
// many channels, where the weights are most of the memory traffic: each weight is read once, in the graph's
// layout, transformed in L2 for a block of channels and multiplied there. (Weights transformed in memory
// would be four times as many values to write and read again.)
//
//   y  = A' [(G g G') . (B' x B)] A        for each tile; summed over the input's channels
//   dg = G' [(B' x B) . (A dy A')] G       for each pair of channels; summed over the tiles
//
// The data gradient is a convolution of dy with the windows rotated by 180 degrees and the channels swapped.
// The elementwise products become 36 GEMMs, one per point of a patch, in blocks of 8x32 results in registers.
#include "backends/cpu/simd/winograd.h"
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/vector.h"
#include "backends/cpu/simd/winograd_points.h"

namespace librt::cpu::RT_SIMD_ISA {
#if defined(__AVX512F__)
namespace {

using V = Vector<float>;
using Shape = WinogradShape;
constexpr int64_t kLane = kLanes<float>, kPoints = Shape::kPoints, kTileBlock = Shape::kTileBlock,
                  kOutBlock = Shape::kOutBlock, kInBlock = Shape::kInBlock;

/// Strides between points in floats, of weights, of accumulators and of patches.
constexpr int64_t kWeightStep = Shape::padded(kOutBlock * kInBlock),
                  kSumStep = Shape::padded(kTileBlock * kOutBlock);
RT_INLINE int64_t patch_step(int64_t channels) {
  return Shape::padded(kTileBlock * channels);
}
/// The offset of a channel in patches that are not `across`.
RT_INLINE int64_t position_of(int64_t channel) {
  return channel / kInBlock * kInBlock * kTileBlock + channel % kInBlock;
}

// --- tiles

struct Tile {
  int64_t sample, row, column;  ///< of its first result
};
RT_INLINE Tile tile_of(const Shape& shape, int64_t tile) {
  const int64_t columns = shape.tile_columns(), rows = shape.tile_rows();
  return {tile / (rows * columns), tile / columns % rows * Shape::kTile, tile % columns * Shape::kTile};
}

void transform_patches(const Shape& shape, const float* x, float* v, int64_t block, int64_t channel,
                       bool across, float* workspace) {
  const int64_t step = patch_step(shape.channels), first = block * kTileBlock;
  v += block * kPoints * step;
  float* to = across ? workspace : v + position_of(channel);
  const int64_t to_row = across ? kLane : kInBlock,
                to_point = across ? Shape::padded(kTileBlock * kLane) : step;
  for (int64_t t = 0; t < kTileBlock; ++t) {
    V patch[kPoints], points[kPoints];
    if (first + t < shape.tiles()) {
      const Tile tile = tile_of(shape, first + t);
      load_window<6>(x + tile.sample * shape.height * shape.width * shape.channels + channel, shape.height,
                     shape.width, shape.channels, tile.row - shape.pad_top, tile.column - shape.pad_left,
                     patch);
      both_ways<6, 6, patch_points<V>>(patch, points);
    } else {
      for (V& point : points) point = V{};
    }
    for (int64_t p = 0; p < kPoints; ++p) store(to + p * to_point + t * to_row, points[p]);
  }
  if (!across) return;
  for (int64_t p = 0; p < kPoints; ++p)
    transpose(workspace + p * to_point, kLane, v + p * step + channel * kTileBlock, kTileBlock, kTileBlock,
              kLane);
}

void transform_results(const Shape& shape, const float* dy, float* v, int64_t block, int64_t channel) {
  const int64_t step = patch_step(shape.out_channels), first = block * kTileBlock;
  float* to = v + block * kPoints * step + position_of(channel);
  for (int64_t t = 0; t < kTileBlock; ++t) {
    V results[16], points[kPoints];
    if (first + t < shape.tiles()) {
      const Tile tile = tile_of(shape, first + t);
      load_window<4>(dy + tile.sample * shape.out_height * shape.out_width * shape.out_channels + channel,
                     shape.out_height, shape.out_width, shape.out_channels, tile.row, tile.column, results);
      both_ways<4, 6, result_points<V>>(results, points);
    } else {
      for (V& point : points) point = V{};
    }
    for (int64_t p = 0; p < kPoints; ++p) store(to + p * step + t * kInBlock, points[p]);
  }
}

/// 32 channels of one block of tiles, points [36][tile][32], to y.
void store_results(const Shape& shape, const float* points, float* y, int64_t block, int64_t channel) {
  for (int64_t t = 0; t < kTileBlock && block * kTileBlock + t < shape.tiles(); ++t) {
    const Tile tile = tile_of(shape, block * kTileBlock + t);
    for (int64_t c = 0; c < kOutBlock; c += kLane) {
      V from[kPoints], results[16];
      for (int64_t p = 0; p < kPoints; ++p) from[p] = load<V>(points + p * kSumStep + t * kOutBlock + c);
      both_ways<6, 4, points_results<V>>(from, results);
      for (int64_t i = 0; i < 4 && tile.row + i < shape.out_height; ++i)
        for (int64_t k = 0; k < 4 && tile.column + k < shape.out_width; ++k)
          store(y +
                    (((tile.sample * shape.out_height + tile.row + i) * shape.out_width) + tile.column + k) *
                        shape.out_channels +
                    channel + c,
                results[i * 4 + k]);
    }
  }
}

/// u [36][rows][columns] of weight [.., 3, 3, row_length] from its first row and column on; kRotated rotates
/// the windows by 180 degrees.
template <bool kRotated>
void transform_weights(const float* weight, int64_t row_length, int64_t rows, int64_t columns, float* u) {
  constexpr int64_t kAhead = 2;  // rows: their pieces are too short for the hardware prefetcher
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < columns; k += kLane) {
      V window[9], points[kPoints];
      for (int64_t tap = 0; tap < 9 && i + kAhead < rows; ++tap)
        __builtin_prefetch(weight + ((i + kAhead) * 9 + tap) * row_length + k);
      for (int64_t tap = 0; tap < 9; ++tap)
        window[kRotated ? 8 - tap : tap] = load<V>(weight + (i * 9 + tap) * row_length + k);
      both_ways<3, 6, weight_points<V>>(window, points);
      for (int64_t p = 0; p < kPoints; ++p) store(u + p * kWeightStep + i * columns + k, points[p]);
    }
}

// --- GEMM

/// c [32][32] (+)= a b with inner dimension k: a's rows are a_row apart, its columns a_k; b's rows are b_k
/// apart.
template <bool kAdd>
void multiply(const float* a, int64_t a_row, int64_t a_k, const float* b, int64_t b_k, float* c, int64_t k) {
  constexpr int64_t kRows = 8, kColumns = 32;
  for (int64_t row = 0; row < 32; row += kRows) {
    V sums[kRows][2];
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < 2; ++j) sums[i][j] = kAdd ? load<V>(c + (row + i) * kColumns + j * kLane) : V{};
    const float* from = a + row * a_row;
    for (int64_t s = 0; s < k; ++s) {
      const V b0 = load<V>(b + s * b_k), b1 = load<V>(b + s * b_k + kLane);
      for (int64_t i = 0; i < kRows; ++i) {
        const float factor = from[i * a_row + s * a_k];
        sums[i][0] += factor * b0;
        sums[i][1] += factor * b1;
      }
    }
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < 2; ++j) store(c + (row + i) * kColumns + j * kLane, sums[i][j]);
  }
}

void convolve(const Shape& shape, const float* v, const float* weight, float* y, int64_t out,
              float* workspace) {
  float *u = workspace, *across = u + kPoints * kWeightStep, *sums = across + kPoints * kSumStep;
  const int64_t step = patch_step(shape.channels);
  for (int64_t in = 0; in < shape.channels; in += kInBlock) {
    transform_weights<false>(weight + out * 9 * shape.channels + in, shape.channels, kOutBlock, kInBlock, u);
    for (int64_t block = 0; block < shape.tile_blocks(); ++block)
      for (int64_t p = 0; p < kPoints; ++p)
        (in == 0 ? multiply<false> : multiply<true>)(u + p * kWeightStep, kInBlock, 1,
                                                     v + (block * kPoints + p) * step + in * kTileBlock,
                                                     kTileBlock, sums + (block * kPoints + p) * kSumStep,
                                                     kInBlock);
  }
  for (int64_t block = 0; block < shape.tile_blocks(); ++block) {
    for (int64_t p = 0; p < kPoints; ++p)
      transpose(sums + (block * kPoints + p) * kSumStep, kTileBlock, across + p * kSumStep, kOutBlock,
                kOutBlock, kTileBlock);
    store_results(shape, across, y, block, out);
  }
}

void convolve_back(const Shape& shape, const float* v, const float* weight, float* dx, int64_t out,
                   float* workspace) {
  float *u = workspace, *sums = u + kPoints * kWeightStep;
  const int64_t step = patch_step(shape.channels);
  for (int64_t in = 0; in < shape.channels; in += kInBlock) {
    transform_weights<true>(weight + in * 9 * shape.out_channels + out, shape.out_channels, kInBlock,
                            kOutBlock, u);
    for (int64_t block = 0; block < shape.tile_blocks(); ++block)
      for (int64_t p = 0; p < kPoints; ++p)
        (in == 0 ? multiply<false> : multiply<true>)(v + (block * kPoints + p) * step + in * kTileBlock,
                                                     kInBlock, 1, u + p * kWeightStep, kOutBlock,
                                                     sums + (block * kPoints + p) * kSumStep, kInBlock);
  }
  for (int64_t block = 0; block < shape.tile_blocks(); ++block)
    store_results(shape, sums + block * kPoints * kSumStep, dx, block, out);
}

void weight_gradient(const Shape& shape, const float* v, const float* dv, float* dw, int64_t out,
                     float* workspace) {
  const int64_t step = patch_step(shape.channels), out_step = patch_step(shape.out_channels);
  for (int64_t in = 0; in < shape.channels; in += 32) {
    for (int64_t p = 0; p < kPoints; ++p)
      for (int64_t block = 0; block < shape.tile_blocks(); ++block)
        (block == 0 ? multiply<false>
                    : multiply<true>)(dv + (block * kPoints + p) * out_step + position_of(out), 1, kInBlock,
                                      v + (block * kPoints + p) * step + position_of(in), kInBlock,
                                      workspace + p * kSumStep, kTileBlock);
    for (int64_t o = 0; o < kOutBlock; ++o)
      for (int64_t k = 0; k < 32; k += kLane) {
        V points[kPoints], window[9];
        for (int64_t p = 0; p < kPoints; ++p) points[p] = load<V>(workspace + p * kSumStep + o * 32 + k);
        both_ways<6, 3, points_weights<V>>(points, window);
        for (int64_t tap = 0; tap < 9; ++tap)
          store(dw + ((out + o) * 9 + tap) * shape.channels + in + k, window[tap]);
      }
  }
}

constexpr WinogradLoops make_loops() {
  return {&transform_patches, &transform_results, &convolve, &convolve_back, &weight_gradient};
}

}  // namespace
#else
namespace {

constexpr WinogradLoops make_loops() {
  return {};  // too few registers
}

}  // namespace
#endif

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(WinogradLoops);
