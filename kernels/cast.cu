// Casts between all element types: one kernel per source type, four adjacent elements per thread; the target
// type is uniform over the grid and selected at run time.
#include "kernels/cast.h"

#include "kernels/common.cuh"
#include "kernels/vector.cuh"

namespace librt::cuda {
namespace {

constexpr int kWidth = 4;

template <class To, class From>
RT_DEVICE void store_as(void* y, const Vector<From, kWidth>& values, int64_t first, int64_t count) {
  Vector<To, kWidth> result;
  RT_UNROLL
  for (int i = 0; i < kWidth; ++i) result[i] = narrow<To>(widen(values[i]));
  store_before(static_cast<To*>(y), result, first, count);
}

template <class From>
__global__ void __launch_bounds__(kElementwiseThreads)
    cast_kernel(ElementType to, const From* x, void* y, int64_t count) {
  const int64_t first = global_index() * kWidth;
  if (first >= count) return;
  const auto values = load_before<kWidth>(x, first, count);
  switch (to) {
    case ElementType::F32: return store_as<float>(y, values, first, count);
    case ElementType::F16: return store_as<__half>(y, values, first, count);
    case ElementType::BF16: return store_as<__nv_bfloat16>(y, values, first, count);
    case ElementType::F64: return store_as<double>(y, values, first, count);
    case ElementType::I8: return store_as<int8_t>(y, values, first, count);
    case ElementType::U8: return store_as<uint8_t>(y, values, first, count);
    case ElementType::I16: return store_as<int16_t>(y, values, first, count);
    case ElementType::U16: return store_as<uint16_t>(y, values, first, count);
    case ElementType::I32: return store_as<int32_t>(y, values, first, count);
    case ElementType::U32: return store_as<uint32_t>(y, values, first, count);
    case ElementType::I64: return store_as<int64_t>(y, values, first, count);
    case ElementType::U64: return store_as<uint64_t>(y, values, first, count);
    case ElementType::Bool: return store_as<Boolean>(y, values, first, count);
  }
}

}  // namespace

cudaError_t cast(const CastArguments& a, cudaStream_t stream) {
  return with_type(a.from, [&](auto tag) {
    using From = typename decltype(tag)::type;
    return launch(cast_kernel<From>, launch_each(ceil_div(a.count, kWidth), stream), a.to,
                  static_cast<const From*>(a.x), a.y, a.count);
  });
}

}  // namespace librt::cuda
