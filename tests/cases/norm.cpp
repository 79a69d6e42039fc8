// Normalization over batches and layers.
#include <span>

#include "tests/cases/case.h"

namespace librt::test {
namespace {

using Inputs = std::vector<std::optional<CaseInput>>;

/// Samples in several parts of a GPU kernel; a mean that is far from 0 compared with the deviations.
void add_large_batches(std::vector<Case>& cases) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    const double tolerance = dtype == DType::F32 ? 1e-4 : dtype == DType::F16 ? 2e-3 : 1.6e-2;
    for (const int64_t channels : {72, 9}) {
      const std::string suffix = text("_large_", channels, "_", name_of(dtype));
      const auto add = [&](const char* name, size_t outputs, auto attributes, auto inputs) {
        cases.push_back(no_gradient(within(
            with_outputs(make_case(name + suffix, attributes, inputs), outputs), tolerance, tolerance)));
      };
      const CaseInput x = in_range(tensor(dtype, {263, channels}), 6, 8), c = f32({channels}),
                      positive = in_range(c, 0.5, 2);
      add("batch_norm_train", 5, op::BatchNormTrainAttributes{}, Inputs{x, c, c, c, positive});
      add("batch_norm_grad", 3, op::BatchNormGradAttributes{},
          Inputs{in_range(tensor(dtype, {263, channels}), -2, 2), tensor(dtype, {263, channels}), c, c,
                 positive});
    }
  }
  cases.push_back(
      no_gradient(within(with_outputs(make_case("batch_norm_train_far_mean", op::BatchNormTrainAttributes{},
                                                {in_range(f32({700, 8}), 1000, 1001), f32({8}), f32({8}),
                                                 f32({8}), in_range(f32({8}), 0.5, 2)}),
                                      5),
                         1e-3, 1e-3)));
}

Case rms_norm(std::string name, Inputs inputs, int64_t axis = -1) {
  op::RmsNormAttributes attributes;
  attributes.axis = axis;
  return make_case(std::move(name), attributes, std::move(inputs));
}

/// Of LayerNorm and of RmsNorm.
void add_layer_norm_grads(std::vector<Case>& cases, const std::string& name, const Inputs& inputs,
                          int64_t axis = -1, ops::Tolerance tolerance = {1e-4, 2e-5}, bool gradient = false) {
  for (const bool centered : {true, false}) {
    op::LayerNormGradAttributes attributes;
    attributes.axis = axis;
    attributes.centered = centered;
    Case test_case =
        within(with_outputs(
                   make_case((centered ? "layer_norm_grad" : "rms_norm_grad") + name, attributes, inputs), 3),
               tolerance.relative, tolerance.absolute);
    test_case.gradient = gradient;
    cases.push_back(std::move(test_case));
  }
}

void add_layer_norm_grads(std::vector<Case>& cases) {
  const auto add = [&](const std::string& name, const Shape& shape, std::optional<CaseInput> scale,
                       int64_t axis = -1, bool gradient = false) {
    Inputs inputs{f32(shape), f32(shape)};
    if (scale) inputs.push_back(scale);
    add_layer_norm_grads(cases, name, inputs, axis, {1e-4, 1e-4}, gradient);
  };
  add("", {3, 4, 24}, f32({24}), -1, true);
  add("_plain", {7, 65}, std::nullopt, -1, true);
  add("_two_axes", {3, 4, 6}, f32({4, 6}), 1);
  add("_all_axes", {5, 7}, f32({5, 7}), 0);
  add("_scale_repeated", {3, 4, 6}, f32({6}), 1);
  add("_scalar_scale", {5, 9}, f32({1}));
  add("_rows_of_one", {9, 1}, f32({1}));
  add("_one_row", {1, 130}, f32({130}));
  add("_no_rows", {0, 8}, f32({8}));
  add("_empty_rows", {4, 0}, f32({0}));
  add("_many_rows", {613, 401}, f32({401}));
  for (const int64_t columns : {2056, 1501, 8200, 70003})
    add(text("_rows_of_", columns), {2, columns}, f32({columns}));
  for (Case& longest : std::span(cases).last(2))
    longest.special = {SpecialRule::None, "the emulated GPU takes minutes, and a row of 8,200 has them"};
  add_layer_norm_grads(cases, "_far_mean", {in_range(f32({33, 96}), 1e4, 1e4 + 4), f32({33, 96}), f32({96})},
                       -1, {2e-3, 2e-3});
  for (const DType dtype : {DType::F16, DType::BF16}) {
    const double tolerance = dtype == DType::F16 ? 4e-3 : 3.2e-2;
    const CaseInput x = tensor(dtype, {37, 72}), odd = tensor(dtype, {5, 9});
    add_layer_norm_grads(cases, text("_", name_of(dtype)), {x, x, tensor(dtype, {72})}, -1,
                         {tolerance, tolerance});
    add_layer_norm_grads(cases, text("_wide_scale_", name_of(dtype)), {odd, odd, f32({9})}, -1,
                         {tolerance, tolerance});
  }
}

}  // namespace

