// Values and errors of normalization under training and of optimizer steps.
#include "tests/unit/page_test_support.h"

namespace librt::test {
namespace {

ops::HostTensor vector_of(const std::vector<double>& values) {
  return f32({static_cast<int64_t>(values.size())}, values);
}

TEST(PagesBatchNormTrain, StatisticsOfTheBatch) {
  op::BatchNormTrainAttributes attributes;
  attributes.epsilon = 0;
  attributes.momentum = 0.5f;
  // Channel 0: 1, 3, mean 2, variance 1; channel 1: 10, 20, mean 15, variance 25.
  const auto x = f32({2, 1, 2}, {1, 10, 3, 20});
  const std::vector<std::optional<ops::HostTensor>> inputs{x, vector_of({2, 1}), vector_of({1, 0}),
                                                           vector_of({0, 1}), vector_of({1, 3})};
  auto got = run_all(attributes, inputs);
  ASSERT_TRUE(got.ok()) << got.status().message();
  ASSERT_EQ(got->size(), 5u);
  expect_values(numbers((*got)[0]), {-1, -1, 3, 1});
  expect_values(numbers((*got)[1]), {1, 8});
  expect_values(numbers((*got)[2]), {1, 14});
  expect_values(numbers((*got)[3]), {2, 15});
  expect_values(numbers((*got)[4]), {1, 0.2});
  attributes.unbiased = true;  // 2 and 50
  got = run_all(attributes, inputs);
  ASSERT_TRUE(got.ok()) << got.status().message();
  expect_values(numbers((*got)[2]), {1.5, 26.5});
}

TEST(PagesBatchNormTrain, Errors) {
  op::BatchNormTrainAttributes attributes;
  attributes.unbiased = true;
  const auto one = vector_of({1});
  expect_error(attributes, {f32({1, 1}, {1}), one, one, one, one}, "at least 2 values per channel");
  expect_error(attributes, {f32({2, 1}, {1, 2}), vector_of({1, 2}), one, one, one},
               "expected scale of shape [1], found [2]");
  expect_error(attributes, {f32({2, 1}, {1, 2}), one, one, one, tensor(DType::F16, {1}, {1})},
               "expected running_variance of the same type as scale");
  attributes.epsilon = -1;
  expect_error(attributes, {f32({2, 1}, {1, 2}), one, one, one, one}, "expected an epsilon");
}

TEST(PagesBatchNormGrad, OneChannel) {
  // x = 1, 3: z = -1, 1. g = 1, 0: grad_bias 1, grad_scale -1; grad_x = 2 (g - 1/2 + z/2) = 0, 0.
  const auto got = run_all(op::BatchNormGradAttributes{}, {f32({2, 1}, {1, 3}), f32({2, 1}, {1, 0}),
                                                           vector_of({2}), vector_of({2}), vector_of({1})});
  ASSERT_TRUE(got.ok()) << got.status().message();
  expect_values(numbers((*got)[0]), {0, 0});
  expect_values(numbers((*got)[1]), {-1});
  expect_values(numbers((*got)[2]), {1});
}

TEST(PagesSgd, MomentumAndNesterov) {
  op::SgdStepAttributes sgd;
  const auto rate = f32({}, {0.1});
  expect_result(sgd, {vector_of({1}), vector_of({2}), std::nullopt, rate}, vector_of({0.8}));
  sgd.weight_decay = 0.5f;  // g = 2.5
  expect_result(sgd, {vector_of({1}), vector_of({2}), std::nullopt, rate}, vector_of({0.75}));
  sgd.momentum = 0.5f;  // v = 0.5 * 4 + 2.5 = 4.5
  auto got = run_all(sgd, {vector_of({1}), vector_of({2}), vector_of({4}), rate});
  ASSERT_TRUE(got.ok()) << got.status().message();
  expect_values(numbers((*got)[0]), {0.55});
  expect_values(numbers((*got)[1]), {4.5});
  sgd.nesterov = true;  // 2.5 + 0.5 * 4.5 = 4.75
  expect_result(sgd, {vector_of({1}), vector_of({2}), vector_of({4}), rate}, vector_of({0.525}));
  expect_error(sgd, {vector_of({1}), vector_of({2}), std::nullopt, rate}, "expected a velocity");
  expect_error(sgd, {vector_of({1}), vector_of({2}), vector_of({4})}, "expected learning_rate as input 3");
  expect_error(sgd, {vector_of({1}), vector_of({2, 3}), vector_of({4}), rate},
               "expected gradient of shape [1]");
}

// The values are PyTorch's (torch.optim.Adam and AdamW, lr 0.1, weight_decay 0.1): with zero moments the
// first step is lr in the direction of the gradient.
TEST(PagesAdam, FirstStep) {
  op::AdamStepAttributes adam;
  const auto rate = f32({}, {0.1});
  const auto zero = vector_of({0});
  const auto step = tensor(DType::I32, {}, {1});
  auto got = run_all(adam, {vector_of({1}), vector_of({0.5}), zero, zero, step, rate});
  ASSERT_TRUE(got.ok()) << got.status().message();
  expect_values(numbers((*got)[0]), {0.9});
  expect_values(numbers((*got)[1]), {0.05});
  expect_values(numbers((*got)[2]), {0.00025}, 1e-8);  // beta2 is an f32: 1 - 0.999f
  adam.weight_decay = 0.1f;
  expect_result(adam, {vector_of({1}), vector_of({0.5}), zero, zero, step, rate}, vector_of({0.9}));
  adam.decoupled = true;
  expect_result(adam, {vector_of({1}), vector_of({0.5}), zero, zero, step, rate}, vector_of({0.89}));
  const auto before_first = tensor(DType::I32, {}, {0});
  expect_error(adam, {vector_of({1}), vector_of({0.5}), zero, zero, before_first, rate}, "counts from 1");
  adam.beta1 = 1;
  expect_error(adam, {vector_of({1}), vector_of({0.5}), zero, zero, step, rate},
               "expected beta1 in [0, 1), found 1");
}

TEST(PagesCrossEntropy, Shapes) {
  const auto logits = f32({2, 3}, {0, 0, 0, 0, 0, 0});
  expect_error(op::SoftmaxCrossEntropyAttributes{}, {logits, integers(DType::I32, {1})},
               "expected labels of shape [2], found [1]");
  expect_error(op::SoftmaxCrossEntropyAttributes{}, {logits, vector_of({1, 2})},
               "expected labels of type i32, i64");
  expect_error(op::SoftmaxCrossEntropyAttributes{}, {logits, integers(DType::I32, {1, 2})},
               "composite's body");
}

TEST(PagesCrossEntropy, RowShapes) {
  const auto logits = f32({2, 3}, {0, 0, 0, 0, 0, 0});
  op::CrossEntropyAttributes rows;
  expect_error(rows, {logits, integers(DType::I32, {1, 2, 3})}, "expected labels of shape [2], found [3]");
  expect_error(rows, {logits, vector_of({1, 2})}, "expected labels of type i32, i64");
  expect_error(rows, {logits, integers(DType::I64, {1, 2}), vector_of({1, 2})},
               "expected weights of shape [3], found [2]");
  rows.axis = 0;
  expect_error(rows, {logits, integers(DType::I64, {1, 2})}, "expected labels of shape [3], found [2]");
  rows.axis = 2;
  expect_error(rows, {logits, integers(DType::I64, {1, 2})}, "expected an axis from -2 to 1");
  rows.axis = -1;
  expect_error(rows, {f32({2, 0}, {}), integers(DType::I64, {1, 2})}, "expected at least one class");
  const auto by_row = f32({2}, {0, 0});
  expect_error(op::CrossEntropyGradAttributes{},
               {logits, integers(DType::I64, {1, 2}), by_row, by_row, f32({3}, {0, 0, 0})},
               "expected values by row of shape [2], found [3]");
}

}  // namespace
}  // namespace librt::test
