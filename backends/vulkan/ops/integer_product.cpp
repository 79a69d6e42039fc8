// MatMulInteger and ConvInteger: products of bytes less their zero points, summed in i32.
#include "runtime/graph/matmul_geometry.h"
#include "runtime/graph/quantization.h"

#include "backends/vulkan/conv_steps.h"
#include "backends/vulkan/support.h"

namespace rt::vulkan {
namespace {

uint64_t flip_of(const NodeView& node, size_t i) {
  return node.dtype(i) == DType::I8 ? 128 : 0;
}
bool is_one_for_all(const NodeView& node, size_t i) {
  return !node.has(i) || node.input(i).elements() == 1;
}

// --- MatMulInteger

struct Problem {
  MatMulGeometry g;
  std::vector<int64_t> batch;                   ///< two extents
  std::array<std::vector<int64_t>, 4> strides;  ///< of a, b and their zero points, in matrices
  int64_t za_rows = 1, zb_columns = 1;
};

Shape leading(const Shape& shape) {
  return Shape(shape.dims().first(static_cast<size_t>(std::max(shape.rank() - 2, 0))));
}

Result<Problem> describe_problem(const NodeView& node) {
  Problem problem;
  RT_ASSIGN(problem.g, matmul_geometry(node.shape(0), node.shape(1), {}));
  Shape shapes[4] = {problem.g.a_batch, problem.g.b_batch};
  if (!is_one_for_all(node, 2)) {
    shapes[2] = leading(node.shape(2));
    problem.za_rows = node.shape(2)[node.shape(2).rank() - 2];
  }
  if (!is_one_for_all(node, 3)) {
    shapes[3] = leading(node.shape(3));
    problem.zb_columns = node.shape(3).back();
  }
  StridedSpace space = broadcast_space(problem.g.batch, shapes);
  if (space.rank() > 2)
    return unsupported("batch dimensions that need ", space.rank(), " axes after collapsing");
  while (space.rank() < 2) {
    space.extents.insert(space.extents.begin(), 1);
    for (auto& strides : space.strides) strides.insert(strides.begin(), 0);
  }
  problem.batch = space.extents;
  for (size_t i = 0; i < 4; ++i) problem.strides[i] = space.strides[i];
  return problem;
}

Status matmul_supports(const Device& device, const NodeView& node) noexcept {
  RT_TRY(all_storable(device, node));
  return describe_problem(node).status();
}

Result<KernelPtr> create_matmul(Device& device, const NodeView& node, std::span<const LayoutId>) noexcept {
  RT_ASSIGN(const Problem problem, describe_problem(node));
  const MatMulGeometry& g = problem.g;
  constexpr int64_t kTile = 4;
  const int64_t row_tiles = ceil_div(g.m, kTile), column_tiles = ceil_div(g.n, kTile);
  auto program = std::make_unique<Program>("matmul_integer");
  Step& step = program->dispatch_each(Shader::matmul_integer, g.batch.elements() * row_tiles * column_tiles,
                                      cast(device).plan().elementwise_lanes);
  step.spec(flip_of(node, 0)).spec(flip_of(node, 1)).spec(node.has(2)).spec(node.has(3));
  step.push(g.m).push(g.n).push(g.k).push(row_tiles).push(column_tiles);
  step.push(problem.batch[0]).push(problem.batch[1]);
  const int64_t sizes[] = {g.m * g.k, g.k * g.n, problem.za_rows, problem.zb_columns};
  for (size_t i = 0; i < 4; ++i)
    for (int64_t stride : problem.strides[i]) step.push(stride * sizes[i]);
  step.push(problem.za_rows == 1 ? 0 : 1).push(problem.zb_columns == 1 ? 0 : 1);
  step.read(0, in(0))
      .read(1, in(1))
      .read(2, node.has(2) ? in(2) : in(0))
      .read(3, node.has(3) ? in(3) : in(1));
  step.write(4, out(0));
  return finish(std::move(program));
}

// --- ConvInteger

Result<ConvSides> conv_of(const NodeView& node) {
  RT_ASSIGN(const ConvGeometry geometry,
            conv_geometry(node.shape(0), node.shape(1), as_conv(node.as<op::ConvIntegerAttributes>())));
  return conv_sides(geometry, false);
}

Status conv_supports(const Device& device, const NodeView& node) noexcept {
  RT_TRY(all_storable(device, node));
  return conv_of(node).status();
}

Result<KernelPtr> create_conv(Device& device, const NodeView& node, std::span<const LayoutId>) noexcept {
  RT_ASSIGN(const ConvSides sides, conv_of(node));
  const int64_t count = sides.out_pixels() * sides.out_channels;
  auto program = std::make_unique<Program>("conv_integer");
  Step& step = program->dispatch_each(Shader::conv_integer, count, cast(device).plan().elementwise_lanes);
  step.spec(flip_of(node, 0)).spec(flip_of(node, 1)).spec(node.has(2));
  step.spec(!node.has(3) ? 0 : is_one_for_all(node, 3) ? 1 : 2);
  push_sides(step, sides, count);
  step.read(0, in(0))
      .read(1, in(1))
      .read(2, node.has(2) ? in(2) : in(0))
      .read(3, node.has(3) ? in(3) : in(1));
  step.write(4, out(0));
  return finish(std::move(program));
}

constexpr DTypeSet kBytes{DType::U8, DType::I8};
constexpr KernelRow kRows[] = {
    {OpKind::MatMulInteger, "matmul_integer", kBytes, matmul_supports, create_matmul},
    {OpKind::ConvInteger, "conv_integer", kBytes, conv_supports, create_conv},
};

}  // namespace

std::span<const KernelRow> rows_integer_product() {
  return kRows;
}

}  // namespace rt::vulkan
