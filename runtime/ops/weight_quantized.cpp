// WeightQuantizedMatMul: matmul of f32 activations with 8- or 4-bit weights that have a scale per group. A
// composite: the dequantized weights, and a MatMul.
#include "runtime/geometry/matmul.h"

#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

Status infer_weight_quantized(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& attributes = node.as<op::WeightQuantizedMatMulAttributes>();
  if (attributes.bits != 8 && attributes.bits != 4)
    return invalid_argument("expected 4 or 8 bits, found ", attributes.bits);
  const bool pairs = attributes.bits == 4;
  RT_TRY(expect_dtype_and_rank(node, 0, "x", DTypeSet(DType::F32), 1));
  RT_TRY(expect_dtype_and_rank(node, 1, "weight", DTypeSet(pairs ? DType::U8 : DType::I8), 2, 2));
  const int64_t k = node.shape(0).back(), n = node.shape(1)[0];
  const int64_t group = attributes.group_size;
  if (group < 1 || k % group != 0 || (pairs && k % 2 != 0))
    return invalid_argument("expected a group_size that divides K = ", k,
                            ", and an even K for 4 bits, found ", group);
  RT_TRY(expect_shape(node, 1, "weight", {n, pairs ? k / 2 : k}));
  RT_TRY(expect_dtype_and_shape(node, 2, "scale", DTypeSet(DType::F32), {n, k / group}));
  if (node.has(3)) RT_TRY(expect_dtype_and_shape(node, 3, "bias", DTypeSet(DType::F32), {n}));
  Shape result = node.shape(0);
  result[result.rank() - 1] = n;
  return add_output(outputs, DType::F32, result);
}

/// u8 [N,K/2] -> u8 [N,K]: the low half of each byte, then the high one.
ValueId unpacked(Emitter& e, ValueId pairs) {
  const std::vector<Dim> dims = e.value(pairs).dims;
  const std::array<int64_t, 3> one{dims[0].extent, dims[1].extent, 1};
  const std::array<int64_t, 2> both{dims[0].extent, 2 * dims[1].extent};
  op::BitShiftAttributes right;
  right.left = false;
  const ValueId low = e.emit(op::BitwiseAndAttributes{}, {pairs, e.scalar(15, DType::U8)});
  const ValueId high = e.emit(right, {pairs, e.scalar(4, DType::U8)});
  op::ConcatAttributes side_by_side;
  side_by_side.axis = 2;
  return e.reshape(e.emit(side_by_side, {e.reshape(low, e.ints(one)), e.reshape(high, e.ints(one))}),
                   e.ints(both));
}

std::vector<ValueId> body_of_weight_quantized(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const auto& attributes = node.as<op::WeightQuantizedMatMulAttributes>();
  op::DequantizeLinearAttributes real;
  real.axis = 1;
  real.block_size = attributes.group_size;
  real.to = static_cast<uint8_t>(DType::F32);
  ValueId weight = inputs[1], zero = kNoValue;
  if (attributes.bits == 4) {
    weight = unpacked(e, weight);
    zero = e.emit(op::ExpandAttributes{}, {e.scalar(8, DType::U8), e.shape_of(inputs[2])});
  }
  op::MatMulAttributes matmul;
  matmul.transpose_b = true;
  const ValueId y = e.emit(std::move(matmul), {inputs[0], e.emit(real, {weight, inputs[2], zero})});
  return {inputs.size() > 3 && inputs[3] != kNoValue ? e.add(y, inputs[3]) : y};
}

Cost cost_weight_quantized(const NodeView& node) {
  Cost cost = elementwise_cost(node, 0);
  cost.flops = 2 * static_cast<double>(node.output(0).elements()) * static_cast<double>(node.shape(0).back());
  return cost;
}

}  // namespace

RT_PAGE(WeightQuantizedMatMul) = {.kind = OpKind::WeightQuantizedMatMul,
                                  .inputs = {3, 4},
                                  .infer = infer_weight_quantized,
                                  .cost = cost_weight_quantized,
                                  .composite = true,
                                  .arithmetic = Arithmetic::PrecisionSensitive,
                                  .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(WeightQuantizedMatMul) = {
    .no_gradient = "the weights are integers", .body = body_of_weight_quantized, .tolerance = {1e-4, 1e-4}};

}  // namespace librt::ops
