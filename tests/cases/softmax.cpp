// Softmax and its logarithm.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

op::SoftmaxAttributes softmax(int64_t axis) {
  op::SoftmaxAttributes attributes;
  attributes.axis = axis;
  return attributes;
}

/// Of Softmax and of LogSoftmax; y is any number.
void add_gradients(std::vector<Case>& cases) {
  const auto add = [&](const std::string& name, int64_t axis, const CaseInput& x, bool gradient = false) {
    for (const bool logarithm : {false, true}) {
      op::SoftmaxGradAttributes attributes;
      attributes.axis = axis;
      attributes.logarithm = logarithm;
      const double tolerance = x.info.dtype == DType::F32 ? 1e-4 : x.info.dtype == DType::F16 ? 2e-3 : 1.6e-2;
      Case test_case =
          within(make_case((logarithm ? "log_softmax_grad_" : "softmax_grad_") + name, attributes,
                           {in_range(x, logarithm ? -4 : 0, logarithm ? 0 : 1), in_range(x, -2, 2)}),
                 tolerance, tolerance);
      test_case.gradient = gradient;
      cases.push_back(std::move(test_case));
    }
  };
  add("last", -1, f32({5, 33}), true);
  add("middle", 1, f32({2, 5, 6}), true);
  add("first", 0, f32({4, 7}));
  add("narrow_70_of_3", 1, f32({2, 70, 3}));
  add("narrow_9_of_4", 1, f32({45, 9, 4}));
  add("rows_of_one", -1, f32({9, 1}));
  add("no_rows", -1, f32({0, 5}));
  add("empty_rows", -1, f32({5, 0}));
  add("many_rows", -1, f32({613, 447}));
  add("many_columns", 1, f32({33, 9, 1008}));
  for (const int64_t columns : {2056, 1501, 8200, 70003})
    add(text("rows_of_", columns), -1, f32({2, columns}));
  for (const DType dtype : {DType::F16, DType::BF16}) {
    add(text("last_", name_of(dtype)), -1, tensor(dtype, {5, 33}));
    add(text("wide_", name_of(dtype)), -1, tensor(dtype, {3, 72}));
    add(text("middle_", name_of(dtype)), 1, tensor(dtype, {2, 5, 6}));
  }
}

}  // namespace

std::vector<Case> cases_softmax() {
  std::vector<Case> cases;
  cases.push_back(make_case("softmax_last", softmax(-1), {in_range(f32({5, 33}), -6, 6)}));
  cases.push_back(make_case("softmax_1000", softmax(-1), {in_range(f32({2, 1000}), -9, 9)}));
  cases.push_back(make_case("softmax_middle", softmax(1), {f32({2, 5, 6})}));
  cases.push_back(make_case("softmax_first", softmax(0), {f32({4, 7})}));
  // Few elements after the axis, which is long, or short in many slices.
  for (const Shape& shape : {Shape{2, 70, 3}, Shape{45, 9, 4}, Shape{37, 2, 1}})
    cases.push_back(no_gradient(make_case(text("softmax_narrow_", shape[1], "_of_", shape[2]), softmax(1),
                                          {in_range(f32(shape), -9, 9)})));
  cases.push_back(make_case("softmax_large", softmax(-1), {in_range(f32({3, 7}), -500, 500)}));
  cases.back().gradient = false;
  // Exceeds the buffer binding limit of small devices.
  cases.push_back(
      no_gradient(make_case("softmax_many_rows", softmax(-1), {in_range(f32({613, 447}), -9, 9)})));
  cases.push_back(no_gradient(make_case("softmax_many_columns", softmax(1), {f32({33, 9, 1008})})));
  // One row per thread block: kept in registers, of odd length, too long for registers.
  for (const int64_t columns : {2056, 1501, 8200}) {
    const std::string suffix = "_rows_of_" + std::to_string(columns);
    cases.push_back(
        no_gradient(make_case("softmax" + suffix, softmax(-1), {in_range(f32({2, columns}), -9, 9)})));
  }
  op::LogSoftmaxAttributes log_softmax;
  cases.push_back(
      no_gradient(make_case("log_softmax_rows_of_2056", log_softmax, {in_range(f32({2, 2056}), -9, 9)})));
  cases.push_back(make_case("log_softmax", log_softmax, {in_range(f32({5, 33}), -6, 6)}));
  log_softmax.axis = 1;
  cases.push_back(no_gradient(make_case("log_softmax_narrow", log_softmax, {f32({3, 67, 2})})));
  cases.push_back(make_case("log_softmax_middle", log_softmax, {f32({2, 5, 6})}));
  const CaseInput wide = in_range(tensor(DType::F64, {3, 7, 5}), -9, 9);
  cases.push_back(no_gradient(make_case("softmax_f64", softmax(1), {wide})));
  cases.push_back(no_gradient(make_case("log_softmax_f64", log_softmax, {wide})));
  add_gradients(cases);
  return cases;
}

}  // namespace librt::test
