// Softmax and LogSoftmax along one axis, shifted by the maximum so that nothing overflows.
#include <cmath>
#include <limits>

#include "runtime/ops/page_support.h"

namespace librt::ops {
namespace {

template <class Attributes>
Status infer_softmax(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, 0, "x", kFloats));
  RT_TRY(expect_rank(node, 0, "x", 1));
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

}  // namespace

RT_PAGE(Softmax) = precision_sensitive(softmax_page<op::SoftmaxAttributes>(OpKind::Softmax));
RT_COMPILER_PAGE(Softmax) = {.eval = eval_softmax<op::SoftmaxAttributes, false>,
                             .gradient = [](GradContext& c) {  // y (g - sum g y)
                               Emitter& e = c.emit;
                               const ValueId y = c.output();
                               const ValueId sum = e.reduce_sum(e.mul(c.grad(), y),
                                                                {c.node.as<op::SoftmaxAttributes>().axis});
                               c.set(0, e.mul(y, e.sub(c.grad(), sum)));
                             }};

RT_PAGE(LogSoftmax) = precision_sensitive(softmax_page<op::LogSoftmaxAttributes>(OpKind::LogSoftmax));
RT_COMPILER_PAGE(LogSoftmax) = {
    .eval = eval_softmax<op::LogSoftmaxAttributes, true>,
    .gradient = [](GradContext& c) {  // g - exp(y) sum g
      Emitter& e = c.emit;
      const ValueId sum = e.reduce_sum(c.grad(), {c.node.as<op::LogSoftmaxAttributes>().axis});
      c.set(0, e.sub(c.grad(), e.mul(e.emit(op::ExpAttributes{}, {c.output()}), sum)));
    }};

}  // namespace librt::ops
