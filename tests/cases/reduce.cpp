// Sums, means, products, extrema and their positions along axes.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

template <class Attributes>
void add_reduce(std::vector<Case>& cases, const char* name) {
  auto reduce = [&](const char* variant, std::vector<int64_t> axes, bool keep, Shape shape) {
    Attributes attributes;
    attributes.axes = std::move(axes);
    attributes.keep_dims = keep;
    cases.push_back(
        make_case(text(name, "_", variant), std::move(attributes), {in_range(f32(shape), 0.5, 1.5)}));
  };
  reduce("last", {-1}, true, {3, 4, 17});
  reduce("first", {0}, false, {9, 12});
  reduce("middle", {1}, true, {3, 5, 8});
  reduce("spatial", {1, 2}, false, {2, 5, 6, 8});
  reduce("outer", {0, 1, 2}, false, {2, 3, 4, 8});
  reduce("all", {}, false, {4, 5, 3});
  reduce("vectors", {-1}, false, {5, 48});
  reduce("vector_columns", {0}, false, {37, 72});
  reduce("between_vectors", {0, 2}, true, {3, 7, 40});
  reduce("narrow_columns", {1}, false, {5, 70, 3});
  reduce("narrow_rows", {1}, false, {150, 12});
}

/// Large enough for the splits of a GPU kernel; in 16 bits within what the sum's rounding gives.
void add_large(std::vector<Case>& cases) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    const auto sum = [&](const char* variant, std::vector<int64_t> axes, Shape shape) {
      op::ReduceSumAttributes attributes;
      attributes.axes = std::move(axes);
      Case large = make_case(text("reduce_sum_", variant, "_", name_of(dtype)), std::move(attributes),
                             {in_range(tensor(dtype, shape), -1, 1)});
      const double tolerance = dtype == DType::F32 ? 1e-5 : dtype == DType::F16 ? 2e-3 : 1.6e-2;
      cases.push_back(no_gradient(within(std::move(large), tolerance, 1e-3)));
    };
    sum("long_rows", {1}, {2, 9216});
    sum("odd_rows", {1}, {2, 8195});
    sum("long_columns", {0}, {700, 40});
    sum("odd_columns", {0}, {700, 9});
    sum("groups", {0, 2}, {400, 3, 24});
  }
  op::ReduceMaxAttributes attributes;
  attributes.axes = {0};
  cases.push_back(
      no_gradient(make_case("reduce_max_long_columns_i32", attributes, {tensor(DType::I32, {600, 5})})));
}

template <class Attributes>
Attributes on_axis(int64_t axis, bool keep) {
  Attributes attributes;
  attributes.axis = axis;
  attributes.keep_dims = keep;
  return attributes;
}

}  // namespace

std::vector<Case> cases_reduce() {
  std::vector<Case> cases;
  add_reduce<op::ReduceSumAttributes>(cases, "reduce_sum");
  add_reduce<op::ReduceMeanAttributes>(cases, "reduce_mean");
  add_reduce<op::ReduceMaxAttributes>(cases, "reduce_max");
  add_reduce<op::ReduceMinAttributes>(cases, "reduce_min");
  add_reduce<op::ReduceProdAttributes>(cases, "reduce_prod");
  add_large(cases);
  cases.push_back(make_case("reduce_sum_i64", op::ReduceSumAttributes{}, {tensor(DType::I64, {3, 4})}));
  cases.push_back(make_case("arg_max", on_axis<op::ArgMaxAttributes>(-1, false), {f32({5, 9})}));
  cases.push_back(make_case("arg_max_first_axis", on_axis<op::ArgMaxAttributes>(0, true), {f32({5, 9})}));
  cases.push_back(make_case("arg_min", on_axis<op::ArgMinAttributes>(1, true), {f32({2, 5, 3})}));
  // Few elements after the axis, which is long, or short in many slices.
  for (const Shape& shape : {Shape{3, 70, 3}, Shape{45, 9, 4}, Shape{133, 7, 1}}) {
    auto attributes = on_axis<op::ArgMaxAttributes>(1, false);
    attributes.select_last = shape[2] == 4;
    cases.push_back(make_case(text("arg_max_narrow_", shape[1], "_of_", shape[2]), attributes, {f32(shape)}));
  }
  return cases;
}

}  // namespace librt::test
