#include "kernels/gather.h"

#include "kernels/index.cuh"
#include "kernels/sort.cuh"

namespace rt::cuda {
namespace {

template <class Unit>
__global__ void __launch_bounds__(kElementwiseThreads)
    gather_units(const Unit* data, Indices indices, Unit* result, int64_t outer, int64_t extent,
                 int64_t inner, int64_t count) {
  const int64_t i = global_index();
  if (i >= outer * count * inner) return;
  const int64_t row = i / inner, place = indices.place(row % count, extent);
  result[i] = data[(row / count * extent + place) * inner + i % inner];
}

__global__ void __launch_bounds__(kElementwiseThreads)
    find_places(Indices indices, uint32_t* places, int64_t extent, int64_t count) {
  const int64_t i = global_index();
  if (i < count) places[i] = static_cast<uint32_t>(indices.place(i, extent));
}

template <class T>
RT_DEVICE T join(JoinFunction function, T old, T update) {
  using Bits = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;  // integers wrap
  switch (function) {
    case JoinFunction::Add: return static_cast<T>(static_cast<Bits>(old) + static_cast<Bits>(update));
    case JoinFunction::Mul: return static_cast<T>(static_cast<Bits>(old) * static_cast<Bits>(update));
    case JoinFunction::Minimum: return old != old || old < update ? old : update;
    case JoinFunction::Maximum: return old != old || old > update ? old : update;
  }
  return old;
}

/// One thread per (outer, entry, inner); the thread of a position's first entry combines all entries of that
/// position.
template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    join_entries(const T* updates, T* result, const NarrowEntry* entries, JoinArguments to) {
  const int64_t i = global_index();
  if (i >= to.outer * to.count * to.inner) return;
  const int64_t first = i / to.inner % to.count, outer = i / to.inner / to.count, at = i % to.inner;
  const uint32_t place = entries[first].key();
  if (first > 0 && entries[first - 1].key() == place) return;
  T& element = result[(outer * to.extent + place) * to.inner + at];
  Wide<T> joined = widen(element);
  for (int64_t k = first; k < to.count && entries[k].key() == place; ++k)
    joined =
        join(to.function, joined, widen(updates[(outer * to.count + entries[k].position()) * to.inner + at]));
  element = narrow<T>(joined);
}

}  // namespace

cudaError_t gather(const GatherArguments& arguments, cudaStream_t stream) {
  if (arguments.extent == 0) return cudaSuccess;
  return with_unit(arguments.unit, [&](auto tag) {
    using Unit = typename decltype(tag)::type;
    return launch(gather_units<Unit>,
                  launch_each(arguments.outer * arguments.count * arguments.inner, stream),
                  static_cast<const Unit*>(arguments.data),
                  Indices{arguments.indices, arguments.wide_indices}, static_cast<Unit*>(arguments.result),
                  arguments.outer, arguments.extent, arguments.inner, arguments.count);
  });
}

cudaError_t gather_places(const PlacesArguments& arguments, cudaStream_t stream) {
  return launch(find_places, launch_each(arguments.count, stream),
                Indices{arguments.indices, arguments.wide_indices}, arguments.places, arguments.extent,
                arguments.count);
}

cudaError_t join_places(const JoinArguments& arguments, const SortedRows& sorted, cudaStream_t stream) {
  return with_type(arguments.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch(join_entries<T>, launch_each(arguments.outer * arguments.count * arguments.inner, stream),
                  static_cast<const T*>(arguments.updates), static_cast<T*>(arguments.result),
                  static_cast<const NarrowEntry*>(sorted.entries), arguments);
  });
}

}  // namespace rt::cuda
