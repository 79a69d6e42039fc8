// Shapes as values. They nearly always run on the host while planning; these kernels are for the rest.
#include <algorithm>

#include "backends/cuda/kernel.h"
#include "kernels/shape_ops.h"
#include "runtime/core/element.h"

namespace librt::cuda {
namespace {

Result<KernelPtr> create_shape(CudaDevice&, const NodeView& node) {
  const Shape x = node.shape(0);
  const int64_t rank = x.rank(), count = node.output(0).elements();
  const int64_t wanted = node.as<op::ShapeAttributes>().start;
  const int64_t start = std::clamp<int64_t>(wanted < 0 ? wanted + rank : wanted, 0, rank);
  Requirements requirements;
  requirements.packed = node.output(0).bytes();
  return make_kernel(
      [bytes = node.output(0).bytes()](const Call& call) {
        return cudaMemcpyAsync(call.out(), call.packed(), bytes, cudaMemcpyDeviceToDevice, call.stream);
      },
      requirements,
      [=](std::span<std::byte> bytes) {
        for (int64_t i = 0; i < count; ++i)
          store_integer(bytes.data(), DType::I64, i, x[static_cast<int>(start + i)]);
      });
}

Status supports_constant(const CudaDevice&, const NodeView& node) {
  return known_on_host(node, 0, "shape");
}
Result<KernelPtr> create_constant(CudaDevice&, const NodeView& node) {
  const TensorInfo info = node.output(0);
  uint64_t bits = 0;
  store_element(&bits, info.dtype, 0, node.as<op::ConstantOfShapeAttributes>().value);
  Requirements requirements;
  requirements.replaced_inputs = known_inputs(node, 0);
  return make_kernel([=, unit = static_cast<int>(size_of(info.dtype)), count = info.elements()](
                         const Call& call) { return fill(call.out(), bits, unit, count, call.stream); },
                     requirements);
}

/// When the result's extent is known, so are the three scalars: they are read here.
Status supports_range(const CudaDevice&, const NodeView& node) {
  for (size_t i = 0; i < 3; ++i) RT_TRY(known_on_host(node, i, "start, limit and delta"));
  return {};
}
Result<KernelPtr> create_range(CudaDevice&, const NodeView& node) {
  const DType dtype = node.dtype(0);
  RangeArguments arguments{.type = element_type(dtype), .count = node.output(0).elements()};
  const void *start = node.inputs[0].value, *delta = node.inputs[2].value;
  if (is_float(dtype)) {
    arguments.real_start = load_element(start, dtype, 0);
    arguments.real_delta = load_element(delta, dtype, 0);
  } else {
    arguments.start = load_integer(start, dtype, 0);
    arguments.delta = load_integer(delta, dtype, 0);
  }
  Requirements requirements;
  requirements.replaced_inputs = known_inputs(node, 0);
  return make_kernel(
      [arguments](const Call& call) {
        RangeArguments a = arguments;
        a.result = call.out();
        return range(a, call.stream);
      },
      requirements);
}

}  // namespace

std::span<const KernelRow> rows_shape_ops();
std::span<const KernelRow> rows_shape_ops() {
  static constexpr KernelRow kRows[] = {
      row<create_shape>(OpKind::Shape, "shape", kAnyDType),
      row<create_constant, supports_constant>(OpKind::ConstantOfShape, "constant_of_shape",
                                              DTypeSet{DType::I64}),
      row<create_range, supports_range>(OpKind::Range, "range", kNumericTypes),
  };
  return kRows;
}

}  // namespace librt::cuda
