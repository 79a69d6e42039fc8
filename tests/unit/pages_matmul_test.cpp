// Values, shapes and errors of MatMul and of the epilogue it shares with Conv.
#include "runtime/geometry/matmul.h"

#include "tests/unit/page_test_support.h"

namespace librt::test {
namespace {

op::MatMulAttributes matmul(bool transpose_a = false, bool transpose_b = false) {
  op::MatMulAttributes attributes;
  attributes.transpose_a = transpose_a;
  attributes.transpose_b = transpose_b;
  return attributes;
}

op::MatMulAttributes fused(op::EpilogueAttributes epilogue) {
  op::MatMulAttributes attributes;
  attributes.epilogue = std::make_unique<op::EpilogueAttributes>(epilogue);
  return attributes;
}

op::EpilogueAttributes activation(op::Activation kind, float alpha = 0, float beta = 0) {
  op::EpilogueAttributes epilogue;
  epilogue.activation = kind;
  epilogue.alpha = alpha;
  epilogue.beta = beta;
  return epilogue;
}

TEST(PagesMatMul, AllTranspositionsAgree) {
  const auto a = f32({2, 3}, {1, 2, 3, 4, 5, 6}), at = f32({3, 2}, {1, 4, 2, 5, 3, 6});
  const auto b = f32({3, 2}, {1, 0, 2, -1, 0, 3}), bt = f32({2, 3}, {1, 2, 0, 0, -1, 3});
  const auto want = f32({2, 2}, {5, 7, 14, 13});
  expect_result(matmul(), {a, b}, want);
  expect_result(matmul(true, false), {at, b}, want);
  expect_result(matmul(false, true), {a, bt}, want);
  expect_result(matmul(true, true), {at, bt}, want);
}

TEST(PagesMatMul, VectorsAsInNumPy) {
  const auto m = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_result(matmul(), {f32({3}, {1, 2, 3}), f32({3}, {4, 5, 6})}, f32({}, {32}));
  expect_result(matmul(), {m, f32({3}, {1, 0, -1})}, f32({2}, {-2, -2}));
  expect_result(matmul(), {f32({2}, {1, -1}), m}, f32({3}, {-3, -3, -3}));
  expect_result(matmul(), {f32({2}, {1, 1}), f32({2, 2, 1}, {1, 2, 3, 4})}, f32({2, 1}, {3, 7}));
}

TEST(PagesMatMul, BatchesBroadcast) {
  const auto a = f32({2, 1, 1, 2}, {1, 2, 3, 4});
  const auto b = f32({3, 2, 1}, {1, 1, 2, 2, 3, 3});
  expect_result(matmul(), {a, b}, f32({2, 3, 1, 1}, {3, 6, 9, 7, 14, 21}));
}

TEST(PagesMatMul, NoElements) {
  expect_result(matmul(), {f32({2, 0}, {}), f32({0, 3}, {})}, f32({2, 3}, {0, 0, 0, 0, 0, 0}));
  expect_result(matmul(false, true), {f32({0, 4}, {}), f32({3, 4}, std::vector<double>(12, 1))},
                f32({0, 3}, {}));
}

TEST(PagesMatMul, IntegersWrap) {
  const auto a = tensor(DType::I8, {1, 2}, {100, 100});
  const auto b = tensor(DType::I8, {2, 1}, {2, 1});
  expect_result(matmul(), {a, b}, tensor(DType::I8, {1, 1}, {300 - 256}));
  ops::HostTensor large(TensorInfo{.dtype = DType::I64, .shape = {1, 1}});
  store_integer(large.bytes.data(), DType::I64, 0, (int64_t{1} << 60) + 1);
  const auto got = run_one(matmul(), {large, tensor(DType::I64, {1, 1}, {3})});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(integers(*got)[0], 3 * ((int64_t{1} << 60) + 1));
}

TEST(PagesMatMul, Epilogue) {
  const auto a = f32({2, 1}, {1, -2}), b = f32({1, 2}, {1, 3});  // 1 3 -2 -6
  op::EpilogueAttributes epilogue = activation(op::Activation::Relu);
  expect_result(fused(epilogue), {a, b}, f32({2, 2}, {1, 3, 0, 0}));
  epilogue.has_bias = true;
  expect_result(fused(epilogue), {a, b, f32({2}, {-2, 7})}, f32({2, 2}, {0, 10, 0, 1}));
  expect_result(fused(epilogue), {a, b, f32({2, 1}, {-2, 7})}, f32({2, 2}, {0, 1, 5, 1}));
  expect_result(fused(epilogue), {a, b, f32({}, {3})}, f32({2, 2}, {4, 6, 1, 0}));
  epilogue.has_residual = true;
  expect_result(fused(epilogue), {a, b, f32({}, {3}), f32({2, 2}, {0, 0, 1, 4})}, f32({2, 2}, {4, 6, 2, 1}));
  epilogue.has_bias = false;
  expect_result(fused(epilogue), {a, b, f32({2, 2}, {0, 0, 3, 4})}, f32({2, 2}, {1, 3, 1, 0}));
  expect_result(fused(epilogue), {a, b, std::nullopt, f32({2, 2}, {0, 0, 3, 4})}, f32({2, 2}, {1, 3, 1, 0}));
  epilogue = activation(op::Activation::Clip, -3, 2);
  expect_result(fused(epilogue), {tensor(DType::I32, {2, 1}, {1, -2}), tensor(DType::I32, {1, 2}, {1, 3})},
                tensor(DType::I32, {2, 2}, {1, 2, -2, -3}));
}

TEST(PagesMatMul, EveryActivation) {
  const auto run = [](op::EpilogueAttributes epilogue) {
    const auto got = run_one(fused(epilogue), {f32({1, 1}, {1}), f32({1, 2}, {-1, 2})});
    return got.ok() ? numbers(*got) : std::vector<double>();
  };
  using enum op::Activation;
  expect_values(run(activation(None)), {-1, 2});
  expect_values(run(activation(Sigmoid)), {0.2689414, 0.8807971});
  expect_values(run(activation(Tanh)), {-0.7615942, 0.9640276});
  expect_values(run(activation(HardSwish)), {-1.0 / 3, 5.0 / 3});
  expect_values(run(activation(Silu)), {-0.2689414, 1.7615942});
  expect_values(run(activation(Gelu)), {-0.1586553, 1.9544997});
  expect_values(run(activation(GeluTanh)), {-0.1588080, 1.9545977});
  expect_values(run(activation(LeakyRelu, 0.5f)), {-0.5, 2});
  expect_values(run(activation(HardSigmoid, 0.25f, 0.5f)), {0.25, 1});
}

TEST(PagesMatMul, Errors) {
  const auto a = f32({2, 3}, std::vector<double>(6, 1));
  expect_error(matmul(), {a, a}, "expected equal inner extents, found 3 of [2,3] and 2 of [2,3]");
  expect_error(matmul(), {f32({}, {1}), a}, "rank 1 or more");
  expect_error(matmul(),
               {f32({2, 1, 3}, std::vector<double>(6, 1)), f32({3, 3, 1}, std::vector<double>(9, 1))},
               "batch axes that broadcast");
  expect_error(matmul(false, true), {a, tensor(DType::F16, {2, 3}, std::vector<double>(6, 1))}, "same type");
  expect_error(matmul(false, true), {a, a, f32({2}, {1, 1})}, "expected 0 operands of the epilogue");
  op::EpilogueAttributes epilogue;
  epilogue.has_bias = true;
  op::MatMulAttributes attributes = fused(epilogue);
  attributes.transpose_b = true;
  expect_error(attributes, {a, a}, "expected 1 operands of the epilogue");
  expect_error(attributes, {a, a, f32({3}, {1, 1, 1})}, "broadcasts to [2,2], found [3]");
  expect_error(attributes, {a, a, f32({1, 2, 2}, {1, 1, 1, 1})}, "broadcasts to [2,2]");
  attributes.epilogue->has_bias = false;
  attributes.epilogue->has_residual = true;
  expect_error(attributes, {a, a, f32({2}, {1, 1})}, "residual of the result's shape [2,2]");
  expect_error(fused(activation(op::Activation::Tanh)),
               {tensor(DType::I32, {1, 1}, {1}), tensor(DType::I32, {1, 1}, {1})},
               "float type for activation Tanh");
  expect_error(fused(activation(static_cast<op::Activation>(77))), {f32({1, 1}, {1}), f32({1, 1}, {1})},
               "known activation");
}

TEST(PagesMatMul, OperandIndexFollowsBroadcasting) {
  const auto geometry = matmul_geometry({4, 1, 3, 2, 5}, {6, 1, 5, 7}, {});
  ASSERT_TRUE(geometry.ok());
  EXPECT_EQ(text(geometry->result), "[4,6,3,2,7]");
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 6; ++j)
      for (int64_t k = 0; k < 3; ++k) {
        const int64_t index = (i * 6 + j) * 3 + k;
        EXPECT_EQ(geometry->operand_index(geometry->a_batch, index), i * 3 + k);
        EXPECT_EQ(geometry->operand_index(geometry->b_batch, index), j);
      }
}

}  // namespace
}  // namespace librt::test
