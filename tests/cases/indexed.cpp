// Gathers and scatters by tensors of indices.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

using op::ScatterReduction;

template <class Attributes>
Attributes on_axis(int64_t axis) {
  Attributes attributes;
  attributes.axis = axis;
  return attributes;
}

op::ScatterElementsAttributes scattered(int64_t axis, ScatterReduction reduction) {
  op::ScatterElementsAttributes attributes;
  attributes.axis = axis;
  attributes.reduction = reduction;
  return attributes;
}

op::ScatterNDAttributes scattered_rows(ScatterReduction reduction) {
  op::ScatterNDAttributes attributes;
  attributes.reduction = reduction;
  return attributes;
}

CaseInput indices(Shape shape, std::vector<double> values, DType dtype = DType::I64) {
  return with_values(tensor(dtype, shape), std::move(values));
}

/// Indices below `extent`, unordered and with many duplicates.
CaseInput mixed(Shape shape, int64_t extent, DType dtype = DType::I64) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.elements(); ++i) values.push_back(static_cast<double>(i * i * 7 % extent));
  return indices(shape, std::move(values), dtype);
}

void add_scatter(std::vector<Case>& cases) {
  struct {
    const char* name;
    ScatterReduction reduction;
  } const kinds[] = {{"none", ScatterReduction::None},
                     {"add", ScatterReduction::Add},
                     {"mul", ScatterReduction::Mul},
                     {"min", ScatterReduction::Minimum},
                     {"max", ScatterReduction::Maximum}};
  for (const auto& [name, reduction] : kinds) {
    const auto add = [&, kind = name](const char* variant, auto attributes,
                                      std::vector<std::optional<CaseInput>> inputs) {
      cases.push_back(make_case(text(variant, "_", kind), attributes, std::move(inputs)));
    };
    add("scatter_elements", scattered(1, reduction), {f32({3, 5, 4}), mixed({3, 3, 4}, 5), f32({3, 3, 4})});
    add("scatter_elements_1d", scattered(0, reduction), {f32({20}), mixed({70}, 20), f32({70})});
    add("scatter_elements_smaller", scattered(0, reduction),
        {f32({5, 6, 3}), mixed({7, 4, 2}, 5), f32({7, 4, 2})});
    add("scatter_elements_i64", scattered(-1, reduction),
        {tensor(DType::I64, {4, 6}), mixed({4, 9}, 6), tensor(DType::I64, {4, 9})});
    add("scatter_elements_i32", scattered(0, reduction),
        {tensor(DType::I32, {9}), mixed({12}, 9), tensor(DType::I32, {12})});
    add("scatter_nd", scattered_rows(reduction),
        {f32({4, 3, 5}), indices({3, 2}, {0, 1, 3, -1, 0, 1}), f32({3, 5})});
    add("scatter_nd_elements", scattered_rows(reduction),
        {f32({6}), indices({4, 1}, {4, 3, 1, 3}, DType::I32), f32({4})});
    add("scatter_nd_i64", scattered_rows(reduction),
        {tensor(DType::I64, {5, 2}), mixed({7, 1}, 5), tensor(DType::I64, {7, 2})});
  }
  cases.push_back(make_case("scatter_elements_unique", scattered(1, ScatterReduction::None),
                            {f32({2, 5}), indices({2, 2}, {1, 3, 4, 0}), f32({2, 2})}));
  cases.push_back(make_case("scatter_nd_unique", scattered_rows(ScatterReduction::None),
                            {f32({4, 2}), indices({2, 1}, {3, 1}), f32({2, 2})}));
  cases.push_back(make_case("scatter_nd_bool", scattered_rows(ScatterReduction::None),
                            {tensor(DType::Bool, {4, 3}), mixed({5, 1}, 4), tensor(DType::Bool, {5, 3})}));
  cases.push_back(
      no_gradient(make_case("scatter_elements_f16", scattered(0, ScatterReduction::None),
                            {tensor(DType::F16, {9}), mixed({12}, 9), tensor(DType::F16, {12})})));
  cases.push_back(make_case("scatter_elements_none_given", scattered(0, ScatterReduction::Add),
                            {f32({4}), indices({0}, {}), f32({0})}));
  cases.push_back(make_case("scatter_elements_zero_factors", scattered(0, ScatterReduction::Mul),
                            {with_values(f32({4}), {0, 2, 0, 3}), indices({5}, {0, 1, 2, 3, 3}),
                             with_values(f32({5}), {2, 0, 0, 0, 5})}));
  cases.push_back(make_case("scatter_nd_many", scattered_rows(ScatterReduction::Add),
                            {f32({100, 3}), mixed({1500, 1}, 100), in_range(f32({1500, 3}), -0.1, 0.1)}));
  cases.back().gradient = false;
}

void add_gather(std::vector<Case>& cases) {
  using Gather = op::GatherElementsAttributes;
  cases.push_back(make_case("gather_elements_last", on_axis<Gather>(-1), {f32({3, 5}), mixed({3, 4}, 5)}));
  cases.push_back(make_case("gather_elements_first", on_axis<Gather>(0),
                            {f32({5, 3, 2}), indices({2, 3, 2}, {0, -1, 2, 3, 4, 1, -5, 0, 0, 2, 1, 3})}));
  cases.push_back(
      make_case("gather_elements_smaller", on_axis<Gather>(1), {f32({4, 5, 6}), mixed({2, 8, 3}, 5)}));
  cases.push_back(make_case("gather_elements_u8", on_axis<Gather>(0),
                            {in_range(tensor(DType::U8, {7}), 0, 50), mixed({9}, 7)}));
  cases.push_back(make_case("gather_elements_long", on_axis<Gather>(1), {f32({2, 40}), mixed({2, 700}, 40)}));
  cases.push_back(
      make_case("gather_elements_wide", on_axis<Gather>(0), {f32({3, 300}), mixed({2, 300}, 3, DType::I32)}));
  op::GatherNDAttributes batch;
  batch.batch_dimensions = 1;
  cases.push_back(make_case("gather_nd", op::GatherNDAttributes{},
                            {f32({3, 4, 5}), indices({2, 2, 2}, {0, 1, 2, -1, 1, 1, 0, 1})}));
  cases.push_back(make_case("gather_nd_elements", op::GatherNDAttributes{},
                            {f32({3, 4}), indices({3, 2}, {0, 1, 2, 3, 0, 1}, DType::I32)}));
  cases.push_back(
      make_case("gather_nd_batch", batch, {f32({3, 4, 2}), indices({3, 2, 1}, {0, 1, 2, 3, 1, 1})}));
  batch.batch_dimensions = 2;
  cases.push_back(make_case("gather_nd_batch_2", batch, {f32({2, 3, 4}), mixed({2, 3, 1}, 4)}));
  cases.push_back(make_case("gather_nd_f16", op::GatherNDAttributes{},
                            {tensor(DType::F16, {4, 3}), indices({2, 1}, {3, 0})}));
  cases.back().gradient = false;
}

}  // namespace

std::vector<Case> cases_indexed() {
  std::vector<Case> cases;
  add_gather(cases);
  add_scatter(cases);
  return cases;
}

}  // namespace librt::test
