// Gather and its gradient ScatterAdd along one axis. Data is viewed as [outer, extent, inner], indices as a
// flat list. Indices select positions as selected_position() says.
#include <cstring>

#include "backends/cpu/kernel.h"
#include "backends/cpu/support/element_types.h"
#include "runtime/geometry/indexing.h"

namespace librt::cpu {
namespace {

constexpr DTypeSet kIndexTypes{DType::I32, DType::I64};

Status indices_supported(const NodeView& node) {
  if (!kIndexTypes.contains(node.dtype(1)))
    return unsupported("indices must be i32 or i64, not ", name_of(node.dtype(1)));
  return {};
}

Status supports_gather(const CpuDevice&, const NodeView& node) {
  return indices_supported(node);
}

template <class F>
decltype(auto) with_index(DType dtype, F&& f) {
  if (dtype == DType::I32) return f(TypeTag<int32_t>{});
  return f(TypeTag<int64_t>{});
}

Result<KernelPtr> create_gather(CpuDevice&, const NodeView& node, Producers) {
  const Shape& x = node.shape(0);
  const int axis = *normalized_axis(node.as<op::GatherAttributes>().axis, x.rank());
  const int64_t outer = x.elements(0, axis), extent = x[axis], inner = x.elements(axis + 1, x.rank());
  const int64_t count = node.input(1).elements();
  return with_index(node.dtype(1), [&](auto index_tag) -> KernelPtr {
    using Index = typename decltype(index_tag)::type;
    return with_size(size_of(node.dtype(0)), [&](auto tag) -> KernelPtr {
      using T = typename decltype(tag)::type;
      return make_kernel([=](const Call& call) noexcept {
        const T* data = call.in<T>(0);
        const Index* indices = call.in<Index>(1);
        T* y = call.out<T>();
        if (extent == 0) {  // nothing to read; the shape rule allows no indices
          std::fill_n(y, outer * count * inner, T{0});
          return;
        }
        parallel_for(outer * count, inner, 1, [&](int64_t begin, int64_t end) noexcept {
          if (inner == 1 && count == 1) {  // a column
            const T* const from = data + selected_position(indices[0], extent);
            for (int64_t i = begin; i < end; ++i) y[i] = from[i * extent];
            return;
          }
          int64_t row = begin / count, first = begin % count;  // one division, for rows of few indices
          for (int64_t i = begin; i < end; ++row, first = 0) {
            const T* from = data + row * extent * inner;
            const Index* from_indices = indices + first;
            const int64_t run = std::min(count - first, end - i);
            T* to = y + i * inner;
            if (inner == 1)
              for (int64_t k = 0; k < run; ++k) to[k] = from[selected_position(from_indices[k], extent)];
            else
              for (int64_t k = 0; k < run; ++k)
                std::memcpy(to + k * inner, from + selected_position(from_indices[k], extent) * inner,
                            static_cast<size_t>(inner) * sizeof(T));
            i += run;
          }
        });
      });
    });
  });
}

Status supports_scatter(const CpuDevice&, const NodeView& node) {
  RT_TRY(indices_supported(node));
  if (!kNativeNumericTypes.contains(node.dtype(2)))
    return unsupported("no accumulation in ", name_of(node.dtype(2)));
  return {};
}

/// Each thread owns a range of the destination's rows and adds the updates of that range in index order: no
/// two threads touch one element, and the order of summation does not depend on the thread count.
Result<KernelPtr> create_scatter(CpuDevice&, const NodeView& node, Producers) {
  const Shape& y = node.output(0).shape;
  const int axis = *normalized_axis(node.as<op::ScatterAddAttributes>().axis, y.rank());
  const int64_t outer = y.elements(0, axis), extent = y[axis], inner = y.elements(axis + 1, y.rank());
  const int64_t count = node.input(1).elements();
  return with_index(node.dtype(1), [&](auto index_tag) -> KernelPtr {
    using Index = typename decltype(index_tag)::type;
    return with_number(node.dtype(2), [&](auto tag) -> KernelPtr {
      using T = typename decltype(tag)::type;
      return make_kernel([=](const Call& call) noexcept {
        const Index* indices = call.in<Index>(1);
        const T* updates = call.in<T>(2);
        T* result = call.out<T>();
        parallel_for(
            extent, std::max<int64_t>(1, outer * inner * (1 + count / std::max<int64_t>(extent, 1))), 1,
            [&](int64_t begin, int64_t end) noexcept {
              for (int64_t o = 0; o < outer; ++o) {
                T* to = result + o * extent * inner;
                std::fill(to + begin * inner, to + end * inner, T{0});
                for (int64_t i = 0; i < count; ++i) {
                  const int64_t target = selected_position(indices[i], extent);
                  if (target < begin || target >= end) continue;
                  const T* from = updates + (o * count + i) * inner;
                  T* sum = to + target * inner;
#pragma omp simd
                  for (int64_t k = 0; k < inner; ++k) {
                    if constexpr (std::is_integral_v<T>)
                      sum[k] = static_cast<T>(static_cast<uint64_t>(sum[k]) + static_cast<uint64_t>(from[k]));
                    else
                      sum[k] += from[k];
                  }
                }
              }
            });
      });
    });
  });
}

}  // namespace

std::span<const KernelRow> rows_gather();
std::span<const KernelRow> rows_gather() {
  static constexpr KernelRow kRows[] = {
      row<create_gather, supports_gather>(OpKind::Gather, "gather", kAnyDType),
      row<create_scatter, supports_scatter>(OpKind::ScatterAdd, "scatter_add", DTypeSet{DType::I64}),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
