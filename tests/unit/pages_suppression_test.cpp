// NonMaxSuppression against the comparison of all pairs.
#include <algorithm>
#include <numeric>
#include <random>

#include "tests/unit/page_test_support.h"

namespace librt::test {
namespace {

/// Corners y1, x1, y2, x2 of each box.
using Boxes = std::vector<std::array<float, 4>>;

Result<ops::HostTensor> suppress(const Boxes& boxes, const std::vector<double>& scores, double iou) {
  const auto count = static_cast<int64_t>(boxes.size());
  std::vector<double> corners;
  for (const auto& box : boxes) corners.insert(corners.end(), box.begin(), box.end());
  return run_one(op::NonMaxSuppressionAttributes{}, {f32({1, count, 4}, corners), f32({1, 1, count}, scores),
                                                     tensor(DType::I64, {}, {1e6}), f32({}, {iou})});
}

float overlap(const std::array<float, 4>& a, const std::array<float, 4>& b) {
  float common = 1, area_a = 1, area_b = 1;
  for (size_t axis = 0; axis < 2; ++axis) {
    const auto [a_low, a_high] = std::minmax(a[axis], a[axis + 2]);
    const auto [b_low, b_high] = std::minmax(b[axis], b[axis + 2]);
    common *= std::max(0.0f, std::min(a_high, b_high) - std::max(a_low, b_low));
    area_a *= a_high - a_low;
    area_b *= b_high - b_low;
  }
  return common > 0 ? common / (area_a + area_b - common) : 0;
}

/// Indices of the kept boxes, by descending score.
std::vector<int64_t> kept_boxes(const Boxes& boxes, const std::vector<double>& scores, float iou) {
  std::vector<size_t> order(boxes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  std::vector<int64_t> kept;
  for (const size_t i : order)
    if (std::ranges::none_of(
            kept, [&](int64_t k) { return overlap(boxes[i], boxes[static_cast<size_t>(k)]) > iou; }))
      kept.push_back(static_cast<int64_t>(i));
  return kept;
}

void compare(const Boxes& boxes, float iou) {
  std::mt19937 random(7);
  std::vector<double> scores;
  for (size_t i = 0; i < boxes.size(); ++i)
    scores.push_back(static_cast<double>(random() % 500) / 500);  // some are equal
  const auto found = suppress(boxes, scores, static_cast<double>(iou));
  ASSERT_TRUE(found.ok()) << found.status().message();
  const std::vector<int64_t> rows = integers(*found);
  std::vector<int64_t> kept;
  for (size_t i = 2; i < rows.size(); i += 3) kept.push_back(rows[i]);
  EXPECT_EQ(kept, kept_boxes(boxes, scores, iou));
}

/// Boxes of an extent up to `size` in classes that lie `apart`, at coordinates around `from`.
Boxes classes(size_t count, int places, float size, float apart, float from) {
  std::mt19937 random(3);
  const auto unit = [&] { return static_cast<float>(random() % 10007) / 10007.0f; };
  Boxes boxes;
  for (size_t i = 0; i < count; ++i) {
    const float at = from + apart * static_cast<float>(random() % static_cast<unsigned>(places));
    const float y = at + unit() * size, x = at + unit() * size;
    boxes.push_back({y, x, y + (unit() - 0.2f) * size, x + unit() * size});
  }
  return boxes;
}

TEST(Suppression, OnePlace) {
  compare(classes(700, 1, 100, 0, 0), 0.4f);
}
TEST(Suppression, ManyPlaces) {
  compare(classes(3000, 90, 300, 641, 0), 0.5f);
  compare(classes(3000, 90, 300, 641, -30000), 0.5f);
}
TEST(Suppression, PlacesThatTouch) {
  compare(classes(2000, 40, 50, 50, 10), 0.1f);
}
TEST(Suppression, MorePlacesThanBuckets) {
  compare(classes(3000, 100000, 2, 3, 0), 0.2f);
}
TEST(Suppression, OneWideBoxAmongSmallOnes) {
  Boxes boxes = classes(500, 50, 10, 20, 0);
  boxes.push_back({0, 0, 1000, 1000});
  compare(boxes, 0.00005f);
}
TEST(Suppression, NoAreaAndEqualBoxes) {
  Boxes boxes(40, {5, 5, 5, 9});
  boxes.resize(80, {1, 1, 2, 2});
  compare(boxes, 0.5f);
}
TEST(Suppression, NotFinite) {
  Boxes boxes = classes(300, 20, 30, 100, 0);
  for (const double extreme : {kNaN, kInfinity, -kInfinity, 3e38}) {
    Boxes with = boxes;
    with[17][0] = static_cast<float>(extreme);
    std::vector<double> scores(with.size(), 0.5);
    EXPECT_TRUE(suppress(with, scores, 0.5).ok());
  }
}
TEST(Suppression, ThresholdsOutsideOfTheRange) {
  for (const float iou : {-0.1f, 1.5f, std::numeric_limits<float>::quiet_NaN()})
    compare(classes(50, 1, 100, 0, 0), iou);
}

}  // namespace
}  // namespace librt::test
