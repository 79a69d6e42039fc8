// BlockQuantize: one workgroup per block; BlockDequantize: one invocation per element.
#include "backends/vulkan/kernel.h"

namespace librt::vulkan {
namespace {

Status supports(const Device& device, const NodeView& node) {
  return all_storable(device, node);
}

Result<KernelPtr> create_quantize(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const auto& attributes = node.as<op::BlockQuantizeAttributes>();
  auto program = std::make_unique<Program>("block_quantize");
  program
      ->dispatch(Shader::block_quantize, static_cast<uint64_t>(node.output(1).elements()),
                 cast(device).plan().row_lanes)
      .spec(attributes.keep_positive)
      .push(node.input(0).elements())
      .push(attributes.block_size)
      .push(node.input(1).elements())
      .read(0, in(0))
      .read(1, in(1))
      .write(2, out(0))
      .write(3, out(1));
  return finish(std::move(program));
}

Result<KernelPtr> create_dequantize(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const int64_t count = node.output(0).elements();
  auto program = std::make_unique<Program>("block_dequantize");
  program->dispatch_each(Shader::block_dequantize, count, cast(device).plan().elementwise_lanes)
      .push(count)
      .push(node.as<op::BlockDequantizeAttributes>().block_size)
      .push(node.input(2).elements())
      .read(0, in(0))
      .read(1, in(1))
      .read(2, in(2))
      .write(3, out(0));
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    row<create_quantize, supports>(OpKind::BlockQuantize, "block_quantize", DTypeSet{DType::F32}),
    row<create_dequantize, supports>(OpKind::BlockDequantize, "block_dequantize", DTypeSet{DType::U8}),
};

}  // namespace

std::span<const KernelRow> rows_block_quantize();
std::span<const KernelRow> rows_block_quantize() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
