// Products of 8-bit integers as numbers: what quantized operators of several files begin with.
#pragma once

#include "tools/rtconvert/onnx/node.h"

namespace rt::onnx {

/// A quantized factor: integers, their scale, and a zero point that may be absent.
struct IntegerFactor {
  ValueId values = kNoValue, scale = kNoValue, zero = kNoValue;
};

/// a b + bias in f32. Of a the scale and the zero point are one number each, of b one number or one for each
/// column; bias: f32, or kNoValue.
ValueId scaled_integer_product(NodeContext& c, const IntegerFactor& a, const IntegerFactor& b, ValueId bias);
/// x f32 as integers in the range that it has.
IntegerFactor dynamically_quantized(NodeContext& c, ValueId x);

}  // namespace rt::onnx
