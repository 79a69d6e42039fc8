#include <limits>

#include "tests/cases/case.h"
#include "tests/support/attributes.h"

namespace librt::test {
namespace {

op::NarrowFloatAttributes narrow(op::NarrowFormat format, bool saturate) {
  op::NarrowFloatAttributes attributes;
  attributes.format = format;
  attributes.saturate = saturate;
  return attributes;
}

CaseInput wide(CaseInput input) {
  return in_range(std::move(input), -40, 40);
}
CaseInput quantized(DType dtype, Shape shape) {
  return is_signed_integer(dtype) ? in_range(tensor(dtype, shape), -32, 31.9)
                                  : in_range(tensor(dtype, shape), 0, 63.9);
}
CaseInput constant(CaseInput input) {
  input.constant = true;
  return input;
}
CaseInput number(DType dtype, double value) {
  return with_values(tensor(dtype, {}), {value});
}

void add(std::vector<Case>& cases, Case test_case) {
  cases.push_back(no_gradient(std::move(test_case)));
}

void add_quantize(std::vector<Case>& cases) {
  const CaseInput x = wide(f32({3, 4, 5}));
  const CaseInput scale = number(DType::F32, 0.25);
  add(cases, make_case("quantize_u8", quantize(DType::U8), {x, scale, number(DType::U8, 128)}));
  add(cases, make_case("quantize_i8", quantize(DType::I8), {x, scale, number(DType::I8, -3)}));
  add(cases, make_case("quantize_no_zero_point", quantize(DType::U8), {x, scale}));
  add(cases, make_case("quantize_i16", quantize(DType::I16), {x, number(DType::F32, 0.001)}));
  add(cases, make_case("quantize_u16", quantize(DType::U16),
                       {x, number(DType::F32, 0.001), number(DType::U16, 32768)}));
  add(cases, make_case("quantize_ties", quantize(DType::I8),
                       {with_values(f32({8}), {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e30, -1e30}),
                        number(DType::F32, 1), number(DType::I8, 1)}));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> corners = {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(), 3, -3, 0};
  corners.resize(40, 5);  // more than one SIMD vector on any CPU
  add(cases, make_case("quantize_corners", quantize(DType::I8),
                       {with_values(f32({40}), corners), number(DType::F32, 2)}));
  add(cases, make_case("quantize_by_zero", quantize(DType::I8),
                       {with_values(f32({3}), {1, -1, 0}), number(DType::F32, 0)}));
  add(cases, make_case("quantize_axis", quantize(DType::U8, 1), {x, f32({4}), quantized(DType::U8, {4})}));
  add(cases,
      make_case("quantize_last_axis", quantize(DType::I8, -1), {x, f32({5}), quantized(DType::I8, {5})}));
  add(cases, make_case("quantize_first_axis", quantize(DType::I8, 0), {x, f32({3})}));
  add(cases, make_case("quantize_blocks", quantize(DType::U8, 1, 3),
                       {x, f32({3, 2, 5}), quantized(DType::U8, {3, 2, 5})}));
  add(cases, make_case("quantize_last_blocks", quantize(DType::I8, 2, 2),
                       {x, f32({3, 4, 3}), quantized(DType::I8, {3, 4, 3})}));
  add(cases, make_case("quantize_integers", quantize(DType::U8),
                       {in_range(tensor(DType::I32, {4, 33}), -2000, 2000), number(DType::F32, 63),
                        number(DType::U8, 128)}));
  add(cases, make_case("quantize_many", quantize(DType::I8), {wide(f32({7, 1111})), scale}));
  add(cases, make_case("quantize_empty", quantize(DType::I8), {f32({0, 3}), scale}));
  add(cases, make_case("quantize_f16", quantize(DType::U8),
                       {wide(tensor(DType::F16, {3, 50})), number(DType::F16, 0.3), number(DType::U8, 100)}));
  add(cases,
      make_case("quantize_f16_axis", quantize(DType::I8, -1),
                {wide(tensor(DType::F16, {3, 5})), tensor(DType::F16, {5}), quantized(DType::I8, {5})}));
}

void add_dequantize(std::vector<Case>& cases) {
  const CaseInput scale = number(DType::F32, 0.3);
  for (const DType dtype : {DType::U8, DType::I8, DType::U16, DType::I16})
    add(cases, make_case(std::string("dequantize_").append(name_of(dtype)), dequantize(DType::F32),
                         {quantized(dtype, {3, 4, 5}), scale, number(dtype, 7)}));
  const CaseInput x = quantized(DType::U8, {3, 4, 5});
  add(cases, make_case("dequantize_i32", dequantize(DType::F32),
                       {in_range(tensor(DType::I32, {3, 7}), -9e4, 9e4), scale}));
  add(cases,
      make_case("dequantize_axis", dequantize(DType::F32, 1), {x, f32({4}), quantized(DType::U8, {4})}));
  add(cases, make_case("dequantize_last_axis", dequantize(DType::F32, -1), {x, f32({5})}));
  add(cases, make_case("dequantize_blocks", dequantize(DType::F32, 1, 3),
                       {x, f32({3, 2, 5}), quantized(DType::U8, {3, 2, 5})}));
  add(cases, make_case("dequantize_last_blocks", dequantize(DType::F32, 2, 2),
                       {x, f32({3, 4, 3}), quantized(DType::U8, {3, 4, 3})}));
  add(cases, make_case("dequantize_f16", dequantize(DType::F16),
                       {x, number(DType::F16, 0.3), number(DType::U8, 9)}));
  add(cases, make_case("dequantize_many", dequantize(DType::F32), {quantized(DType::I8, {7, 1111}), scale}));
}

void add_narrow(std::vector<Case>& cases) {
  const std::vector<double> corners = {0.0,   -0.0,  1.0625, 1.1875, 448,  464,  465,   -500,
                                       57344, 61439, 61441,  -1e30,  1e-3, 6e-8, 1e-40, -7e-6,
                                       2.5,   5,     7,      -6.1,   240,  248,  1.3,   -0.4};
  int number = 0;
  for (const auto format :
       {op::NarrowFormat::Float8E4M3FN, op::NarrowFormat::Float8E4M3FNUZ, op::NarrowFormat::Float8E5M2,
        op::NarrowFormat::Float8E5M2FNUZ, op::NarrowFormat::Float4E2M1})
    for (const bool saturate : {true, false})
      add(cases, make_case("narrow_float_" + std::to_string(number++), narrow(format, saturate),
                           {with_values(f32({24}), corners)}));
}

void add_matmuls(std::vector<Case>& cases) {
  const op::MatMulIntegerAttributes matmul;
  for (const DType a : {DType::U8, DType::I8})
    for (const DType b : {DType::U8, DType::I8}) {
      const std::string types = std::string(name_of(a)).append("_").append(name_of(b));
      add(cases, make_case("matmul_integer_" + types, matmul,
                           {quantized(a, {5, 70}), quantized(b, {70, 9}), number(a, 3), number(b, 11)}));
      add(cases,
          make_case("matmul_integer_constant_" + types, matmul,
                    {quantized(a, {6, 64}), constant(quantized(b, {64, 32})), number(a, 3), number(b, 11)}));
      add(cases,
          make_case("conv_integer_" + types, conv<op::ConvIntegerAttributes>({1, 1}, {1, 1, 1, 1}, {1, 1}),
                    {quantized(a, {2, 6, 5, 4}), constant(quantized(b, {8, 3, 3, 4})), number(a, 5),
                     number(b, 2)}));
    }
  const CaseInput a = quantized(DType::U8, {4, 17}), b = quantized(DType::I8, {17, 6});
  add(cases, make_case("matmul_integer_plain", matmul, {a, b}));
  add(cases, make_case("matmul_integer_fours", matmul,
                       {quantized(DType::U8, {3, 2, 12}), constant(quantized(DType::I8, {12, 20})),
                        number(DType::U8, 7), constant(number(DType::I8, 0))}));
  add(cases, make_case("matmul_integer_rows", matmul, {a, b, quantized(DType::U8, {4, 1})}));
  add(cases, make_case("matmul_integer_columns", matmul, {a, b, std::nullopt, quantized(DType::I8, {6})}));
  add(cases, make_case("matmul_integer_extremes", matmul,
                       {with_values(tensor(DType::U8, {1, 4}), {255, 255, 255, 255}),
                        with_values(tensor(DType::U8, {4, 1}), {255, 255, 0, 255}), number(DType::U8, 0),
                        number(DType::U8, 255)}));
  add(cases, make_case("matmul_integer_batch", matmul,
                       {quantized(DType::U8, {2, 3, 4, 5}), quantized(DType::U8, {3, 5, 6}),
                        quantized(DType::U8, {3, 4, 1}), quantized(DType::U8, {3, 1, 6})}));
  add(cases, make_case("matmul_integer_shared", matmul,
                       {quantized(DType::I8, {2, 3, 8}), constant(quantized(DType::I8, {8, 4})),
                        quantized(DType::I8, {2, 3, 1})}));
  add(cases, make_case("matmul_integer_empty", matmul,
                       {quantized(DType::U8, {2, 0}), quantized(DType::U8, {0, 3})}));

  const CaseInput x = quantized(DType::U8, {1, 7, 8, 4});
  add(cases, make_case("conv_integer_plain", conv<op::ConvIntegerAttributes>({2, 1}, {0, 0, 0, 0}, {1, 1}),
                       {x, quantized(DType::I8, {6, 3, 2, 4})}));
  add(cases, make_case("conv_integer_channels", conv<op::ConvIntegerAttributes>({1, 1}, {1, 0, 2, 1}, {1, 2}),
                       {x, constant(quantized(DType::U8, {6, 3, 3, 4})), number(DType::U8, 7),
                        quantized(DType::U8, {6})}));
  add(cases,
      make_case("conv_integer_grouped", conv<op::ConvIntegerAttributes>({1, 1}, {1, 1, 1, 1}, {1, 1}, 2),
                {x, constant(quantized(DType::U8, {6, 3, 3, 2})), number(DType::U8, 7),
                 quantized(DType::U8, {6})}));
  add(cases,
      make_case("conv_integer_depthwise", conv<op::ConvIntegerAttributes>({1, 1}, {1, 1, 1, 1}, {1, 1}, 16),
                {quantized(DType::U8, {1, 6, 6, 16}), constant(quantized(DType::I8, {16, 3, 3, 1})),
                 number(DType::U8, 7)}));
  add(cases, make_case("conv_integer_wide", conv<op::ConvIntegerAttributes>({1, 1}, {1, 1, 1, 1}, {1, 1}),
                       {quantized(DType::U8, {1, 8, 8, 32}), constant(quantized(DType::I8, {32, 3, 3, 32})),
                        number(DType::U8, 7)}));
  add(cases,
      make_case("conv_integer_1d", conv<op::ConvIntegerAttributes>({2}, {1, 1}, {1}),
                {quantized(DType::I8, {2, 9, 3}), quantized(DType::I8, {5, 3, 3}), number(DType::I8, 4)}));
  add(cases,
      make_case("conv_integer_3d", conv<op::ConvIntegerAttributes>({1, 1, 1}, {0, 1, 0, 1, 1, 0}, {1, 1, 1}),
                {quantized(DType::U8, {1, 4, 5, 4, 3}), constant(quantized(DType::I8, {4, 2, 3, 2, 3})),
                 number(DType::U8, 4)}));
}

/// The gradient is not the derivative of the function; pages_quantize_test.cpp tests its values.
void add_fake(std::vector<Case>& cases) {
  const auto fake = [&](const char* name, int64_t levels, CaseInput low, CaseInput high) {
    op::FakeQuantizeAttributes attributes;
    attributes.levels = levels;
    add(cases, no_gradient(make_case(name, attributes, {f32({2, 5, 3}), std::move(low), std::move(high)})));
  };
  const auto number = [](double value) { return with_values(f32({}), {value}); };
  fake("fake_quantize_u8", 255, number(-1.3), number(1.7));
  fake("fake_quantize_positive", 255, number(0.4), number(1.9));
  fake("fake_quantize_empty", 255, number(0), number(0));
  fake("fake_quantize_4_bits", 14, with_values(f32({5, 1}), {-0.5, -1, -1.5, -2, 0}),
       with_values(f32({5, 1}), {0.5, 1, 1.5, 2, 0}));
}

}  // namespace

std::vector<Case> cases_quantize() {
  std::vector<Case> cases;
  add_quantize(cases);
  add_dequantize(cases);
  add_narrow(cases);
  add_matmuls(cases);
  add_fake(cases);
  return cases;
}

}  // namespace librt::test
