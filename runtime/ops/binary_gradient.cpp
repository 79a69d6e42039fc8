// Gradients (grad_y, x) -> grad_y f'(x) of Gelu and Silu, which kernels compute as functions of two operands.
#include <numbers>

#include "runtime/ops/page_support.h"

namespace librt::ops {
namespace {

Status infer_gate_grad(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, 0, "grad_y", kFloats));
  RT_TRY(expect_like_first(node, "x", "grad_y"));
  return infer_like_first(node, outputs);
}

/// grad_y slope(x), in f32 where x has 16 bits.
template <class Slope>
std::vector<ValueId> gate_grad(Emitter& e, std::span<const ValueId> inputs, const Slope& slope) {
  const DType dtype = e.value(inputs[1]).dtype;
  if (size_of(dtype) >= size_of(DType::F32)) return {e.mul(inputs[0], slope(inputs[1]))};
  const ValueId wide = e.mul(e.cast(inputs[0], DType::F32), slope(e.cast(inputs[1], DType::F32)));
  return {e.cast(wide, dtype)};
}

/// With the bend t(x) of Gelu: (1 + t) / 2 + x t' / 2. The square that t' = (1 - t^2) (a + 3 b x^2)
/// multiplies is bounded, so that large numbers give 0.
std::vector<ValueId> body_of_gelu_grad(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  return gate_grad(e, inputs, [&](ValueId x) {
    const auto number = [&](double value) { return e.scalar_like(value, x); };
    const ValueId half = e.mul(x, number(0.5));
    ValueId square = e.mul(x, x), bend, rise;
    if (node.as<op::GeluGradAttributes>().tanh_approximation) {
      const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, cube = scale * 0.044715;
      square = e.emit(op::MinimumAttributes{}, {square, number(1e30)});
      const ValueId factor = e.add(e.mul(square, number(cube)), number(scale));
      bend = e.emit(op::TanhAttributes{}, {e.mul(x, factor)});
      const ValueId steepness = e.add(e.mul(square, number(3 * cube)), number(scale));
      rise = e.mul(e.mul(half, e.sub(number(1), e.mul(bend, bend))), steepness);
    } else {
      bend = e.emit(op::ErfAttributes{}, {e.mul(x, number(1 / std::numbers::sqrt2))});
      const ValueId density = e.emit(op::ExpAttributes{}, {e.mul(square, number(-0.5))});
      rise = e.mul(e.mul(half, density), number(std::numbers::sqrt2 * std::numbers::inv_sqrtpi));
    }
    return e.add(e.add(e.mul(bend, number(0.5)), number(0.5)), rise);
  });
}

/// With s = sigmoid(x): s + x s (1 - s)
std::vector<ValueId> body_of_silu_grad(Emitter& e, const Node&, std::span<const ValueId> inputs) {
  return gate_grad(e, inputs, [&](ValueId x) {
    const ValueId s = e.emit(op::SigmoidAttributes{}, {x});
    return e.add(s, e.mul(e.mul(x, s), e.sub(e.scalar_like(1, x), s)));
  });
}

constexpr Page gate_grad_page(OpKind kind) {
  return {.kind = kind,
          .inputs = {2, 2},
          .infer = infer_gate_grad,
          .cost = [](const NodeView& node) { return elementwise_cost(node, 12); },
          .composite = true,
          .form = Form::Broadcast};
}

}  // namespace

RT_PAGE(GeluGrad) = gate_grad_page(OpKind::GeluGrad);
RT_COMPILER_PAGE(GeluGrad) = {.body = body_of_gelu_grad};
RT_PAGE(SiluGrad) = gate_grad_page(OpKind::SiluGrad);
RT_COMPILER_PAGE(SiluGrad) = {.body = body_of_silu_grad};

}  // namespace librt::ops
