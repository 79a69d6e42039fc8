// Requantization of blocks of integer sums by constants, for GEMMs of 8-bit integers whose results are
// narrowed while they are in a cache.
//
// Knows: scales, activations, 8-bit results. Must not know: where sums come from, operators.
#pragma once

#include <optional>
#include <vector>

#include "backends/cpu/device/parallel.h"
#include "backends/cpu/simd/quantized.h"
#include "runtime/core/dtype.h"
#include "runtime/graph/op.h"

namespace librt::cpu {

/// Requantization of the i32 accumulators, per channel of the result: y = activation(sum scale + bias), and
/// where y_type is an integer, y / y_scale + y_zero, rounded. All constants when the kernel is created.
struct Requantization {
  std::vector<float> scale, bias;  ///< [N]
  op::Activation activation = op::Activation::None;
  float alpha = 0, beta = 0;
  DType y_type = DType::F32;
  float y_scale = 1;
  int32_t y_zero = 0;
};

/// y = activation((sum - less) scale + bias), and where y is an integer, y / y_scale + y_zero, rounded; by
/// channel.
class BlockRequantizer {
 public:
  /// last.scale, last.bias and less: [channels]; sums minus `less` wrap in 32 bits.
  BlockRequantizer(const Simd& simd, const Requantization& last, std::vector<int32_t> less);

  /// `rows` rows of sums of the channels `columns`, next to each other, become a block of y: its first
  /// element is at y, its rows are y_stride elements apart.
  void run(const int32_t* sums, int64_t rows, Range columns, std::byte* y, int64_t y_stride) const noexcept;

 private:
  void convert(const int32_t* sums, int64_t channel, std::byte* y, int64_t n) const noexcept;

  const Simd* simd_;
  int64_t channels_, together_;  ///< rows that are converted at once
  std::vector<int32_t> less_;    ///< [together, channels], as the next two
  std::vector<float> scale_, bias_;
  op::Activation activation_;
  float alpha_, beta_, y_scale_, inverse_;
  DType type_;
  bool normal_;  ///< y_scale and its inverse are
  std::optional<Requantized> in_one_pass_;
  std::byte y_zero_;
};

}  // namespace librt::cpu
