// GatherElements, GatherND, ScatterElements and ScatterND. Indices out of range are clamped, as in Gather.
// Updates of one location by several indices are made by one thread, in index order, so that results do not
// depend on the thread count.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/select.h"
#include "backends/cpu/support/element_types.h"
#include "runtime/geometry/indexing.h"

namespace librt::cpu {
namespace {

using op::ScatterReduction;

Status indices_supported(const CpuDevice&, const NodeView& node) {
  if (node.dtype(1) == DType::I32 || node.dtype(1) == DType::I64) return {};
  return unsupported("indices must be i32 or i64, not ", name_of(node.dtype(1)));
}

/// Indices of either type. The branch costs nothing compared with the access that depends on it.
struct Indices {
  const void* data;
  bool wide;

  const void* from(int64_t i) const noexcept {
    return static_cast<const std::byte*>(data) + i * (wide ? 8 : 4);
  }
  int64_t index_at(int64_t i, int64_t extent) const noexcept {
    return wide ? selected_position(static_cast<const int64_t*>(data)[i], extent)
                : selected_position(static_cast<const int32_t*>(data)[i], extent);
  }
  int64_t row(const TuplePlan& plan, int64_t tuple) const noexcept {
    int64_t row = tuple / plan.in_batch;
    for (int k = 0; k < plan.length; ++k) {
      const int64_t extent = plan.extent[static_cast<size_t>(k)];
      row = row * extent + index_at(tuple * plan.length + k, extent);
    }
    return row;
  }
};

Indices indices_of(const Call& call, DType dtype) noexcept {
  return {call.in<void>(1), dtype == DType::I64};
}

/// body(at, data_at) for all elements of the indices, split among threads so that each line along the axis is
/// walked in order by one thread. Adjacent lines are walked together, because their elements are adjacent.
/// Where indices lie next to each other, their offsets are computed ahead in vectors.
template <class Body>
void for_elements(const ElementPlan& plan, const Indices& indices, const SelectLoops& loops,
                  const Body& body) noexcept {
  const auto axis = static_cast<size_t>(plan.axis);
  const int64_t count = plan.indices[axis], extent = plan.data[axis];
  const int64_t index_stride = plan.index_strides[axis], data_stride = plan.data_strides[axis];
  if (extent == 0) return;  // nothing to address; the shape rule allows no indices
  const auto offsets_of = loops.element_offsets[indices.wide ? 1 : 0];
  const int64_t run = plan.axis == plan.rank - 1 ? 1 : plan.indices[static_cast<size_t>(plan.rank - 1)];
  // `n` indices from `first` on; the next one addresses data `step` elements further.
  const auto adjacent = [&](int64_t first, int64_t n, int64_t data, int64_t step) noexcept {
    constexpr int64_t kAtOnce = 256;
    int64_t offsets[kAtOnce];
    for (int64_t done = 0; done < n; done += kAtOnce) {
      const int64_t some = std::min(kAtOnce, n - done);
      offsets_of(indices.from(first + done), extent, data_stride, step, offsets, some);
      const int64_t from = data + done * step;
#pragma GCC unroll 4
      for (int64_t k = 0; k < some; ++k) body(first + done + k, from + offsets[k]);
    }
  };
  parallel_for(plan.lines(), 4 * count, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t line = begin; line < end;) {
      const ElementPlan::Start start = plan.start_of(line);
      const int64_t lines = std::min(run - line % run, end - line);
      if (index_stride == 1) {
        adjacent(start.index, count, start.data, 0);
      } else {
        for (int64_t j = 0; j < count; ++j) adjacent(start.index + j * index_stride, lines, start.data, 1);
      }
      line += lines;
    }
  });
}

Result<KernelPtr> create_gather_elements(CpuDevice& device, const NodeView& node, Producers) {
  const Shape& x = node.shape(0);
  const ElementPlan plan = element_plan(
      x, node.shape(1), *normalized_axis(node.as<op::GatherElementsAttributes>().axis, x.rank()));
  const auto& loops = device.simd().loops<SelectLoops>();
  return with_size(size_of(node.dtype(0)), [&](auto tag) -> KernelPtr {
    using T = typename decltype(tag)::type;
    return make_kernel([=, &loops, index_type = node.dtype(1), elements = node.input(1).elements(),
                        data_elements = x.elements()](const Call& call) noexcept {
      const T* data = call.in<T>(0);
      T* y = call.out<T>();
      if (data_elements == 0) std::fill_n(y, elements, T{0});
      for_elements(plan, indices_of(call, index_type), loops,
                   [=](int64_t at, int64_t data_at) noexcept { y[at] = data[data_at]; });
    });
  });
}

