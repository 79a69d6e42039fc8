// Values and errors of the quantized operators.
#include <cmath>

#include "tests/support/attributes.h"
#include "tests/unit/page_test_support.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/pipeline.h"
#include "tools/compiler/train/autodiff.h"

namespace librt::test {
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
  // The last block is partial.
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

TEST(PagesQuantize, ErrorsOfIntegerMatmuls) {
  const auto a = tensor(DType::U8, {2, 3}, {1, 2, 3, 4, 5, 6}),
             b = tensor(DType::I8, {3, 2}, {1, 2, 3, 4, 5, 6});
  const op::MatMulIntegerAttributes matmul;
  expect_error(matmul, {a, f32({3, 2}, {1, 1, 1, 1, 1, 1})}, "b");
  expect_error(matmul, {a, b, tensor(DType::I8, {}, {1})}, "same type");
  expect_error(matmul, {a, b, tensor(DType::U8, {1, 3}, {1, 1, 1})}, "a zero point that broadcasts to [2,1]");
  expect_error(matmul, {a, b, std::nullopt, tensor(DType::I8, {3, 1}, {1, 1, 1})}, "broadcasts to [1,2]");
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

/// FakeQuantize of x with a constant range: its value, and its gradient for an upstream gradient of 1, 2, 3,
/// ..
std::array<std::vector<double>, 2> faked(const ops::HostTensor& x, const ops::HostTensor& low,
                                         const ops::HostTensor& high, int64_t levels) {
  Graph graph;
  compiler::Builder b(graph);
  const auto constant = [&](const ops::HostTensor& value) {
    return b.constant(value.info, Blob::copy_of(value.bytes.data(), value.bytes.size()));
  };
  std::vector<Dim> dims;
  for (const int64_t extent : x.info.shape) dims.push_back({.extent = extent});
  ops::HostTensor factors(x.info);
  for (int64_t i = 0; i < x.info.elements(); ++i)
    store_element(factors.bytes.data(), DType::F32, i, static_cast<double>(i + 1));
  op::FakeQuantizeAttributes attributes;
  attributes.levels = levels;
  const ValueId input = b.input("x", DType::F32, dims);
  const ValueId y = b.emit(attributes, {input, constant(low), constant(high)});
  const ValueId loss = b.reduce_sum(b.mul(y, constant(factors)), {}, false);
  const auto gradients = compiler::differentiate(b, loss, std::array{input});
  EXPECT_TRUE(gradients.ok()) << gradients.status().message();
  b.output(y);
  b.output((*gradients)[0]);
  EXPECT_TRUE(compiler::expand_composites(graph, {}).ok());
  const ConstTensorView view = x.view();
  const auto results = ops::evaluate_graph(graph, std::span(&view, 1));
  EXPECT_TRUE(results.ok()) << results.status().message();
  return {numbers((*results)[0]), numbers((*results)[1])};
}

TEST(PagesQuantize, FakeQuantizeRoundsToQuantizedValues) {
  // A step of 0.5, quantized values 0 to 15 with zero point 5: from -2.5 to 5. Up to half a step beyond is
  // still rounded.
  const auto x = f32({8}, {-2.8, -2.6, -0.3, 0.2, 0.25, 1.8, 5.2, 5.3});
  const auto [y, gradient] = faked(x, f32({}, {-2.4}), f32({}, {5.1}), 15);
  expect_values(y, {-2.5, -2.5, -0.5, 0, 0, 2, 5, 5});
  expect_values(gradient, {0, 2, 3, 4, 5, 6, 7, 0});
}

TEST(PagesQuantize, FakeQuantizeIsQuantizeAndDequantize) {
  std::vector<double> values;
  for (int i = 0; i < 200; ++i)
    values.push_back(static_cast<double>(static_cast<float>(3 * std::sin(i * i))));
  const auto x = f32({200}, values);
  const float low = -1.7f, high = 2.1f, scale = (high - low) / 255;
  const auto zero = tensor(DType::U8, {}, {static_cast<double>(std::nearbyint(-low / scale))});
  const auto quantized = run_one(quantize(DType::U8), {x, f32({}, {static_cast<double>(scale)}), zero});
  ASSERT_TRUE(quantized.ok()) << quantized.status().message();
  const auto real =
      run_one(dequantize(DType::F32), {*quantized, f32({}, {static_cast<double>(scale)}), zero});
  ASSERT_TRUE(real.ok()) << real.status().message();
  const auto [y, gradient] =
      faked(x, f32({}, {static_cast<double>(low)}), f32({}, {static_cast<double>(high)}), 255);
  expect_values(y, numbers(*real), 0);
}

TEST(PagesQuantize, FakeQuantizeByChannelAndWithoutARange) {
  // The second row's range is empty: nothing is rounded, and the whole gradient passes.
  const auto x = f32({2, 3}, {0.3, -1, 2, 0.3, -1, 2});
  const auto [y, gradient] = faked(x, f32({2, 1}, {-1, 0}), f32({2, 1}, {1, 0}), 2);
  expect_values(y, {0, -1, 1, 0.3, -1, 2});
  expect_values(gradient, {1, 2, 0, 4, 5, 6});
  // A range above 0 is widened, as 0 must be exactly representable.
  const auto [wide, passed] = faked(f32({2}, {0.2, 0.9}), f32({}, {0.5}), f32({}, {1}), 4);
  expect_values(wide, {0.25, 1});
  expect_values(passed, {1, 2});
  op::FakeQuantizeAttributes attributes;
  expect_error(attributes, {x, f32({3, 1}, {1, 1, 1}), f32({}, {1})}, "broadcast");
  expect_error(attributes, {f32({}, {1}), f32({2}, {1, 1}), f32({}, {1})},
               "expected a range that broadcasts to x");
  attributes.levels = 0;
  expect_error(attributes, {x, f32({}, {0}), f32({}, {1})}, "expected 1 to 65535 levels");
}

}  // namespace
}  // namespace librt::test
