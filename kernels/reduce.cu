// Reductions. Rows: the threads of a block (or the lanes of a warp, for short rows) iterate over one result's
// elements. Columns: adjacent threads have adjacent results, and several rows of threads share the elements.
// Few results are computed in splits, whose partial results a second launch combines in order: bitwise
// reproducible.
#include "kernels/reduce.h"

#include <algorithm>

#include "kernels/common.cuh"
#include "kernels/reduce.cuh"

namespace librt::cuda {
namespace {

constexpr int kRowThreads = 256;

struct Product {
  template <class T>
  RT_DEVICE T operator()(T a, T b) const {
    return a * b;
  }
};

constexpr int kColumnLanes = 32, kColumnRows = 8;

/// The accumulator type of a reduction of T: integers in unsigned 64 bits wherever only the low bits matter.
template <class T, class Combine>
using Accumulator = std::conditional_t<std::is_integral_v<T> &&
                                           (std::is_same_v<Combine, Sum> || std::is_same_v<Combine, Product>),
                                       uint64_t, Wide<T>>;

template <class Number>
inline constexpr Number kHighest = std::is_floating_point_v<Number> ? static_cast<Number>(INFINITY)
                                                                    : std::numeric_limits<Number>::max();
template <class Number>
inline constexpr Number kLowest = std::is_floating_point_v<Number> ? static_cast<Number>(-INFINITY)
                                                                   : std::numeric_limits<Number>::lowest();

template <class Value, class Combine>
RT_DEVICE Value neutral() {
  if constexpr (std::is_same_v<Combine, Sum>) return Value{0};
  if constexpr (std::is_same_v<Combine, Product>) return Value{1};
  return std::is_same_v<Combine, Maximum> ? kLowest<Value> : kHighest<Value>;
}

RT_DEVICE int64_t offset_of(const Axes& axes, int64_t index) {
  if (axes.rank == 0) return 0;
  int64_t offset = 0;
  for (int i = axes.rank - 1; i > 0; --i) {
    const int64_t rest = index / axes.extent[i];
    offset += (index - rest * axes.extent[i]) * axes.stride[i];
    index = rest;
  }
  return offset + index * axes.stride[0];
}

template <class T, class Combine>
struct Job {
  using Value = Accumulator<T, Combine>;
  const T* x;
  T* y;
  Value* partial;  ///< null: the result is final
  int64_t outputs, count, part;
  bool mean;
  Axes kept, reduced;

