// Quantization, its inverse, narrow floats.
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
  add_fake(cases);
  return cases;
}

}  // namespace librt::test
