// Losses: composites, so that they train wherever their parts run.
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

Status infer_cross_entropy(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, 0, "logits", kFloats));
  RT_TRY(expect_rank(node, 0, "logits", 2, 2));
  RT_TRY(expect_dtype(node, 1, "labels", DTypeSet(DType::I32, DType::I64)));
  RT_TRY(expect_shape(node, 1, "labels", Shape{node.shape(0)[0]}));
  if (node.shape(0)[1] == 0)
    return invalid_argument("expected at least one class, found logits ", node.input(0));
  return add_output(outputs, node.dtype(0), Shape{});
}

/// mean over rows of -log softmax(logits)[label]. The label's column is selected with Where, not by a one-hot
/// multiplication: a class masked with -inf has log probability -inf, and 0 times that is NaN. A label
/// outside [0, C) selects nothing and contributes 0.
std::vector<ValueId> body_of_cross_entropy(Emitter& e, const Node&, std::span<const ValueId> inputs) {
  const ValueId logits = inputs[0];
  const DType label_type = e.value(inputs[1]).dtype;
  const Dim classes = e.value(logits).dims.size() == 2 ? e.value(logits).dims[1] : Dim{};
  if (!classes.is_known()) {
    e.fail(unsupported(
        "SoftmaxCrossEntropy: expected a static number of classes, found logits with a dynamic one"));
    return {kNoValue};
  }
  const TensorInfo info{.dtype = label_type, .shape = {1, classes.extent}};
  std::vector<std::byte> numbers(info.bytes());
  for (int64_t i = 0; i < classes.extent; ++i) store_integer(numbers.data(), label_type, i, i);
  const ValueId class_indices = e.constant(info, Blob::own(std::move(numbers)));

  op::LogSoftmaxAttributes over_classes;
  over_classes.axis = 1;
  const ValueId log_probability = e.emit(over_classes, {logits});
  const std::array<int64_t, 2> column{-1, 1};
  const ValueId labels = e.reshape(inputs[1], e.ints(column));
  const ValueId is_label = e.emit(op::EqualAttributes{}, {labels, class_indices});
  const ValueId picked = e.reduce_sum(keep_where(e, is_label, log_probability), {1}, false);
  return {e.neg(e.reduce_mean(picked, {0}, false))};
}

}  // namespace

RT_PAGE(SoftmaxCrossEntropy) = {.kind = OpKind::SoftmaxCrossEntropy,
                                .inputs = {2, 2},
                                .infer = infer_cross_entropy,
                                .cost =
                                    [](const NodeView& node) {
                                      Cost cost = elementwise_cost(node, 0);
                                      cost.flops = 5 * static_cast<double>(node.input(0).elements());
                                      return cost;
                                    },
                                .composite = true,
                                .arithmetic = Arithmetic::PrecisionSensitive,
                                .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(SoftmaxCrossEntropy) = {.body = body_of_cross_entropy};

}  // namespace librt::ops
