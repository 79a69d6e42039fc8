// NonMaxSuppression: boxes by descending score, without those that overlap a kept one too much.
#include <algorithm>
#include <cmath>

#include "runtime/core/order.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

enum Operand : size_t { kBoxes, kScores, kMaxOutput, kIouThreshold, kScoreThreshold };

Status infer(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, kBoxes, "boxes", kFloats));
  RT_TRY(expect_same_dtype(node, kScores, "scores", kBoxes, "boxes"));
  RT_TRY(expect_rank(node, kBoxes, "boxes", 3, 3));
  RT_TRY(expect_rank(node, kScores, "scores", 3, 3));
  const Shape& boxes = node.shape(kBoxes);
  const Shape& scores = node.shape(kScores);
  if (boxes[2] != 4 || scores[0] != boxes[0] || scores[2] != boxes[1])
    return invalid_argument("expected boxes [N,B,4] and scores [N,C,B], found ", boxes, " and ", scores);
  if (node.has(kMaxOutput)) RT_TRY(expect_dtype(node, kMaxOutput, "max_output", kIntegers));
  for (const size_t i : {kIouThreshold, kScoreThreshold})
    if (node.has(i)) RT_TRY(expect_dtype(node, i, "a threshold", kFloats));
  for (size_t i = kMaxOutput; i <= kScoreThreshold; ++i)
    if (node.has(i) && node.input(i).elements() != 1)
      return invalid_argument("expected input ", i, " to have one element, found ", node.input(i));
  return add_output(outputs, {DType::I64, {kUnknownExtent, 3}});
}

/// Sorted corners, in f32 as models' boxes are.
struct Box {
  float low[2] = {}, high[2] = {};
  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

Box load_box(const ConstTensorView& boxes, int64_t index, bool center) {
  Box box;
  for (int axis = 0; axis < 2; ++axis) {
    const auto a = static_cast<float>(load(boxes, index * 4 + axis));
    const auto b = static_cast<float>(load(boxes, index * 4 + axis + 2));
    box.low[axis] = center ? a - b / 2 : std::min(a, b);
    box.high[axis] = center ? a + b / 2 : std::max(a, b);
  }
  return box;
}

/// Intersection over union; 0 where it is not defined.
float overlap(const Box& a, const Box& b) {
  float common = 1;
  for (int axis = 0; axis < 2; ++axis)
    common *= std::max(0.0f, std::min(a.high[axis], b.high[axis]) - std::max(a.low[axis], b.low[axis]));
  const float both = a.area() + b.area() - common;
  return common > 0 && a.area() > 0 && b.area() > 0 && both > 0 ? common / both : 0;
}

struct Limits {
  int64_t most = 0;
  float iou = 0;
  std::optional<double> score;
};

/// The kept boxes of one batch entry and class. scores_at: index of the first score.
std::vector<int64_t> keep(std::span<const Box> boxes, const ConstTensorView& scores, int64_t scores_at,
                          const Limits& limits) {
  const auto score = [&](size_t box) { return load(scores, scores_at + static_cast<int64_t>(box)); };
  std::vector<size_t> candidates;
  for (size_t box = 0; box < boxes.size(); ++box)
    if (!limits.score || score(box) > *limits.score) candidates.push_back(box);
  // Equal scores: the lower index first. NaN comes last.
  const std::vector<size_t> order = sorted_order(candidates.size(), [&](size_t a, size_t b) {
    const double first = score(candidates[a]), second = score(candidates[b]);
    return first > second || (std::isnan(second) && !std::isnan(first));
  });
  std::vector<int64_t> kept;
  for (const size_t place : order) {
    if (static_cast<int64_t>(kept.size()) >= limits.most) break;
    const size_t box = candidates[place];
    const Box& candidate = boxes[box];
    if (std::ranges::none_of(kept, [&](int64_t other) {
          return overlap(candidate, boxes[static_cast<size_t>(other)]) > limits.iou;
        }))
      kept.push_back(static_cast<int64_t>(box));
  }
  return kept;
}

Status run(const NodeView& node, std::span<const ConstTensorView> inputs, ResultMaker& results) {
  const bool center = node.as<op::NonMaxSuppressionAttributes>().center_point_box;
  const Shape& shape = inputs[kScores].info.shape;
  const int64_t batches = shape[0], classes = shape[1], count = shape[2];
  Limits limits;
  if (node.has(kMaxOutput)) limits.most = load_integer(inputs[kMaxOutput].data, node.dtype(kMaxOutput), 0);
  if (node.has(kIouThreshold)) limits.iou = static_cast<float>(load(inputs[kIouThreshold], 0));
  if (node.has(kScoreThreshold)) limits.score = load(inputs[kScoreThreshold], 0);
  std::vector<std::array<int64_t, 3>> rows;
  const double for_boxes = 48.0 * static_cast<double>(count);  // corners, candidates, their order
  RT_TRY(results.hold(for_boxes));
  std::vector<Box> boxes(static_cast<size_t>(count));
  for (int64_t batch = 0; batch < batches && limits.most > 0; ++batch) {
    for (int64_t i = 0; i < count; ++i)
      boxes[static_cast<size_t>(i)] = load_box(inputs[kBoxes], batch * count + i, center);
    for (int64_t label = 0; label < classes; ++label) {
      for (const int64_t box : keep(boxes, inputs[kScores], (batch * classes + label) * count, limits))
        rows.push_back({batch, label, box});
      RT_TRY(results.hold(for_boxes + 2.0 * sizeof rows[0] * static_cast<double>(rows.capacity())));
    }
  }
  RT_ASSIGN(const TensorView y, results.make(0, {DType::I64, {static_cast<int64_t>(rows.size()), 3}}));
  auto* to = y.as<int64_t>();
  for (const auto& row : rows) to = std::copy(row.begin(), row.end(), to);
  return {};
}

}  // namespace

RT_PAGE(NonMaxSuppression) = {.kind = OpKind::NonMaxSuppression,
                              .inputs = {2, 5},
                              .infer = infer,
                              .run = run,
                              .arithmetic = Arithmetic::PrecisionSensitive,
                              .extents = ExtentRule::Copied};
RT_NO_GRADIENT(NonMaxSuppression, "integer output");

}  // namespace librt::ops
