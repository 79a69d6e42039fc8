// Losses: of a batch, and of each row with their gradient.
#include <cmath>

#include "tests/cases/case.h"

namespace librt::test {
namespace {

/// A form of CrossEntropy, of which the cases of both operators are made.
struct Form {
  std::string name;
  int64_t axis = -1;
  Shape logits;
  int64_t ignore_index = -1;
  double smoothing = 0;
  bool weights = false;
  DType labels = DType::I64;
  bool gradient = false;  ///< compared with finite differences
};

/// Labels of every class in turn, and of some that do not count: -1, -100 and one class too many.
std::vector<double> labels_of(int64_t rows, int64_t classes) {
  std::vector<double> labels;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t turn = i % 11;
    const double outside[] = {-1, static_cast<double>(classes), -100};
    labels.push_back(turn >= 8 ? outside[turn - 8] : static_cast<double>(7 * i % classes));
  }
  return labels;
}

void add(std::vector<Case>& cases, const Form& form) {
  const int axis = *normalized_axis(form.axis, form.logits.rank());
  const int64_t classes = form.logits[axis];
  Shape rows = form.logits;
  rows.erase(axis);
  const CaseInput logits = in_range(f32(form.logits), -3, 3),
                  labels = with_values(tensor(form.labels, rows), labels_of(rows.elements(), classes)),
                  by_row = f32(rows), weights = in_range(weight({classes}), 0.25, 2);
  const auto with_attributes = [&](auto attributes) {
    attributes.axis = form.axis;
    attributes.ignore_index = form.ignore_index;
    attributes.label_smoothing = form.smoothing;
    return attributes;
  };
  std::vector<std::optional<CaseInput>> inputs{logits, labels};
  if (form.weights) inputs.push_back(weights);
  Case forward = with_outputs(
      make_case("cross_entropy_" + form.name, with_attributes(op::CrossEntropyAttributes{}), inputs), 4);
  forward.gradient = form.gradient;
  cases.push_back(std::move(forward));

  const double log_classes = std::log(static_cast<double>(classes));
  inputs = {logits, labels, in_range(by_row, 1, 3), in_range(by_row, log_classes - 2, log_classes),
            in_range(by_row, -1, 1)};
  if (form.weights) inputs.push_back(weights);
  cases.push_back(no_gradient(make_case("cross_entropy_grad_" + form.name,
                                        with_attributes(op::CrossEntropyGradAttributes{}), inputs)));
}

void add_rows(std::vector<Case>& cases) {
  add(cases, {.name = "last", .logits = {23, 33}, .gradient = true});
  add(cases, {.name = "vector", .logits = {9}, .gradient = true});
  add(cases, {.name = "i32", .logits = {4, 36}, .labels = DType::I32});
  add(cases, {.name = "few_classes", .logits = {30, 3}, .gradient = true});
  add(cases, {.name = "one_class", .logits = {5, 1}});
  add(cases, {.name = "no_rows", .logits = {0, 5}});
  add(cases, {.name = "middle", .axis = 1, .logits = {2, 5, 6}, .gradient = true});
  add(cases, {.name = "first", .axis = 0, .logits = {4, 7}});
  add(cases, {.name = "image", .axis = 1, .logits = {2, 12, 9, 19}});
  add(cases, {.name = "ignored", .logits = {23, 12}, .ignore_index = 4, .gradient = true});
  add(cases, {.name = "ignored_middle", .axis = 1, .logits = {2, 5, 6}, .ignore_index = 0});
  add(cases, {.name = "ignored_no_class", .logits = {12, 16}, .ignore_index = -100});
  add(cases, {.name = "smoothed", .logits = {12, 33}, .smoothing = 0.1, .gradient = true});
  add(cases,
      {.name = "smoothed_middle", .axis = -2, .logits = {2, 5, 6}, .smoothing = 0.2, .gradient = true});
  add(cases, {.name = "smoothed_wholly", .logits = {3, 20}, .smoothing = 1});
  add(cases, {.name = "weighted", .logits = {12, 33}, .weights = true});
  add(cases, {.name = "weighted_middle", .axis = 1, .logits = {2, 5, 6}, .weights = true});
  add(cases,
      {.name = "everything", .logits = {23, 40}, .ignore_index = 2, .smoothing = 0.1, .weights = true});
  add(cases, {.name = "everything_few_classes",
              .logits = {17, 5},
              .ignore_index = 2,
              .smoothing = 0.1,
              .weights = true,
              .labels = DType::I32});
  add(cases, {.name = "everything_middle",
              .axis = 1,
              .logits = {3, 10, 131},
              .ignore_index = 2,
              .smoothing = 0.1,
              .weights = true});
  // One row per thread block: kept in registers, of odd length, too long for registers.
  for (const int64_t classes : {2056, 1501, 8200})
    add(cases,
        {.name = text("rows_of_", classes), .logits = {2, classes}, .smoothing = 0.1, .weights = true});
  // More classes than an invocation may loop over on a software device, and more than small devices bind.
  add(cases, {.name = "rows_of_70003", .logits = {2, 70003}});
  add(cases, {.name = "many_rows", .logits = {613, 447}});
  add(cases, {.name = "many_columns", .axis = 1, .logits = {33, 9, 1008}, .smoothing = 0.1});
}

}  // namespace

std::vector<Case> cases_loss() {
  std::vector<Case> cases;
  cases.push_back(make_case("softmax_cross_entropy", op::SoftmaxCrossEntropyAttributes{},
                            {f32({6, 5}), with_values(tensor(DType::I64, {6}), {0, 4, 2, 2, 1, 3})}));
  add_rows(cases);
  return cases;
}

}  // namespace librt::test
