// Softmax and its logarithm.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

op::SoftmaxAttributes softmax(int64_t axis) {
  op::SoftmaxAttributes attributes;
  attributes.axis = axis;
  return attributes;
}

}  // namespace

std::vector<Case> cases_softmax() {
  std::vector<Case> cases;
  cases.push_back(make_case("softmax_last", softmax(-1), {in_range(f32({5, 33}), -6, 6)}));
  cases.push_back(make_case("softmax_1000", softmax(-1), {in_range(f32({2, 1000}), -9, 9)}));
  cases.push_back(make_case("softmax_middle", softmax(1), {f32({2, 5, 6})}));
  cases.push_back(make_case("softmax_first", softmax(0), {f32({4, 7})}));
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
  cases.push_back(make_case("log_softmax_middle", log_softmax, {f32({2, 5, 6})}));
  return cases;
}

}  // namespace librt::test
