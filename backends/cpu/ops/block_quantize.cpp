// BlockQuantize and BlockDequantize: block after block, each with its scale and all its codes.
#include <array>
#include <cmath>
#include <limits>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/simd.h"

namespace rt::cpu {
namespace {

constexpr int kCodes = 256;

/// f(block, first element, elements) for all blocks, by several threads.
template <class F>
void for_each_block(int64_t count, int64_t block_size, int64_t work, const F& f) noexcept {
  const int64_t blocks = (count + block_size - 1) / block_size;
  parallel_for(blocks, work * block_size, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * block_size;
      f(block, first, std::min(block_size, count - first));
    }
  });
}

/// The largest magnitude, or NaN where one is.
float scale_of(const float* x, int64_t n) noexcept {
  float scale = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float size = std::fabs(x[i]);
    scale = scale >= size || std::isnan(scale) ? scale : size;
  }
  return scale;
}

Result<KernelPtr> create_quantize(CpuDevice& device, const NodeView& node, Producers) {
  const auto& attributes = node.as<op::BlockQuantizeAttributes>();
  const int64_t count = node.input(0).elements(), block = attributes.block_size;
  const int64_t levels = node.input(1).elements();
  const bool keep_positive = attributes.keep_positive;
  return make_kernel([=, find_codes = device.simd().find_codes](const Call& call) noexcept {
    const float *x = call.in<float>(0), *codebook = call.in<float>(1);
    std::array<float, kCodes> middles;  // [i] lies before number i
    middles.fill(std::numeric_limits<float>::infinity());
    for (int64_t i = 1; i < levels; ++i)
      middles[static_cast<size_t>(i)] = 0.5f * (codebook[i - 1] + codebook[i]);
    for_each_block(count, block, 16, [&](int64_t number, int64_t first, int64_t n) noexcept {
      const float scale = scale_of(x + first, n);
      call.out<float>(1)[number] = scale;
      std::array<float, kCodes> thresholds;
      thresholds.fill(std::numeric_limits<float>::infinity());
      for (size_t i = 1; i < static_cast<size_t>(levels); ++i) thresholds[i] = middles[i] * scale;
      find_codes(x + first, thresholds.data(), call.out<uint8_t>(0) + first, n, keep_positive);
    });
  });
}

Result<KernelPtr> create_dequantize(CpuDevice& device, const NodeView& node, Producers) {
  const int64_t count = node.input(0).elements();
  const int64_t block = node.as<op::BlockDequantizeAttributes>().block_size;
  const auto levels = static_cast<size_t>(node.input(2).elements());
  return make_kernel([=, numbers_of_codes = device.simd().numbers_of_codes](const Call& call) noexcept {
    std::array<float, kCodes> codebook;
    for (size_t i = 0; i < kCodes; ++i) codebook[i] = call.in<float>(2)[std::min(i, levels - 1)];
    for_each_block(count, block, 2, [&](int64_t number, int64_t first, int64_t n) noexcept {
      numbers_of_codes(call.in<uint8_t>(0) + first, codebook.data(), call.in<float>(1)[number],
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
  return kRows;
}

}  // namespace rt::cpu
