// How a page of y = f(x) is made from one formula.
//
// Knows: the shape and type rule of elementwise functions of one input. Must not know: any formula.
#pragma once

#include <type_traits>

#include "runtime/ops/page_support.h"

namespace rt::ops {

template <DTypeSet (*Allowed)()>
Status infer_unary(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, 0, "x", Allowed()));
  return infer_like_first(node, outputs);
}

constexpr DTypeSet floats() {
  return kFloats;
}
constexpr DTypeSet numbers() {
  return kNumbers;
}
constexpr DTypeSet signed_numbers() {
  return kFloats | DTypeSet{DType::I8, DType::I16, DType::I32, DType::I64};
}

/// F computes floats; I integers, exactly: of an unsigned type it sees the bits and is told so.
using RealFunction = double (*)(double);
using IntegerFunction = int64_t (*)(int64_t, bool is_unsigned);

template <RealFunction F, IntegerFunction I>
Status eval_unary(const NodeView&, std::span<const ConstTensorView> inputs,
                  std::span<const TensorView> outputs) {
  const ConstTensorView& x = inputs[0];
  const DType dtype = x.info.dtype;
  const int64_t count = x.info.elements();
  for (int64_t i = 0; i < count; ++i) {
    // By type: with UBSan, GCC does not take the comparison of a function's address for a constant.
    if constexpr (!std::is_same_v<std::integral_constant<IntegerFunction, I>,
                                  std::integral_constant<IntegerFunction, nullptr>>) {
      if (is_integer(dtype)) {
        const int64_t value = load_integer(x.data, dtype, i);
        store_integer(outputs[0].data, dtype, i, I(value, is_unsigned_integer(dtype)));
        continue;
      }
    }
    store(outputs[0], i, F(load(x, i)));
  }
  return {};
}

/// The same with attributes, for floats.
template <class Attributes, double (*F)(double, const Attributes&)>
Status eval_with(const NodeView& node, std::span<const ConstTensorView> inputs,
                 std::span<const TensorView> outputs) {
  const auto& attributes = node.as<Attributes>();
  const int64_t count = inputs[0].info.elements();
  for (int64_t i = 0; i < count; ++i) store(outputs[0], i, F(load(inputs[0], i), attributes));
  return {};
}

template <RealFunction F>
constexpr Page float_page(OpKind kind, Domain domain = {}) {
  return {.kind = kind,
          .inputs = {1, 1},
          .infer = infer_unary<floats>,
          .eval = eval_unary<F, nullptr>,
          .domain = domain};
}

template <DTypeSet (*Allowed)(), RealFunction F, IntegerFunction I>
constexpr Page number_page(OpKind kind, Domain domain = {}) {
  return {.kind = kind,
          .inputs = {1, 1},
          .infer = infer_unary<Allowed>,
          .eval = eval_unary<F, I>,
          .domain = domain};
}

template <class Attributes, double (*F)(double, const Attributes&)>
constexpr Page attribute_page(OpKind kind) {
  return {.kind = kind, .inputs = {1, 1}, .infer = infer_unary<floats>, .eval = eval_with<Attributes, F>};
}

}  // namespace rt::ops
