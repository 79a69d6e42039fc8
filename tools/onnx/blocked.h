// Weights quantized by blocks of each row, in the layout of com.microsoft's operators.
//
// Knows: how values and zero points are packed, and the matmul with them. Must not know: nodes' inputs.
#pragma once

#include <optional>

#include "tools/onnx/node.h"

namespace librt::onnx {

/// Rows of k values of `bits` bits, in blocks of `size` that have a scale and a zero point.
struct Blocking {
  int64_t k = 0, n = 0, bits = 4, size = 0;

  int64_t blocks() const { return (k + size - 1) / size; }
  int64_t middle() const { return int64_t{1} << (bits - 1); }
};

/// A weight as WeightQuantizedMatMul takes it.
struct BlockedWeight {
  ValueId values = kNoValue;   ///< u8 [N,K/2], pairs of 4-bit values plus 8; or i8 [N,K]
  ValueId scales = kNoValue;   ///< f32 [N,blocks]
  ValueId offsets = kNoValue;  ///< f32 [N,blocks]: zero points minus the middle; none: all are 0
};

/// weight: u8 of n rows of whole blocks, the first value of a byte in the low bits; scales: float, n *
/// blocks; zeros: u8 rows that are whole bytes, or floats [n,blocks]; or none, which is the middle. All of
/// any shape.
Result<BlockedWeight> blocked_weight(NodeContext& c, const Blocking& b, ValueId weight, ValueId scales,
                                     ValueId zeros, std::optional<int64_t> zero_rows = {});

/// x [..,K], f32, times the transposed weight, plus bias, f32 [N], if any.
ValueId matmul_blocked(Emitter& e, ValueId x, const BlockedWeight& weight, const Blocking& b, ValueId bias);

/// u8 [..,P] -> u8 [..,8/bits * P]: the values that are packed into bytes, the first in the low bits.
ValueId unpacked_values(Emitter& e, ValueId bytes, int64_t bits);

}  // namespace librt::onnx
