// 8-bit integer matmuls with f32 results, shared by the importers of quantized operators.
#pragma once

#include "tools/onnx/node.h"

namespace librt::onnx {

/// A quantized operand: integers, their scale, and a zero point that may be absent.
struct IntegerFactor {
  ValueId values = kNoValue, scale = kNoValue, zero = kNoValue;
};

/// a b + bias in f32. Scale and zero point are per tensor for a, per tensor or per column for b; bias: f32,
/// or kNoValue.
ValueId scaled_integer_matmul(NodeContext& c, const IntegerFactor& a, const IntegerFactor& b, ValueId bias);
/// x in f32, quantized over its own range by DynamicQuantizeLinear.
IntegerFactor dynamically_quantized(NodeContext& c, ValueId x);

}  // namespace librt::onnx
