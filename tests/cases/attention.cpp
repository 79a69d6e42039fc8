// Attention and its gradients: masks, lengths, positions, windows, groups of heads.
#include <limits>

#include "tests/cases/case.h"

namespace librt::test {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

CaseInput lengths(std::vector<double> values) {
  const CaseInput input = tensor(DType::I64, {static_cast<int64_t>(values.size())});
  return with_values(input, std::move(values));
}

/// A mask in which every third element and all of row 1 are masked.
std::vector<double> mask_values(int64_t rows, int64_t columns, double seen, double hidden) {
  std::vector<double> values;
  for (int64_t i = 0; i < rows * columns; ++i)
    values.push_back(i % 3 == 1 || i / columns == 1 ? hidden
                                                    : seen + static_cast<double>(i % 5) * (seen != 1) * 0.1);
  return values;
}

void add_attention(std::vector<Case>& cases) {
  const op::AttentionAttributes plain;
  op::AttentionAttributes causal;
  causal.causal = true;
  op::AttentionAttributes capped;
  capped.scale = 0.7f;
  capped.softcap = 1.5f;
  op::AttentionAttributes window;
  window.left_window = 2;
  window.right_window = 1;
  const auto bools = [](Shape shape, int64_t rows, int64_t columns) {
    return with_values(tensor(DType::Bool, shape), mask_values(rows, columns, 1, 0));
  };

  cases.push_back(make_case("attention", plain, {f32({2, 3, 5, 8}), f32({2, 3, 7, 8}), f32({2, 3, 7, 6})}));
  cases.push_back(
      make_case("attention_grouped", capped, {f32({2, 6, 4, 5}), f32({2, 2, 9, 5}), f32({2, 2, 9, 4})}));
  cases.push_back(
      make_case("attention_causal", causal, {f32({2, 3, 6, 4}), f32({2, 3, 6, 4}), f32({2, 3, 6, 4})}));
  cases.push_back(make_case(
      "attention_causal_cached", causal,
      {f32({2, 4, 3, 8}), f32({2, 1, 11, 8}), f32({2, 1, 11, 8}), std::nullopt, std::nullopt, lengths({8})}));
  cases.push_back(make_case("attention_positions", window,
                            {f32({2, 2, 3, 4}), f32({2, 2, 7, 4}), f32({2, 2, 7, 4}), std::nullopt,
                             lengths({7, 5}), lengths({-2, 3})}));
  const int64_t far = int64_t{1} << 33, farthest = int64_t{1} << 62;
  cases.push_back(make_case("attention_far_positions", window,
                            {f32({4, 1, 3, 4}), f32({4, 1, 7, 4}), f32({4, 1, 7, 4}), std::nullopt,
                             lengths({far + 2, farthest, 7, 5}), lengths({2, -far, farthest, -farthest})}));
  cases.push_back(
      make_case("attention_window", window, {f32({2, 1, 9, 4}), f32({2, 1, 8, 4}), f32({2, 1, 8, 4})}));
  cases.push_back(make_case("attention_bool_mask", plain,
                            {f32({2, 4, 5, 8}), f32({2, 2, 6, 8}), f32({2, 2, 6, 8}), bools({5, 6}, 5, 6)}));
  cases.push_back(
      make_case("attention_key_mask", causal,
                {f32({3, 2, 5, 8}), f32({3, 2, 7, 8}), f32({3, 2, 7, 8}), bools({3, 1, 1, 7}, 3, 7)}));
  cases.push_back(make_case("attention_float_mask", capped,
                            {f32({2, 2, 3, 4}), f32({2, 2, 5, 4}), f32({2, 2, 5, 4}),
                             with_values(f32({2, 1, 3, 5}), mask_values(6, 5, 0.5, kHidden))}));
  cases.push_back(make_case("attention_head_bias", plain,
                            {f32({2, 3, 4, 4}), f32({2, 3, 5, 4}), f32({2, 3, 5, 4}), f32({3, 4, 5})}));
  cases.push_back(make_case(
      "attention_lengths", causal,
      {f32({3, 4, 4, 8}), f32({3, 2, 10, 8}), f32({3, 2, 10, 8}), std::nullopt, lengths({4, 10, 2})}));
  cases.push_back(make_case(
      "attention_lengths_and_mask", window,
      {f32({2, 2, 3, 8}), f32({2, 2, 6, 8}), f32({2, 2, 6, 8}), bools({3, 6}, 3, 6), lengths({0, 5})}));
  cases.push_back(make_case(
      "attention_decode", causal,
      {f32({2, 8, 1, 32}), f32({2, 2, 70, 32}), f32({2, 2, 70, 32}), std::nullopt, lengths({61, 70})}));
  cases.push_back(no_gradient(make_case("attention_long", causal,
                                        {f32({1, 2, 150, 64}), f32({1, 2, 150, 64}), f32({1, 2, 150, 80})})));
  cases.push_back(no_gradient(make_case(
      "attention_wide", plain, {f32({1, 3, 37, 130}), f32({1, 1, 301, 130}), f32({1, 1, 301, 33})})));
  cases.push_back(no_gradient(within(make_case("attention_large_scores", plain,
                                               {in_range(f32({1, 2, 9, 16}), -20, 20),
                                                in_range(f32({1, 2, 90, 16}), -20, 20), f32({1, 2, 90, 16})}),
                                     1e-3, 1e-3)));
  cases.push_back(
      no_gradient(within(make_case("attention_f16", causal,
                                   {tensor(DType::F16, {2, 4, 5, 8}), tensor(DType::F16, {2, 2, 7, 8}),
                                    tensor(DType::F16, {2, 2, 7, 8}), tensor(DType::F16, {5, 7})}),
                         2e-3, 2e-3)));
  cases.push_back(
      make_case("attention_no_queries", plain, {f32({2, 3, 0, 8}), f32({2, 3, 7, 8}), f32({2, 3, 7, 6})}));
}

/// The gradients of the cases so far, at an arbitrary result y: they do not depend on its origin.
void add_attention_grad(std::vector<Case>& cases) {
  std::vector<Case> gradients;
  for (const Case& c : cases) {
    const op::AttentionAttributes& forward = *c.op.AsAttention();
    op::AttentionGradAttributes attributes;
    attributes.scale = forward.scale;
    attributes.softcap = forward.softcap;
    attributes.causal = forward.causal;
    attributes.left_window = forward.left_window;
    attributes.right_window = forward.right_window;
    auto inputs = c.inputs;
    inputs.resize(6);
    const TensorInfo &query = inputs[0]->info, &value = inputs[2]->info;
    const CaseInput y = tensor(query.dtype, {query.shape[0], query.shape[1], query.shape[2], value.shape[3]});
    inputs.insert(inputs.end(), {y, y});
    Case gradient = no_gradient(
        with_outputs(make_case("attention_grad" + c.name.substr(9), attributes, std::move(inputs)), 3));
    gradient.tolerance = c.tolerance;
    gradients.push_back(std::move(gradient));
  }
  cases.insert(cases.end(), gradients.begin(), gradients.end());
}

}  // namespace

std::vector<Case> cases_attention() {
  std::vector<Case> cases;
  add_attention(cases);
  add_attention_grad(cases);
  return cases;
}

}  // namespace librt::test