std::vector<Case> cases_norm() {
  std::vector<Case> cases;
  // One row per thread block: kept in registers, of odd length, too long for registers.
  for (const int64_t columns : {2056, 1501, 8200}) {
    const std::string suffix = "_rows_of_" + std::to_string(columns);
    cases.push_back(no_gradient(make_case("layer_norm" + suffix, op::LayerNormAttributes{},
                                          {f32({2, columns}), weight({columns}), weight({columns})})));
  }
  cases.push_back(no_gradient(make_case("layer_norm_many_rows", op::LayerNormAttributes{},
                                        {f32({613, 447}), weight({447}), weight({447})})));
  cases.push_back(
      make_case("batch_norm", op::BatchNormAttributes{},
                {f32({2, 4, 5, 8}), weight({8}), weight({8}), weight({8}), in_range(weight({8}), 0.5, 2)}));
  cases.push_back(
      make_case("batch_norm_odd", op::BatchNormAttributes{},
                {f32({3, 3, 5, 7}), weight({7}), weight({7}), weight({7}), in_range(weight({7}), 0.5, 2)}));
  cases.push_back(within(
      with_outputs(make_case("batch_norm_train", op::BatchNormTrainAttributes{},
                             {f32({3, 4, 5, 8}), f32({8}), f32({8}), f32({8}), in_range(f32({8}), 0.5, 2)}),
                   5),
      1e-4, 2e-5));
  op::BatchNormTrainAttributes unbiased;
  unbiased.unbiased = true;
  unbiased.momentum = 0.8f;
  cases.push_back(no_gradient(
      within(with_outputs(make_case("batch_norm_train_unbiased", unbiased,
                                    {f32({6, 5}), f32({5}), f32({5}), f32({5}), in_range(f32({5}), 0.5, 2)}),
                          5),
             1e-4, 2e-5)));
  cases.push_back(no_gradient(within(with_outputs(make_case("batch_norm_grad", op::BatchNormGradAttributes{},
                                                            {f32({3, 4, 5, 8}), f32({3, 4, 5, 8}), f32({8}),
                                                             f32({8}), in_range(f32({8}), 0.5, 2)}),
                                                  3),
                                     1e-4, 1e-4)));
  add_large_batches(cases);
  cases.push_back(
      make_case("layer_norm", op::LayerNormAttributes{}, {f32({3, 4, 24}), weight({24}), weight({24})}));
  cases.push_back(make_case("layer_norm_plain", op::LayerNormAttributes{}, {f32({7, 65})}));
  // Rows of one value have no deviations, however far it is from 0.
  for (const int64_t columns : {10, 770, 2056})
    cases.push_back(
        no_gradient(within(make_case(text("layer_norm_constant_", columns), op::LayerNormAttributes{},
                                     {in_range(f32({3, columns}), 333.3, 333.3)}),
                           0, 1e-6)));
  op::LayerNormAttributes two_axes;
  two_axes.axis = 1;
  cases.push_back(
      make_case("layer_norm_two_axes", two_axes, {f32({3, 4, 6}), weight({4, 6}), weight({4, 6})}));
  cases.push_back(rms_norm("rms_norm", {f32({3, 4, 24}), weight({24})}));
  cases.push_back(rms_norm("rms_norm_plain", {f32({7, 65})}));
  cases.push_back(rms_norm("rms_norm_two_axes", {f32({3, 4, 6}), weight({4, 6})}, 1));
  cases.push_back(rms_norm("rms_norm_scale_repeated", {f32({3, 4, 6}), weight({6})}, 1));
  cases.push_back(rms_norm("rms_norm_empty", {f32({0, 6}), weight({6})}));
  for (const int64_t columns : {2056, 1501, 8200})
    cases.push_back(
        no_gradient(rms_norm(text("rms_norm_rows_of_", columns), {f32({2, columns}), weight({columns})})));
  for (const DType dtype : {DType::F16, DType::BF16}) {
    const double tolerance = dtype == DType::F16 ? 2e-3 : 1.6e-2;
    cases.push_back(no_gradient(within(
        rms_norm(text("rms_norm_", name_of(dtype)), {tensor(dtype, {5, 72}), constant(tensor(dtype, {72}))}),
        tolerance, tolerance)));
  }
  add_layer_norm_grads(cases);
  return cases;
}

}  // namespace librt::test
