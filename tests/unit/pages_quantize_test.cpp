// Values and errors of the quantized operators.
#include "tests/support/attributes.h"
#include "tests/unit/page_test_support.h"

namespace rt::test {
namespace {

TEST(PagesQuantize, RoundsTiesToEvenAndSaturates) {
  const auto x = f32({9}, {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e30, -kInfinity, kNaN});
  expect_result(quantize(DType::I8), {x, f32({}, {1})},
                tensor(DType::I8, {9}, {-2, -2, 0, 0, 2, 2, 127, -128, 0}));
  // The tie is rounded before the zero point is added.
  expect_result(quantize(DType::U8), {x, f32({}, {1}), tensor(DType::U8, {}, {1})},
                tensor(DType::U8, {9}, {0, 0, 1, 1, 3, 3, 255, 0, 1}));
}

TEST(PagesQuantize, TheQuotientHasTheScalesType) {
  // 4.5 by the f16 nearest to 1.8 is 2.5003, which is 2.5 as an f16: a tie.
  const auto x = tensor(DType::F16, {1}, {4.5}), scale = tensor(DType::F16, {}, {1.8});
  const double divisor = numbers(scale)[0];
  ASSERT_NE(4.5 / divisor, 2.5);
  expect_result(quantize(DType::U8), {x, scale}, tensor(DType::U8, {1}, {2}));
}

TEST(PagesQuantize, ScalesAlongAnAxisAndInBlocks) {
  const auto x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_result(quantize(DType::U8, 0), {x, f32({2}, {1, 2})}, tensor(DType::U8, {2, 3}, {1, 2, 3, 2, 2, 3}));
  expect_result(quantize(DType::U8, -1), {x, f32({3}, {1, 2, 3})},
                tensor(DType::U8, {2, 3}, {1, 1, 1, 4, 2, 2}));
  // The last block is short.
  expect_result(quantize(DType::I16, 1, 2), {x, f32({2, 2}, {1, 3, 2, 6})},
                tensor(DType::I16, {2, 3}, {1, 2, 1, 2, 2, 1}));
  expect_result(
      dequantize(DType::F32, 1, 2),
      {tensor(DType::I8, {1, 3}, {1, 2, 3}), f32({1, 2}, {2, 3}), tensor(DType::I8, {1, 2}, {1, -1})},
      f32({1, 3}, {0, 2, 12}));
}

TEST(PagesQuantize, DifferencesAreExact) {
  expect_result(dequantize(DType::F32),
                {tensor(DType::U8, {2}, {0, 255}), f32({}, {0.5}), tensor(DType::U8, {}, {255})},
                f32({2}, {-127.5, 0}));
  expect_result(
      dequantize(DType::F32),
      {tensor(DType::I32, {1}, {2147483647}), f32({}, {1}), tensor(DType::I32, {}, {-2147483648.0})},
      f32({1}, {4294967295.0}));
}

TEST(PagesQuantize, Errors) {
  const auto x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_error(quantize(DType::I32), {x, f32({}, {1})}, "expected one of i8, u8, i16, u16 as `to`");
  expect_error(quantize(DType::U8), {x, tensor(DType::F16, {}, {1})}, "same type");
  expect_error(quantize(DType::U8), {x, f32({2}, {1, 1})},
               "expected a scale of one element, or of 3 along axis 1");
  expect_error(quantize(DType::U8), {x, f32({1, 3}, {1, 1, 1})}, "or of 3 along axis 1");
  expect_error(quantize(DType::U8, 2), {x, f32({3}, {1, 1, 1})}, "expected an axis of the rank 2, found 2");
  expect_error(quantize(DType::U8, 1, 2), {x, f32({2, 3}, {1, 1, 1, 1, 1, 1})}, "expected a scale [2,2]");
  expect_error(quantize(DType::U8, 1, -2), {x, f32({2, 2}, {1, 1, 1, 1})}, "block size of 0 or more");
  expect_error(quantize(DType::U8), {x, f32({}, {1}), tensor(DType::I8, {}, {1})}, "zero_point");
  expect_error(quantize(DType::U8), {x, f32({}, {1}), tensor(DType::U8, {3}, {1, 1, 1})}, "zero_point");
  expect_error(dequantize(DType::F64), {tensor(DType::I8, {}, {1}), f32({}, {1})}, "as `to`");
  expect_error(dequantize(DType::F32), {tensor(DType::I64, {}, {1}), f32({}, {1})}, "x");
}

TEST(PagesQuantize, ErrorsOfIntegerProducts) {
  const auto a = tensor(DType::U8, {2, 3}, {1, 2, 3, 4, 5, 6}),
             b = tensor(DType::I8, {3, 2}, {1, 2, 3, 4, 5, 6});
  const op::MatMulIntegerAttributes product;
  expect_error(product, {a, f32({3, 2}, {1, 1, 1, 1, 1, 1})}, "b");
  expect_error(product, {a, b, tensor(DType::I8, {}, {1})}, "same type");
  expect_error(product, {a, b, tensor(DType::U8, {1, 3}, {1, 1, 1})},
               "a zero point that broadcasts to [2,1]");
  expect_error(product, {a, b, std::nullopt, tensor(DType::I8, {3, 1}, {1, 1, 1})}, "broadcasts to [1,2]");
  const auto x = tensor(DType::U8, {1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
             w = tensor(DType::I8, {3, 1, 2}, {1, 2, 3, 4, 5, 6});
  expect_error(op::ConvIntegerAttributes{}, {x, w, tensor(DType::U8, {2}, {1, 1})}, "x_zero_point");
  expect_error(op::ConvIntegerAttributes{}, {x, w, std::nullopt, tensor(DType::I8, {2}, {1, 1})},
               "expected a weight_zero_point [] or [3]");
}

TEST(PagesQuantize, NarrowFloatRoundsWithinTheFormat) {
  op::NarrowFloatAttributes format;
  format.format = op::NarrowFormat::Float8E4M3FN;
  const auto x = f32({8}, {1.0625, 1.1875, 447, 464, 465, -kInfinity, kNaN, 0.0009765625});
  expect_result(format, {x}, f32({8}, {1, 1.25, 448, 448, 448, -448, kNaN, 0}));
  format.saturate = false;
  expect_result(format, {x}, f32({8}, {1, 1.25, 448, 448, kNaN, kNaN, kNaN, 0}));
  format.format = op::NarrowFormat::Float8E5M2;
  expect_result(format, {f32({3}, {61439, 61440, -1e30})}, f32({3}, {57344, kInfinity, -kInfinity}));
  format.format = static_cast<op::NarrowFormat>(99);
  expect_error(format, {x}, "expected a known format");
}

}  // namespace
}  // namespace rt::test
