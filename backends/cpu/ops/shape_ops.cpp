// Operators on shapes. They nearly always run on the host while planning; these kernels are for the rest.
#include <array>
#include <cmath>

#include "backends/cpu/kernel.h"
#include "backends/cpu/support/element_types.h"

namespace librt::cpu {
namespace {

Result<KernelPtr> create_shape(CpuDevice&, const NodeView& node, Producers) {
  const Shape& x = node.shape(0);
  const int64_t rank = x.rank(), count = node.output(0).elements();
  const int64_t wanted = node.as<op::ShapeAttributes>().start;
  const int64_t start = std::clamp<int64_t>(wanted < 0 ? wanted + rank : wanted, 0, rank);
  std::array<int64_t, kMaxRank> extents{};
  for (int64_t i = 0; i < count; ++i) extents[static_cast<size_t>(i)] = x[static_cast<int>(start + i)];
  return make_kernel([=](const Call& call) noexcept {
    std::copy(extents.begin(), extents.begin() + count, call.out<int64_t>());
  });
}

Result<KernelPtr> create_constant(CpuDevice&, const NodeView& node, Producers) {
  const double value = node.as<op::ConstantOfShapeAttributes>().value;
  const int64_t n = node.output(0).elements();
  return with_type(node.output(0).dtype, [&](auto tag) -> KernelPtr {
    using T = typename decltype(tag)::type;
    return make_kernel([n, element = narrow<T>(value)](const Call& call) noexcept {
      T* y = call.out<T>();
      parallel_for(n, 1, 64,
                   [&](int64_t begin, int64_t end) noexcept { std::fill(y + begin, y + end, element); });
    });
  });
}

/// start + i delta. The three scalars are known whenever the result's extent is, so that they are read here.
Status supports_range(const CpuDevice&, const NodeView& node) {
  for (size_t i = 0; i < 3; ++i)
    if (node.inputs[i].value == nullptr) return unsupported("the operands of a Range must be known");
  if (!kNativeNumericTypes.contains(node.dtype(0)))
    return unsupported("no Range of ", name_of(node.dtype(0)));
  return {};
}
Result<KernelPtr> create_range(CpuDevice&, const NodeView& node, Producers) {
  const int64_t n = node.output(0).elements();
  return with_number(node.dtype(0), [&](auto tag) -> KernelPtr {
    using T = typename decltype(tag)::type;
    const T start = *static_cast<const T*>(node.inputs[0].value),
            delta = *static_cast<const T*>(node.inputs[2].value);
    return make_kernel([=](const Call& call) noexcept {
      T* y = call.out<T>();
      for (int64_t i = 0; i < n; ++i) {
        if constexpr (std::is_integral_v<T>)
          y[i] = static_cast<T>(static_cast<uint64_t>(start) +
                                static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
        else
          y[i] = static_cast<T>(static_cast<double>(start) +
                                static_cast<double>(i) * static_cast<double>(delta));
      }
    });
  });
}

}  // namespace

std::span<const KernelRow> rows_shape_ops();
std::span<const KernelRow> rows_shape_ops() {
  static constexpr KernelRow kRows[] = {
      row<create_shape>(OpKind::Shape, "shape", kAnyDType),
      row<create_constant>(OpKind::ConstantOfShape, "constant_of_shape", DTypeSet{DType::I64}),
      row<create_range, supports_range>(OpKind::Range, "range", kNumericTypes),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
