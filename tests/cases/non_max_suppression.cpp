// Boxes that overlap.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

std::vector<double> overlapping_boxes(bool center) {
  std::vector<double> corners = {0, 0,  1, 1,  0, 0.1, 1, 1.1,  0, -0.1, 1, 0.9,
                                 0, 10, 1, 11, 1, 11,  0, 10.1, 0, 100,  1, 101};
  for (size_t i = 0; center && i < corners.size(); i += 4)
    for (size_t axis = i; axis < i + 2; ++axis) {
      const double a = corners[axis], b = corners[axis + 2];
      corners[axis] = (a + b) / 2;
      corners[axis + 2] = b > a ? b - a : a - b;
    }
  return corners;
}

}  // namespace

std::vector<Case> cases_non_max_suppression() {
  std::vector<Case> cases;
  for (const bool center : {false, true}) {
    op::NonMaxSuppressionAttributes attributes;
    attributes.center_point_box = center;
    cases.push_back(make_case(
        center ? "nms_center" : "nms_corners", attributes,
        {with_values(f32({1, 6, 4}), overlapping_boxes(center)),
         with_values(f32({1, 2, 6}), {0.9, 0.75, 0.6, 0.95, 0.5, 0.3, 0.9, 0.9, 0.9, 0.1, 0.2, 0.2}),
         number(DType::I64, 3), number(DType::F32, 0.5), number(DType::F32, 0.15)}));
  }
  cases.push_back(make_case("nms_batches", op::NonMaxSuppressionAttributes{},
                            {in_range(f32({2, 20, 4}), 0, 1), in_range(f32({2, 3, 20}), 0, 1),
                             number(DType::I64, 100), number(DType::F32, 0.3)}));
  cases.push_back(make_case("nms_without_limits", op::NonMaxSuppressionAttributes{},
                            {in_range(f32({1, 5, 4}), 0, 1), in_range(f32({1, 1, 5}), 0, 1)}));
  return cases;
}

}  // namespace librt::test
