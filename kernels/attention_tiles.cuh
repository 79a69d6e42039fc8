// Tiles of 32 x 32 scores computed with FMAs, and sums of rows weighted by them: the building blocks of
// attention and its gradients, for any element type and width.
//
// 128 threads; a warp has eight rows of the first operand, its lanes the 32 rows of the second one. Weighted
// sums are computed in chunks of 128 columns, four per lane.
#pragma once

#include "kernels/common.cuh"
#include "kernels/reduce.cuh"
#include "kernels/vector.cuh"

namespace librt::cuda {

inline constexpr int kTileThreads = 128, kTileRows = 32,
                     kTileWarpRows = kTileRows / (kTileThreads / kWarpSize);
inline constexpr int kTileColumns = 128, kTileLaneColumns = kTileColumns / kWarpSize;

struct AttentionTiles {
  static constexpr int kDepth = 32, kLead = kDepth + 4;
  float first[kTileRows][kDepth];
  float second[kTileRows][kLead];
  float columns[kTileRows][kTileColumns];
  float weight[kTileRows][kTileRows];
};

/// Rows [begin, end) of a dense matrix; zeros past the end.
template <class T>
struct TileRows {
  const T* from;
  int begin, end;

  RT_DEVICE float at(int row, int column, int width) const {
    return begin + row < end && column < width
               ? to_float(from[static_cast<int64_t>(begin + row) * width + column])
               : 0.0f;
  }
};

struct TileLane {
  int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  int row = static_cast<int>(threadIdx.x) / kWarpSize * kTileWarpRows;  ///< first of the warp
};

/// products[i] += row at.row + i of `first` times row at.lane of `second`, over `depth` columns.
template <class T>
RT_DEVICE void multiply_tiles(float (&products)[kTileWarpRows], AttentionTiles& tiles, const TileLane& at,
                              const TileRows<T>& first, const TileRows<T>& second, int depth) {
  for (int d0 = 0; d0 < depth; d0 += AttentionTiles::kDepth) {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kTileRows * AttentionTiles::kDepth; i += kTileThreads) {
      const int row = i / AttentionTiles::kDepth, d = i % AttentionTiles::kDepth;
      tiles.first[row][d] = first.at(row, d0 + d, depth);
      tiles.second[row][d] = second.at(row, d0 + d, depth);
    }
    __syncthreads();
    RT_UNROLL
    for (int d = 0; d < AttentionTiles::kDepth; d += 4) {
      const auto b = load_vector<4>(&tiles.second[at.lane][d]);
      RT_UNROLL
      for (int i = 0; i < kTileWarpRows; ++i) {
        const auto a = load_vector<4>(&tiles.first[at.row + i][d]);
        RT_UNROLL
        for (int c = 0; c < 4; ++c) products[i] += a[c] * b[c];
      }
    }
  }
}

/// tiles.columns = the rows' columns of `chunk`.
template <class T>
RT_DEVICE void load_columns(AttentionTiles& tiles, const TileRows<T>& rows, int width, int chunk) {
  for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kTileColumns; i += kTileThreads)
    tiles.columns[i / kTileColumns][i % kTileColumns] =
        rows.at(i / kTileColumns, chunk * kTileColumns + i % kTileColumns, width);
}

/// sums[i] += tiles.weight[at.row + i] times tiles.columns
RT_DEVICE void add_columns(float (&sums)[kTileWarpRows][kTileLaneColumns], const AttentionTiles& tiles,
                           const TileLane& at) {
  for (int t = 0; t < kTileRows; t += 4) {
    float v[4][kTileLaneColumns];
    RT_UNROLL
    for (int q = 0; q < 4; ++q) RT_UNROLL
    for (int c = 0; c < kTileLaneColumns; ++c) v[q][c] = tiles.columns[t + q][c * kWarpSize + at.lane];
    RT_UNROLL
    for (int i = 0; i < kTileWarpRows; ++i) {
      const auto weight = load_vector<4>(&tiles.weight[at.row + i][t]);
      RT_UNROLL
      for (int q = 0; q < 4; ++q) RT_UNROLL
      for (int c = 0; c < kTileLaneColumns; ++c) sums[i][c] += weight[q] * v[q][c];
    }
  }
}

/// sums[i] += tiles.weight[at.row + i] times the rows' columns of `chunk`. Begins and ends with a barrier:
/// weights may be written right before and right after.
template <class T>
RT_DEVICE void add_weighted(float (&sums)[kTileWarpRows][kTileLaneColumns], AttentionTiles& tiles,
                            const TileLane& at, const TileRows<T>& rows, int width, int chunk) {
  load_columns(tiles, rows, width, chunk);
  __syncthreads();
  add_columns(sums, tiles, at);
  __syncthreads();
}

/// Writes sums times `factor` to the rows of a matrix.
template <class T>
RT_DEVICE void store_rows(const float (&sums)[kTileWarpRows][kTileLaneColumns], T* to, const TileLane& at,
                          int begin, int end, int width, int chunk, float factor) {
  RT_UNROLL
  for (int i = 0; i < kTileWarpRows; ++i) {
    const int row = begin + at.row + i;
    RT_UNROLL
    for (int c = 0; c < kTileLaneColumns; ++c) {
      const int column = chunk * kTileColumns + c * kWarpSize + at.lane;
      if (row < end && column < width)
        to[static_cast<int64_t>(row) * width + column] = from_float<T>(sums[i][c] * factor);
    }
  }
}

constexpr int column_chunks(int width) {
  return (width + kTileColumns - 1) / kTileColumns;
}

}  // namespace librt::cuda
