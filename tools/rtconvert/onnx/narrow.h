// Types of fewer bits than librt's: rounding and wrapping to the values that they have.
//
// Knows: which wider type holds them (tools/common/tensor_proto.h). Must not know: the operators that ask.
#pragma once

#include "tools/common/tensor_proto.h"
#include "tools/rtconvert/onnx/node.h"

namespace rt::onnx {

/// A type as ONNX numbers it: librt's own, or the one that holds a narrow one.
struct OnnxType {
  DType dtype = DType::F32;
  const tools::NarrowType* narrow = nullptr;

  bool narrow_float() const { return narrow != nullptr && dtype == DType::F16; }
  bool narrow_integer() const { return narrow != nullptr && dtype != DType::F16; }
};
Result<OnnxType> onnx_type(int64_t number);
/// Of input i.
OnnxType type_of_input(const NodeContext& c, size_t i);

/// x, of any type, as the nearest numbers of a narrow float type, in the type that holds it.
ValueId to_narrow_float(Emitter& emit, ValueId x, const tools::NarrowType& type, bool saturate);
/// Integers in the type that holds a narrow one: the nearest that it has.
ValueId saturated(Emitter& emit, ValueId x, const tools::NarrowType& type);
/// The low bits of integers, as a number of the narrow type.
ValueId low_bits(Emitter& emit, ValueId x, const tools::NarrowType& type);

}  // namespace rt::onnx
