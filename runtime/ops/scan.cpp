// CumSum and CumProd along an axis.
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

template <class Attributes>
Status infer_scan(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, 0, "x", kNumericTypes));
  RT_TRY(resolve_axis(node.as<Attributes>().axis, node.shape(0).rank()).status());
  return infer_like_first(node, outputs);
}

/// Replaces each element by the total of those before it and, unless exclusive, itself.
template <class T, bool kProduct>
void scan(std::vector<T>& values, const AxisView& view, bool exclusive, bool reverse) {
  for (int64_t line = 0; line < view.outer * view.inner; ++line) {
    const int64_t first = line / view.inner * view.extent * view.inner + line % view.inner;
    T total = kProduct ? 1 : 0;
    for (int64_t step = 0; step < view.extent; ++step) {
      const int64_t at = first + (reverse ? view.extent - 1 - step : step) * view.inner;
      T& element = values[static_cast<size_t>(at)];
      const T next = kProduct ? total * element : total + element;
      element = exclusive ? total : next;
      total = next;
    }
  }
}

template <class Attributes, bool kProduct>
Status eval_scan(const NodeView& node, std::span<const ConstTensorView> inputs,
                 std::span<const TensorView> outputs) {
  const auto& attributes = node.as<Attributes>();
  const Shape& x = inputs[0].info.shape;
  RT_ASSIGN(const int axis, resolve_axis(attributes.axis, x.rank()));
  with_values(inputs[0].info.dtype, [&]<class T>() {
    std::vector<T> values = load_all<T>(inputs[0]);
    if (!values.empty()) scan<T, kProduct>(values, along(x, axis), attributes.exclusive, attributes.reverse);
    store_all<T>(outputs[0], values);
  });
  return {};
}

Cost cost_scan(const NodeView& node) {
  return elementwise_cost(node, 1);
}

template <class Attributes>
ValueId emit_scan(Emitter& emit, ValueId x, int64_t axis, bool exclusive, bool reverse) {
  Attributes attributes;
  attributes.axis = axis;
  attributes.exclusive = exclusive;
  attributes.reverse = reverse;
  return emit.emit(attributes, {x});
}

void cum_sum_gradient(GradContext& context) {
  const auto& attributes = context.node.as<op::CumSumAttributes>();
  context.set(0, emit_scan<op::CumSumAttributes>(context.emit, context.grad(), attributes.axis,
                                                 attributes.exclusive, !attributes.reverse));
}

/// dx_j = (sum over the y_i that x_j is a factor of: g_i y_i) / x_j. Where x_j is 0, only the first zero of a
/// line has a gradient: that sum over the products without it.
void cum_prod_gradient(GradContext& context) {
  Emitter& emit = context.emit;
  const auto& attributes = context.node.as<op::CumProdAttributes>();
  const ValueId x = context.input(0);
  const ValueId zero = emit.scalar_like(0, x), one = emit.scalar_like(1, x);
  const auto select = [&](ValueId condition, ValueId a, ValueId b) {
    return emit.emit(op::WhereAttributes{}, {condition, a, b});
  };
  const auto total = [&](ValueId products) {
    return emit_scan<op::CumSumAttributes>(emit, emit.mul(context.grad(), products), attributes.axis,
                                           attributes.exclusive, !attributes.reverse);
  };
  const ValueId is_zero = emit.emit(op::EqualAttributes{}, {x, zero});
  const ValueId zeros = emit_scan<op::CumSumAttributes>(emit, emit.cast(is_zero, emit.value(x).dtype),
                                                        attributes.axis, false, attributes.reverse);
  const ValueId first =
      emit.emit(op::AndAttributes{}, {is_zero, emit.emit(op::EqualAttributes{}, {zeros, one})});
  const ValueId without = emit_scan<op::CumProdAttributes>(emit, select(first, one, x), attributes.axis,
                                                           attributes.exclusive, attributes.reverse);
  const ValueId quotient = emit.div(total(context.output()), select(is_zero, one, x));
  context.set(0, select(is_zero, keep_where(emit, first, total(without)), quotient));
}

}  // namespace

RT_PAGE(CumSum) = {.kind = OpKind::CumSum,
                   .infer = infer_scan<op::CumSumAttributes>,
                   .cost = cost_scan,
                   .arithmetic = Arithmetic::PrecisionSensitive,
                   .extents = ExtentRule::LikeFirst};
RT_PAGE(CumProd) = {.kind = OpKind::CumProd,
                    .infer = infer_scan<op::CumProdAttributes>,
                    .cost = cost_scan,
                    .arithmetic = Arithmetic::PrecisionSensitive,
                    .extents = ExtentRule::LikeFirst};

RT_COMPILER_PAGE(CumSum) = {.eval = eval_scan<op::CumSumAttributes, false>, .gradient = cum_sum_gradient};
RT_COMPILER_PAGE(CumProd) = {.eval = eval_scan<op::CumProdAttributes, true>, .gradient = cum_prod_gradient};

}  // namespace librt::ops
