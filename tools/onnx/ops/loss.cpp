// Losses over class scores [N,C,d..] and labels [N,d..]: NegativeLogLikelihoodLoss and
// SoftmaxCrossEntropyLoss.
#include <numeric>

#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

ValueId select(Emitter& e, ValueId condition, ValueId yes, ValueId no) {
  return e.emit(op::WhereAttributes{}, {condition, yes, no});
}

// The negative log probability of the label times its weight. An ignored label gathers class 0, and the loss
// is then replaced by 0, as the gathered value may be infinite.
Result<ValueId> picked_loss(NodeContext& c, ValueId log_probability) {
  Emitter& e = c.emit;
  const int rank = c.value(log_probability).rank();
  if (rank < 2 || c.rank(1) != rank - 1)
    return invalid_model("expected scores [N,C,d..] and labels [N,d..], found ranks ", rank, " and ",
                         c.rank(1));
  const std::string reduction = c.string("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return invalid_model("expected the reduction none, sum or mean, found '", reduction, "'");
  const DType dtype = c.value(log_probability).dtype;
  ValueId labels = c.input(1), ignored = kNoValue;
  if (c.attribute("ignore_index") != nullptr) {
    const double number = static_cast<double>(c.integer("ignore_index", 0));
    ignored = e.emit(op::EqualAttributes{}, {labels, e.scalar_like(number, labels)});
    labels = select(e, ignored, e.scalar_like(0, labels), labels);
  }
  op::GatherElementsAttributes along_classes;
  along_classes.axis = 1;
  const ValueId picked = e.emit(along_classes, {log_probability, unsqueeze(e, labels, {{1}})});
  ValueId loss = e.neg(squeeze(e, picked, {{1}}));
  ValueId weight = kNoValue;
  if (c.has(2)) {
    weight = e.emit(op::GatherAttributes{}, {c.input(2), labels});
    loss = e.mul(loss, weight);
  }
  if (ignored != kNoValue) {
    const ValueId zero = e.scalar(0, dtype);
    loss = select(e, ignored, zero, loss);
    weight = select(e, ignored, zero, weight == kNoValue ? e.scalar(1, dtype) : weight);
  }
  if (reduction == "none") return loss;
  std::vector<int64_t> all(static_cast<size_t>(rank - 1));
  std::iota(all.begin(), all.end(), 0);
  if (reduction == "mean" && weight == kNoValue) return e.reduce_mean(loss, all, false);
  const ValueId sum = e.reduce_sum(loss, all, false);
  return reduction == "sum" ? sum : e.div(sum, e.reduce_sum(weight, all, false));
}

Status negative_log_likelihood(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 3));
  RT_ASSIGN(const ValueId loss, picked_loss(c, c.input(0)));
  return c.result(loss);
}

Status softmax_cross_entropy(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 3));
  op::LogSoftmaxAttributes over_classes;
  over_classes.axis = 1;
  const ValueId log_probability = c.emit.emit(over_classes, {c.input(0)});
  RT_ASSIGN(const ValueId loss, picked_loss(c, log_probability));
  c.outputs = {loss, log_probability};
  return {};
}

constexpr ImportRow kLossRows[] = {
    {"", "NegativeLogLikelihoodLoss", 12, kNewestOpset, negative_log_likelihood},
    {"", "SoftmaxCrossEntropyLoss", 12, kNewestOpset, softmax_cross_entropy},
};

}  // namespace

std::span<const ImportRow> rows_loss() {
  return kLossRows;
}

}  // namespace librt::onnx
