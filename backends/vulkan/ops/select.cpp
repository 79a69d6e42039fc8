// Selection by condition, with broadcasting.
#include "backends/vulkan/kernel.h"

namespace librt::vulkan {
namespace {

Result<KernelPtr> create(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const StridedSpace space = broadcast_space(node);
  auto program = std::make_unique<Program>("where");
  const size_t size = size_of(node.output(0).dtype);
  const Shader shader = size == 1   ? Shader::where_1
                        : size == 2 ? Shader::where_2
                        : size == 4 ? Shader::where_4
                                    : Shader::where_8;
  const int64_t count = node.output(0).elements();
  program->dispatch_each(shader, count, cast(device).plan().elementwise_lanes)
      .spec(space.rank())
      .push(count)
      .push_axes(space.extents, 1)
      .push_axes(space.strides[0], 0)
      .push_axes(space.strides[1], 0)
      .push_axes(space.strides[2], 0)
      .read(0, in(0))
      .read(1, in(1))
      .read(2, in(2))
      .write(3, out(0));
  for (const uint8_t i : {uint8_t{1}, uint8_t{2}})  // over an operand of the result's shape
    if (node.input(i) == node.output(0)) {
      program->in_place(i);
      break;
    }
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    row<create, broadcast_supports>(OpKind::Where, "where", DTypeSet{DType::Bool}),
};

}  // namespace

std::span<const KernelRow> rows_select() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
