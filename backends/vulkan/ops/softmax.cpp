// Softmax and LogSoftmax along any axis.
#include "backends/vulkan/support.h"

namespace rt::vulkan {
namespace {

int64_t axis_attribute(const NodeView& node) {
  return node.kind() == OpKind::Softmax ? node.as<op::SoftmaxAttributes>().axis
                                        : node.as<op::LogSoftmaxAttributes>().axis;
}

Status supports(const Device& device, const NodeView& node) noexcept {
  RT_TRY(fits(device, node));
  if (!normalized_axis(axis_attribute(node), node.shape(0).rank()))
    return unsupported("an axis outside the input's rank");
  return {};
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) noexcept {
  const DevicePlan& plan = cast(device).plan();
  const Shape& shape = node.shape(0);
  const int axis = *normalized_axis(axis_attribute(node), shape.rank());
  const int64_t batch = shape.elements(0, axis);
  const int64_t rows = shape[axis];
  const int64_t columns = shape.elements(axis + 1, shape.rank());
  const bool log = node.kind() == OpKind::LogSoftmax;
  auto program = std::make_unique<Program>("softmax");
  constexpr int64_t kShortRow = 8;
  if (columns == 1 && rows > kShortRow) {
    program
        ->dispatch(Shader::softmax_rows, shape.elements() == 0 ? 0 : static_cast<uint64_t>(batch),
                   plan.row_lanes)
        .spec(log)
        .push(batch)
        .push(rows)
        .read(0, in(0))
        .write(1, out(0));
  } else {
    const int64_t count = shape.elements() == 0 ? 0 : batch * columns;
    program->dispatch_each(Shader::softmax_columns, count, 64)
        .spec(log)
        .push(count)
        .push(rows)
        .push(columns)
        .read(0, in(0))
        .write(1, out(0));
  }
  program->in_place(0);
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    {OpKind::Softmax, "softmax", DTypeSet{DType::F32}, supports, create},
    {OpKind::LogSoftmax, "log_softmax", DTypeSet{DType::F32}, supports, create},
};

}  // namespace

std::span<const KernelRow> rows_softmax() {
  return kRows;
}

}  // namespace rt::vulkan
