// Reductions over any axes, and ArgMax/ArgMin. Axes are merged into kept and reduced ones; up to
// kept-reduced-kept is reduced without a copy, any other order is transposed into scratch first.
#include <algorithm>

#include "backends/vulkan/steps/copy.h"
#include "backends/vulkan/steps/reduce.h"
#include "runtime/geometry/reduction.h"

namespace librt::vulkan {
namespace {

struct Request {
  std::vector<int64_t> axes;
  Reduction reduction = Reduction::Sum;
  bool mean = false;
};

Request request_of(const NodeView& node) {
  switch (node.kind()) {
    case OpKind::ReduceMean: return {node.as<op::ReduceMeanAttributes>().axes, Reduction::Sum, true};
    case OpKind::ReduceMax: return {node.as<op::ReduceMaxAttributes>().axes, Reduction::Max, false};
    case OpKind::ReduceMin: return {node.as<op::ReduceMinAttributes>().axes, Reduction::Min, false};
    case OpKind::ReduceProd: return {node.as<op::ReduceProdAttributes>().axes, Reduction::Prod, false};
    default: return {node.as<op::ReduceSumAttributes>().axes, Reduction::Sum, false};
  }
}

Status supports(const Device& device, const NodeView& node) {
  RT_TRY(all_storable(device, node));
  const Request request = request_of(node);
  if (request.mean && node.dtype(0) != DType::F32) return unsupported("the mean of ", name_of(node.dtype(0)));
  const ReductionPlan plan = reduction_plan(node.shape(0), request.axes);
  const auto runs = static_cast<size_t>(plan.kept_rank + plan.reduced_rank);
  if (runs > kMaxAxes) return unsupported("axes in ", runs, " alternating runs");
  return {};
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const VulkanDevice& vulkan = cast(device);
  const Request request = request_of(node);
  const DType dtype = node.dtype(0);
  const ReductionPlan plan = reduction_plan(node.shape(0), request.axes);
  const auto kept = static_cast<size_t>(plan.kept_rank), reduced = static_cast<size_t>(plan.reduced_rank);
  const float scale = request.mean ? 1.0f / static_cast<float>(plan.count) : 1.0f;
  auto program = std::make_unique<Program>("reduce");

  if (reduced <= 1) {  // the kept axes around the reduced one are at most two
    if (reduced == 0 || plan.inner_reduced)
      add_row_reduce(*program, vulkan, plan.outputs, plan.count, request.reduction, dtype, scale, in(0),
                     out(0));
    else
      add_column_reduce(*program, vulkan,
                        {.batch = kept == 2 ? plan.kept[0] : 1,
                         .rows = plan.count,
                         .columns = plan.kept[kept - 1],
                         .reduction = request.reduction,
                         .dtype = dtype,
                         .scale = scale},
                        in(0), out(0));
    return finish(std::move(program));
  }
  // Kept axes first, reduced ones last.
  const Ref ordered = program->scratch(node.input(0).bytes());
  StridedCopy copy;
  copy.size = size_of(dtype);
  std::vector<int64_t>& extents = copy.space.extents;
  extents.assign(plan.kept.begin(), plan.kept.begin() + kept);
  extents.insert(extents.end(), plan.reduced.begin(), plan.reduced.begin() + reduced);
  std::vector<int64_t> from(plan.kept_stride.begin(), plan.kept_stride.begin() + kept), to(extents.size(), 1);
  from.insert(from.end(), plan.reduced_stride.begin(), plan.reduced_stride.begin() + reduced);
  for (size_t i = extents.size(); i-- > 1;) to[i - 1] = to[i] * extents[i];
  copy.space.strides = {std::move(from), std::move(to)};
  add_copy(*program, vulkan, copy, in(0), ordered);
  add_row_reduce(*program, vulkan, plan.outputs, plan.count, request.reduction, dtype, scale, ordered,
                 out(0));
  return finish(std::move(program));
}

// --- ArgMax, ArgMin

struct ArgRequest {
  int64_t axis;
  bool smallest;
  bool last;
};

ArgRequest arg_request_of(const NodeView& node) {
  if (node.kind() == OpKind::ArgMin) {
    const auto& attributes = node.as<op::ArgMinAttributes>();
    return {attributes.axis, true, attributes.select_last};
  }
  const auto& attributes = node.as<op::ArgMaxAttributes>();
  return {attributes.axis, false, attributes.select_last};
}

Status arg_supports(const Device& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  if (!normalized_axis(arg_request_of(node).axis, node.shape(0).rank()))
    return unsupported("an axis outside the input's rank");
  return {};
}

Result<KernelPtr> create_arg(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const ArgRequest request = arg_request_of(node);
  const Shape& shape = node.shape(0);
  const int axis = *normalized_axis(request.axis, shape.rank());
  const int64_t columns = shape.elements(axis + 1, shape.rank());
  const int64_t count = shape.elements(0, axis) * columns;
  auto program = std::make_unique<Program>("arg_extreme");
  program
      ->dispatch_each(node.dtype(0) == DType::F32 ? Shader::arg_extreme_f32 : Shader::arg_extreme_i32, count,
                      std::min<uint32_t>(cast(device).plan().elementwise_lanes, 64))
      .loops(shape[axis])
      .spec(request.smallest)
      .spec(request.last)
      .push(count)
      .push(shape[axis])
      .push(columns)
      .read(0, in(0))
      .write(1, out(0));
  return finish(std::move(program));
}

constexpr DTypeSet kReducible{DType::F32, DType::I32, DType::I64};
constexpr DTypeSet kOrdered{DType::F32, DType::I32};
constexpr KernelRow kRows[] = {
    row<create, supports>(OpKind::ReduceSum, "reduce.sum", kReducible),
    row<create, supports>(OpKind::ReduceMean, "reduce.mean", kReducible),
    row<create, supports>(OpKind::ReduceMax, "reduce.max", kReducible),
    row<create, supports>(OpKind::ReduceMin, "reduce.min", kReducible),
    row<create, supports>(OpKind::ReduceProd, "reduce.prod", kReducible),
    row<create_arg, arg_supports>(OpKind::ArgMax, "arg_max", kOrdered),
    row<create_arg, arg_supports>(OpKind::ArgMin, "arg_min", kOrdered),
};

}  // namespace

std::span<const KernelRow> rows_reduce() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
