// Reductions, and positions of extremes.
#include <algorithm>

#include "tools/onnx/node.h"

namespace librt::onnx {
namespace {

// Parameters of a reduction. skip: no axes were given, and the node requests no reduction then.
struct Plan {
  std::vector<int64_t> axes;
  bool keep_dims = true;
  bool skip = false;
};

Result<Plan> plan_of(NodeContext& c, int inputs_since) {
  Plan plan;
  plan.keep_dims = c.integer("keepdims", 1) != 0;
  if (c.opset < inputs_since) {
    RT_TRY(c.expect_inputs(1, 1));
    plan.axes = c.integers("axes");
  } else {
    RT_TRY(c.expect_inputs(1, 2));
    if (c.has(1)) {
      RT_ASSIGN(plan.axes, c.known_integers(1, "axes"));
    }
    plan.skip = c.integer("noop_with_empty_axes", 0) != 0 && plan.axes.empty();
  }
  for (int64_t& axis : plan.axes) {
    RT_ASSIGN(axis, c.axis(axis, c.rank()));
  }
  std::sort(plan.axes.begin(), plan.axes.end());
  plan.axes.erase(std::unique(plan.axes.begin(), plan.axes.end()), plan.axes.end());
  return plan;
}

template <class Attributes>
ValueId reduce(NodeContext& c, ValueId x, const Plan& plan, bool keep_dims) {
  if (plan.skip) return x;
  Attributes attributes;
  attributes.axes = plan.axes;
  attributes.keep_dims = keep_dims;
  return c.emit.emit(std::move(attributes), {x});
}

// Sum took its axes as an input at opset 13, the others at 18.
template <class Attributes, int kInputsSince>
Status simple(NodeContext& c) {
  RT_ASSIGN(const Plan plan, plan_of(c, kInputsSince));
  if (c.dtype() != DType::Bool) return c.result(reduce<Attributes>(c, c.input(0), plan, plan.keep_dims));
  const ValueId bytes = c.emit.cast(c.input(0), DType::U8);
  return c.result(c.emit.cast(reduce<Attributes>(c, bytes, plan, plan.keep_dims), DType::Bool));
}

// Functions around a sum, in f64 where the elements are integers.
template <ValueId (*kFunction)(NodeContext&, ValueId, const Plan&)>
Status composed(NodeContext& c) {
  RT_ASSIGN(const Plan plan, plan_of(c, 18));
  if (!is_integer(c.dtype())) return c.result(kFunction(c, c.input(0), plan));
  return c.result(c.emit.cast(kFunction(c, c.emit.cast(c.input(0), DType::F64), plan), c.dtype()));
}

ValueId sum(NodeContext& c, ValueId x, const Plan& plan) {
  return reduce<op::ReduceSumAttributes>(c, x, plan, plan.keep_dims);
}

ValueId l1(NodeContext& c, ValueId x, const Plan& plan) {
  return sum(c, c.emit.emit(op::AbsAttributes{}, {x}), plan);
}

ValueId sum_square(NodeContext& c, ValueId x, const Plan& plan) {
  return sum(c, c.emit.mul(x, x), plan);
}

ValueId l2(NodeContext& c, ValueId x, const Plan& plan) {
  return c.emit.emit(op::SqrtAttributes{}, {sum_square(c, x, plan)});
}

ValueId log_sum(NodeContext& c, ValueId x, const Plan& plan) {
  return c.emit.emit(op::LogAttributes{}, {sum(c, x, plan)});
}

// log(sum(exp(x - m))) + m with m = max(x), clamped to avoid infinity - infinity. An empty axis has no
// maximum.
ValueId log_sum_exp(NodeContext& c, ValueId x, const Plan& plan) {
  if (plan.skip) return x;
  bool empty = false;
  for (int axis = 0; axis < c.rank(); ++axis) empty = empty || c.extent(0, axis) == 0;
  if (empty) return log_sum(c, c.emit.emit(op::ExpAttributes{}, {x}), plan);
  ValueId peak = reduce<op::ReduceMaxAttributes>(c, x, plan, true);
  const double limit = c.value(x).dtype == DType::F16 ? 60000 : 3e38;
  peak = c.emit.emit(op::MaximumAttributes{}, {peak, c.emit.scalar_like(-limit, x)});
  peak = c.emit.emit(op::MinimumAttributes{}, {peak, c.emit.scalar_like(limit, x)});
  const ValueId total =
      reduce<op::ReduceSumAttributes>(c, c.emit.emit(op::ExpAttributes{}, {c.emit.sub(x, peak)}), plan, true);
  const ValueId y = c.emit.add(c.emit.emit(op::LogAttributes{}, {total}), peak);
  // The maximum kept its axes; a maximum over extents of 1 drops them.
  return plan.keep_dims ? y : reduce<op::ReduceMaxAttributes>(c, y, plan, false);
}

template <class Attributes>
Status arg(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  Attributes attributes;
  RT_ASSIGN(attributes.axis, c.axis(c.integer("axis", 0), c.rank()));
  attributes.keep_dims = c.integer("keepdims", 1) != 0;
  attributes.select_last = c.integer("select_last_index", 0) != 0;
  return c.result(c.emit.emit(attributes, {c.input(0)}));
}

constexpr ImportRow kReduceRows[] = {
    {"", "ReduceSum", 1, kNewestOpset, simple<op::ReduceSumAttributes, 13>},
    {"", "ReduceMean", 1, kNewestOpset, simple<op::ReduceMeanAttributes, 18>},
    {"", "ReduceMax", 1, kNewestOpset, simple<op::ReduceMaxAttributes, 18>},
    {"", "ReduceMin", 1, kNewestOpset, simple<op::ReduceMinAttributes, 18>},
    {"", "ReduceProd", 1, kNewestOpset, simple<op::ReduceProdAttributes, 18>},
    {"", "ReduceL1", 1, kNewestOpset, composed<l1>},
    {"", "ReduceL2", 1, kNewestOpset, composed<l2>},
    {"", "ReduceSumSquare", 1, kNewestOpset, composed<sum_square>},
    {"", "ReduceLogSum", 1, kNewestOpset, composed<log_sum>},
    {"", "ReduceLogSumExp", 1, kNewestOpset, composed<log_sum_exp>},
    {"", "ArgMax", 1, kNewestOpset, arg<op::ArgMaxAttributes>},
    {"", "ArgMin", 1, kNewestOpset, arg<op::ArgMinAttributes>},
};

}  // namespace

std::span<const ImportRow> rows_reduce() {
  return kReduceRows;
}

}  // namespace librt::onnx
