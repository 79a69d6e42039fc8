#include "tests/cases/case.h"

#include <cmath>

namespace librt::test {
namespace {

/// Ascending from -1, or from 0, to 1, denser around 0.
CaseInput codebook(int64_t levels, bool is_signed) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < levels; ++i) {
    const double place = static_cast<double>(i) / static_cast<double>(levels - 1);
    numbers.push_back(std::pow(is_signed ? 2 * place - 1 : place, 3));
  }
  CaseInput input = with_values(f32({levels}), numbers);
  input.constant = true;
  return input;
}

void add(std::vector<Case>& cases, const std::string& name, CaseInput x, CaseInput numbers, int64_t block,
         bool keep_positive = false) {
  op::BlockQuantizeAttributes attributes;
  attributes.block_size = block;
  attributes.keep_positive = keep_positive;
  cases.push_back(no_gradient(
      with_outputs(make_case("block_quantize_" + name, attributes, {std::move(x), std::move(numbers)}), 2)));
}

}  // namespace

std::vector<Case> cases_block_quantize() {
  std::vector<Case> cases;
  add(cases, "signed", f32({9, 100}), codebook(255, true), 256);
  add(cases, "small_blocks", f32({70}), codebook(7, true), 5);
  add(cases, "large_block", f32({3, 1100}), codebook(256, true), 2048);
  add(cases, "positive", in_range(f32({1000}), 0, 2), codebook(256, false), 64);
  add(cases, "kept_positive", with_values(f32({8}), {0, 1e-9, 1, 1e-6, 0, 0.5, 0, 0}), codebook(64, false), 4,
      true);
  add(cases, "zeros", with_values(f32({4}), {0, 0, 0, 0}), codebook(16, true), 4);

  op::BlockDequantizeAttributes attributes;
  attributes.block_size = 64;
  CaseInput codes = in_range(tensor(DType::U8, {11, 30}), 0, 254.9);
  cases.push_back(no_gradient(
      make_case("block_dequantize", attributes, {codes, in_range(f32({6}), 0.1, 3), codebook(255, true)})));
  cases.push_back(no_gradient(make_case("block_dequantize_beyond", attributes,
                                        {codes, in_range(f32({6}), 0.1, 3), codebook(20, true)})));
  return cases;
}

}  // namespace librt::test
