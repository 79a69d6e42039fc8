// Rows are split into tiles, which blocks sort in shared memory (bitonic network, Batcher 1968); then runs
// are merged in pairs until one is left. Every entry finds its position in the merged run by a binary search
// in the other one. Runs keep only the requested number of entries, so that a small k costs little more than
// reading.
#include "kernels/sort.h"

#include <algorithm>

#include "kernels/index.cuh"
#include "kernels/sort.cuh"

namespace librt::cuda {
namespace {

constexpr int64_t kLargestTile = 1024;
constexpr int64_t kSmallestTile = 64;

int64_t tile_of(int64_t length) {
  int64_t tile = kSmallestTile;
  while (tile < length && tile < kLargestTile) tile *= 2;
  return tile;
}

bool is_wide(ElementType type) {
  return type == ElementType::F64 || type == ElementType::I64 || type == ElementType::U64;
}

/// Entries of a row in a buffer.
int64_t stride_of(const SortRows& rows) {
  const int64_t tile = tile_of(rows.length);
  return (rows.length + tile - 1) / tile * std::min(tile, rows.kept);
}

template <class Key, class T>
RT_DEVICE Key ordered(T x) {
  const auto value = widen(x);
  using Value = decltype(value);
  if constexpr (std::is_floating_point_v<std::remove_const_t<Value>>) {
    constexpr Key kTop = Key{1} << (8 * sizeof(Key) - 1);
    if (value != value) return ~Key{0};
    Key bits;
    const auto plus = value + 0;  // -0 becomes 0
    memcpy(&bits, &plus, sizeof(bits));
    return (bits & kTop) != 0 ? ~bits : bits | kTop;
  } else if constexpr (sizeof(Key) == 8) {
    return static_cast<Key>(value) ^ (std::is_signed_v<T> ? Key{1} << 63 : 0);
  } else {
    return static_cast<Key>(value) ^ (std::is_signed_v<T> ? Key{1} << 31 : 0);
  }
}

/// Block (tile, row): sorts `tile` elements of a row and stores the first `kept`. Run i of a row begins at i
/// * min(its width, kept).
template <class Entry, class T>
__global__ void __launch_bounds__(kLargestTile / 2)
    sort_tile(const T* data, Entry* entries, SortRows rows, int tile, int64_t tiles, int64_t stride) {
  Entry* shared = dynamic_shared<Entry>();
  const int64_t row = blockIdx.x / tiles, first = blockIdx.x % tiles * tile;
  const T* from = data + row / rows.inner * rows.length * rows.inner + row % rows.inner;
  for (int i = static_cast<int>(threadIdx.x); i < tile; i += static_cast<int>(blockDim.x)) {
    Entry entry = Entry::last();
    if (first + i < rows.length) {
      const auto key = ordered<typename Entry::Key>(from[(first + i) * rows.inner]);
      entry = Entry::of(rows.largest ? static_cast<typename Entry::Key>(~key) : key,
                        static_cast<uint32_t>(first + i));
    }
    shared[i] = entry;
  }
  for (int size = 2; size <= tile; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < tile / 2; i += static_cast<int>(blockDim.x)) {
        const int low = 2 * i - (i & (step - 1)), high = low + step;
        const Entry a = shared[low], b = shared[high];
        if (((low & size) == 0) == b.before(a)) {
          shared[low] = b;
          shared[high] = a;
        }
      }
    }
  __syncthreads();
  const int64_t slots = min(static_cast<int64_t>(tile), rows.kept), here = min(slots, rows.length - first);
  Entry* to = entries + row * stride + blockIdx.x % tiles * slots;
  for (int64_t i = threadIdx.x; i < here; i += blockDim.x) to[i] = shared[i];
}

/// Merges pairs of runs that cover `width` elements each.
template <class Entry>
__global__ void __launch_bounds__(kElementwiseThreads)
    merge_runs(const Entry* from, Entry* to, SortRows rows, int64_t width, int64_t runs, int64_t stride) {
  const int64_t index = global_index(), slots = min(width, rows.kept);
  if (index >= rows.rows * runs * slots) return;
  const int64_t at = index % slots, run = index / slots % runs, row = index / slots / runs;
  const auto length = [&](int64_t of_run) {
    return max(int64_t{0}, min(min(width, rows.length - of_run * width), rows.kept));
  };
  if (at >= length(run)) return;
  const Entry* line = from + row * stride;
  const Entry mine = line[run * slots + at];
  const int64_t other = run ^ 1;
  const Entry* others = line + other * slots;
  int64_t low = 0, high = length(other);
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (others[middle].before(mine))
      low = middle + 1;
    else
      high = middle;
  }
  if (at + low < rows.kept) to[row * stride + run / 2 * min(2 * width, rows.kept) + at + low] = mine;
}

template <class Entry, class T>
cudaError_t sort_typed(const SortRows& rows, const T* data, void* const (&buffers)[2], SortedRows& sorted,
                       cudaStream_t stream) {
  const int64_t tile = tile_of(rows.length), tiles = (rows.length + tile - 1) / tile,
                stride = stride_of(rows);
  sorted = {buffers[0], stride, sizeof(Entry) == sizeof(WideEntry)};
  if (rows.rows * stride == 0) return cudaSuccess;
  const LaunchConfig config{dim3(static_cast<unsigned>(rows.rows * tiles)),
                            dim3(static_cast<unsigned>(tile / 2)),
                            static_cast<unsigned>(static_cast<size_t>(tile) * sizeof(Entry)), stream};
  cudaError_t error = launch(sort_tile<Entry, T>, config, data, static_cast<Entry*>(buffers[0]), rows,
                             static_cast<int>(tile), tiles, stride);
  int source = 0;
  for (int64_t width = tile; error == cudaSuccess && width < rows.length; width *= 2, source ^= 1) {
    const int64_t runs = (rows.length + width - 1) / width;
    error = launch(merge_runs<Entry>, launch_each(rows.rows * runs * std::min(width, rows.kept), stream),
                   static_cast<const Entry*>(buffers[source]), static_cast<Entry*>(buffers[source ^ 1]), rows,
                   width, runs, stride);
  }
  sorted.entries = buffers[source];
  return error;
}

}  // namespace

size_t SortRows::buffer_bytes() const noexcept {
  const size_t entry = is_wide(type) ? sizeof(WideEntry) : sizeof(NarrowEntry);
  return static_cast<size_t>(rows * stride_of(*this)) * entry;
}

cudaError_t sort_rows(const SortRows& rows, const void* data, void* const (&buffers)[2], SortedRows& sorted,
                      cudaStream_t stream) {
  return with_type(rows.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Entry = std::conditional_t<sizeof(T) == 8, WideEntry, NarrowEntry>;
    return sort_typed<Entry>(rows, static_cast<const T*>(data), buffers, sorted, stream);
  });
}

}  // namespace librt::cuda
