// norm, softmax, reduce, loss, optimizer.
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
}

op::SoftmaxAttributes softmax(int64_t axis) {
  op::SoftmaxAttributes attributes;
  attributes.axis = axis;
  return attributes;
}

template <class Attributes>
Attributes on_axis(int64_t axis, bool keep) {
  Attributes attributes;
  attributes.axis = axis;
  attributes.keep_dims = keep;
  return attributes;
}

}  // namespace

std::vector<Case> cases_normalization() {
  std::vector<Case> cases;
  add_reduce<op::ReduceSumAttributes>(cases, "reduce_sum");
  add_reduce<op::ReduceMeanAttributes>(cases, "reduce_mean");
  add_reduce<op::ReduceMaxAttributes>(cases, "reduce_max");
  add_reduce<op::ReduceMinAttributes>(cases, "reduce_min");
  add_reduce<op::ReduceProdAttributes>(cases, "reduce_prod");
  cases.push_back(make_case("reduce_sum_i64", op::ReduceSumAttributes{}, {tensor(DType::I64, {3, 4})}));
  cases.push_back(make_case("arg_max", on_axis<op::ArgMaxAttributes>(-1, false), {f32({5, 9})}));
  cases.push_back(make_case("arg_max_first_axis", on_axis<op::ArgMaxAttributes>(0, true), {f32({5, 9})}));
  cases.push_back(make_case("arg_min", on_axis<op::ArgMinAttributes>(1, true), {f32({2, 5, 3})}));

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
    cases.push_back(no_gradient(make_case("layer_norm" + suffix, op::LayerNormAttributes{},
                                          {f32({2, columns}), weight({columns}), weight({columns})})));
  }
  op::LogSoftmaxAttributes log_softmax;
  cases.push_back(
      no_gradient(make_case("log_softmax_rows_of_2056", log_softmax, {in_range(f32({2, 2056}), -9, 9)})));
  cases.push_back(make_case("log_softmax", log_softmax, {in_range(f32({5, 33}), -6, 6)}));
  log_softmax.axis = 1;
  cases.push_back(make_case("log_softmax_middle", log_softmax, {f32({2, 5, 6})}));

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
  cases.push_back(
      make_case("layer_norm", op::LayerNormAttributes{}, {f32({3, 4, 24}), weight({24}), weight({24})}));
  cases.push_back(make_case("layer_norm_plain", op::LayerNormAttributes{}, {f32({7, 65})}));
  op::LayerNormAttributes two_axes;
  two_axes.axis = 1;
  cases.push_back(
      make_case("layer_norm_two_axes", two_axes, {f32({3, 4, 6}), weight({4, 6}), weight({4, 6})}));

  cases.push_back(make_case("softmax_cross_entropy", op::SoftmaxCrossEntropyAttributes{},
                            {f32({6, 5}), with_values(tensor(DType::I64, {6}), {0, 4, 2, 2, 1, 3})}));

  op::SgdStepAttributes sgd;
  sgd.momentum = 0.9f;
  sgd.weight_decay = 0.01f;
  const CaseInput rate = with_values(f32({}), {0.05});
  cases.push_back(with_outputs(make_case("sgd_step", sgd, {f32({7, 9}), f32({7, 9}), f32({7, 9}), rate}), 2));
  sgd.nesterov = true;
  cases.push_back(
      with_outputs(make_case("sgd_step_nesterov", sgd, {f32({63}), f32({63}), f32({63}), rate}), 2));
  cases.push_back(
      make_case("sgd_step_plain", op::SgdStepAttributes{}, {f32({5}), f32({5}), std::nullopt, rate}));
  const CaseInput step = with_values(tensor(DType::I32, {}), {3});
  op::AdamStepAttributes adam;
  cases.push_back(with_outputs(
      make_case("adam_step", adam,
                {f32({7, 9}), f32({7, 9}), f32({7, 9}), in_range(f32({7, 9}), 0.01, 1), step, rate}),
      3));
  adam.weight_decay = 0.1f;
  adam.decoupled = true;
  cases.push_back(
      with_outputs(make_case("adam_step_decoupled", adam,
                             {f32({65}), f32({65}), f32({65}), in_range(f32({65}), 0.01, 1), step, rate}),
                   3));
  return cases;
}

}  // namespace librt::test
