// Operators with data-dependent result shapes.
#include <cmath>

#include "tests/cases/case.h"

namespace librt::test {
namespace {

op::UniqueAttributes unique_of(bool sorted) {
  op::UniqueAttributes attributes;
  attributes.sorted = sorted;
  return attributes;
}

op::UniqueAttributes unique_along(int64_t axis, bool sorted) {
  op::UniqueAttributes attributes = unique_of(sorted);
  attributes.flatten = false;
  attributes.axis = axis;
  return attributes;
}

/// Integers in a small range, so that ties occur.
CaseInput few(DType dtype, Shape shape) {
  return in_range(tensor(dtype, shape), 0, 2.4);
}

}  // namespace

std::vector<Case> cases_dynamic() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::F32, DType::F16, DType::I64, DType::U8, DType::Bool})
    cases.push_back(
        make_case(text("non_zero_", name_of(dtype)), op::NonZeroAttributes{}, {few(dtype, {4, 3, 5})}));
  cases.push_back(make_case("non_zero_vector", op::NonZeroAttributes{}, {few(DType::I32, {17})}));
  cases.push_back(make_case("non_zero_scalar", op::NonZeroAttributes{}, {number(DType::F32, 3)}));
  cases.push_back(
      make_case("non_zero_none", op::NonZeroAttributes{}, {with_values(f32({2, 2}), {0, 0, 0, 0})}));
  cases.push_back(make_case("non_zero_empty", op::NonZeroAttributes{}, {f32({0, 3})}));
  const auto unique = [&](std::string name, op::UniqueAttributes attributes, CaseInput x) {
    cases.push_back(
        with_outputs(no_gradient(make_case(std::move(name), std::move(attributes), {std::move(x)})), 4));
  };
  unique("unique", unique_of(true), few(DType::I64, {3, 7}));
  unique("unique_unsorted", unique_of(false), few(DType::I32, {21}));
  unique("unique_f32", unique_of(true),
         with_values(f32({7}), {2, -1, 1e9, -1, std::nan(""), 2, std::nan("")}));
  unique("unique_u64", unique_of(true), few(DType::U64, {9}));
  unique("unique_rows", unique_along(0, true), few(DType::U8, {9, 2}));
  unique("unique_columns_unsorted", unique_along(-1, false), few(DType::I8, {2, 2, 9}));
  unique("unique_empty", unique_of(true), f32({0}));
  unique("unique_scalar", unique_of(true), number(DType::F32, 3));
  return cases;
}

}  // namespace librt::test
