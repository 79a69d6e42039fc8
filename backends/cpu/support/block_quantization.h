// Block-wise quantization: one scale per block, and quantized values that index a codebook.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "backends/cpu/device/parallel.h"
#include "backends/cpu/simd/block_quantize.h"
#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// A codebook in the form that the vector loops take, prepared once for many blocks.
class Codebook {
 public:
  static constexpr size_t kLevels = 256;
  /// `values` [levels] ascend; 2 <= levels <= 256.
  Codebook(const float* values, int64_t levels) noexcept;

  /// Dequantizes one block into y[0..n).
  void dequantize(const Simd& simd, const uint8_t* codes, float scale, float* y, int64_t n) const noexcept {
    simd.loops<BlockQuantizeLoops>().dequantize_block(codes, values_.data(), scale, y, n);
  }
  /// Quantizes one block x[0..n); returns its scale. keep_positive: no value above 0 is quantized to 0.
  float quantize(const Simd& simd, const float* x, uint8_t* codes, int64_t n,
                 bool keep_positive) const noexcept;

 private:
  std::array<float, kLevels> values_;  ///< padded with the last one
  std::array<float, kLevels> tree_;    ///< midpoints between neighbours, see Simd::quantize_block
};

/// f(block, its first element, its element count) for all blocks of `count` elements, in parallel. `work`:
/// elementary operations per element.
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

}  // namespace librt::cpu
