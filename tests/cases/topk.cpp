// The k largest or least elements.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

op::TopKAttributes top(int64_t axis, bool largest) {
  op::TopKAttributes attributes;
  attributes.axis = axis;
  attributes.largest = largest;
  return attributes;
}

void add_topk(std::vector<Case>& cases) {
  const auto add = [&](const char* name, op::TopKAttributes attributes, CaseInput x, double k) {
    cases.push_back(with_outputs(make_case(name, attributes, {std::move(x), ints({k})}), 2));
  };
  add("topk_last", top(-1, true), f32({3, 10}), 4);
  add("topk_smallest", top(-1, false), f32({3, 10}), 4);
  add("topk_first_axis", top(0, true), f32({9, 3, 2}), 3);
  add("topk_all", top(1, false), f32({2, 33}), 33);
  add("topk_one", top(1, true), f32({5, 1}), 1);
  add("topk_none", top(1, true), f32({5, 4}), 0);
  add("topk_i64", top(-1, true), tensor(DType::I64, {2, 50}), 7);
  add("topk_i32", top(-1, false), tensor(DType::I32, {50}), 7);
  add("topk_u8", top(-1, true), in_range(tensor(DType::U8, {200}), 0, 60), 9);
  add("topk_f16", top(-1, true), tensor(DType::F16, {40}), 9);
  cases.back().gradient = false;
  add("topk_ties", top(0, true), with_values(f32({8}), {1, 3, 3, -0.0, 0.0, 3, -2, 1}), 7);
  cases.back().gradient = false;
  add("topk_ties_smallest", top(0, false), with_values(f32({8}), {1, 3, 3, 0.0, -0.0, 3, -2, 1}), 8);
  cases.back().gradient = false;
  // Few of a short line.
  add("topk_few", top(1, true), f32({5, 130}), 8);
  add("topk_few_smallest", top(1, false), f32({3, 61, 3}), 2);
  add("topk_long", top(1, true), f32({2, 5000}), 300);
  cases.back().gradient = false;
  add("topk_long_columns", top(0, false), f32({3000, 2}), 100);
  cases.back().gradient = false;
  add("topk_long_many", top(0, true), f32({5000}), 4000);
  cases.back().gradient = false;
  add("topk_long_i64", top(0, false), tensor(DType::I64, {3000}), 2500);
}

}  // namespace

std::vector<Case> cases_topk() {
  std::vector<Case> cases;
  add_topk(cases);
  return cases;
}

}  // namespace librt::test
