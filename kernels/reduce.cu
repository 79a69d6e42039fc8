// Reductions. Rows: the threads of a block (or the lanes of a warp, for short rows) iterate over one result's
// elements. Columns: adjacent threads have adjacent results, and several rows of threads share the elements.
// f32, f16 and bf16 are read in vectors of 16 bytes where the axes allow, and every thread loads several
// before it needs the first. Few results are computed in splits, whose partial results a second launch
// combines in order: bitwise reproducible.
#include "kernels/reduce.h"

#include <algorithm>

#include "kernels/common.cuh"
#include "kernels/reduce.cuh"
#include "kernels/vector.cuh"

namespace librt::cuda {
namespace {

constexpr int kRowThreads = 256;

struct Product {
  template <class T>
  RT_DEVICE T operator()(T a, T b) const {
    return a * b;
  }
};

constexpr int kWarps = kRowThreads / kWarpSize;
/// Adjacent threads with adjacent results (or groups of these), the results of a block, and the loads of a
/// thread that are in flight together.
template <int kWidth>
inline constexpr int kColumnLanes = kWidth == 1 ? 32 : 8;
template <int kWidth>
inline constexpr int kColumns = kColumnLanes<kWidth>* kWidth;
template <class T, int kWidth>
inline constexpr int kFlight = kWidth * sizeof(T) < 8 ? 8 : 4;

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
#pragma unroll 1
  for (int i = axes.rank - 1; i > 0; --i) {
    const int64_t extent = axes.extent[i];
    const int64_t rest = ((index | extent) >> 32) == 0
                             ? static_cast<uint32_t>(index) / static_cast<uint32_t>(extent)
                             : index / extent;
    offset += (index - rest * extent) * axes.stride[i];
    index = rest;
  }
  return offset + index * axes.stride[0];
}

/// Extents, counts and indices of the innermost axis, kept or reduced, are in vectors.
template <class T, class Combine>
struct Job {
  using Value = Accumulator<T, Combine>;
  const T* x;
  T* y;
  Value* partial;          ///< null: the result is final
  int64_t outputs, count;  ///< in elements
  int64_t vectors, part;   ///< reduced into each result, and of them in a split
  bool mean;
  Axes kept, reduced;

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
  /// f(vector) for the vectors start, start + step, .. of this block's split.
  template <int kWidth, class F>
  RT_DEVICE void each(int64_t base, int start, int step, F f) const {
    const T* from = x + base;
    if (reduced.rank <= 1)
      each_at<kWidth, kFlight<T, kWidth>>(start, step, f,
                                          [&](int64_t r) { return from + r * reduced.stride[0]; });
    else
      each_at<kWidth, std::is_same_v<Wide<T>, float> ? 4 : 1>(
          start, step, f, [&](int64_t r) { return from + offset_of(reduced, r); });
  }

