// Gather, and ScatterAdd in a fixed order without atomics.
#include <algorithm>

#include "backends/vulkan/kernel.h"

namespace librt::vulkan {
namespace {

struct Blocks {
  int64_t batch, extent, inner;
};

Result<Blocks> blocks_of(const Shape& shape, int64_t axis_attribute) {
  const auto axis = normalized_axis(axis_attribute, shape.rank());
  if (!axis) return unsupported("axis ", axis_attribute, " of ", shape.rank());
  return Blocks{shape.elements(0, *axis), shape[*axis], shape.elements(*axis + 1, shape.rank())};
}

int64_t index_words(const NodeView& node) {
  return static_cast<int64_t>(size_of(node.dtype(1)) / sizeof(int32_t));
}

Status gather_supports(const Device& device, const NodeView& node) {
  RT_TRY(all_storable(device, node));
  return blocks_of(node.shape(0), node.as<op::GatherAttributes>().axis).status();
}

Result<KernelPtr> create_gather(Device& device, const NodeView& node, std::span<const LayoutId>) {
  RT_ASSIGN(Blocks blocks, blocks_of(node.shape(0), node.as<op::GatherAttributes>().axis));
  size_t size = size_of(node.dtype(0));
  while (size < 16 && blocks.inner % 2 == 0 && blocks.inner > 0) {
    size *= 2;
    blocks.inner /= 2;
  }
  const Shader shader = size == 1   ? Shader::gather_1
                        : size == 2 ? Shader::gather_2
                        : size == 4 ? Shader::gather_4
                        : size == 8 ? Shader::gather_8
                                    : Shader::gather_16;
  const int64_t indices = node.input(1).elements();
  const int64_t count = blocks.batch * indices * blocks.inner;
  auto program = std::make_unique<Program>("gather");
  if (blocks.extent == 0) {  // nothing to read; the shape rule allows no indices
    program->fill(out(0), 0);
    return finish(std::move(program));
  }
  program->dispatch_each(shader, count, cast(device).plan().elementwise_lanes)
      .push(count)
      .push(indices)
      .push(blocks.inner)
      .push(blocks.extent)
      .push(index_words(node))
      .read(0, in(0))
      .write(1, out(0))
      .read(2, in(1));
  return finish(std::move(program));
}

/// Chaining equal indices compares all pairs.
constexpr int64_t kMaxIndices = 1 << 15;

Status scatter_supports(const Device& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  RT_TRY(known_on_host(node, 0, "shape"));
  if (node.dtype(2) != DType::F32 && node.dtype(2) != DType::I32)
    return unsupported("updates of type ", name_of(node.dtype(2)));
  if (node.input(1).elements() > kMaxIndices)
    return unsupported(node.input(1).elements(), " indices, at most ", kMaxIndices, " are supported");
  return blocks_of(node.output(0).shape, node.as<op::ScatterAddAttributes>().axis).status();
}

Result<KernelPtr> create_scatter(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const DevicePlan& plan = cast(device).plan();
  RT_ASSIGN(const Blocks blocks, blocks_of(node.output(0).shape, node.as<op::ScatterAddAttributes>().axis));
  const int64_t indices = node.input(1).elements();
  auto program = std::make_unique<Program>("scatter_add");
  const auto bytes = static_cast<uint64_t>(std::max<int64_t>(indices, 1)) * sizeof(uint32_t);
  const Ref next = program->scratch(bytes);
  const Ref row = program->scratch(bytes);
  program->fill(out(0), 0);
  if (blocks.extent == 0) return finish(std::move(program));
  program->dispatch_each(Shader::scatter_links, indices, 64)
      .push(indices)
      .push(blocks.extent)
      .push(index_words(node))
      .read(0, in(1))
      .write(1, next)
      .write(2, row);
  const int64_t count = blocks.batch * indices * blocks.inner;
  program
      ->dispatch_each(node.dtype(2) == DType::F32 ? Shader::scatter_sum_f32 : Shader::scatter_sum_i32, count,
                      plan.elementwise_lanes)
      .push(count)
      .push(indices)
      .push(blocks.inner)
      .push(blocks.extent)
      .read(0, in(2))
      .write(1, out(0))
      .read(2, next)
      .read(3, row);
  program->replaces(0);
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    row<create_gather, gather_supports>(OpKind::Gather, "gather", kAnyDType),
    row<create_scatter, scatter_supports>(OpKind::ScatterAdd, "scatter_add", DTypeSet{DType::I64}),
};

}  // namespace

std::span<const KernelRow> rows_gather() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
