// BlockQuantize and BlockDequantize, block by block: a scale and all quantized values of the block.
#include "backends/cpu/kernel.h"
#include "backends/cpu/support/block_quantization.h"

namespace librt::cpu {
namespace {

Result<KernelPtr> create_quantize(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::BlockQuantizeAttributes>();
  const int64_t count = node.input(0).elements(), block = attributes.block_size;
  const int64_t levels = node.input(1).elements();
  const bool keep_positive = attributes.keep_positive;
  return make_kernel([=, simd = &device.simd()](const Call& call) noexcept {
    const Codebook codebook(call.in<float>(1), levels);
    for_each_block(count, block, 16, [&](int64_t number, int64_t first, int64_t n) noexcept {
      call.out<float>(1)[number] =
          codebook.quantize(*simd, call.in<float>(0) + first, call.out<uint8_t>() + first, n, keep_positive);
    });
  });
}

Result<KernelPtr> create_dequantize(CpuDevice& device, const NodeView& node, Producers) {
  const int64_t count = node.input(0).elements();
  const int64_t block = node.as<op::BlockDequantizeAttributes>().block_size;
  const int64_t levels = node.input(2).elements();
  return make_kernel([=, simd = &device.simd()](const Call& call) noexcept {
    const Codebook codebook(call.in<float>(2), levels);
    for_each_block(count, block, 2, [&](int64_t number, int64_t first, int64_t n) noexcept {
      codebook.dequantize(*simd, call.in<uint8_t>(0) + first, call.in<float>(1)[number],
                          call.out<float>() + first, n);
    });
  });
}

}  // namespace

std::span<const KernelRow> rows_block_quantize();
std::span<const KernelRow> rows_block_quantize() {
  static constexpr KernelRow kRows[] = {
      row<create_quantize>(OpKind::BlockQuantize, "block_quantize", DTypeSet{DType::F32}),
      row<create_dequantize>(OpKind::BlockDequantize, "block_dequantize", DTypeSet{DType::U8}),
  };
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
