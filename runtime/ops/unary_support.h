// Builds the page of an elementwise y = f(x) from its formula in runtime/geometry/function_value.h.
//
// Knows: the shape and type rule of elementwise functions of one input. Must not know: any formula.
#pragma once

#include "runtime/geometry/function.h"
#include "runtime/geometry/function_value.h"
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

/// Integers are computed exactly, from their bits and whether the type is unsigned.
using IntegerFunction = int64_t (*)(int64_t, bool is_unsigned);
using RealFunction = double (*)(double x, double alpha, double beta) noexcept;

/// g is null for functions of floats only.
inline Status apply_unary(const NodeView& node, const ConstTensorView& x, const TensorView& y, RealFunction f,
                          IntegerFunction g) {
  const DType dtype = x.info.dtype;
  const bool integers = g != nullptr && is_integer(dtype);
  const FunctionCall call = function_call(node.node);
  const auto alpha = static_cast<double>(call.alpha), beta = static_cast<double>(call.beta);
  const int64_t count = x.info.elements();
  for (int64_t i = 0; i < count; ++i) {
    if (integers)
      store_integer(y.data, dtype, i, g(load_integer(x.data, dtype, i), is_unsigned_integer(dtype)));
    else
      store(y, i, f(load(x, i), alpha, beta));
  }
  return {};
}

template <Function kFunction, IntegerFunction I = nullptr>
Status eval_unary(const NodeView& node, std::span<const ConstTensorView> inputs,
                  std::span<const TensorView> outputs) {
  return apply_unary(node, inputs[0], outputs[0], function_value<kFunction>, I);
}

/// A function that shape arithmetic never uses: its eval is in the CompilerPage.
constexpr Page float_page(OpKind kind) {
  return {.kind = kind, .inputs = {1, 1}, .infer = infer_unary<floats>, .form = Form::Unary};
}

template <Function kFunction>
constexpr Page float_page(OpKind kind) {
  return {.kind = kind,
          .inputs = {1, 1},
          .infer = infer_unary<floats>,
          .eval = eval_unary<kFunction>,
          .form = Form::Unary};
}

template <DTypeSet (*Allowed)(), Function kFunction, IntegerFunction I>
constexpr Page number_page(OpKind kind) {
  return {.kind = kind,
          .inputs = {1, 1},
          .infer = infer_unary<Allowed>,
          .eval = eval_unary<kFunction, I>,
          .form = Form::Unary};
}

}  // namespace librt::ops
