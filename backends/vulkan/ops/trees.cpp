// TreeLeaves: one dispatch.
#include "backends/vulkan/kernel.h"

namespace librt::vulkan {
namespace {

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const int64_t count = node.output(0).elements();
  auto program = std::make_unique<Program>("tree_leaves");
  program->dispatch_each(Shader::tree_leaves, count, cast(device).plan().elementwise_lanes)
      .push(count)
      .push(node.shape(3)[0])
      .push(node.shape(0)[1])
      .push(node.shape(2)[0])
      .push(node.as<op::TreeLeavesAttributes>().levels)
      .read(0, in(0))
      .write(1, out(0))
      .read(2, in(1))
      .read(3, in(2))
      .read(4, in(3));
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    row<create, fits>(OpKind::TreeLeaves, "tree_leaves", DTypeSet{DType::F32}),
};

}  // namespace

std::span<const KernelRow> rows_trees() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
