// BlockQuantize and BlockDequantize.
#include "kernels/block_quantize.h"

#include "backends/cuda/kernel.h"

namespace librt::cuda {
namespace {

Result<KernelPtr> create_quantize(CudaDevice&, const NodeView& node) {
  const auto& attributes = node.as<op::BlockQuantizeAttributes>();
  const BlockQuantization blocks{.levels = node.input(1).elements(),
                                 .block = attributes.block_size,
                                 .count = node.input(0).elements(),
                                 .keep_positive = attributes.keep_positive};
  return make_kernel([blocks](const Call& call) {
    BlockQuantization bound = blocks;
    bound.codebook = call.in<float>(1);
    return block_quantize(call.in<float>(0), call.out<uint8_t>(0), call.out<float>(1), bound, call.stream);
  });
}

Result<KernelPtr> create_dequantize(CudaDevice&, const NodeView& node) {
  const BlockQuantization blocks{.levels = node.input(2).elements(),
                                 .block = node.as<op::BlockDequantizeAttributes>().block_size,
                                 .count = node.input(0).elements()};
  return make_kernel([blocks](const Call& call) {
    BlockQuantization bound = blocks;
    bound.codebook = call.in<float>(2);
    return block_dequantize(call.in<uint8_t>(0), call.in<float>(1), call.out<float>(), bound, call.stream);
  });
}

}  // namespace

std::span<const KernelRow> rows_block_quantize();
std::span<const KernelRow> rows_block_quantize() {
  static constexpr KernelRow kRows[] = {
      row<create_quantize>(OpKind::BlockQuantize, "block_quantize", DTypeSet{DType::F32}),
      row<create_dequantize>(OpKind::BlockDequantize, "block_dequantize", DTypeSet{DType::U8}),
  };
  return kRows;
}

}  // namespace librt::cuda
