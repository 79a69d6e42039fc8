#include "tools/onnx/narrow.h"

#include <cmath>

namespace librt::onnx {
namespace {

op::NarrowFormat format_of(const tools::NarrowType& type) {
  if (type.bits == 4) return op::NarrowFormat::Float4E2M1;
  if (type.mantissa == 3)
    return type.fnuz ? op::NarrowFormat::Float8E4M3FNUZ : op::NarrowFormat::Float8E4M3FN;
  return type.fnuz ? op::NarrowFormat::Float8E5M2FNUZ : op::NarrowFormat::Float8E5M2;
}

}  // namespace

Result<OnnxType> onnx_type(int64_t number) {
  const auto type = tools::element_type_of_onnx(static_cast<int>(number));
  if (!type)
    return cannot("the type ", tools::onnx_type_name(static_cast<int>(number)),
                  " is not supported; use one of librt's types");
  return OnnxType{static_cast<DType>(*type), tools::narrow_type_of_onnx(static_cast<int>(number))};
}

OnnxType type_of_input(const NodeContext& c, size_t i) {
  return {c.dtype(i), tools::narrow_type_of_onnx(c.narrow_type(i))};
}

ValueId to_narrow_float(Emitter& emit, ValueId x, const tools::NarrowType& type, bool saturate) {
  op::NarrowFloatAttributes attributes;
  attributes.format = format_of(type);
  attributes.saturate = saturate;
  if (emit.value(x).dtype != DType::F32) x = emit.cast(x, DType::F32);
  return emit.cast(emit.emit(attributes, {x}), DType::F16);
}

ValueId saturated(Emitter& emit, ValueId x, const tools::NarrowType& type) {
  const bool is_signed = type.held == DType::I8;
  const double low = is_signed ? -std::ldexp(1.0, type.bits - 1) : 0;
  const double high = low + std::ldexp(1.0, type.bits) - 1;
  if (is_signed) x = emit.emit(op::MaximumAttributes{}, {x, emit.scalar_like(low, x)});
  return emit.emit(op::MinimumAttributes{}, {x, emit.scalar_like(high, x)});
}

ValueId low_bits(Emitter& emit, ValueId x, const tools::NarrowType& type) {
  if (emit.value(x).dtype == DType::Bool) return x;
  if (size_of(emit.value(x).dtype) < 4) x = emit.cast(x, DType::I32);
  const ValueId count = emit.scalar_like(std::ldexp(1.0, type.bits), x);
  if (type.held == DType::U8) return emit.emit(op::ModAttributes{}, {x, count});
  // (x + half) mod count - half; the sum may wrap, which changes it by a multiple of count.
  const ValueId half = emit.scalar_like(std::ldexp(1.0, type.bits - 1), x);
  const ValueId rest = emit.emit(op::ModAttributes{}, {emit.add(x, half), count});
  return emit.sub(emit.cast(rest, DType::I32), emit.scalar(std::ldexp(1.0, type.bits - 1), DType::I32));
}

}  // namespace librt::onnx
