// What the pages of attention and of rotary embedding share: types of operands, and pieces of bodies.
#pragma once

#include <initializer_list>

#include "runtime/ops/page_support.h"

namespace librt::ops {

constexpr bool is_16_bit(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16;
}
/// The other operands of 16-bit data may be f32.
inline DTypeSet types_beside(DType x) {
  return is_16_bit(x) ? DTypeSet(x, DType::F32) : DTypeSet(x);
}

inline ValueId widened(Emitter& e, ValueId x) {
  return is_16_bit(e.value(x).dtype) ? e.cast(x, DType::F32) : x;
}

inline ValueId concatenated(Emitter& e, std::initializer_list<ValueId> parts, int64_t axis = 0) {
  op::ConcatAttributes attributes;
  attributes.axis = axis;
  return e.emit_many(make_op(attributes), {parts.begin(), parts.size()}, 1)[0];
}

}  // namespace librt::ops
