#include "kernels/shape_ops.h"

#include "kernels/common.cuh"

namespace librt::cuda {
namespace {

template <class Unit>
__global__ void __launch_bounds__(kElementwiseThreads) fill_units(Unit* result, Unit unit, int64_t count) {
  const int64_t i = global_index();
  if (i < count) result[i] = unit;
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads) write_range(T* result, RangeArguments range) {
  const int64_t i = global_index();
  if (i >= range.count) return;
  if constexpr (std::is_floating_point_v<Wide<T>>)
    result[i] = narrow<T>(range.real_start + static_cast<double>(i) * range.real_delta);
  else
    result[i] = narrow<T>(static_cast<uint64_t>(range.start) +
                          static_cast<uint64_t>(i) * static_cast<uint64_t>(range.delta));
}

}  // namespace

cudaError_t fill(void* result, uint64_t bits, int unit, int64_t count, cudaStream_t stream) {
  return with_size(static_cast<size_t>(unit), [&](auto tag) {
    using Unit = typename decltype(tag)::type;
    return launch(fill_units<Unit>, launch_each(count, stream), static_cast<Unit*>(result),
                  static_cast<Unit>(bits), count);
  });
}

cudaError_t range(const RangeArguments& arguments, cudaStream_t stream) {
  return with_number(arguments.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch(write_range<T>, launch_each(arguments.count, stream), static_cast<T*>(arguments.result),
                  arguments);
  });
}

}  // namespace librt::cuda
