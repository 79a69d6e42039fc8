// Softmax and LogSoftmax, and their gradients, along any axis.
#include "backends/vulkan/dispatch/split.h"

namespace librt::vulkan {
namespace {

int64_t axis_attribute(const NodeView& node) {
  if (node.kind() == OpKind::SoftmaxGrad) return node.as<op::SoftmaxGradAttributes>().axis;
  return node.kind() == OpKind::Softmax ? node.as<op::SoftmaxAttributes>().axis
                                        : node.as<op::LogSoftmaxAttributes>().axis;
}
bool of_logarithm(const NodeView& node) {
  return node.kind() == OpKind::SoftmaxGrad ? node.as<op::SoftmaxGradAttributes>().logarithm
                                            : node.kind() == OpKind::LogSoftmax;
}

/// x [batch,rows,columns], softmax along rows.
struct Problem {
  int64_t batch, rows, columns;
  int64_t row_bytes() const { return rows * columns * static_cast<int64_t>(sizeof(float)); }
};

Result<Problem> problem_of(const NodeView& node) {
  const Shape& shape = node.shape(0);
  const auto axis = normalized_axis(axis_attribute(node), shape.rank());
  if (!axis) return unsupported("an axis outside the input's rank");
  return Problem{shape.elements(0, *axis), shape[*axis], shape.elements(*axis + 1, shape.rank())};
}

Status supports(const Device& device, const NodeView& node) {
  RT_ASSIGN(const Problem p, problem_of(node));
  if (p.row_bytes() == 0) return {};
  const int64_t row_bytes[] = {p.row_bytes()};
  return rows_fit(device, p.batch, row_bytes);
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const VulkanDevice& vulkan = cast(device);
  RT_ASSIGN(const Problem p, problem_of(node));
  const bool gradient = node.kind() == OpKind::SoftmaxGrad;
  auto program = std::make_unique<Program>(gradient ? "softmax_grad" : "softmax");
  program->in_place(gradient ? 1 : 0);
  if (p.row_bytes() == 0) return finish(std::move(program));
  constexpr int64_t kShortRow = 8;
  const bool whole_groups = p.columns == 1 && p.rows > kShortRow;
  const int64_t row_bytes[] = {p.row_bytes()};
  for (const Rows& part : ranges_of_rows(vulkan, p.batch, row_bytes)) {
    const int64_t count = part.count * p.columns;
    const Shader rows = gradient ? Shader::softmax_rows_grad : Shader::softmax_rows,
                 columns = gradient ? Shader::softmax_columns_grad : Shader::softmax_columns;
    Step& step = whole_groups
                     ? program->dispatch(rows, static_cast<uint64_t>(part.count), vulkan.plan().row_lanes)
                     : program->dispatch_each(columns, count, 64);
    const int64_t passes = gradient ? 2 : 3;
    step.loops(passes * (whole_groups ? ceil_div(p.rows, vulkan.plan().row_lanes) : p.rows));
    step.spec(of_logarithm(node)).push(count).push(p.rows);
    if (!whole_groups) step.push(p.columns);
    step.read(0, rows_of(in(0), part, p.row_bytes())).write(1, rows_of(out(0), part, p.row_bytes()));
    if (gradient) step.read(2, rows_of(in(1), part, p.row_bytes()));
  }
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    row<create, supports>(OpKind::Softmax, "softmax", DTypeSet{DType::F32}),
    row<create, supports>(OpKind::LogSoftmax, "log_softmax", DTypeSet{DType::F32}),
    row<create, supports>(OpKind::SoftmaxGrad, "softmax_grad", DTypeSet{DType::F32}),
};

}  // namespace

std::span<const KernelRow> rows_softmax() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
