// Data movement: strided copies, transposes by tiles of 32 x 32 through shared memory (rows padded by one
// element, so that neither direction has bank conflicts), padding.
#include "kernels/movement.h"

#include "kernels/common.cuh"
#include "kernels/index_space.cuh"
#include "kernels/vector.cuh"

namespace librt::cuda {
namespace {

constexpr int kTile = 32, kTileRows = 8;

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    copy_kernel(IndexSpace<2> space, const T* from, T* to, int64_t count) {
  const int64_t i = global_index();
  if (i >= count) return;
  const auto offsets = offsets_of(space, i);
  to[offsets[1]] = from[offsets[0]];
}

template <class T>
__global__ void __launch_bounds__(kTile* kTileRows)
    transpose_kernel(IndexSpace<2> outer, int64_t rows, int64_t columns, int64_t row_stride,
                     int64_t column_stride, const T* from, T* to) {
  __shared__ T tile[kTile][kTile + 1];
  const int64_t column_tiles = ceil_div(columns, kTile), row_tiles = ceil_div(rows, kTile);
  const int64_t block = blockIdx.x;
  const int64_t column = block % column_tiles * kTile, row = block / column_tiles % row_tiles * kTile;
  const auto offsets = offsets_of(outer, block / column_tiles / row_tiles);
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  for (int i = y; i < kTile; i += kTileRows)
    if (row + i < rows && column + x < columns)
      tile[i][x] = from[offsets[0] + (row + i) * row_stride + column + x];
  __syncthreads();
  for (int i = y; i < kTile; i += kTileRows)
    if (column + i < columns && row + x < rows)
      to[offsets[1] + (column + i) * column_stride + row + x] = tile[x][i];
}

/// The position in [0, limit) that a padded position is read from, or -1 for the constant.
RT_DEVICE int64_t pad_position(PadMode mode, int64_t i, int64_t limit) {
  switch (mode) {
    case PadMode::Constant: return i >= 0 && i < limit ? i : -1;
    case PadMode::Reflect: {
      const int64_t period = limit > 1 ? 2 * (limit - 1) : 1;
      i = (i < 0 ? -i : i) % period;
      return i < limit ? i : period - i;
    }
    case PadMode::Edge: return i < 0 ? 0 : i < limit ? i : limit - 1;
    case PadMode::Wrap: break;
  }
  i %= limit;
  return i < 0 ? i + limit : i;
}

/// The offset in x of element i of the padded tensor, -1 for the constant.
template <class Index>
RT_DEVICE int64_t pad_offset(const PadArguments& a, Index i) {
  int64_t offset = 0;
  for (int axis = a.rank - 1; axis >= 0; --axis) {
    const auto extent = static_cast<Index>(a.extents[axis]);
    const Index rest = i / extent;
    const int64_t position =
        pad_position(a.mode, static_cast<int64_t>(i - rest * extent) - a.before[axis], a.limits[axis]);
    if (position < 0) return -1;
    i = rest;
    offset += position * a.strides[axis];
  }
  return offset;
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    pad_kernel(PadArguments a, const T* x, const T* value, T* y) {
  const int64_t i = global_index();
  if (i >= a.count) return;
  const int64_t offset = a.count <= 0xffffffffll ? pad_offset(a, static_cast<uint32_t>(i)) : pad_offset(a, i);
  y[i] = offset >= 0 ? x[offset] : value != nullptr ? *value : T{0};
}

}  // namespace

cudaError_t strided_copy(const CopyArguments& a, cudaStream_t stream) {
  const int64_t count = a.space.elements();
  const auto config = launch_each(count, stream);
  if (a.unit_bytes == 16)
    return launch(copy_kernel<uint4>, config, a.space, static_cast<const uint4*>(a.from),
                  static_cast<uint4*>(a.to), count);
  return with_size(a.unit_bytes, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch(copy_kernel<T>, config, a.space, static_cast<const T*>(a.from), static_cast<T*>(a.to),
                  count);
  });
}

cudaError_t transpose(const TransposeArguments& a, cudaStream_t stream) {
  return with_size(a.element_bytes, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t blocks = ceil_div(a.columns, kTile) * ceil_div(a.rows, kTile) * a.outer.elements();
    const LaunchConfig config{dim3(static_cast<unsigned>(blocks)), dim3(kTile, kTileRows), 0, stream};
    return launch(transpose_kernel<T>, config, a.outer, a.rows, a.columns, a.row_stride, a.column_stride,
                  static_cast<const T*>(a.from), static_cast<T*>(a.to));
  });
}

cudaError_t pad(const PadArguments& a, cudaStream_t stream) {
  return with_size(a.element_bytes, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch(pad_kernel<T>, launch_each(a.count, stream), a, static_cast<const T*>(a.x),
                  static_cast<const T*>(a.value), static_cast<T*>(a.y));
  });
}

}  // namespace librt::cuda