Result<KernelPtr> create_gather_nd(CpuDevice&, const NodeView& node, Producers) {
  const TuplePlan plan = tuple_plan(node.shape(0), node.shape(1),
                                    static_cast<int>(node.as<op::GatherNDAttributes>().batch_dimensions));
  const size_t bytes = static_cast<size_t>(plan.inner) * size_of(node.dtype(0));
  return make_kernel([=, index_type = node.dtype(1)](const Call& call) noexcept {
    const std::byte* x = call.in<std::byte>(0);
    std::byte* y = call.out<std::byte>();
    if (plan.rows == 0) {  // nothing to read; the shape rule allows no tuples
      std::memset(y, 0, static_cast<size_t>(plan.tuples) * bytes);
      return;
    }
    const Indices indices = indices_of(call, index_type);
    parallel_for(plan.tuples, plan.inner + 4, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i)
        std::memcpy(y + static_cast<size_t>(i) * bytes, x + static_cast<size_t>(indices.row(plan, i)) * bytes,
                    bytes);
    });
  });
}

// --- scatters

template <class Wide>
Wide combine(ScatterReduction reduction, Wide old, Wide update) noexcept {
  switch (reduction) {
    case ScatterReduction::None: break;
    case ScatterReduction::Add:
      if constexpr (std::is_integral_v<Wide>)
        return static_cast<Wide>(static_cast<uint64_t>(old) + static_cast<uint64_t>(update));
      else
        return old + update;
    case ScatterReduction::Mul:
      if constexpr (std::is_integral_v<Wide>)
        return static_cast<Wide>(static_cast<uint64_t>(old) * static_cast<uint64_t>(update));
      else
        return old * update;
    case ScatterReduction::Minimum: return old != old || old < update ? old : update;
    case ScatterReduction::Maximum: return old != old || old > update ? old : update;
  }
  return update;
}

template <class T>
void accumulate(ScatterReduction reduction, T& element, T update) noexcept {
  element = narrow<T>(combine(reduction, widen(element), widen(update)));
}

/// f(TypeTag<T>{}): without a reduction only the element's size matters.
template <class F>
KernelPtr with_element(ScatterReduction reduction, DType dtype, F&& f) {
  if (reduction == ScatterReduction::None) return with_size(size_of(dtype), f);
  return with_type(dtype, f);
}

template <class T>
void copy_data(const Call& call, int64_t elements) noexcept {
  if (call.out<T>() != call.in<T>(0))
    std::memcpy(call.out<T>(), call.in<T>(0), static_cast<size_t>(elements) * sizeof(T));
}

Result<KernelPtr> create_scatter_elements(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::ScatterElementsAttributes>();
  const Shape& x = node.shape(0);
  const ElementPlan plan = element_plan(x, node.shape(1), *normalized_axis(attributes.axis, x.rank()));
  const auto& loops = device.simd().loops<SelectLoops>();
  return with_element(attributes.reduction, node.dtype(0), [&](auto tag) -> KernelPtr {
    using T = typename decltype(tag)::type;
    return make_kernel(
        [=, &loops, reduction = attributes.reduction, index_type = node.dtype(1),
         elements = x.elements()](const Call& call) noexcept {
          copy_data<T>(call, elements);
          T* y = call.out<T>();
          const T* updates = call.in<T>(2);
          for_elements(plan, indices_of(call, index_type), loops, [=](int64_t at, int64_t data_at) noexcept {
            accumulate(reduction, y[data_at], updates[at]);
          });
        },
        in_place());
  });
}

/// Each thread owns a range of the data's rows and processes, in order, the tuples that address them.
Result<KernelPtr> create_scatter_nd(CpuDevice&, const NodeView& node, Producers) {
  const ScatterReduction reduction = node.as<op::ScatterNDAttributes>().reduction;
  const TuplePlan plan = tuple_plan(node.shape(0), node.shape(1), 0);
  return with_element(reduction, node.dtype(0), [&](auto tag) -> KernelPtr {
    using T = typename decltype(tag)::type;
    return make_kernel(
        [=, index_type = node.dtype(1), elements = node.input(0).elements()](const Call& call) noexcept {
          copy_data<T>(call, elements);
          T* y = call.out<T>();
          const T* updates = call.in<T>(2);
          const Indices indices = indices_of(call, index_type);
          const int64_t each = plan.tuples * plan.inner / std::max<int64_t>(plan.rows, 1);
          parallel_for(plan.rows, each, 1, [&](int64_t begin, int64_t end) noexcept {
            for (int64_t i = 0; i < plan.tuples; ++i) {
              const int64_t row = indices.row(plan, i);
              if (row < begin || row >= end) continue;
              T* to = y + row * plan.inner;
              const T* from = updates + i * plan.inner;
              if (reduction == ScatterReduction::None)
                std::memcpy(to, from, static_cast<size_t>(plan.inner) * sizeof(T));
              else
                for (int64_t k = 0; k < plan.inner; ++k) accumulate(reduction, to[k], from[k]);
            }
          });
        },
        in_place());
  });
}

}  // namespace

std::span<const KernelRow> rows_indexed();
std::span<const KernelRow> rows_indexed() {
  static constexpr KernelRow kRows[] = {
      row<create_gather_elements, indices_supported>(OpKind::GatherElements, "gather_elements", kAnyDType),
      row<create_gather_nd, indices_supported>(OpKind::GatherND, "gather_nd", kAnyDType),
      row<create_scatter_elements, indices_supported>(OpKind::ScatterElements, "scatter_elements", kAnyDType),
      row<create_scatter_nd, indices_supported>(OpKind::ScatterND, "scatter_nd", kAnyDType),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
