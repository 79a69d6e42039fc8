// Prefix sums and products.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

template <class Attributes>
Attributes scan(int64_t axis, bool exclusive, bool reverse) {
  Attributes attributes;
  attributes.axis = axis;
  attributes.exclusive = exclusive;
  attributes.reverse = reverse;
  return attributes;
}

template <class Attributes>
void add_scan(std::vector<Case>& cases, const char* name, double low, double high) {
  const auto add = [&](const char* variant, int64_t axis, bool exclusive, bool reverse, CaseInput x) {
    cases.push_back(
        make_case(text(name, "_", variant), scan<Attributes>(axis, exclusive, reverse), {std::move(x)}));
  };
  const auto x = [&](Shape shape) { return in_range(f32(shape), low, high); };
  add("last", -1, false, false, x({3, 7}));
  add("first", 0, false, true, x({5, 6}));
  add("middle", 1, true, false, x({2, 5, 3}));
  add("exclusive_reverse", 1, true, true, x({2, 6}));
  add("i64", 0, false, false, in_range(tensor(DType::I64, {9}), -1, 1));
  add("i32", 1, true, true, in_range(tensor(DType::I32, {2, 9}), -1, 1));
  // Few elements after the axis, which is long, or short in many slices.
  add("narrow", 1, false, true, x({3, 70, 3}));
  add("narrow_i32", 1, true, false, in_range(tensor(DType::I32, {40, 9, 5}), -1, 1));
  add("short_lines", 1, true, true, x({150, 6}));
  // Rows of several vectors, and longer than the totals that are kept at once.
  add("wide", 1, true, true, x({2, 5, 150}));
  add("wide_i64", 0, false, false, in_range(tensor(DType::I64, {7, 45}), -1, 1));
  add("very_wide", 0, false, true, x({3, 1100}));
  cases.back().gradient = false;
  add("long", 1, false, false, x({2, 700}));
  cases.back().gradient = false;
  add("long_reverse", 0, true, true, x({333}));
  cases.back().gradient = false;
}

}  // namespace

std::vector<Case> cases_scan() {
  std::vector<Case> cases;
  add_scan<op::CumSumAttributes>(cases, "cum_sum", -1, 1);
  add_scan<op::CumProdAttributes>(cases, "cum_prod", 0.95, 1.05);
  cases.push_back(make_case("cum_sum_very_long", scan<op::CumSumAttributes>(1, false, false),
                            {tensor(DType::I32, {2, 40000})}));
  cases.push_back(make_case("cum_sum_very_long_reverse", scan<op::CumSumAttributes>(0, true, true),
                            {tensor(DType::I64, {33000})}));
  cases.push_back(make_case("cum_prod_zero", scan<op::CumProdAttributes>(0, false, false),
                            {with_values(f32({5}), {2, 3, 0, 5, 0.5})}));
  cases.push_back(make_case("cum_prod_zeros", scan<op::CumProdAttributes>(0, true, true),
                            {with_values(f32({6}), {2, 0, 3, 0, 5, 0.5})}));
  return cases;
}

}  // namespace librt::test
