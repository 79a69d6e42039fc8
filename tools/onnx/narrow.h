// Types of fewer bits than librt's: rounding and wrapping to their values.
//
// Knows: which wider type stores them (tools/onnx/tensor_proto.h). Must not know: the operators.
#pragma once

#include "tools/onnx/node.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::onnx {

/// An ONNX type: one of librt's, or a narrow type and the wider one that stores it.
struct OnnxType {
  DType dtype = DType::F32;
  const tools::NarrowType* narrow = nullptr;

  bool narrow_float() const { return narrow != nullptr && dtype == DType::F16; }
  bool narrow_integer() const { return narrow != nullptr && dtype != DType::F16; }
};
Result<OnnxType> onnx_type(int64_t number);
/// The type of input i.
OnnxType type_of_input(const NodeContext& c, size_t i);

/// x, of any type, rounded to a narrow float type, in the type that stores it.
ValueId to_narrow_float(Emitter& emit, ValueId x, const tools::NarrowType& type, bool saturate);
/// Integers clamped to the range of a narrow type, in the type that stores it.
ValueId saturated(Emitter& emit, ValueId x, const tools::NarrowType& type);
/// Integers wrapped to the bits of the narrow type.
ValueId low_bits(Emitter& emit, ValueId x, const tools::NarrowType& type);

}  // namespace librt::onnx
