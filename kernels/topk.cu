#include "kernels/topk.h"

#include "kernels/index.cuh"
#include "kernels/sort.cuh"

namespace librt::cuda {
namespace {

template <class Unit, class Entry>
__global__ void __launch_bounds__(kElementwiseThreads)
    store_entries(const Unit* data, Unit* values, int64_t* positions, SortRows rows, const Entry* entries,
                  int64_t stride) {
  const int64_t index = global_index();
  if (index >= rows.rows * rows.kept) return;
  const int64_t inner = index % rows.inner, rank = index / rows.inner % rows.kept,
                outer = index / rows.inner / rows.kept;
  const int64_t position = entries[(outer * rows.inner + inner) * stride + rank].position();
  values[index] = data[(outer * rows.length + position) * rows.inner + inner];
  positions[index] = position;
}

}  // namespace

cudaError_t topk(const TopKArguments& arguments, const SortedRows& sorted, cudaStream_t stream) {
  const SortRows& rows = arguments.rows;
  return with_unit(arguments.unit, [&](auto tag) {
    using Unit = typename decltype(tag)::type;
    const auto store = [&](auto entry) {
      using Entry = typename decltype(entry)::type;
      return launch(store_entries<Unit, Entry>, launch_each(rows.rows * rows.kept, stream),
                    static_cast<const Unit*>(arguments.data), static_cast<Unit*>(arguments.values),
                    arguments.positions, rows, static_cast<const Entry*>(sorted.entries), sorted.stride);
    };
    return sorted.wide ? store(TypeTag<WideEntry>{}) : store(TypeTag<NarrowEntry>{});
  });
}

}  // namespace librt::cuda
