// MatMulInteger and ConvInteger: matmul and convolution of 8-bit integers minus their zero points, exact in
// i32. Their bodies operate on the differences; a convolution's padding is the zero point, so it contributes
// nothing.
#include "runtime/geometry/matmul.h"
#include "runtime/geometry/quantization.h"

#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

Status check_factors(const NodeView& node, Label first, Label second) {
  constexpr DTypeSet kBytes{DType::U8, DType::I8};
  RT_TRY(expect_dtype(node, 0, first, kBytes));
  RT_TRY(expect_dtype(node, 1, second, kBytes));
  if (node.has(2)) RT_TRY(expect_same_dtype(node, 2, "the first zero point", 0, first));
  if (node.has(3)) RT_TRY(expect_same_dtype(node, 3, "the second zero point", 1, second));
  return {};
}

/// A zero point that is constant along `axis` of its factor, the reduction axis.
Status check_zero_point(const NodeView& node, size_t i, const Shape& factor, int axis) {
  if (!node.has(i) || node.shape(i) == Shape{}) return {};
  Shape most = factor;
  most[axis] = 1;
  const auto both = broadcast(most, node.shape(i));
  if (!both || *both != most)
    return invalid_argument("expected a zero point that broadcasts to ", most, ", found ", node.shape(i));
  return {};
}

Status infer_matmul_integer(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(check_factors(node, "a", "b"));
  RT_TRY(expect_rank(node, 0, "a", 2));
  RT_TRY(expect_rank(node, 1, "b", 2));
  RT_ASSIGN(const MatMulGeometry geometry, matmul_geometry(node.shape(0), node.shape(1), {}));
  RT_TRY(check_zero_point(node, 2, node.shape(0), node.shape(0).rank() - 1));
  RT_TRY(check_zero_point(node, 3, node.shape(1), node.shape(1).rank() - 2));
  return add_output(outputs, DType::I32, geometry.result);
}

Status infer_conv_integer(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(check_factors(node, "x", "weight"));
  RT_ASSIGN(const ConvGeometry geometry,
            conv_geometry(node.shape(0), node.shape(1), as_conv(node.as<op::ConvIntegerAttributes>())));
  if (node.has(2)) RT_TRY(expect_shape(node, 2, "x_zero_point", {}));
  if (node.has(3) && node.shape(3) != Shape{} && node.shape(3) != Shape{geometry.output_channels})
    return invalid_argument("expected a weight_zero_point [] or [", geometry.output_channels, "], found ",
                            node.shape(3));
  return add_output(outputs, DType::I32, geometry.output_shape());
}

/// x - zero in i32.
ValueId difference(Emitter& e, ValueId x, ValueId zero) {
  const ValueId wide = e.cast(x, DType::I32);
  return zero == kNoValue ? wide : e.sub(wide, e.cast(zero, DType::I32));
}

std::vector<ValueId> body_of_matmul_integer(Emitter& e, const Node&, std::span<const ValueId> inputs) {
  const auto input = [&](size_t i) { return i < inputs.size() ? inputs[i] : kNoValue; };
  return {e.emit(op::MatMulAttributes{},
                 {difference(e, inputs[0], input(2)), difference(e, inputs[1], input(3))})};
}

std::vector<ValueId> body_of_conv_integer(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const auto input = [&](size_t i) { return i < inputs.size() ? inputs[i] : kNoValue; };
  ValueId zero = input(3);
  if (zero != kNoValue && e.value(zero).rank() == 1) {
    std::vector<int64_t> column(static_cast<size_t>(e.value(inputs[1]).rank()), 1);
    column[0] = -1;
    zero = e.reshape(zero, e.ints(column));
  }
  return {e.emit(as_conv(node.as<op::ConvIntegerAttributes>()),
                 {difference(e, inputs[0], input(2)), difference(e, inputs[1], zero)})};
}

Cost cost_of(const NodeView& node, double multiply_adds) {
  Cost cost = elementwise_cost(node, 0);
  cost.flops = 2 * multiply_adds;
  return cost;
}

Cost cost_matmul_integer(const NodeView& node) {
  const auto geometry = matmul_geometry(node.shape(0), node.shape(1), {});
  return cost_of(node, geometry.ok() ? static_cast<double>(geometry->result.elements()) *
                                           static_cast<double>(geometry->k)
                                     : 0);
}

Cost cost_conv_integer(const NodeView& node) {
  const auto geometry =
      conv_geometry(node.shape(0), node.shape(1), as_conv(node.as<op::ConvIntegerAttributes>()));
  return cost_of(node, geometry.ok() ? geometry->multiply_adds() : 0);
}

}  // namespace

RT_PAGE(MatMulInteger) = {.kind = OpKind::MatMulInteger,
                          .inputs = {2, 4},
                          .infer = infer_matmul_integer,
                          .cost = cost_matmul_integer,
                          .composite = true,
                          .extents = ExtentRule::Own};
RT_COMPILER_PAGE(MatMulInteger) = {
    .no_gradient = "integer inputs", .body = body_of_matmul_integer, .domain = {0, 31}};

RT_PAGE(ConvInteger) = {.kind = OpKind::ConvInteger,
                        .inputs = {2, 4},
                        .infer = infer_conv_integer,
                        .cost = cost_conv_integer,
                        .composite = true,
                        .extents = ExtentRule::Own};
RT_COMPILER_PAGE(ConvInteger) = {
    .no_gradient = "integer inputs", .body = body_of_conv_integer, .domain = {0, 31}};

}  // namespace librt::ops
