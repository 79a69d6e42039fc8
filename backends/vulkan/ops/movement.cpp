// Movement of elements: Identity, Reshape, Transpose, Concat, Slice, Expand, Tile as copies between index
// spaces; Pad.
#include "runtime/geometry/movement.h"
#include "backends/vulkan/steps/copy.h"

namespace librt::vulkan {
namespace {

std::vector<int64_t> dense_strides(const Shape& shape) {
  const auto strides = strides_of(shape);
  return {strides.begin(), strides.begin() + shape.rank()};
}

std::vector<int64_t> extents_of(const Shape& shape) {
  return {shape.begin(), shape.end()};
}

/// The copies of a node: one, or for Concat one for each input.
Result<std::vector<StridedCopy>> copies_of(const NodeView& node) {
  const Shape& y = node.output(0).shape;
  const size_t size = size_of(node.output(0).dtype);
  StridedCopy copy;
  copy.size = size;
  switch (node.kind()) {
    case OpKind::Transpose: {
      const auto& permutation = node.as<op::TransposeAttributes>().permutation;
      const auto dense = dense_strides(node.shape(0));
      std::vector<int64_t> strides;
      for (int i = 0; i < y.rank(); ++i) {
        // An empty permutation reverses the axes.
        const auto axis = permutation.empty() ? static_cast<size_t>(y.rank() - 1 - i)
                                              : static_cast<size_t>(permutation[static_cast<size_t>(i)]);
        strides.push_back(dense[axis]);
      }
      copy.space = {extents_of(y), {strides, dense_strides(y)}};
      return std::vector{copy};
    }
    case OpKind::Slice: {
      RT_ASSIGN(const SliceGeometry slice,
                slice_geometry(node.shape(0), node.as<op::SliceAttributes>(), node.ints(1), node.ints(2)));
      auto strides = dense_strides(node.shape(0));
      for (size_t axis = 0; axis < strides.size(); ++axis) {
        copy.from += slice.start[axis] * strides[axis];
        strides[axis] *= slice.step[axis];
      }
      copy.space = {extents_of(y), {strides, dense_strides(y)}};
      return std::vector{copy};
    }
    case OpKind::Expand: {
      const Shape shapes[] = {node.shape(0), y};
      copy.space = broadcast_space(y, shapes);
      return std::vector{copy};
    }
    case OpKind::Tile: {
      const Shape& x = node.shape(0);
      const auto from = dense_strides(x);
      const auto to = dense_strides(y);
      copy.space.strides.resize(2);
      for (int i = 0; i < x.rank(); ++i) {
        const auto axis = static_cast<size_t>(i);
        const int64_t repeats = x[i] == 0 ? 0 : y[i] / x[i];
        copy.space.extents.insert(copy.space.extents.end(), {repeats, x[i]});
        copy.space.strides[0].insert(copy.space.strides[0].end(), {0, from[axis]});
        copy.space.strides[1].insert(copy.space.strides[1].end(), {to[axis] * x[i], to[axis]});
      }
      return std::vector{copy};
    }
    case OpKind::Concat: {
      const auto axis = normalized_axis(node.as<op::ConcatAttributes>().axis, y.rank());
      if (!axis) return unsupported("an axis outside the result's rank");
      std::vector<StridedCopy> copies;
      const auto to = dense_strides(y);
      int64_t offset = 0;
      for (size_t i = 0; i < node.input_count(); ++i) {
        StridedCopy part;
        part.size = size;
        part.to = offset * to[static_cast<size_t>(*axis)];
        part.space = {extents_of(node.shape(i)), {dense_strides(node.shape(i)), to}};
        copies.push_back(std::move(part));
        offset += node.shape(i)[*axis];
      }
      return copies;
    }
    default: copy.space = {{y.elements()}, {{1}, {1}}}; return std::vector{copy};
  }
}

Status supports(const Device& device, const NodeView& node) {
  if (node.kind() == OpKind::Slice) {
    RT_TRY(known_on_host(node, 1, "starts"));
    RT_TRY(known_on_host(node, 2, "ends"));
  }
  RT_ASSIGN(const auto copies, copies_of(node));
  for (const StridedCopy& copy : copies) RT_TRY(copy_supports(device, node.dtype(0), copy.space));
  return {};
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) {
  RT_ASSIGN(const auto copies, copies_of(node));
  auto program = std::make_unique<Program>("movement");
  for (size_t i = 0; i < copies.size(); ++i) add_copy(*program, cast(device), copies[i], in(i), out(0));
  switch (node.kind()) {
    case OpKind::Identity: program->in_place(0); break;
    case OpKind::Reshape:
      program->in_place(0);
      if (node.inputs[1].value != nullptr) program->replaces(1);
      break;
    case OpKind::Slice:
      program->replaces(1);
      program->replaces(2);
      break;
    case OpKind::Expand:
    case OpKind::Tile:
      if (node.inputs[1].value != nullptr) program->replaces(1);
      break;
    default: break;
  }
  return finish(std::move(program));
}

// --- Pad

struct PadSpace {
  std::vector<int64_t> extents, before, limit, strides;
  int64_t from = 0;
};

Result<PadSpace> pad_space(const NodeView& node) {
  RT_TRY(known_on_host(node, 1, "pads"));
  const op::PadMode mode = node.as<op::PadAttributes>().mode;
  const Shape& x = node.shape(0);
  RT_ASSIGN(const PadGeometry geometry, pad_geometry(x, mode, node.ints(1)));
  const auto dense = strides_of(x);
  PadSpace space;
  for (int i = 0; i < x.rank(); ++i) {
    const auto axis = static_cast<size_t>(i);
    space.from += geometry.start[axis] * dense[axis];
    const int64_t extent = geometry.result[i];
    const bool whole = geometry.before[axis] == 0 && geometry.extent[axis] == extent;
    const bool mergeable = !space.extents.empty() && whole && mode == op::PadMode::Constant &&
                           space.strides.back() == dense[axis] * extent;
    if (mergeable) {
      space.extents.back() *= extent;
      space.before.back() *= extent;
      space.limit.back() *= extent;
      space.strides.back() = dense[axis];
    } else {
      space.extents.push_back(extent);
      space.before.push_back(geometry.before[axis]);
      space.limit.push_back(geometry.extent[axis]);
      space.strides.push_back(dense[axis]);
    }
  }
  return space;
}

Status pad_supports(const Device& device, const NodeView& node) {
  RT_TRY(all_storable(device, node));
  RT_ASSIGN(const PadSpace space, pad_space(node));
  if (space.extents.size() > kMaxAxes)
    return unsupported("padding of ", space.extents.size(), " axes, ", kMaxAxes, " are supported");
  return {};
}

Result<KernelPtr> create_pad(Device& device, const NodeView& node, std::span<const LayoutId>) {
  RT_ASSIGN(const PadSpace space, pad_space(node));
  const size_t size = size_of(node.dtype(0));
  const Shader shader = size == 1   ? Shader::pad_1
                        : size == 2 ? Shader::pad_2
                        : size == 4 ? Shader::pad_4
                                    : Shader::pad_8;
  const int64_t count = node.output(0).elements();
  auto program = std::make_unique<Program>("pad");
  Step& step = program->dispatch_each(shader, count, cast(device).plan().elementwise_lanes);
  step.spec(space.extents.size())
      .spec(static_cast<uint64_t>(node.as<op::PadAttributes>().mode))
      .spec(node.has(2));
  step.push(count).push(0).push(space.from).push(0);
  step.push_axes(space.extents, 1)
      .push_axes(space.before, 0)
      .push_axes(space.limit, 1)
      .push_axes(space.strides, 0);
  step.read(0, in(0)).write(1, out(0));
  if (node.has(2)) step.read(2, in(2));
  program->replaces(1);
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    row<create, supports>(OpKind::Identity, "identity", kAnyDType),
    row<create, supports>(OpKind::Reshape, "reshape", kAnyDType),
    row<create, supports>(OpKind::Transpose, "transpose", kAnyDType),
    row<create, supports>(OpKind::Concat, "concat", kAnyDType),
    row<create, supports>(OpKind::Slice, "slice", kAnyDType),
    row<create, supports>(OpKind::Expand, "expand", kAnyDType),
    row<create, supports>(OpKind::Tile, "tile", kAnyDType),
    row<create_pad, pad_supports>(OpKind::Pad, "pad", kAnyDType),
};

}  // namespace

std::span<const KernelRow> rows_movement() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