 private:
  /// kLoads at a time.
  template <int kWidth, int kLoads, class F, class Address>
  RT_DEVICE void each_at(int start, int step, F f, Address address) const {
    const int64_t first = static_cast<int64_t>(blockIdx.y) * part;
    const int64_t last = first + part < vectors ? first + part : vectors;
#pragma unroll 1
    for (int64_t r = first + start; r < last; r += static_cast<int64_t>(kLoads) * step) {
      Packed<T, kWidth> loaded[kLoads];
      RT_UNROLL
      for (int i = 0; i < kLoads; ++i)
        if (r + i * step < last) loaded[i] = load_packed<kWidth>(address(r + i * step));
      RT_UNROLL
      for (int i = 0; i < kLoads; ++i)
        if (r + i * step < last) f(unpacked<T, kWidth>(loaded[i]));
    }
  }
};

/// kThreads threads (a warp or the block) per result.
template <class T, class Combine, int kThreads, int kWidth>
__global__ void __launch_bounds__(kRowThreads) reduce_rows(Job<T, Combine> job) {
  using Value = typename Job<T, Combine>::Value;
  __shared__ Value shared[kWarps];
  const int lane = static_cast<int>(threadIdx.x) % kThreads;
  const int64_t output =
      static_cast<int64_t>(blockIdx.x) * (kRowThreads / kThreads) + static_cast<int>(threadIdx.x) / kThreads;
  Value value = neutral<Value, Combine>();
  if (output < job.outputs)
    job.template each<kWidth>(offset_of(job.kept, output), lane, kThreads, [&](const auto& vector) {
      Value values[kWidth];
      RT_UNROLL
      for (int k = 0; k < kWidth; ++k) values[k] = static_cast<Value>(widen(vector[k]));
      RT_UNROLL
      for (int apart = kWidth / 2; apart > 0; apart /= 2) {
        RT_UNROLL
        for (int k = 0; k < apart; ++k) values[k] = Combine{}(values[k], values[k + apart]);
      }
      value = Combine{}(value, values[0]);
    });
  if constexpr (kThreads == kRowThreads)
    value = block_reduce(value, Combine{}, shared);
  else
    value = warp_reduce(value, Combine{});
  if (lane == 0 && output < job.outputs) job.store(output, value);
}

/// kWidth results per thread: the rows of threads of a warp are combined by shuffles, the warps' results in
/// shared memory.
template <class T, class Combine, int kWidth>
__global__ void __launch_bounds__(kRowThreads, 4) reduce_columns(Job<T, Combine> job) {
  using Value = typename Job<T, Combine>::Value;
  constexpr int kLanes = kColumnLanes<kWidth>;
  __shared__ Value shared[kWarps][kColumns<kWidth>];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, row = thread / kLanes;
  const int64_t group = static_cast<int64_t>(blockIdx.x) * kLanes + lane;
  Value values[kWidth];
  RT_UNROLL
  for (Value& value : values) value = neutral<Value, Combine>();
  if (group * kWidth < job.outputs)
    job.template each<kWidth>(offset_of(job.kept, group), row, kRowThreads / kLanes, [&](const auto& vector) {
      RT_UNROLL
      for (int k = 0; k < kWidth; ++k) values[k] = Combine{}(values[k], static_cast<Value>(widen(vector[k])));
    });
  RT_UNROLL
  for (int apart = kLanes; apart < kWarpSize; apart *= 2) {
    RT_UNROLL
    for (Value& value : values) value = Combine{}(value, __shfl_xor_sync(kFullMask, value, apart));
  }
  if (thread % kWarpSize < kLanes) {
    RT_UNROLL
    for (int k = 0; k < kWidth; ++k) shared[thread / kWarpSize][lane * kWidth + k] = values[k];
  }
  __syncthreads();
  const int64_t output = static_cast<int64_t>(blockIdx.x) * kColumns<kWidth> + thread;
  if (thread >= kColumns<kWidth> || output >= job.outputs) return;
  Value value = shared[0][thread];
  RT_UNROLL
  for (int i = 1; i < kWarps; ++i) value = Combine{}(value, shared[i][thread]);
  job.store(output, value);
}

/// `lanes` adjacent results per block, a power of two; the other threads share the splits.
template <class T, class Combine>
__global__ void __launch_bounds__(kRowThreads) combine_parts(Job<T, Combine> job, int splits, int lanes) {
  using Value = typename Job<T, Combine>::Value;
  __shared__ Value shared[kRowThreads];
  const int thread = static_cast<int>(threadIdx.x), rows = kRowThreads / lanes;
  const int64_t output = static_cast<int64_t>(blockIdx.x) * lanes + thread % lanes;
  Value value = neutral<Value, Combine>();
  if (output < job.outputs)
    for (int s = thread / lanes; s < splits; s += rows)
      value = Combine{}(value, job.partial[s * job.outputs + output]);
  shared[thread] = value;
  __syncthreads();
  for (int apart = kRowThreads / 2; apart >= lanes; apart /= 2) {
    if (thread < apart) shared[thread] = value = Combine{}(value, shared[thread + apart]);
    __syncthreads();
  }
  if (thread < lanes && output < job.outputs) job.y[output] = job.finished(value);
}

unsigned blocks_for(int64_t count, int64_t per_block) {
  return static_cast<unsigned>(ceil_div(count, per_block));
}

/// The elements per load: 16 bytes of f32, f16 or bf16 if the innermost axis consists of such vectors.
int width_of(const ReduceArguments& given) {
  const int width = given.type == ElementType::F32 ? 4 : 8;
  if (given.type != ElementType::F32 && given.type != ElementType::F16 && given.type != ElementType::BF16)
    return 1;
  const Axes &inner = given.inner_reduced ? given.reduced : given.kept,
             &outer = given.inner_reduced ? given.kept : given.reduced;
  if (inner.rank == 0 || inner.stride[inner.rank - 1] != 1 || inner.extent[inner.rank - 1] % width != 0)
    return 1;
  for (int i = 0; i + 1 < inner.rank; ++i)
    if (inner.stride[i] % width != 0) return 1;
  for (int i = 0; i < outer.rank; ++i)
    if (outer.stride[i] % width != 0) return 1;
  return width;
}

template <class T, class Combine, int kWidth>
cudaError_t run(const ReduceArguments& given, cudaStream_t stream) {
  if (given.outputs == 0) return cudaSuccess;
  using Value = typename Job<T, Combine>::Value;
  const int64_t vectors = given.inner_reduced ? given.count / kWidth : given.count;
  Job<T, Combine> job{.x = static_cast<const T*>(given.x),
                      .y = static_cast<T*>(given.y),
                      .partial = given.splits > 1 ? static_cast<Value*>(given.partial) : nullptr,
                      .outputs = given.outputs,
                      .count = given.count,
                      .vectors = vectors,
                      .part = ceil_div(vectors, given.splits),
                      .mean = given.mean,
                      .kept = given.kept,
                      .reduced = given.reduced};
  if constexpr (kWidth > 1) {
    Axes& inner = given.inner_reduced ? job.reduced : job.kept;
    inner.extent[inner.rank - 1] /= kWidth;
    inner.stride[inner.rank - 1] = kWidth;
  }
  const auto start = [&](auto kernel, int64_t outputs) {
    const dim3 grid(blocks_for(job.outputs, outputs), static_cast<unsigned>(given.splits));
    return launch(kernel, {grid, dim3(kRowThreads), 0, stream}, job);
  };
  const cudaError_t error = !given.inner_reduced ? start(reduce_columns<T, Combine, kWidth>, kColumns<kWidth>)
                            : job.part <= 256    ? start(reduce_rows<T, Combine, kWarpSize, kWidth>, kWarps)
                                                 : start(reduce_rows<T, Combine, kRowThreads, kWidth>, 1);
  if (error != cudaSuccess || given.splits == 1) return error;
  int lanes = 1;
  while (lanes < kWarpSize && lanes < job.outputs) lanes *= 2;
  return launch(combine_parts<T, Combine>,
                {dim3(blocks_for(job.outputs, lanes)), dim3(kRowThreads), 0, stream}, job, given.splits,
                lanes);
}

template <class T, class Combine>
cudaError_t run_widest(const ReduceArguments& given, cudaStream_t stream) {
  if constexpr (std::is_same_v<Wide<T>, float>)
    if (width_of(given) > 1) return run<T, Combine, kVectorWidth<T>>(given, stream);
  return run<T, Combine, 1>(given, stream);
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

int reduce_splits(const ReduceArguments& given) {
  // About a thousand blocks fill a large device; a split should have a few thousand elements.
  const int width = width_of(given);
  const int64_t columns = width == 8 ? kColumns<8> : width == 4 ? kColumns<4> : kColumns<1>;
  const int64_t blocks = given.inner_reduced ? given.outputs : ceil_div(given.outputs, columns);
  const int64_t least = given.inner_reduced ? 4096 : 128;
  const int64_t wanted = 1024 / std::max<int64_t>(blocks, 1);
  return static_cast<int>(std::clamp<int64_t>(std::min(wanted, given.count / least), 1, 1024));
}

size_t reduce_partial_bytes(int64_t outputs, int splits) {
  return splits > 1 ? static_cast<size_t>(outputs) * static_cast<size_t>(splits) * 8 : 0;
}

cudaError_t reduce(const ReduceArguments& arguments, cudaStream_t stream) {
  return with_number(arguments.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (arguments.function) {
      case ReduceFunction::Max: return run_widest<T, Maximum>(arguments, stream);
      case ReduceFunction::Min: return run_widest<T, Minimum>(arguments, stream);
      case ReduceFunction::Product: return run_widest<T, Product>(arguments, stream);
      case ReduceFunction::Sum: break;
    }
    return run_widest<T, Sum>(arguments, stream);
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
