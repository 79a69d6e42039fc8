// Rotary embedding in one pass over x, in place.
#include "backends/vulkan/kernel.h"

namespace librt::vulkan {
namespace {

Status supports(const Device& device, const NodeView& node) {
  return fits(device, node);
}

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const Shape &x = node.shape(0), &table = node.shape(1);
  const int64_t pairs = table[2], count = x.elements(0, 3) * (x[3] - pairs);
  auto program = std::make_unique<Program>("rotary");
  Step& step = program->dispatch_each(Shader::rotary, count, cast(device).plan().elementwise_lanes);
  step.spec(node.as<op::RotaryEmbeddingAttributes>().interleaved);
  step.push(count).push(x[1]).push(x[2]).push(x[3]).push(pairs).push(table[0] == 1 ? int64_t{0} : x[2]);
  step.read(0, in(0)).write(1, out(0)).read(2, in(1)).read(3, in(2));
  program->in_place(0);
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    row<create, supports>(OpKind::RotaryEmbedding, "rotary", DTypeSet{DType::F32}),
};

}  // namespace

std::span<const KernelRow> rows_rotary() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