  RT_DEVICE Value load(int64_t base, int64_t r) const {
    return static_cast<Value>(widen(x[base + offset_of(reduced, r)]));
  }
  RT_DEVICE void store(int64_t output, Value value) const {
    if (partial != nullptr) {
      partial[static_cast<int64_t>(blockIdx.y) * outputs + output] = value;
    } else {
      y[output] = finished(value);
    }
  }
  RT_DEVICE T finished(Value value) const {
    if (!mean) return narrow<T>(value);
    if constexpr (std::is_integral_v<T>) {
      const auto wrapped = static_cast<Wide<T>>(value);
      return count == 0 ? T{0} : narrow<T>(wrapped / static_cast<Wide<T>>(count));
    } else {
      return narrow<T>(value / static_cast<Value>(count));
    }
  }
};

/// kThreads threads (a warp or the block) per result.
template <class T, class Combine, int kThreads>
__global__ void __launch_bounds__(kRowThreads) reduce_rows(Job<T, Combine> job) {
  using Value = typename Job<T, Combine>::Value;
  __shared__ Value shared[kRowThreads / 32];
  const int lane = static_cast<int>(threadIdx.x) % kThreads;
  const int64_t output =
      static_cast<int64_t>(blockIdx.x) * (kRowThreads / kThreads) + static_cast<int>(threadIdx.x) / kThreads;
  Value value = neutral<Value, Combine>();
  if (output < job.outputs) {
    const int64_t base = offset_of(job.kept, output);
    const int64_t first = static_cast<int64_t>(blockIdx.y) * job.part;
    const int64_t last = first + job.part < job.count ? first + job.part : job.count;
    for (int64_t r = first + lane; r < last; r += kThreads) value = Combine{}(value, job.load(base, r));
  }
  if constexpr (kThreads == kRowThreads)
    value = block_reduce(value, Combine{}, shared);
  else
    value = warp_reduce(value, Combine{});
  if (lane == 0 && output < job.outputs) job.store(output, value);
}

template <class T, class Combine>
__global__ void __launch_bounds__(kColumnLanes* kColumnRows, 4) reduce_columns(Job<T, Combine> job) {
  using Value = typename Job<T, Combine>::Value;
  __shared__ Value shared[kColumnRows][kColumnLanes];
  const int lane = static_cast<int>(threadIdx.x) % kColumnLanes,
            row = static_cast<int>(threadIdx.x) / kColumnLanes;
  const int64_t output = static_cast<int64_t>(blockIdx.x) * kColumnLanes + lane;
  Value value = neutral<Value, Combine>();
  if (output < job.outputs) {
    const int64_t base = offset_of(job.kept, output);
    const int64_t first = static_cast<int64_t>(blockIdx.y) * job.part;
    const int64_t last = first + job.part < job.count ? first + job.part : job.count;
    for (int64_t r = first + row; r < last; r += kColumnRows) value = Combine{}(value, job.load(base, r));
  }
  shared[row][lane] = value;
  __syncthreads();
  if (row == 0 && output < job.outputs) {
    RT_UNROLL
    for (int i = 1; i < kColumnRows; ++i) value = Combine{}(value, shared[i][lane]);
    job.store(output, value);
  }
}

template <class T, class Combine>
__global__ void __launch_bounds__(kRowThreads) combine_parts(Job<T, Combine> job, int splits) {
  using Value = typename Job<T, Combine>::Value;
  const int64_t output = global_index();
  if (output >= job.outputs) return;
  Value value = job.partial[output];
  for (int s = 1; s < splits; ++s) value = Combine{}(value, job.partial[s * job.outputs + output]);
  job.y[output] = job.finished(value);
}

unsigned blocks_for(int64_t count, int64_t per_block) {
  return static_cast<unsigned>(ceil_div(count, per_block));
}

template <class T, class Combine>
cudaError_t run(const ReduceArguments& given, cudaStream_t stream) {
  if (given.outputs == 0) return cudaSuccess;
  using Value = typename Job<T, Combine>::Value;
  Job<T, Combine> job{.x = static_cast<const T*>(given.x),
                      .y = static_cast<T*>(given.y),
                      .partial = given.splits > 1 ? static_cast<Value*>(given.partial) : nullptr,
                      .outputs = given.outputs,
                      .count = given.count,
                      .part = (given.count + given.splits - 1) / given.splits,
                      .mean = given.mean,
                      .kept = given.kept,
                      .reduced = given.reduced};
  const auto splits = static_cast<unsigned>(given.splits);
  cudaError_t error = cudaSuccess;
  if (!given.inner_reduced)
    error = launch(
        reduce_columns<T, Combine>,
        {dim3(blocks_for(job.outputs, kColumnLanes), splits), dim3(kColumnLanes * kColumnRows), 0, stream},
        job);
  else if (job.part <= 256)
    error =
        launch(reduce_rows<T, Combine, 32>,
               {dim3(blocks_for(job.outputs, kRowThreads / 32), splits), dim3(kRowThreads), 0, stream}, job);
  else
    error = launch(reduce_rows<T, Combine, kRowThreads>,
                   {dim3(blocks_for(job.outputs, 1), splits), dim3(kRowThreads), 0, stream}, job);
  if (error != cudaSuccess || given.splits == 1) return error;
  return launch(combine_parts<T, Combine>, launch_each(job.outputs, stream, kRowThreads), job, given.splits);
}

// --- argmin and argmax

/// Whether b ranks before a.
template <class Value>
RT_DEVICE bool wins(Value a, int64_t a_index, Value b, int64_t b_index, bool smallest, bool last) {
  const bool a_nan = a != a, b_nan = b != b;
  if (a_nan != b_nan) return b_nan;
  if (a == b || a_nan) return last ? b_index > a_index : b_index < a_index;
  return smallest ? b < a : b > a;
}

/// One result per kThreads adjacent threads.
template <class T, int kThreads>
__global__ void __launch_bounds__(256, 4)
    arg_extreme_kernel(const T* x, int64_t* y, int64_t count, int64_t extent, int64_t inner, bool smallest,
                       bool last) {
  const int64_t thread = global_index();
  const int64_t output = thread / kThreads;
  const int lane = static_cast<int>(thread % kThreads);
  const bool present = output < count;
  const T* column = present ? x + output / inner * extent * inner + output % inner : x;
  Wide<T> value = widen(column[0]);
  int64_t index = 0;
  if (present)
    for (int64_t i = lane; i < extent; i += kThreads) {
      const Wide<T> other = widen(column[i * inner]);
      if (wins(value, index, other, i, smallest, last)) value = other, index = i;
    }
  if constexpr (kThreads > 1) {
    RT_UNROLL
    for (int apart = kThreads / 2; apart > 0; apart /= 2) {
      const Wide<T> other = __shfl_xor_sync(kFullMask, value, apart);
      const int64_t at = __shfl_xor_sync(kFullMask, index, apart);
      if (wins(value, index, other, at, smallest, last)) value = other, index = at;
    }
  }
  if (present && lane == 0) y[output] = index;
}

}  // namespace

int reduce_splits(int64_t outputs, int64_t count, bool inner_reduced) {
  // About a thousand blocks fill a large device; a split should have a few thousand elements.
  const int64_t blocks = inner_reduced ? outputs : (outputs + kColumnLanes - 1) / kColumnLanes;
  const int64_t least = inner_reduced ? 4096 : 128;
  const int64_t wanted = 1024 / std::max<int64_t>(blocks, 1);
  return static_cast<int>(std::clamp<int64_t>(std::min(wanted, count / least), 1, 1024));
}

size_t reduce_partial_bytes(int64_t outputs, int splits) {
  return splits > 1 ? static_cast<size_t>(outputs) * static_cast<size_t>(splits) * 8 : 0;
}

cudaError_t reduce(const ReduceArguments& arguments, cudaStream_t stream) {
  return with_number(arguments.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (arguments.function) {
      case ReduceFunction::Max: return run<T, Maximum>(arguments, stream);
      case ReduceFunction::Min: return run<T, Minimum>(arguments, stream);
      case ReduceFunction::Product: return run<T, Product>(arguments, stream);
      case ReduceFunction::Sum: break;
    }
    return run<T, Sum>(arguments, stream);
  });
}

cudaError_t arg_extreme(const ArgExtremeArguments& a, cudaStream_t stream) {
  return with_number(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t count = a.outer * a.inner;
    const auto* x = static_cast<const T*>(a.x);
    if (a.inner == 1 && a.extent >= 32)
      return launch(arg_extreme_kernel<T, 32>, launch_each(count * 32, stream), x, a.y, count, a.extent,
                    a.inner, a.smallest, a.select_last);
    return launch(arg_extreme_kernel<T, 1>, launch_each(count, stream), x, a.y, count, a.extent, a.inner,
                  a.smallest, a.select_last);
  });
}

}  // namespace librt::cuda
