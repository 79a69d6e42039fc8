// Slices of a tensor by index, and sums of slices.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

template <class Attributes>
Attributes on_axis(int64_t axis) {
  Attributes attributes;
  attributes.axis = axis;
  return attributes;
}

}  // namespace

std::vector<Case> cases_gather() {
  std::vector<Case> cases;
  cases.push_back(make_case("gather_rows", on_axis<op::GatherAttributes>(0),
                            {f32({9, 5}), with_values(tensor(DType::I64, {2, 3}), {0, 8, -1, 3, 3, 2})}));
  cases.push_back(make_case("gather_inner", on_axis<op::GatherAttributes>(1),
                            {f32({3, 6, 2}), with_values(tensor(DType::I32, {2}), {5, 0})}));
  cases.push_back(make_case("gather_scalar", on_axis<op::GatherAttributes>(0),
                            {f32({4, 3}), with_values(tensor(DType::I64, {}), {2})}));
  cases.push_back(make_case("gather_i64", on_axis<op::GatherAttributes>(0),
                            {tensor(DType::I64, {5}), with_values(tensor(DType::I64, {3}), {4, 0, -2})}));
  cases.push_back(make_case("scatter_add", on_axis<op::ScatterAddAttributes>(0),
                            {ints({5, 3}), with_values(tensor(DType::I64, {4}), {1, 1, 4, 0}), f32({4, 3})}));
  cases.back().gradient = false;
  return cases;
}

}  // namespace librt::test
