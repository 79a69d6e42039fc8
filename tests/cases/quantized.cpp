#include "tests/cases/case.h"
#include "tests/support/attributes.h"

namespace librt::test {
namespace {

using op::Activation;

CaseInput quantized(DType dtype, Shape shape) {
  return is_signed_integer(dtype) ? in_range(tensor(dtype, shape), -32, 31.9)
                                  : in_range(tensor(dtype, shape), 0, 63.9);
}
CaseInput constant(CaseInput input) {
  input.constant = true;
  return input;
}
CaseInput number(DType dtype, double value) {
  return constant(with_values(tensor(dtype, {}), {value}));
}
CaseInput scales(int64_t channels) {
  return constant(in_range(f32({channels}), 0.001, 0.01));
}
CaseInput reals(int64_t channels) {
  return constant(in_range(f32({channels}), -3, 3));
}

/// The same attributes with a result type and an activation.
template <class Attributes>
Attributes to(DType result, Attributes attributes, Activation activation = Activation::None, float alpha = 0,
              float beta = 0) {
  attributes.to = static_cast<uint8_t>(result);
  if (activation == Activation::None) return attributes;
  attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
  attributes.epilogue->activation = activation;
  attributes.epilogue->alpha = alpha;
  attributes.epilogue->beta = beta;
  return attributes;
}

void add(std::vector<Case>& cases, Case test_case) {
  cases.push_back(no_gradient(std::move(test_case)));
}
void add_real(std::vector<Case>& cases, Case test_case) {
  add(cases, within(std::move(test_case), 1e-4, 1e-4));
}

void add_requantize(std::vector<Case>& cases) {
  const CaseInput sums = in_range(tensor(DType::I32, {3, 5, 40}), -9000, 9000);
  const CaseInput y_scale = number(DType::F32, 0.5);
  using Attributes = op::RequantizeAttributes;
  add_real(cases, make_case("requantize_f32", to(DType::F32, Attributes{}), {sums, scales(40), reals(40)}));
  add_real(cases, make_case("requantize_gelu", to(DType::F32, Attributes{}, Activation::Gelu),
                            {sums, number(DType::F32, 0.003)}));
  add(cases, make_case("requantize_u8", to(DType::U8, Attributes{}, Activation::Relu),
                       {sums, scales(40), reals(40), y_scale, number(DType::U8, 3)}));
  add(cases, make_case("requantize_i8", to(DType::I8, Attributes{}, Activation::HardSwish),
                       {sums, number(DType::F32, 0.004), std::nullopt, y_scale}));
  add(cases, make_case("requantize_wide", to(DType::I8, Attributes{}, Activation::Clip, -20, 30),
                       {in_range(tensor(DType::I32, {2, 1300}), -9000, 9000), scales(1300), reals(1300),
                        y_scale, number(DType::I8, -7)}));
}

void add_matmuls(std::vector<Case>& cases) {
  const CaseInput y_scale = number(DType::F32, 0.5);
  using MatMul = op::QuantizedMatMulAttributes;
  const CaseInput weight = constant(quantized(DType::I8, {70, 24}));
  for (const DType x : {DType::U8, DType::I8}) {
    const std::string type(name_of(x));
    add(cases, make_case("quantized_matmul_" + type, to(DType::U8, MatMul{}),
                         {quantized(x, {5, 70}), weight, scales(24), number(x, 9), reals(24), y_scale,
                          number(DType::U8, 128)}));
    add(cases, make_case("quantized_matmul_relu_" + type, to(DType::I8, MatMul{}, Activation::Relu),
                         {quantized(x, {2, 5, 70}), weight, number(DType::F32, 0.002), std::nullopt,
                          reals(24), y_scale, number(DType::I8, -20)}));
    add(cases, make_case("quantized_matmul_fours_" + type, to(DType::I8, MatMul{}, Activation::Relu),
                         {quantized(x, {3, 5, 68}), constant(quantized(DType::I8, {68, 20})), scales(20),
                          number(x, 9), reals(20), y_scale, number(DType::I8, -20)}));
    add_real(cases, make_case("quantized_matmul_f32_" + type, to(DType::F32, MatMul{}, Activation::Tanh),
                              {quantized(x, {5, 70}), weight, scales(24), number(x, 9), reals(24)}));
  }
  add(cases, make_case("quantized_matmul_silu", to(DType::U8, MatMul{}, Activation::Silu),
                       {quantized(DType::U8, {5, 70}), weight, scales(24), number(DType::U8, 9), std::nullopt,
                        y_scale, number(DType::U8, 40)}));
  CaseInput rows = quantized(DType::U8, {5, 1});
  add_real(cases, make_case("quantized_matmul_rows", to(DType::F32, MatMul{}),
                            {quantized(DType::U8, {5, 70}), weight, scales(24), rows}));
  add_real(cases, make_case("quantized_matmul_fours_rows", to(DType::F32, MatMul{}),
                            {quantized(DType::U8, {5, 68}), constant(quantized(DType::I8, {68, 20})),
                             scales(20), rows}));
  add(cases,
      make_case("quantized_matmul_large", to(DType::U8, MatMul{}),
                {quantized(DType::I8, {70, 1040}), constant(quantized(DType::I8, {1040, 131})), scales(131),
                 number(DType::I8, -3), reals(131), number(DType::F32, 9), number(DType::U8, 128)}));
  CaseInput changing = scales(24);
  changing.constant = false;
  add_real(cases,
           make_case("quantized_matmul_dynamic", to(DType::F32, MatMul{}),
                     {quantized(DType::U8, {5, 70}), weight, changing, number(DType::U8, 3), reals(24)}));

  const auto window = [](DType result, std::vector<int64_t> strides, std::vector<int64_t> pads,
                         int64_t groups = 1, Activation activation = Activation::None, float alpha = 0,
                         float beta = 0) {
    const std::vector<int64_t> dilations(strides.size(), 1);
    return to(result, conv<op::QuantizedConvAttributes>(strides, pads, dilations, groups), activation, alpha,
              beta);
  };
  for (const DType x : {DType::U8, DType::I8}) {
    const std::string type(name_of(x));
    add(cases, make_case("quantized_conv_" + type, window(DType::U8, {1, 1}, {1, 1, 1, 1}),
                         {quantized(x, {2, 6, 5, 4}), constant(quantized(DType::I8, {8, 3, 3, 4})), scales(8),
                          number(x, 5), reals(8), y_scale, number(DType::U8, 100)}));
    add(cases,
        make_case("quantized_conv_relu_" + type, window(DType::I8, {2, 1}, {1, 0, 1, 2}, 1, Activation::Relu),
                  {quantized(x, {1, 7, 8, 32}), constant(quantized(DType::I8, {32, 3, 3, 32})), scales(32),
                   std::nullopt, reals(32), y_scale, number(DType::I8, -128)}));
    add(cases,
        make_case("quantized_conv_depthwise_" + type,
                  window(DType::U8, {1, 1}, {1, 1, 1, 1}, 16, Activation::Clip, 0, 6),
                  {quantized(x, {1, 6, 6, 16}), constant(quantized(DType::I8, {16, 3, 3, 1})), scales(16),
                   number(x, 7), reals(16), number(DType::F32, 0.02), number(DType::U8, 1)}));
  }
  add(cases, make_case("quantized_conv_depthwise_stride", window(DType::I8, {2, 2}, {1, 2, 1, 0}, 32),
                       {quantized(DType::I8, {2, 7, 19, 32}), constant(quantized(DType::I8, {32, 3, 3, 1})),
                        scales(32), number(DType::I8, -9), reals(32), y_scale, number(DType::I8, 3)}));
  auto dilated = to(DType::U8, conv<op::QuantizedConvAttributes>({1, 1}, {2, 2, 2, 2}, {2, 2}, 16));
  add(cases, make_case("quantized_conv_depthwise_dilated", std::move(dilated),
                       {quantized(DType::U8, {1, 6, 9, 16}), constant(quantized(DType::I8, {16, 3, 3, 1})),
                        scales(16), std::nullopt, std::nullopt, y_scale}));
  add(cases, make_case("quantized_conv_colours", window(DType::U8, {2, 2}, {3, 3, 2, 3}),
                       {quantized(DType::U8, {2, 11, 13, 3}), constant(quantized(DType::I8, {12, 7, 7, 3})),
                        scales(12), number(DType::U8, 114), reals(12), y_scale, number(DType::U8, 90)}));
  add(cases,
      make_case(
          "quantized_conv_hard_swish", window(DType::U8, {1, 1}, {0, 0, 0, 0}, 1, Activation::HardSwish),
          {quantized(DType::U8, {1, 4, 4, 16}), constant(quantized(DType::I8, {16, 1, 1, 16})),
           number(DType::F32, 0.004), number(DType::U8, 20), std::nullopt, y_scale, number(DType::U8, 2)}));
  add_real(cases, make_case("quantized_conv_f32", window(DType::F32, {1, 1}, {1, 1, 1, 1}, 2),
                            {quantized(DType::U8, {1, 5, 5, 6}), constant(quantized(DType::I8, {4, 3, 3, 3})),
                             scales(4), number(DType::U8, 20)}));
  add(cases, make_case("quantized_conv_grouped", window(DType::U8, {2, 1}, {1, 0, 1, 1}, 2),
                       {quantized(DType::I8, {1, 9, 5, 32}), quantized(DType::I8, {40, 3, 2, 16}), scales(40),
                        number(DType::I8, -6), reals(40), y_scale, number(DType::U8, 77)}));
  add(cases, make_case("quantized_conv_1d", window(DType::I8, {2}, {1, 1}),
                       {quantized(DType::I8, {2, 9, 3}), constant(quantized(DType::I8, {5, 3, 3})), scales(5),
                        number(DType::I8, 4), reals(5), y_scale}));
}

void add_sums(std::vector<Case>& cases) {
  using Attributes = op::QuantizedAddAttributes;
  const auto sum = [](Activation activation, float alpha = 0, float beta = 0) {
    Attributes attributes;
    attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
    attributes.epilogue->activation = activation;
    attributes.epilogue->alpha = alpha;
    attributes.epilogue->beta = beta;
    return attributes;
  };
  const auto operands = [](DType a, DType b, DType y, double zero, const Shape& shape = {3, 4, 37}) {
    return std::vector<std::optional<CaseInput>>{
        quantized(a, shape),      quantized(b, shape), number(DType::F32, 0.11),   number(a, 7),
        number(DType::F32, 0.07), number(b, 21),       number(DType::F32, 0.0501), number(y, zero)};
  };
  for (const DType a : {DType::U8, DType::I8})
    for (const DType b : {DType::U8, DType::I8})
      add(cases, make_case(std::string("quantized_add_").append(name_of(a)).append("_").append(name_of(b)),
                           Attributes{}, operands(a, b, a, 30)));
  add(cases,
      make_case("quantized_add_relu", sum(Activation::Relu), operands(DType::I8, DType::I8, DType::I8, -11)));
  add(cases, make_case("quantized_add_clip", sum(Activation::Clip, -1, 2),
                       operands(DType::U8, DType::U8, DType::U8, 90)));
  add(cases, make_case("quantized_add_other_type", Attributes{},
                       operands(DType::U8, DType::I8, DType::I8, -90, {7, 1237})));
  add(cases, make_case("quantized_add_clip_i8", sum(Activation::Clip, 0, 6),
                       operands(DType::I8, DType::U8, DType::I8, -100, {1})));
  add(cases, make_case("quantized_add_sigmoid", sum(Activation::Sigmoid),
                       operands(DType::U8, DType::U8, DType::U8, 0)));
}

void add_tables(std::vector<Case>& cases) {
  for (const DType x : {DType::U8, DType::I8}) {
    const std::string type(name_of(x));
    add(cases, make_case("lookup_" + type, op::LookupAttributes{},
                         {quantized(x, {5, 77}), constant(quantized(DType::U8, {256}))}));
    add(cases, make_case("lookup_f32_" + type, op::LookupAttributes{}, {quantized(x, {5, 7}), f32({256})}));
  }
}

void add_dynamic(std::vector<Case>& cases) {
  const op::DynamicQuantizeLinearAttributes dynamic;
  add(cases, with_outputs(make_case("dynamic_quantize", dynamic, {f32({3, 50})}), 3));
  add(cases,
      with_outputs(make_case("dynamic_quantize_positive", dynamic, {in_range(f32({700, 60}), 1, 2)}), 3));
}

void add_weights(std::vector<Case>& cases) {
  const auto matmul = [](int64_t bits, int64_t group) {
    op::WeightQuantizedMatMulAttributes attributes;
    attributes.bits = bits;
    attributes.group_size = group;
    return attributes;
  };
  for (const int64_t rows : {1, 3, 20, 70}) {
    const std::string suffix = "_" + std::to_string(rows);
    add(cases, make_case("weight_quantized_i8" + suffix, matmul(8, 32),
                         {f32({2, rows, 128}), constant(quantized(DType::I8, {50, 128})),
                          constant(in_range(f32({50, 4}), 0.01, 0.02)), reals(50)}));
    add(cases, make_case("weight_quantized_i4" + suffix, matmul(4, 64),
                         {f32({rows, 128}), constant(in_range(tensor(DType::U8, {50, 64}), 0, 255.9)),
                          constant(in_range(f32({50, 2}), 0.01, 0.02))}));
  }
  add(cases, make_case("weight_quantized_fours", matmul(4, 64),
                       {f32({9, 256}), in_range(tensor(DType::U8, {68, 128}), 0, 255.9),
                        in_range(f32({68, 4}), 0.01, 0.02), reals(68)}));
  for (const int64_t group : {32, 128, 256})  // single rows, 4-bit weights
    add(cases, make_case("weight_quantized_i4_groups_of_" + std::to_string(group), matmul(4, group),
                         {f32({1, 512}), constant(in_range(tensor(DType::U8, {37, 256}), 0, 255.9)),
                          constant(in_range(f32({37, 512 / group}), 0.01, 0.02)), reals(37)}));
  add(cases, make_case("weight_quantized_i4_long", matmul(4, 64),
                       {f32({1, 2368}), constant(in_range(tensor(DType::U8, {6, 1184}), 0, 255.9)),
                        constant(in_range(f32({6, 37}), 0.01, 0.02)), reals(6)}));
  add(cases, make_case("weight_quantized_i8_long", matmul(8, 12),
                       {f32({9, 1092}), constant(quantized(DType::I8, {7, 1092})),
                        constant(in_range(f32({7, 91}), 0.01, 0.02))}));
  add(cases, make_case("weight_quantized_small_groups", matmul(8, 5),
                       {f32({3, 15}), constant(quantized(DType::I8, {7, 15})),
                        constant(in_range(f32({7, 3}), 0.01, 0.02))}));
}

}  // namespace

std::vector<Case> cases_quantized() {
  std::vector<Case> cases;
  add_requantize(cases);
  add_matmuls(cases);
  add_sums(cases);
  add_tables(cases);
  add_dynamic(cases);
  add_weights(cases);
  return cases;
}

}  // namespace librt::test
