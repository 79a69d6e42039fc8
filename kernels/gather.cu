#include "kernels/gather.h"

#include "kernels/index.cuh"
#include "kernels/sort.cuh"

namespace librt::cuda {
namespace {

template <class Unit>
__global__ void __launch_bounds__(kElementwiseThreads)
    gather_units(const Unit* data, Indices indices, Unit* result, int64_t outer, int64_t extent,
                 int64_t inner, int64_t count) {
  const int64_t i = global_index();
  if (i >= outer * count * inner) return;
  const int64_t row = i / inner, position = indices.resolve(row % count, extent);
  result[i] = data[(row / count * extent + position) * inner + i % inner];
}

__global__ void __launch_bounds__(kElementwiseThreads)
    find_positions(Indices indices, uint32_t* positions, int64_t extent, int64_t count) {
  const int64_t i = global_index();
  if (i < count) positions[i] = static_cast<uint32_t>(indices.resolve(i, extent));
}

template <class T>
RT_DEVICE T combine(ScatterFunction function, T old, T update) {
  using Bits = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;  // integers wrap
  switch (function) {
    case ScatterFunction::Add: return static_cast<T>(static_cast<Bits>(old) + static_cast<Bits>(update));
    case ScatterFunction::Mul: return static_cast<T>(static_cast<Bits>(old) * static_cast<Bits>(update));
    case ScatterFunction::Minimum: return old != old || old < update ? old : update;
    case ScatterFunction::Maximum: return old != old || old > update ? old : update;
  }
  return old;
}

/// One thread per (outer, entry, inner); the thread of a position's first entry combines all entries of that
/// position.
template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    reduce_entries(const T* updates, T* result, const NarrowEntry* entries, ScatterReduceArguments to) {
  const int64_t i = global_index();
  if (i >= to.outer * to.count * to.inner) return;
  const int64_t first = i / to.inner % to.count, outer = i / to.inner / to.count, at = i % to.inner;
  const uint32_t position = entries[first].key();
  if (first > 0 && entries[first - 1].key() == position) return;
  T& element = result[(outer * to.extent + position) * to.inner + at];
  Wide<T> combined = widen(element);
  for (int64_t k = first; k < to.count && entries[k].key() == position; ++k)
    combined = combine(to.function, combined,
                       widen(updates[(outer * to.count + entries[k].position()) * to.inner + at]));
  element = narrow<T>(combined);
}

}  // namespace

cudaError_t gather(const GatherArguments& arguments, cudaStream_t stream) {
  const int64_t units = arguments.outer * arguments.count * arguments.inner;
  if (arguments.extent == 0)  // nothing to read; the shape rule allows no indices
    return cudaMemsetAsync(arguments.result, 0, static_cast<size_t>(units * arguments.unit), stream);
  return with_unit(arguments.unit, [&](auto tag) {
    using Unit = typename decltype(tag)::type;
    return launch(gather_units<Unit>, launch_each(units, stream), static_cast<const Unit*>(arguments.data),
                  Indices{arguments.indices, arguments.wide_indices}, static_cast<Unit*>(arguments.result),
                  arguments.outer, arguments.extent, arguments.inner, arguments.count);
  });
}

cudaError_t resolve_indices(const ResolveArguments& arguments, cudaStream_t stream) {
  return launch(find_positions, launch_each(arguments.count, stream),
                Indices{arguments.indices, arguments.wide_indices}, arguments.positions, arguments.extent,
                arguments.count);
}

cudaError_t scatter_reduce(const ScatterReduceArguments& arguments, const SortedRows& sorted,
                           cudaStream_t stream) {
  return with_type(arguments.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch(reduce_entries<T>, launch_each(arguments.outer * arguments.count * arguments.inner, stream),
                  static_cast<const T*>(arguments.updates), static_cast<T*>(arguments.result),
                  static_cast<const NarrowEntry*>(sorted.entries), arguments);
  });
}

}  // namespace librt::cuda
