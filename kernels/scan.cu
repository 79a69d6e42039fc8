// One thread per line where lines are interleaved or short. Else one block per line, a tile at a time;
// long lines are split into chunks, whose totals are scanned before the chunks themselves (Blelloch
// 1990). Totals are kept in the type T is computed in; integers wrap.
#include "kernels/scan.h"

#include "kernels/common.cuh"
#include "kernels/reduce.cuh"

namespace librt::cuda {
namespace {

constexpr int kScanThreads = 256;
constexpr unsigned kLineThreads = 128;
constexpr int kEach = 4;  // elements per thread in a tile
constexpr int kScanTile = kScanThreads * kEach;
/// Elements of a chunk; lines of at most that many are scanned by one block.
constexpr int64_t kChunk = 16 * kScanTile;
constexpr int64_t kShortLine = 32;

/// The accumulator type of T: 64-bit integers wrap as unsigned ones.
template <class T>
using Total = std::conditional_t<std::is_integral_v<Wide<T>>, uint64_t, Wide<T>>;

template <class T>
RT_DEVICE Total<T> combine(bool product, Total<T> a, Total<T> b) {
  return product ? a * b : a + b;
}
template <class T>
RT_DEVICE Total<T> neutral(bool product) {
  return static_cast<Total<T>>(product ? 1 : 0);
}

template <class T>
__global__ void __launch_bounds__(kLineThreads) scan_lines(const T* data, T* result, ScanArguments scan) {
  const int64_t line = global_index();
  if (line >= scan.outer * scan.inner) return;
  const int64_t first = line / scan.inner * scan.extent * scan.inner + line % scan.inner;
  Total<T> total = neutral<T>(scan.product);
  for (int64_t step = 0; step < scan.extent; ++step) {
    const int64_t at = first + (scan.reverse ? scan.extent - 1 - step : step) * scan.inner;
    const Total<T> next = combine<T>(scan.product, total, static_cast<Total<T>>(widen(data[at])));
    result[at] = narrow<T>(scan.exclusive ? total : next);
    total = next;
  }
}

/// Inclusive scan over the lanes of the warp.
template <class T>
RT_DEVICE Total<T> warp_scan(bool product, Total<T> value, int lane) {
  RT_UNROLL
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const Total<T> before = __shfl_up_sync(kFullMask, value, static_cast<unsigned>(distance));
    if (lane >= distance) value = combine<T>(product, before, value);
  }
  return value;
}

/// Exclusive scan over the threads of the block; `total` becomes the total of the block.
template <class T>
RT_DEVICE Total<T> block_scan(bool product, Total<T> value, Total<T>& total, Total<T>* warps) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize,
            warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const Total<T> inclusive = warp_scan<T>(product, value, lane);
  if (lane == kWarpSize - 1) warps[warp] = inclusive;
  __syncthreads();
  Total<T> before = neutral<T>(product);
  total = before;
  for (int i = 0; i < kScanThreads / kWarpSize; ++i) {
    if (i == warp) before = total;
    total = combine<T>(product, total, warps[i]);
  }
  __syncthreads();
  const Total<T> left = __shfl_up_sync(kFullMask, inclusive, 1);
  return lane == 0 ? before : combine<T>(product, before, left);
}

/// This thread's elements of the tile that starts at step `first`, neutral elements past `last`.
template <class T>
RT_DEVICE void load_steps(const T* line, const ScanArguments& scan, int64_t first, int64_t last,
                          Total<T> (&values)[kEach]) {
  RT_UNROLL
  for (int i = 0; i < kEach; ++i) {
    const int64_t step = first + static_cast<int64_t>(threadIdx.x) * kEach + i;
    values[i] = neutral<T>(scan.product);
    if (step < last)
      values[i] = static_cast<Total<T>>(widen(line[scan.reverse ? scan.extent - 1 - step : step]));
  }
}

/// Block (chunk, line): steps [chunk, chunk + 1) * kChunk. Initialized with starts[line, chunk] if given.
template <class T>
__global__ void __launch_bounds__(kElementwiseThreads) __launch_bounds__(kScanThreads)
    scan_chunks(const T* data, T* result, const Total<T>* starts, ScanArguments scan, int64_t chunks) {
  __shared__ Total<T> warps[kScanThreads / kWarpSize];
  const int64_t line = blockIdx.x / chunks, chunk = blockIdx.x % chunks;
  const T* from = data + line * scan.extent;
  T* to = result + line * scan.extent;
  const int64_t last = min(scan.extent, (chunk + 1) * kChunk);
  Total<T> carry = starts == nullptr ? neutral<T>(scan.product) : starts[blockIdx.x];
  for (int64_t first = chunk * kChunk; first < last; first += kScanTile) {
    Total<T> values[kEach], sum = neutral<T>(scan.product), tile;
    load_steps<T>(from, scan, first, last, values);
    RT_UNROLL
    for (int i = 0; i < kEach; ++i) sum = combine<T>(scan.product, sum, values[i]);
    Total<T> total = combine<T>(scan.product, carry, block_scan<T>(scan.product, sum, tile, warps));
    RT_UNROLL
    for (int i = 0; i < kEach; ++i) {
      const int64_t step = first + static_cast<int64_t>(threadIdx.x) * kEach + i;
      const Total<T> next = combine<T>(scan.product, total, values[i]);
      if (step < last)
        to[scan.reverse ? scan.extent - 1 - step : step] = narrow<T>(scan.exclusive ? total : next);
      total = next;
    }
    carry = combine<T>(scan.product, carry, tile);
  }
}

