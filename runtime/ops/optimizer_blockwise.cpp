// BlockwiseStep: an optimizer step with block-quantized states. A composite of BlockDequantize, the step and
// BlockQuantize, which backends without a kernel for it run.
#include "runtime/geometry/optimizer_step.h"
#include "runtime/ops/evaluate.h"
#include "runtime/ops/optimizer.h"

namespace librt::ops {
namespace {

/// Selects the step's operands from those of the BlockwiseStep.
template <class T>
std::vector<T> operands_of_step(std::span<const T> all) {
  std::vector<T> operands(all.begin(), all.begin() + kFirstCodebook);
  for (size_t i = blockwise_operand(kFirstCodebook); i < all.size(); ++i) operands.push_back(all[i]);
  return operands;
}

Status infer_blockwise_step(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& attributes = node.as<op::BlockwiseStepAttributes>();
  const int64_t block = attributes.block_size;
  RT_TRY(check_block_size(block));
  Node step;
  step.op = step_of(attributes);
  // The step's own shape rule is given f32 states.
  std::vector<Operand> operands = operands_of_step(node.inputs);
  std::vector<TensorInfo> next_scales;
  const std::span<const StepState> states = step_states(step.kind());
  for (size_t i = 0; i < kMostStepStates; ++i) {
    const size_t scales = kFirstScales + i;
    const size_t quantized = i < states.size() ? blockwise_operand(states[i].operand) : node.input_count();
    if (node.has(quantized) != node.has(scales))
      return invalid_argument("expected quantized values as input ", quantized, " with scales as input ",
                              scales, ", found one without the other");
    if (!node.has(quantized)) continue;
    const size_t codebook = codebook_operand(states[i]);
    if (!node.has(codebook))
      return invalid_argument("expected a codebook as input ", codebook, ", found none");
    RT_TRY(expect_codebook(node, codebook));
    RT_TRY(expect_dtype(node, quantized, "quantized values", DTypeSet(DType::U8)));
    RT_TRY(expect_dtype_and_shape(node, scales, "scales", DTypeSet(DType::F32),
                                  {(node.input(quantized).elements() + block - 1) / block}));
    operands[states[i].operand].info.dtype = DType::F32;
    next_scales.push_back(node.input(scales));
  }
  RT_TRY(infer_node({.node = step, .inputs = operands}, outputs));
  for (size_t i = 1; i < outputs.size(); ++i) outputs[i].dtype = DType::U8;
  outputs.insert(outputs.end(), next_scales.begin(), next_scales.end());
  return {};
}

std::vector<ValueId> body_of_blockwise_step(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const auto& attributes = node.as<op::BlockwiseStepAttributes>();
  OpAttributes step = step_of(attributes);
  std::vector<ValueId> operands = operands_of_step(inputs);
  std::vector<StepState> present;
  op::BlockDequantizeAttributes dequantize;
  dequantize.block_size = attributes.block_size;
  const std::span<const StepState> states = step_states(step.type);
  for (size_t i = 0; i < states.size(); ++i) {
    if (inputs[kFirstScales + i] == kNoValue) continue;
    ValueId& state = operands[states[i].operand];
    state = e.emit(dequantize, {state, inputs[kFirstScales + i], inputs[codebook_operand(states[i])]});
    present.push_back(states[i]);
  }
  const std::vector<ValueId> next = e.emit_many(std::move(step), operands, 1 + present.size());
  std::vector<ValueId> results{next[0]}, scales;
  op::BlockQuantizeAttributes quantize;
  quantize.block_size = attributes.block_size;
  for (size_t i = 0; i < present.size() && e.status().ok(); ++i) {
    // A mean of squares quantized to 0 would make the next step infinite.
    quantize.keep_positive = !present[i].negative;
    const ValueId operands_of_state[] = {next[1 + i], inputs[codebook_operand(present[i])]};
    const std::vector<ValueId> made = e.emit_many(make_op(quantize), operands_of_state, 2);
    if (!e.status().ok()) break;
    results.push_back(made[0]);
    scales.push_back(made[1]);
  }
  results.insert(results.end(), scales.begin(), scales.end());
  return results;
}

}  // namespace

RT_PAGE(BlockwiseStep) = {.kind = OpKind::BlockwiseStep,
                          .inputs = {2, 14},
                          .outputs = {1, 7},
                          .infer = infer_blockwise_step,
                          .cost = [](const NodeView& node) { return elementwise_cost(node, 50); },
                          .composite = true,
                          .arithmetic = Arithmetic::PrecisionSensitive,
                          .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(BlockwiseStep) = {.no_gradient = "an update of parameters, which comes after all gradients",
                                   .body = body_of_blockwise_step,
                                   .domain = {.low = 0.1, .high = 2}};

}  // namespace librt::ops
