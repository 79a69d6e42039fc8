// Normalization over batches and layers.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

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
      using Inputs = std::vector<std::optional<CaseInput>>;
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
  op::LayerNormAttributes two_axes;
  two_axes.axis = 1;
  cases.push_back(
      make_case("layer_norm_two_axes", two_axes, {f32({3, 4, 6}), weight({4, 6}), weight({4, 6})}));
  return cases;
}

}  // namespace librt::test