/// Block (chunk, line): the total of the chunk.
template <class T>
__global__ void __launch_bounds__(kElementwiseThreads) __launch_bounds__(kScanThreads)
    reduce_chunks(const T* data, Total<T>* totals, ScanArguments scan, int64_t chunks) {
  __shared__ Total<T> storage[kWarpSize];
  const int64_t line = blockIdx.x / chunks, chunk = blockIdx.x % chunks;
  const int64_t last = min(scan.extent, (chunk + 1) * kChunk);
  Total<T> sum = neutral<T>(scan.product);
  for (int64_t first = chunk * kChunk; first < last; first += kScanTile) {
    Total<T> values[kEach];
    load_steps<T>(data + line * scan.extent, scan, first, last, values);
    RT_UNROLL
    for (int i = 0; i < kEach; ++i) sum = combine<T>(scan.product, sum, values[i]);
  }
  const bool product = scan.product;
  const Total<T> total = block_reduce(
      sum, [product](Total<T> a, Total<T> b) { return combine<T>(product, a, b); }, storage);
  if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

/// One thread per line: chunk totals become their exclusive scan.
template <class Value>
__global__ void __launch_bounds__(kElementwiseThreads)
    scan_totals(Value* totals, bool product, int64_t lines, int64_t chunks) {
  const int64_t line = global_index();
  if (line >= lines) return;
  Value total = static_cast<Value>(product ? 1 : 0);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    Value& here = totals[line * chunks + chunk];
    const Value next = product ? total * here : total + here;
    here = total;
    total = next;
  }
}

int64_t chunks_of(const ScanArguments& scan) {
  return scan.inner == 1 && scan.extent > kShortLine ? ceil_div(scan.extent, kChunk) : 0;
}

template <class T>
cudaError_t scan_type(const ScanArguments& scan, void* scratch, cudaStream_t stream) {
  const T* data = static_cast<const T*>(scan.data);
  T* result = static_cast<T*>(scan.result);
  const int64_t chunks = chunks_of(scan);
  if (chunks == 0)
    return launch(scan_lines<T>, launch_each(scan.outer * scan.inner, stream, kLineThreads), data, result,
                  scan);
  const LaunchConfig config{dim3(static_cast<unsigned>(scan.outer * chunks)), dim3(kScanThreads), 0, stream};
  Total<T>* starts = nullptr;
  if (chunks > 1) {
    starts = static_cast<Total<T>*>(scratch);
    cudaError_t error = launch(reduce_chunks<T>, config, data, starts, scan, chunks);
    if (error == cudaSuccess)
      error = launch(scan_totals<Total<T>>, launch_each(scan.outer, stream), starts, scan.product, scan.outer,
                     chunks);
    if (error != cudaSuccess) return error;
  }
  return launch(scan_chunks<T>, config, data, result, starts, scan, chunks);
}

}  // namespace

size_t scan_scratch_bytes(const ScanArguments& scan) {
  const int64_t chunks = chunks_of(scan);
  return chunks > 1 ? static_cast<size_t>(scan.outer * chunks) * sizeof(uint64_t) : 0;
}

cudaError_t scan(const ScanArguments& arguments, void* scratch, cudaStream_t stream) {
  if (arguments.outer * arguments.extent * arguments.inner == 0) return cudaSuccess;
  // Sums and products do not depend on an integer's signedness.
  switch (arguments.type) {
    case ElementType::F16: return scan_type<__half>(arguments, scratch, stream);
    case ElementType::BF16: return scan_type<__nv_bfloat16>(arguments, scratch, stream);
    case ElementType::F32: return scan_type<float>(arguments, scratch, stream);
    case ElementType::F64: return scan_type<double>(arguments, scratch, stream);
    case ElementType::I8:
    case ElementType::U8: return scan_type<uint8_t>(arguments, scratch, stream);
    case ElementType::I16:
    case ElementType::U16: return scan_type<uint16_t>(arguments, scratch, stream);
    case ElementType::I32:
    case ElementType::U32: return scan_type<uint32_t>(arguments, scratch, stream);
    case ElementType::I64:
    case ElementType::U64: return scan_type<uint64_t>(arguments, scratch, stream);
    case ElementType::Bool: break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace librt::cuda
