// Reductions over any axes, and ArgMax/ArgMin. Axes are collapsed into kept and reduced ones; up to
// kept-reduced-kept is reduced without a copy, any other order is transposed into scratch first.
#include <algorithm>

#include "backends/vulkan/steps/copy.h"
#include "backends/vulkan/steps/reduce.h"

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

/// Runs of neighbouring axes that are all kept or all reduced.
struct Run {
  int64_t extent;
  bool reduced;
};

Result<std::vector<Run>> runs_of(const Shape& shape, const std::vector<int64_t>& axes) {
  std::array<bool, kMaxRank> reduced{};
  reduced.fill(axes.empty());
  for (int64_t given : axes) {
    const auto axis = normalized_axis(given, shape.rank());
    if (!axis) return unsupported("axis ", given, " of ", shape.rank());
    reduced[static_cast<size_t>(*axis)] = true;
  }
  std::vector<Run> runs;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool is_reduced = reduced[static_cast<size_t>(i)];
    if (shape[i] == 1) continue;
    if (!runs.empty() && runs.back().reduced == is_reduced)
      runs.back().extent *= shape[i];
    else
      runs.push_back({shape[i], is_reduced});
  }
  return runs;
}

Status supports(const Device& device, const NodeView& node) noexcept {
  RT_TRY(all_storable(device, node));
  const Request request = request_of(node);
  if (request.mean && node.dtype(0) != DType::F32) return unsupported("the mean of ", name_of(node.dtype(0)));
  RT_ASSIGN(const auto runs, runs_of(node.shape(0), request.axes));
  if (runs.size() > kMaxAxes) return unsupported("axes in ", runs.size(), " alternating runs");
  return {};
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) noexcept {
  const VulkanDevice& vulkan = cast(device);
  const Request request = request_of(node);
  const DType dtype = node.dtype(0);
  RT_ASSIGN(const auto runs, runs_of(node.shape(0), request.axes));
  int64_t kept = 1, reduced = 1;
  for (const Run& run : runs) (run.reduced ? reduced : kept) *= run.extent;
  const float scale = request.mean ? 1.0f / static_cast<float>(reduced) : 1.0f;
  auto program = std::make_unique<Program>("reduce");

  size_t first = 0;
  while (first < runs.size() && !runs[first].reduced) ++first;
  const bool in_order = first <= 1 && runs.size() <= first + 2;
  if (in_order) {
    const int64_t batch = first == 1 ? runs[0].extent : 1;
    const int64_t columns = first + 1 < runs.size() ? runs[first + 1].extent : 1;
    if (columns == 1)
      add_row_reduce(*program, vulkan, batch, reduced, request.reduction, dtype, scale, in(0), out(0));
    else
      add_column_reduce(*program, vulkan,
                        {.batch = batch,
                         .rows = reduced,
                         .columns = columns,
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
  copy.space.strides.resize(2);
  std::vector<int64_t> strides(runs.size(), 1);
  for (size_t i = runs.size(); i-- > 1;) strides[i - 1] = strides[i] * runs[i].extent;
  for (const bool want_reduced : {false, true})
    for (size_t i = 0; i < runs.size(); ++i)
      if (runs[i].reduced == want_reduced) {
        copy.space.extents.push_back(runs[i].extent);
        copy.space.strides[0].push_back(strides[i]);
      }
  copy.space.strides[1].assign(runs.size(), 1);
  for (size_t i = runs.size(); i-- > 1;)
    copy.space.strides[1][i - 1] = copy.space.strides[1][i] * copy.space.extents[i];
  add_copy(*program, vulkan, copy, in(0), ordered);
  add_row_reduce(*program, vulkan, kept, reduced, request.reduction, dtype, scale, ordered, out(0));
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

Status arg_supports(const Device& device, const NodeView& node) noexcept {
  RT_TRY(fits(device, node));
  if (!normalized_axis(arg_request_of(node).axis, node.shape(0).rank()))
    return unsupported("an axis outside the input's rank");
  return {};
}

Result<KernelPtr> create_arg(Device& device, const NodeView& node, std::span<const LayoutId>) noexcept {
  const ArgRequest request = arg_request_of(node);
  const Shape& shape = node.shape(0);
  const int axis = *normalized_axis(request.axis, shape.rank());
  const int64_t columns = shape.elements(axis + 1, shape.rank());
  const int64_t count = shape.elements(0, axis) * columns;
  auto program = std::make_unique<Program>("arg_extreme");
  program
      ->dispatch_each(node.dtype(0) == DType::F32 ? Shader::arg_extreme_f32 : Shader::arg_extreme_i32, count,
                      std::min<uint32_t>(cast(device).plan().elementwise_lanes, 64))
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
    {OpKind::ReduceSum, "reduce.sum", kReducible, supports, create},
    {OpKind::ReduceMean, "reduce.mean", kReducible, supports, create},
    {OpKind::ReduceMax, "reduce.max", kReducible, supports, create},
    {OpKind::ReduceMin, "reduce.min", kReducible, supports, create},
    {OpKind::ReduceProd, "reduce.prod", kReducible, supports, create},
    {OpKind::ArgMax, "arg_max", kOrdered, arg_supports, create_arg},
    {OpKind::ArgMin, "arg_min", kOrdered, arg_supports, create_arg},
};

}  // namespace

std::span<const KernelRow> rows_reduce() {
  return kRows;
}

}  // namespace librt::vulkan
