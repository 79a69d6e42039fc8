// Products of integers with 32-bit sums.
#include "tests/cases/case.h"
#include "tests/support/attributes.h"

namespace librt::test {
namespace {

void add(std::vector<Case>& cases, Case test_case) {
  cases.push_back(no_gradient(std::move(test_case)));
}

}  // namespace

std::vector<Case> cases_integer_matmul() {
  std::vector<Case> cases;
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
  add(cases, make_case("conv_integer_strided", conv<op::ConvIntegerAttributes>({2, 3}, {2, 1, 0, 2}, {1, 2}),
                       {quantized(DType::U8, {2, 19, 23, 1}), constant(quantized(DType::U8, {20, 5, 4, 1})),
                        number(DType::U8, 113), number(DType::U8, 125)}));
  add(cases, make_case("conv_integer_wide_u8", conv<op::ConvIntegerAttributes>({1, 1}, {2, 2, 2, 2}, {1, 1}),
                       {quantized(DType::U8, {1, 28, 28, 40}), constant(quantized(DType::U8, {8, 5, 5, 40})),
                        number(DType::U8, 113), number(DType::U8, 125)}));
  add(cases,
      make_case("conv_integer_zero_padded", conv<op::ConvIntegerAttributes>({1, 2}, {3, 2, 1, 2}, {2, 1}),
                {quantized(DType::U8, {1, 9, 10, 8}), constant(quantized(DType::U8, {5, 3, 3, 8}))}));
  add(cases, make_case("conv_integer_3d_u8",
                       conv<op::ConvIntegerAttributes>({1, 2, 1}, {0, 1, 0, 1, 1, 0}, {1, 1, 1}),
                       {quantized(DType::I8, {2, 4, 5, 4, 3}),
                        constant(quantized(DType::U8, {4, 2, 3, 2, 3})), number(DType::I8, -4)}));
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
      make_case("conv_integer_unit_axis", conv<op::ConvIntegerAttributes>({2, 1}, {2, 0, 1, 0}, {1, 1}),
                {quantized(DType::U8, {2, 13, 1, 16}), quantized(DType::I8, {32, 5, 1, 16}),
                 number(DType::U8, 4)}));
  add(cases,
      make_case("conv_integer_3d", conv<op::ConvIntegerAttributes>({1, 1, 1}, {0, 1, 0, 1, 1, 0}, {1, 1, 1}),
                {quantized(DType::U8, {1, 4, 5, 4, 3}), constant(quantized(DType::I8, {4, 2, 3, 2, 3})),
                 number(DType::U8, 4)}));
  return cases;
}

}  // namespace librt::test
