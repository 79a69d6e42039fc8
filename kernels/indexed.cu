#include "kernels/indexed.h"

#include "kernels/index.cuh"

namespace librt::cuda {
namespace {

__global__ void __launch_bounds__(kElementwiseThreads)
    find_element_positions(ElementPositions at, uint32_t* positions) {
  const int64_t i = global_index();
  if (i >= at.count) return;
  int64_t rest = i, position = 0, stride = 1;
  for (int d = at.rank - 1; d >= 0; --d) {
    const Indices indices{at.indices, at.wide_indices};
    const int64_t own = rest % at.index_extents[d];
    position += (d == at.axis ? indices.resolve(i, at.data_extents[d]) : own) * stride;
    rest /= at.index_extents[d];
    stride *= at.data_extents[d];
  }
  positions[i] = static_cast<uint32_t>(position);
}

__global__ void __launch_bounds__(kElementwiseThreads)
    find_tuple_positions(TuplePositions at, uint32_t* positions) {
  const int64_t i = global_index();
  if (i >= at.count) return;
  const Indices indices{at.indices, at.wide_indices};
  int64_t position = i / at.in_batch;
  for (int k = 0; k < at.length; ++k)
    position = position * at.extents[k] + indices.resolve(i * at.length + k, at.extents[k]);
  positions[i] = static_cast<uint32_t>(position);
}

template <class Unit>
__global__ void __launch_bounds__(kElementwiseThreads)
    read_rows(const Unit* from, Unit* to, const uint32_t* positions, int64_t count, int64_t inner) {
  const int64_t i = global_index();
  if (i < count * inner) to[i] = from[positions[i / inner] * inner + i % inner];
}

__global__ void __launch_bounds__(kElementwiseThreads)
    find_winners(const uint32_t* positions, uint32_t* winners, int64_t count) {
  const int64_t i = global_index();
  if (i < count) atomicMax(winners + positions[i], static_cast<uint32_t>(i) + 1);
}

template <class Unit>
__global__ void __launch_bounds__(kElementwiseThreads)
    write_rows(const Unit* from, Unit* to, const uint32_t* positions, const uint32_t* winners, int64_t count,
               int64_t inner) {
  const int64_t i = global_index();
  if (i >= count * inner) return;
  const int64_t k = i / inner, position = positions[k];
  if (winners[position] == static_cast<uint32_t>(k) + 1) to[position * inner + i % inner] = from[i];
}

template <class Unit>
__global__ void __launch_bounds__(kElementwiseThreads)
    write_cache(const Unit* update, Unit* cache, TensorScatterArguments to) {
  const int64_t i = global_index();
  if (i >= to.batch * to.middle * to.written * to.inner) return;
  const int64_t position = i / to.inner % to.written, outer = i / to.inner / to.written;
  int64_t first = 0;
  if (to.write_indices != nullptr) {
    const int64_t batch = outer / to.middle;
    first = to.wide_indices ? static_cast<const int64_t*>(to.write_indices)[batch]
                            : static_cast<const int32_t*>(to.write_indices)[batch];
  }
  int64_t at;
  if (to.circular) {
    first %= to.positions;
    at = (first + position + to.positions) % to.positions;
  } else {
    at = max(-to.written, min(first, to.positions)) + position;
    if (at < 0 || at >= to.positions) return;
  }
  cache[(outer * to.positions + at) * to.inner + i % to.inner] = update[i];
}

}  // namespace

cudaError_t element_positions(const ElementPositions& arguments, uint32_t* positions, cudaStream_t stream) {
  return launch(find_element_positions, launch_each(arguments.count, stream), arguments, positions);
}

cudaError_t tuple_positions(const TuplePositions& arguments, uint32_t* positions, cudaStream_t stream) {
  return launch(find_tuple_positions, launch_each(arguments.count, stream), arguments, positions);
}

cudaError_t gather_rows(const IndexedRows& arguments, cudaStream_t stream) {
  return with_unit(arguments.unit, [&](auto tag) {
    using Unit = typename decltype(tag)::type;
    return launch(read_rows<Unit>, launch_each(arguments.count * arguments.inner, stream),
                  static_cast<const Unit*>(arguments.from), static_cast<Unit*>(arguments.to),
                  arguments.positions, arguments.count, arguments.inner);
  });
}

cudaError_t scatter_rows(const IndexedRows& arguments, uint32_t* winners, int64_t rows, cudaStream_t stream) {
  const int64_t units = arguments.count * arguments.inner;
  if (units == 0) return cudaSuccess;
  cudaError_t error = cudaMemsetAsync(winners, 0, static_cast<size_t>(rows) * sizeof(uint32_t), stream);
  if (error == cudaSuccess)
    error = launch(find_winners, launch_each(arguments.count, stream), arguments.positions, winners,
                   arguments.count);
  if (error != cudaSuccess) return error;
  return with_unit(arguments.unit, [&](auto tag) {
    using Unit = typename decltype(tag)::type;
    return launch(write_rows<Unit>, launch_each(units, stream), static_cast<const Unit*>(arguments.from),
                  static_cast<Unit*>(arguments.to), arguments.positions,
                  static_cast<const uint32_t*>(winners), arguments.count, arguments.inner);
  });
}

cudaError_t tensor_scatter(const TensorScatterArguments& arguments, cudaStream_t stream) {
  if (arguments.positions == 0) return cudaSuccess;
  const int64_t units = arguments.batch * arguments.middle * arguments.written * arguments.inner;
  return with_unit(arguments.unit, [&](auto tag) {
    using Unit = typename decltype(tag)::type;
    return launch(write_cache<Unit>, launch_each(units, stream), static_cast<const Unit*>(arguments.update),
                  static_cast<Unit*>(arguments.cache), arguments);
  });
}

}  // namespace librt::cuda
