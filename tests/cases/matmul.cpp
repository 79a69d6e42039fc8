#include "tests/cases/case.h"

namespace librt::test {

std::vector<Case> cases_matmul() {
  std::vector<Case> cases;
  cases.push_back(make_case("matmul_plain", op::MatMulAttributes{}, {f32({5, 7}), f32({7, 3})}));
  cases.push_back(make_case("matmul_weight", op::MatMulAttributes{}, {f32({5, 16}), weight({16, 9})}));
  cases.push_back(
      make_case("matmul_batched", op::MatMulAttributes{}, {f32({2, 3, 4, 5}), f32({2, 3, 5, 6})}));
  cases.push_back(
      make_case("matmul_batch_broadcast", op::MatMulAttributes{}, {f32({2, 1, 4, 5}), f32({3, 5, 6})}));
  cases.push_back(make_case("matmul_3d_weight", op::MatMulAttributes{}, {f32({2, 9, 8}), weight({8, 12})}));
  cases.push_back(make_case("matmul_row", op::MatMulAttributes{}, {f32({1, 64}), weight({64, 33})}));
  cases.push_back(make_case("matmul_row_wide", op::MatMulAttributes{}, {f32({1, 19}), weight({19, 300})}));
  cases.push_back(no_gradient(
      make_case("matmul_row_large", op::MatMulAttributes{}, {f32({1, 133}), weight({133, 2101})})));
  cases.push_back(no_gradient(
      make_case("matmul_row_long", op::MatMulAttributes{}, {f32({1, 2051}), weight({2051, 70})})));
  cases.push_back(
      make_case("matmul_row_batched", op::MatMulAttributes{}, {f32({2, 3, 1, 7}), f32({2, 3, 7, 83})}));
  cases.push_back(make_case("matmul_odd", op::MatMulAttributes{}, {f32({33, 65}), weight({65, 31})}));
  cases.push_back(no_gradient(make_case("matmul_vectors", op::MatMulAttributes{}, {f32({6}), f32({6})})));
  cases.push_back(
      no_gradient(make_case("matmul_vector_matrix", op::MatMulAttributes{}, {f32({6}), f32({6, 4})})));
  cases.push_back(
      no_gradient(make_case("matmul_matrix_vector", op::MatMulAttributes{}, {f32({3, 6}), f32({6})})));
  cases.push_back(make_case("matmul_empty", op::MatMulAttributes{}, {f32({0, 4}), f32({4, 3})}));
  cases.push_back(make_case("matmul_empty_sums", op::MatMulAttributes{}, {f32({5, 0}), weight({0, 3})}));
  op::MatMulAttributes transposed;
  transposed.transpose_a = true;
  cases.push_back(make_case("matmul_transpose_a", transposed, {f32({7, 5}), f32({7, 3})}));
  transposed.transpose_b = true;
  cases.push_back(make_case("matmul_transpose_both", transposed, {f32({2, 7, 5}), f32({2, 3, 7})}));
  transposed.transpose_a = false;
  cases.push_back(make_case("matmul_transpose_b", transposed, {f32({5, 7}), weight({3, 7})}));
  cases.push_back(make_case("matmul_row_transpose_b", transposed, {f32({1, 40}), weight({21, 40})}));
  cases.push_back(no_gradient(
      make_case("matmul_row_transpose_b_large", transposed, {f32({1, 301}), weight({503, 301})})));
  cases.push_back(
      make_case("matmul_transpose_b_batched", transposed, {f32({2, 2, 5, 8}), f32({2, 2, 6, 8})}));

  auto fused = [](op::Activation activation, bool bias, bool residual) {
    op::MatMulAttributes attributes;
    attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
    attributes.epilogue->activation = activation;
    attributes.epilogue->has_bias = bias;
    attributes.epilogue->has_residual = residual;
    return attributes;
  };
  cases.push_back(make_case("matmul_bias", fused(op::Activation::None, true, false),
                            {f32({6, 8}), weight({8, 5}), weight({5})}));
  cases.push_back(no_gradient(make_case("matmul_row_epilogue", fused(op::Activation::Silu, true, true),
                                        {f32({1, 8}), weight({8, 81}), weight({81}), f32({1, 81})})));
  cases.push_back(no_gradient(make_case("matmul_row_large_epilogue", fused(op::Activation::Silu, true, true),
                                        {f32({1, 517}), weight({517, 301}), weight({301}), f32({1, 301})})));
  cases.push_back(make_case("matmul_bias_residual", fused(op::Activation::None, true, true),
                            {f32({6, 8}), weight({8, 5}), weight({5}), f32({6, 5})}));
  const auto f64 = [](const Shape& shape) { return tensor(DType::F64, shape); };
  cases.push_back(
      no_gradient(make_case("matmul_f64", op::MatMulAttributes{}, {f64({37, 45}), constant(f64({45, 29}))})));
  cases.push_back(
      no_gradient(make_case("matmul_f64_few", fused(op::Activation::Relu, true, true),
                            {f64({1, 9}), constant(f64({9, 3})), constant(f64({3})), f64({1, 3})})));
  cases.push_back(no_gradient(
      make_case("matmul_f64_batched", op::MatMulAttributes{}, {f64({2, 1, 67, 5}), f64({3, 5, 150})})));
  op::MatMulAttributes both;
  both.transpose_a = both.transpose_b = true;
  cases.push_back(no_gradient(make_case("matmul_f64_transposed", both, {f64({2, 7, 19}), f64({2, 33, 7})})));
  for (int a = 1; a <= static_cast<int>(op::Activation::MAX); ++a) {
    auto attributes = fused(static_cast<op::Activation>(a), true, false);
    attributes.epilogue->alpha = a == static_cast<int>(op::Activation::Clip) ? 0.0f : 0.2f;
    attributes.epilogue->beta = a == static_cast<int>(op::Activation::Clip) ? 6.0f : 0.5f;
    cases.push_back(
        no_gradient(make_case(text("matmul_", op::EnumNameActivation(static_cast<op::Activation>(a))),
                              std::move(attributes), {f32({6, 8}), weight({8, 5}), weight({5})})));
  }
  cases.push_back(no_gradient(make_case("matmul_residual_relu", fused(op::Activation::Relu, true, true),
                                        {f32({3, 4, 8}), weight({8, 16}), weight({16}), f32({3, 4, 16})})));

  // Exceeds the buffer binding limit of small devices along every axis, in every operand.
  cases.push_back(no_gradient(make_case("matmul_large_result", fused(op::Activation::Relu, true, true),
                                        {f32({613, 9}), weight({9, 444}), weight({444}), f32({613, 444})})));
  cases.push_back(no_gradient(make_case("matmul_large_bias", fused(op::Activation::Silu, true, false),
                                        {f32({2, 301, 8}), f32({2, 8, 451}), f32({2, 301, 451})})));
  cases.push_back(
      no_gradient(make_case("matmul_large_depth", fused(op::Activation::Relu, true, true),
                            {f32({3, 2101}), weight({2101, 133}), weight({133}), f32({3, 133})})));
  cases.push_back(no_gradient(
      make_case("matmul_large_batches", op::MatMulAttributes{}, {f32({2, 33, 65, 66}), f32({33, 66, 3})})));
  transposed.transpose_b = true;
  cases.push_back(
      no_gradient(make_case("matmul_large_transpose_b", transposed, {f32({3, 604}), weight({501, 604})})));
  transposed.transpose_a = true;
  cases.push_back(
      no_gradient(make_case("matmul_large_transpose_both", transposed, {f32({2103, 130}), f32({5, 2103})})));
  transposed.transpose_b = false;
  cases.push_back(
      no_gradient(make_case("matmul_large_transpose_a", transposed, {f32({2103, 130}), f32({2103, 5})})));
  return cases;
}

}  // namespace librt::test
