// Products with weights of 8 and 4 bits.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

CaseInput reals(int64_t channels) {
  return constant(in_range(f32({channels}), -3, 3));
}

void add(std::vector<Case>& cases, Case test_case) {
  cases.push_back(no_gradient(std::move(test_case)));
}
/// A backend may quantize rows to 16 bits, with an error of 1.6e-5 of the largest of 32 elements, which is
/// more than the page allows where results of up to 100 cancel.
Case rounded(Case test_case, double absolute) {
  return within(std::move(test_case), 1e-4, absolute);
}

}  // namespace

std::vector<Case> cases_weight_quantized() {
  std::vector<Case> cases;
  const auto matmul = [](int64_t bits, int64_t group) {
    op::WeightQuantizedMatMulAttributes attributes;
    attributes.bits = bits;
    attributes.group_size = group;
    return attributes;
  };
  for (const int64_t rows : {1, 3, 20, 70}) {
    const std::string suffix = "_" + std::to_string(rows);
    add(cases, rounded(make_case("weight_quantized_i8" + suffix, matmul(8, 32),
                                 {f32({2, rows, 128}), constant(quantized(DType::I8, {50, 128})),
                                  constant(in_range(f32({50, 4}), 0.01, 0.02)), reals(50)}),
                       2e-3));
    add(cases, make_case("weight_quantized_i4" + suffix, matmul(4, 64),
                         {f32({rows, 128}), constant(in_range(tensor(DType::U8, {50, 64}), 0, 255.9)),
                          constant(in_range(f32({50, 2}), 0.01, 0.02))}));
  }
  add(cases, rounded(make_case("weight_quantized_fours", matmul(4, 64),
                               {f32({9, 256}), in_range(tensor(DType::U8, {68, 128}), 0, 255.9),
                                in_range(f32({68, 4}), 0.01, 0.02), reals(68)}),
                     2e-3));
  for (const int64_t group : {32, 128, 256})  // single rows, 4-bit weights
    add(cases, make_case("weight_quantized_i4_groups_of_" + std::to_string(group), matmul(4, group),
                         {f32({1, 512}), constant(in_range(tensor(DType::U8, {37, 256}), 0, 255.9)),
                          constant(in_range(f32({37, 512 / group}), 0.01, 0.02)), reals(37)}));
  add(cases, make_case("weight_quantized_i4_long", matmul(4, 64),
                       {f32({1, 2368}), constant(in_range(tensor(DType::U8, {6, 1184}), 0, 255.9)),
                        constant(in_range(f32({6, 37}), 0.01, 0.02)), reals(6)}));
  // Rows of more than 128 vectors of 16 bytes, and not a multiple of that.
  add(cases, rounded(make_case("weight_quantized_i4_longer", matmul(4, 32),
                               {f32({1, 4160}), constant(in_range(tensor(DType::U8, {5, 2080}), 0, 255.9)),
                                constant(in_range(f32({5, 130}), 0.01, 0.02)), reals(5)}),
                     3e-4));
  add(cases, rounded(make_case("weight_quantized_i8_longer", matmul(8, 64),
                               {f32({1, 2112}), constant(quantized(DType::I8, {6, 2112})),
                                constant(in_range(f32({6, 33}), 0.01, 0.02))}),
                     2e-3));
  add(cases, make_case("weight_quantized_i8_long", matmul(8, 12),
                       {f32({9, 1092}), constant(quantized(DType::I8, {7, 1092})),
                        constant(in_range(f32({7, 91}), 0.01, 0.02))}));
  add(cases, make_case("weight_quantized_small_groups", matmul(8, 5),
                       {f32({3, 15}), constant(quantized(DType::I8, {7, 15})),
                        constant(in_range(f32({7, 3}), 0.01, 0.02))}));
  return cases;
}

}  // namespace librt::test
