// Softmax and LogSoftmax along one axis, shifted by the maximum so that nothing overflows.
#include <cmath>
#include <limits>

#include "runtime/ops/page_support.h"

namespace librt::ops {
namespace {

template <class Attributes>
Status infer_softmax(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype_and_rank(node, 0, "x", kFloats, 1));
  RT_TRY(resolve_axis(node.as<Attributes>().axis, node.shape(0).rank()).status());
  return infer_like_first(node, outputs);
}

/// y = exp(x - max) / sum exp(x - max), or its logarithm x - max - log sum exp(x - max).
template <class Attributes, bool kLogarithm>
Status eval_softmax(const NodeView& node, std::span<const ConstTensorView> inputs,
                    std::span<const TensorView> outputs) {
  const ConstTensorView& x = inputs[0];
  RT_ASSIGN(const int axis, resolve_axis(node.as<Attributes>().axis, x.info.shape.rank()));
  const AxisView view = along(x.info.shape, axis);
  for (int64_t outer = 0; outer < view.outer; ++outer)
    for (int64_t inner = 0; inner < view.inner; ++inner) {
      const int64_t first = outer * view.extent * view.inner + inner;
      double largest = -std::numeric_limits<double>::infinity();
      for (int64_t k = 0; k < view.extent; ++k) largest = std::fmax(largest, load(x, first + k * view.inner));
      double sum = 0;
      for (int64_t k = 0; k < view.extent; ++k) sum += std::exp(load(x, first + k * view.inner) - largest);
      const double log_sum = std::log(sum);
      for (int64_t k = 0; k < view.extent; ++k) {
        const int64_t at = first + k * view.inner;
        const double shifted = load(x, at) - largest;
        store(outputs[0], at, kLogarithm ? shifted - log_sum : std::exp(shifted) / sum);
      }
    }
  return {};
}

template <class Attributes>
constexpr Page softmax_page(OpKind kind) {
  return {.kind = kind,
          .inputs = {1, 1},
          .infer = infer_softmax<Attributes>,
          .cost = [](const NodeView& node) { return elementwise_cost(node, 5); },
          .extents = ExtentRule::LikeFirst};
}

template <class Attributes>
void gradient_of_softmax(GradContext& c) {
  op::SoftmaxGradAttributes gradient;
  gradient.axis = c.node.as<Attributes>().axis;
  gradient.logarithm = std::is_same_v<Attributes, op::LogSoftmaxAttributes>;
  c.set(0, c.emit.emit(gradient, {c.output(), c.grad()}));
}

Status infer_softmax_grad(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_like_first(node, "grad_y", "y"));
  return infer_softmax<op::SoftmaxGradAttributes>(node, outputs);
}

std::vector<ValueId> body_of_softmax_grad(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const auto& attributes = node.as<op::SoftmaxGradAttributes>();
  const DType dtype = e.value(inputs[0]).dtype;
  const bool widens = size_of(dtype) < size_of(DType::F32);
  const auto widened = [&](ValueId x) { return widens ? e.cast(x, DType::F32) : x; };
  const ValueId y = widened(inputs[0]), g = widened(inputs[1]);
  const ValueId sum = e.reduce_sum(attributes.logarithm ? g : e.mul(g, y), {attributes.axis});
  const ValueId x =
      attributes.logarithm ? e.sub(g, e.mul(e.emit(op::ExpAttributes{}, {y}), sum)) : e.mul(y, e.sub(g, sum));
  return {widens ? e.cast(x, dtype) : x};
}

}  // namespace

RT_PAGE(Softmax) = precision_sensitive(softmax_page<op::SoftmaxAttributes>(OpKind::Softmax));
RT_COMPILER_PAGE(Softmax) = {.eval = eval_softmax<op::SoftmaxAttributes, false>,
                             .gradient = gradient_of_softmax<op::SoftmaxAttributes>};

RT_PAGE(LogSoftmax) = precision_sensitive(softmax_page<op::LogSoftmaxAttributes>(OpKind::LogSoftmax));
RT_COMPILER_PAGE(LogSoftmax) = {.eval = eval_softmax<op::LogSoftmaxAttributes, true>,
                                .gradient = gradient_of_softmax<op::LogSoftmaxAttributes>};

RT_PAGE(SoftmaxGrad) = {.kind = OpKind::SoftmaxGrad,
                        .inputs = {2, 2},
                        .infer = infer_softmax_grad,
                        .cost = [](const NodeView& node) { return elementwise_cost(node, 5); },
                        .composite = true,
                        .arithmetic = Arithmetic::PrecisionSensitive,
                        .extents = ExtentRule::LikeFirst};
RT_COMPILER_PAGE(SoftmaxGrad) = {.body = body_of_softmax_grad};

}  // namespace librt::ops
