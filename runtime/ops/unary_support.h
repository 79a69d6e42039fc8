// Builds the page of an elementwise y = f(x) from one formula.
//
// Knows: the shape and type rule of elementwise functions of one input. Must not know: any formula.
#pragma once

#include "runtime/ops/page_support.h"

namespace librt::ops {

template <DTypeSet (*Allowed)()>
Status infer_unary(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, 0, "x", Allowed()));
  return infer_like_first(node, outputs);
}

constexpr DTypeSet floats() {
  return kFloats;
}
constexpr DTypeSet numbers() {
  return kNumericTypes;
}
constexpr DTypeSet signed_types() {
  return kFloats | DTypeSet{DType::I8, DType::I16, DType::I32, DType::I64};
}

/// F computes floats; I computes integers exactly, from their bits and whether the type is unsigned.
using RealFunction = double (*)(double);
using IntegerFunction = int64_t (*)(int64_t, bool is_unsigned);

/// g is null for functions of floats only.
inline Status apply_unary(const ConstTensorView& x, const TensorView& y, RealFunction f, IntegerFunction g) {
  const DType dtype = x.info.dtype;
  const bool integers = g != nullptr && is_integer(dtype);
  const int64_t count = x.info.elements();
  for (int64_t i = 0; i < count; ++i) {
    if (integers)
      store_integer(y.data, dtype, i, g(load_integer(x.data, dtype, i), is_unsigned_integer(dtype)));
    else
      store(y, i, f(load(x, i)));
  }
  return {};
}

template <RealFunction F, IntegerFunction I>
Status eval_unary(const NodeView&, std::span<const ConstTensorView> inputs,
                  std::span<const TensorView> outputs) {
  return apply_unary(inputs[0], outputs[0], F, I);
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

/// A function that shape arithmetic never uses: its eval is in the CompilerPage.
constexpr Page float_page(OpKind kind) {
  return {.kind = kind, .inputs = {1, 1}, .infer = infer_unary<floats>, .form = Form::Unary};
}

template <RealFunction F>
constexpr Page float_page(OpKind kind) {
  return {.kind = kind,
          .inputs = {1, 1},
          .infer = infer_unary<floats>,
          .eval = eval_unary<F, nullptr>,
          .form = Form::Unary};
}

template <DTypeSet (*Allowed)(), RealFunction F, IntegerFunction I>
constexpr Page number_page(OpKind kind) {
  return {.kind = kind,
          .inputs = {1, 1},
          .infer = infer_unary<Allowed>,
          .eval = eval_unary<F, I>,
          .form = Form::Unary};
}

}  // namespace librt::ops
