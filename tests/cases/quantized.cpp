// Integers in, integers out: what the quantizing passes emit.
#include <cctype>

#include "tests/cases/case.h"
#include "tests/support/attributes.h"

namespace librt::test {
namespace {

using op::Activation;

CaseInput fixed(DType dtype, double value) {
  return constant(number(dtype, value));
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
  const CaseInput y_scale = fixed(DType::F32, 0.5);
  using Attributes = op::RequantizeAttributes;
  add_real(cases, make_case("requantize_f32", to(DType::F32, Attributes{}), {sums, scales(40), reals(40)}));
  add_real(cases, make_case("requantize_gelu", to(DType::F32, Attributes{}, Activation::Gelu),
                            {sums, fixed(DType::F32, 0.003)}));
  add(cases, make_case("requantize_u8", to(DType::U8, Attributes{}, Activation::Relu),
                       {sums, scales(40), reals(40), y_scale, fixed(DType::U8, 3)}));
  add(cases, make_case("requantize_i8", to(DType::I8, Attributes{}, Activation::HardSwish),
                       {sums, fixed(DType::F32, 0.004), std::nullopt, y_scale}));
  add(cases, make_case("requantize_wide", to(DType::I8, Attributes{}, Activation::Clip, -20, 30),
                       {in_range(tensor(DType::I32, {2, 1300}), -9000, 9000), scales(1300), reals(1300),
                        y_scale, fixed(DType::I8, -7)}));
  add(cases, make_case("requantize_bytes", to(DType::U8, Attributes{}, Activation::Relu),
                       {quantized(DType::I8, {3, 7, 40}), constant(in_range(f32({40}), 0.05, 0.2)), reals(40),
                        y_scale, fixed(DType::U8, 3)}));
  add(cases, make_case("requantize_bytes_wide", to(DType::I8, Attributes{}),
                       {quantized(DType::U8, {2, 1300}), fixed(DType::F32, 0.11), reals(1300), y_scale,
                        fixed(DType::I8, -7)}));
  // Few channels, whose rows are computed together.
  const CaseInput narrow = in_range(tensor(DType::I32, {2, 14, 13, 8}), -9000, 9000);
  add(cases, make_case("requantize_narrow", to(DType::U8, Attributes{}, Activation::Relu),
                       {narrow, scales(8), reals(8), y_scale, fixed(DType::U8, 3)}));
  add_real(cases, make_case("requantize_narrow_f32", to(DType::F32, Attributes{}),
                            {narrow, fixed(DType::F32, 0.004), reals(8)}));
  add(cases, make_case("requantize_column", to(DType::I8, Attributes{}),
                       {in_range(tensor(DType::I32, {1100, 1}), -9000, 9000), scales(1), reals(1), y_scale}));
}

void add_matmuls(std::vector<Case>& cases) {
  const CaseInput y_scale = fixed(DType::F32, 0.5);
  using MatMul = op::QuantizedMatMulAttributes;
  const CaseInput weight = constant(quantized(DType::I8, {70, 24}));
  for (const DType x : {DType::U8, DType::I8}) {
    const std::string type(name_of(x));
    add(cases, make_case("quantized_matmul_" + type, to(DType::U8, MatMul{}),
                         {quantized(x, {5, 70}), weight, scales(24), fixed(x, 9), reals(24), y_scale,
                          fixed(DType::U8, 128)}));
    add(cases, make_case("quantized_matmul_relu_" + type, to(DType::I8, MatMul{}, Activation::Relu),
                         {quantized(x, {2, 5, 70}), weight, fixed(DType::F32, 0.002), std::nullopt, reals(24),
                          y_scale, fixed(DType::I8, -20)}));
    add(cases, make_case("quantized_matmul_fours_" + type, to(DType::I8, MatMul{}, Activation::Relu),
                         {quantized(x, {3, 5, 68}), constant(quantized(DType::I8, {68, 20})), scales(20),
                          fixed(x, 9), reals(20), y_scale, fixed(DType::I8, -20)}));
    add_real(cases, make_case("quantized_matmul_f32_" + type, to(DType::F32, MatMul{}, Activation::Tanh),
                              {quantized(x, {5, 70}), weight, scales(24), fixed(x, 9), reals(24)}));
  }
  add(cases, make_case("quantized_matmul_silu", to(DType::U8, MatMul{}, Activation::Silu),
                       {quantized(DType::U8, {5, 70}), weight, scales(24), fixed(DType::U8, 9), std::nullopt,
                        y_scale, fixed(DType::U8, 40)}));
  CaseInput rows = quantized(DType::U8, {5, 1});
  add_real(cases, make_case("quantized_matmul_rows", to(DType::F32, MatMul{}),
                            {quantized(DType::U8, {5, 70}), weight, scales(24), rows}));
  add_real(cases, make_case("quantized_matmul_fours_rows", to(DType::F32, MatMul{}),
                            {quantized(DType::U8, {5, 68}), constant(quantized(DType::I8, {68, 20})),
                             scales(20), rows}));
  add(cases,
      make_case("quantized_matmul_large", to(DType::U8, MatMul{}),
                {quantized(DType::I8, {70, 1040}), constant(quantized(DType::I8, {1040, 131})), scales(131),
                 fixed(DType::I8, -3), reals(131), fixed(DType::F32, 9), fixed(DType::U8, 128)}));
  CaseInput changing = scales(24);
  changing.constant = false;
  add_real(cases,
           make_case("quantized_matmul_dynamic", to(DType::F32, MatMul{}),
                     {quantized(DType::U8, {5, 70}), weight, changing, fixed(DType::U8, 3), reals(24)}));

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
                          fixed(x, 5), reals(8), y_scale, fixed(DType::U8, 100)}));
    add(cases,
        make_case("quantized_conv_relu_" + type, window(DType::I8, {2, 1}, {1, 0, 1, 2}, 1, Activation::Relu),
                  {quantized(x, {1, 7, 8, 32}), constant(quantized(DType::I8, {32, 3, 3, 32})), scales(32),
                   std::nullopt, reals(32), y_scale, fixed(DType::I8, -128)}));
    add(cases, make_case("quantized_conv_depthwise_" + type,
                         window(DType::U8, {1, 1}, {1, 1, 1, 1}, 16, Activation::Clip, 0, 6),
                         {quantized(x, {1, 6, 6, 16}), constant(quantized(DType::I8, {16, 3, 3, 1})),
                          scales(16), fixed(x, 7), reals(16), fixed(DType::F32, 0.02), fixed(DType::U8, 1)}));
  }
  for (int kind = 0; op::EnumNamesActivation()[kind] != nullptr; ++kind) {
    const auto activation = static_cast<Activation>(kind);
    const bool leaky = activation == Activation::LeakyRelu;
    std::string name = op::EnumNameActivation(activation);
    for (char& letter : name) letter = static_cast<char>(std::tolower(letter));
    const float alpha = activation == Activation::Clip ? -0.5f : leaky ? 0.1f : 0.2f;
    const float beta = activation == Activation::Clip ? 1.5f : 0.5f;
    const CaseInput fine = fixed(DType::F32, 0.02);
    add(cases, make_case("quantized_matmul_to_" + name, to(DType::U8, MatMul{}, activation, alpha, beta),
                         {quantized(DType::U8, {5, 70}), weight, fixed(DType::F32, 0.0004),
                          fixed(DType::U8, 128), reals(24), fine, fixed(DType::U8, 60)}));
    add(cases,
        make_case(
            "quantized_conv_to_" + name, window(DType::I8, {1, 1}, {1, 1, 1, 1}, 1, activation, alpha, beta),
            {quantized(DType::U8, {1, 5, 6, 8}), constant(quantized(DType::I8, {16, 3, 3, 8})),
             fixed(DType::F32, 0.0004), fixed(DType::U8, 128), reals(16), fine, fixed(DType::I8, -20)}));
  }
  add(cases, make_case("quantized_conv_depthwise_stride", window(DType::I8, {2, 2}, {1, 2, 1, 0}, 32),
                       {quantized(DType::I8, {2, 7, 19, 32}), constant(quantized(DType::I8, {32, 3, 3, 1})),
                        scales(32), fixed(DType::I8, -9), reals(32), y_scale, fixed(DType::I8, 3)}));
  auto dilated = to(DType::U8, conv<op::QuantizedConvAttributes>({1, 1}, {2, 2, 2, 2}, {2, 2}, 16));
  add(cases, make_case("quantized_conv_depthwise_dilated", std::move(dilated),
                       {quantized(DType::U8, {1, 6, 9, 16}), constant(quantized(DType::I8, {16, 3, 3, 1})),
                        scales(16), std::nullopt, std::nullopt, y_scale}));
  add(cases, make_case("quantized_conv_colours", window(DType::U8, {2, 2}, {3, 3, 2, 3}),
                       {quantized(DType::U8, {2, 11, 13, 3}), constant(quantized(DType::I8, {12, 7, 7, 3})),
                        scales(12), fixed(DType::U8, 114), reals(12), y_scale, fixed(DType::U8, 90)}));
  add(cases,
      make_case(
          "quantized_conv_hard_swish", window(DType::U8, {1, 1}, {0, 0, 0, 0}, 1, Activation::HardSwish),
          {quantized(DType::U8, {1, 4, 4, 16}), constant(quantized(DType::I8, {16, 1, 1, 16})),
           fixed(DType::F32, 0.004), fixed(DType::U8, 20), std::nullopt, y_scale, fixed(DType::U8, 2)}));
  add_real(cases, make_case("quantized_conv_f32", window(DType::F32, {1, 1}, {1, 1, 1, 1}, 2),
                            {quantized(DType::U8, {1, 5, 5, 6}), constant(quantized(DType::I8, {4, 3, 3, 3})),
                             scales(4), fixed(DType::U8, 20)}));
  add(cases, make_case("quantized_conv_grouped", window(DType::U8, {2, 1}, {1, 0, 1, 1}, 2),
                       {quantized(DType::I8, {1, 9, 5, 32}), quantized(DType::I8, {40, 3, 2, 16}), scales(40),
                        fixed(DType::I8, -6), reals(40), y_scale, fixed(DType::U8, 77)}));
  add(cases,
      make_case("quantized_conv_unit_axis", window(DType::I8, {1, 1}, {2, 0, 2, 0}, 1, Activation::Relu),
                {quantized(DType::U8, {2, 21, 1, 16}), constant(quantized(DType::I8, {32, 5, 1, 16})),
                 scales(32), fixed(DType::U8, 90), reals(32), y_scale, fixed(DType::I8, -4)}));
  add(cases, make_case("quantized_conv_1d", window(DType::I8, {2}, {1, 1}),
                       {quantized(DType::I8, {2, 9, 3}), constant(quantized(DType::I8, {5, 3, 3})), scales(5),
                        fixed(DType::I8, 4), reals(5), y_scale}));
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
        quantized(a, shape),     quantized(b, shape), fixed(DType::F32, 0.11),   fixed(a, 7),
        fixed(DType::F32, 0.07), fixed(b, 21),        fixed(DType::F32, 0.0501), fixed(y, zero)};
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

}  // namespace

std::vector<Case> cases_quantized() {
  std::vector<Case> cases;
  add_requantize(cases);
  add_matmuls(cases);
  add_sums(cases);
  add_tables(cases);
  add_dynamic(cases);
  return cases;
}

}  // namespace librt::test
