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
  RT_TRY(expect_dtype_and_rank(node, kBoxes, "boxes", kFloats, 3, 3));
  RT_TRY(expect_dtype_and_rank(node, kScores, "scores", DTypeSet(node.dtype(kBoxes)), 3, 3));
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

/// Four numbers, one of each of four boxes; on every target, whatever vectors it has.
using Four [[gnu::vector_size(16)]] = float;

/// Sorted corners and area, in f32 as models' boxes are: of one box, or of four that are compared with one at
/// once.
template <typename T>
struct Box {
  T low[2], high[2], area;
};

Box<float> load_box(const ConstTensorView& boxes, int64_t index, bool center) {
  Box<float> box{};
  box.area = 1;
  for (int axis = 0; axis < 2; ++axis) {
    const auto a = static_cast<float>(load(boxes, index * 4 + axis));
    const auto b = static_cast<float>(load(boxes, index * 4 + axis + 2));
    box.low[axis] = center ? a - b / 2 : std::min(a, b);
    box.high[axis] = center ? a + b / 2 : std::max(a, b);
    box.area *= box.high[axis] - box.low[axis];
  }
  return box;
}

bool any(const decltype(Four{} > 0) & lanes) {
  return (lanes[0] | lanes[1] | lanes[2] | lanes[3]) != 0;
}

/// Whether the intersection of a box with one of four is more than `most` of their union; where that is not
/// defined, it is 0.
bool overlaps(const Box<float>& a, const Box<Four>& b, float most) {
  Four common = Four{} + 1;
  for (int axis = 0; axis < 2; ++axis) {
    const Four low = Four{} + a.low[axis], high = Four{} + a.high[axis];
    const Four extent = (b.high[axis] < high ? b.high[axis] : high) - (low < b.low[axis] ? b.low[axis] : low);
    common *= extent > 0 ? extent : Four{};
  }
  if (!any(common > 0)) return false;
  const Four both = a.area + b.area - common;
  const auto defined = (common > 0) & (b.area > 0) & (both > 0) & (Four{} + a.area > 0);
  return any((defined ? common / both : Four{}) > most);
}

/// Boxes by where they begin on the first axis, in buckets at least as wide as the widest box, so that a box
/// overlaps those of its own bucket and the two beside it only: detectors move the boxes of each class to a
/// place of their own, and all pairs of 27,000 boxes would be compared otherwise. One bucket where a box is
/// not finite.
class Buckets {
 public:
  explicit Buckets(std::span<const Box<float>> boxes) {
    double width = 0;
    for (const Box<float>& box : boxes) {
      first_ = std::min<double>(first_, box.low[0]);
      last_ = std::max<double>(last_, box.low[0]);
      width = std::max<double>(width, box.high[0] - box.low[0]);
      if (!std::isfinite(box.low[0]) || !std::isfinite(box.high[0])) return;
    }
    width_ = std::max(1.001 * width, (last_ - first_) / 1000);  // wider by more than quotients are rounded
  }

  size_t of(double low) const { return width_ > 0 ? 1 + static_cast<size_t>((low - first_) / width_) : 1; }
  /// With one before the first and one after the last, which stay empty.
  size_t count() const { return of(last_) + 2; }

 private:
  double first_ = 0, last_ = 0, width_ = 0;
};

struct Limits {
  int64_t most = 0;
  float iou = 0;
  std::optional<double> score;
};

/// The kept boxes of one batch entry and class. scores_at: index of the first score.
std::vector<size_t> keep(std::span<const Box<float>> boxes, const Buckets& buckets,
                         const ConstTensorView& scores, int64_t scores_at, const Limits& limits) {
  std::vector<size_t> candidates;
  std::vector<double> score(boxes.size());
  for (size_t box = 0; box < boxes.size(); ++box) {
    score[box] = load(scores, scores_at + static_cast<int64_t>(box));
    if (!limits.score || score[box] > *limits.score) candidates.push_back(box);
  }
  // Equal scores: the lower index first. NaN comes last.
  const std::vector<size_t> order = sorted_order(candidates.size(), [&](size_t a, size_t b) {
    const double first = score[candidates[a]], second = score[candidates[b]];
    return first > second || (std::isnan(second) && !std::isnan(first));
  });
  /// The kept boxes of a bucket; the last four are filled up with boxes of no area, which overlap nothing.
  struct Kept {
    std::vector<Box<Four>> fours;
    size_t count = 0;
  };
  std::vector<Kept> in_bucket(buckets.count());
  std::vector<size_t> kept;
  for (const size_t place : order) {
    if (static_cast<int64_t>(kept.size()) >= limits.most) break;
    const Box<float>& candidate = boxes[candidates[place]];
    const size_t bucket = buckets.of(candidate.low[0]);
    const auto suppressed = [&](const Kept& beside) {
      return std::ranges::any_of(
          beside.fours, [&](const Box<Four>& four) { return overlaps(candidate, four, limits.iou); });
    };
    if (std::any_of(&in_bucket[bucket - 1], &in_bucket[bucket + 2], suppressed)) continue;
    Kept& own = in_bucket[bucket];
    const size_t lane = own.count++ % 4;
    if (lane == 0) own.fours.emplace_back();
    Box<Four>& last = own.fours.back();
    for (int axis = 0; axis < 2; ++axis) {
      last.low[axis][lane] = candidate.low[axis];
      last.high[axis][lane] = candidate.high[axis];
    }
    last.area[lane] = candidate.area;
    kept.push_back(candidates[place]);
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
  // Boxes that do not meet overlap by 0, which is more.
  if (limits.iou < 0) limits.most = std::min<int64_t>(limits.most, 1);
  if (node.has(kScoreThreshold)) limits.score = load(inputs[kScoreThreshold], 0);
  std::vector<std::array<int64_t, 3>> rows;
  // Corners twice, scores, candidates, their order, the kept ones.
  const double for_boxes = 76.0 * static_cast<double>(count);
  RT_TRY(results.hold(for_boxes));
  std::vector<Box<float>> boxes(static_cast<size_t>(count));
  for (int64_t batch = 0; batch < batches && limits.most > 0; ++batch) {
    for (int64_t i = 0; i < count; ++i)
      boxes[static_cast<size_t>(i)] = load_box(inputs[kBoxes], batch * count + i, center);
    const Buckets buckets(boxes);
    for (int64_t label = 0; label < classes; ++label) {
      for (const size_t box :
           keep(boxes, buckets, inputs[kScores], (batch * classes + label) * count, limits))
        rows.push_back({batch, label, static_cast<int64_t>(box)});
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
