// Results known on the host at planning time: Shape, ConstantOfShape, Range. Packed once, copied in each run.
#include <algorithm>

#include "backends/vulkan/kernel.h"
#include "runtime/core/element.h"

namespace librt::vulkan {
namespace {

Status shape_supports(const Device& device, const NodeView& node) {
  return fits(device, node);
}

Status constant_supports(const Device& device, const NodeView& node) {
  RT_TRY(known_on_host(node, 0, "shape"));
  return fits(device, node);
}

Status range_supports(const Device& device, const NodeView& node) {
  RT_TRY(known_on_host(node, 0, "start"));
  RT_TRY(known_on_host(node, 1, "limit"));
  RT_TRY(known_on_host(node, 2, "delta"));
  return fits(device, node);
}

std::function<void(std::span<std::byte>)> writer_of(const NodeView& node) {
  const TensorInfo info = node.output(0);
  switch (node.kind()) {
    case OpKind::Shape: {
      const auto& attributes = node.as<op::ShapeAttributes>();
      const Shape shape = node.shape(0);
      const int64_t rank = shape.rank();
      const int64_t first =
          std::clamp<int64_t>(attributes.start < 0 ? attributes.start + rank : attributes.start, 0, rank);
      return [=](std::span<std::byte> bytes) {
        for (int64_t i = 0; i < info.elements(); ++i)
          store_integer(bytes.data(), info.dtype, i, shape[static_cast<int>(first + i)]);
      };
    }
    case OpKind::Range: {
      const void* start = node.inputs[0].value;
      const void* delta = node.inputs[2].value;
      return [=](std::span<std::byte> bytes) {
        for (int64_t i = 0; i < info.elements(); ++i)
          if (is_float(info.dtype))
            store_element(bytes.data(), info.dtype, i,
                          load_element(start, info.dtype, 0) +
                              static_cast<double>(i) * load_element(delta, info.dtype, 0));
          else
            store_integer(bytes.data(), info.dtype, i,  // wraps
                          static_cast<int64_t>(static_cast<uint64_t>(load_integer(start, info.dtype, 0)) +
                                               static_cast<uint64_t>(i) * static_cast<uint64_t>(load_integer(
                                                                              delta, info.dtype, 0))));
      };
    }
    default: {
      const double value = node.as<op::ConstantOfShapeAttributes>().value;
      return [=](std::span<std::byte> bytes) {
        for (int64_t i = 0; i < info.elements(); ++i) store_element(bytes.data(), info.dtype, i, value);
      };
    }
  }
}

Result<KernelPtr> create(Device&, const NodeView& node, std::span<const LayoutId>) {
  auto program = std::make_unique<Program>("constant");
  const uint64_t bytes = node.output(0).bytes();
  if (bytes > 0) program->copy(out(0), program->packed(bytes, writer_of(node)));
  for (size_t i = 0; i < node.input_count(); ++i)
    if (node.has(i) && node.inputs[i].value != nullptr) program->replaces(i);
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    row<create, shape_supports>(OpKind::Shape, "shape", kAnyDType),
    row<create, constant_supports>(OpKind::ConstantOfShape, "constant_of_shape", DTypeSet{DType::I64}),
    row<create, range_supports>(OpKind::Range, "range", kAnyDType),
};

}  // namespace

std::span<const KernelRow> rows_shape_ops() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
