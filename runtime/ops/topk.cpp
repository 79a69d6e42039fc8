// TopK: the k largest or smallest elements along an axis, in order, and their indices. Of equal elements the
// one with the lower index comes first; NaN is above every number. The result is sorted whether or not
// `sorted` is set.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>

#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

Status infer_topk(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, 0, "x", kNumericTypes));
  RT_ASSIGN(const auto k, shape_operand(node, 1, "k"));
  if (k.size() != 1) return invalid_argument("expected k as a vector of one entry, found ", k.size());
  Shape shape = node.shape(0);
  RT_ASSIGN(const int axis, resolve_axis(node.as<op::TopKAttributes>().axis, shape.rank()));
  if (k[0] < 0 || k[0] > shape[axis])
    return invalid_argument("expected k from 0 to ", shape[axis], ", the extent of axis ", axis, ", found ",
                            k[0]);
  shape[axis] = k[0];
  RT_TRY(add_output(outputs, node.dtype(0), shape));
  return add_output(outputs, DType::I64, shape);
}

/// A key in the order of the values, for elements of any type: floats by their bits (0 and -0 are equal).
uint64_t ordered(const ConstTensorView& x, int64_t i) {
  constexpr uint64_t kTop = uint64_t{1} << 63;
  if (!is_float(x.info.dtype)) {
    const auto bits = static_cast<uint64_t>(load_integer(x.data, x.info.dtype, i));
    return x.info.dtype == DType::U64 ? bits : bits ^ kTop;
  }
  const double value = load(x, i) + 0.0;  // -0 becomes 0
  if (std::isnan(value)) return ~uint64_t{0};
  const auto bits = std::bit_cast<uint64_t>(value);
  return (bits & kTop) != 0 ? ~bits : bits | kTop;
}

Status eval_topk(const NodeView& node, std::span<const ConstTensorView> inputs,
                 std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::TopKAttributes>();
  const ConstTensorView& x = inputs[0];
  RT_ASSIGN(const int axis, resolve_axis(attributes.axis, x.info.shape.rank()));
  if (outputs[0].info.elements() == 0) return {};
  const AxisView view = along(x.info.shape, axis);
  const int64_t k = outputs[0].info.shape[axis];
  const auto size = static_cast<int64_t>(size_of(x.info.dtype));
  std::vector<uint64_t> keys(static_cast<size_t>(view.extent));
  std::vector<int64_t> order(keys.size());
  for (int64_t line = 0; line < view.outer * view.inner; ++line) {
    const int64_t outer = line / view.inner, inner = line % view.inner;
    for (int64_t i = 0; i < view.extent; ++i) {
      const uint64_t key = ordered(x, (outer * view.extent + i) * view.inner + inner);
      keys[static_cast<size_t>(i)] = attributes.largest ? ~key : key;
    }
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(
        order.begin(), order.begin() + static_cast<ptrdiff_t>(k), order.end(), [&](int64_t a, int64_t b) {
          const uint64_t left = keys[static_cast<size_t>(a)], right = keys[static_cast<size_t>(b)];
          return left != right ? left < right : a < b;
        });
    for (int64_t i = 0; i < k; ++i) {
      const int64_t to = (outer * k + i) * view.inner + inner, index = order[static_cast<size_t>(i)];
      std::memcpy(outputs[0].as<char>() + to * size,
                  x.as<char>() + ((outer * view.extent + index) * view.inner + inner) * size,
                  static_cast<size_t>(size));
      outputs[1].as<int64_t>()[to] = index;
    }
  }
  return {};
}

Cost cost_topk(const NodeView& node) {
  const Shape& x = node.shape(0);
  const auto axis = normalized_axis(node.as<op::TopKAttributes>().axis, x.rank());
  const double extent = axis ? static_cast<double>(x[*axis]) : 1;
  return elementwise_cost(node, node.outputs.empty() ? 0 : std::log(extent + 1) / std::numbers::ln2);
}

void topk_gradient(GradContext& context) {
  if (context.grad() == kNoValue) return;
  Emitter& emit = context.emit;
  op::ScatterElementsAttributes attributes;
  attributes.axis = context.node.as<op::TopKAttributes>().axis;
  attributes.reduction = op::ScatterReduction::Add;
  const ValueId x = context.input(0);
  const ValueId zeros = emit.emit(op::ExpandAttributes{}, {emit.scalar_like(0, x), shape_value(emit, x)});
  context.set(0, emit.emit(attributes, {zeros, context.output(1), context.grad()}));
}

}  // namespace

RT_PAGE(TopK) = {.kind = OpKind::TopK,
                 .inputs = {2, 2},
                 .outputs = {2, 2},
                 .shape_operands = 1u << 1,
                 .infer = infer_topk,
                 .cost = cost_topk,
                 .extents = ExtentRule::Own};
RT_COMPILER_PAGE(TopK) = {.eval = eval_topk, .gradient = topk_gradient, .tolerance = {0, 0}};

}  // namespace librt::ops
