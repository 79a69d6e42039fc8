// Operators that ONNX Runtime's quantizers write, against formulas.
#include <algorithm>
#include <cmath>

#include "tests/support/node_model.h"

namespace librt::onnx {
namespace {

using test::at;
using test::expect_near;
using test::NodeModel;
using test::sample_values;
using Numbers = std::vector<double>;

/// y = x w^T of weights packed low bits first, in blocks of 16 of which the last is partial.
void expect_blocked_matmul(size_t bits, bool zeros) {
  const size_t rows = 2, k = 20, n = 3, size = 16, blocks = 2, per_byte = 8 / bits;
  const auto x = sample_values(rows * k, 1), scales = sample_values(n * blocks, 2),
             bias = sample_values(n, 3);
  std::vector<uint8_t> weight(n * blocks * size / per_byte);
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<uint8_t>(i * 37 + 11);
  const size_t zero_row = (blocks * bits + 7) / 8;
  std::vector<uint8_t> zero(n * zero_row);
  for (size_t i = 0; i < zero.size(); ++i) zero[i] = static_cast<uint8_t>(i * 91 + 6);
  const auto packed = [&](const std::vector<uint8_t>& bytes, size_t first, size_t i) {
    return (bytes[first + i / per_byte] >> (i % per_byte * bits)) & ((1 << bits) - 1);
  };
  Numbers expected;
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < n; ++column) {
      double sum = at(bias, column);
      for (size_t i = 0; i < k; ++i) {
        const int code = packed(weight, column * blocks * size / per_byte, i);
        const int offset = zeros ? packed(zero, column * zero_row, i / size) : 1 << (bits - 1);
        sum += at(x, row * k + i) * (code - offset) * at(scales, column * blocks + i / size);
      }
      expected.push_back(sum);
    }
  NodeModel model("MatMulNBits");
  model.constant<float>({2, 20}, x).constant<uint8_t>({3, 2, static_cast<int64_t>(size / per_byte)}, weight);
  model.constant<float>({6}, scales);
  if (zeros)
    model.constant<uint8_t>({static_cast<int64_t>(zero.size())}, zero);
  else
    model.absent();
  model.absent().constant<float>({3}, bias);
  model.integer("K", 20)
      .integer("N", 3)
      .integer("bits", static_cast<int64_t>(bits))
      .integer("block_size", 16);
  expect_near(model.values()[0], expected, bits == 8 ? 2e-3 : 1e-4);
}

TEST(ImporterFusedQuantized, WeightsOfAFewBitsWithAndWithoutZeroPoints) {
  for (const size_t bits : {2u, 4u, 8u})
    for (bool zeros : {false, true}) {
      SCOPED_TRACE(testing::Message() << bits << " bits, zeros " << zeros);
      expect_blocked_matmul(bits, zeros);
    }
}

TEST(ImporterFusedQuantized, WeightsOfAnotherSizeAreRefused) {
  NodeModel model("MatMulNBits");
  model.constant<float>({1, 16}, sample_values(16)).constant<uint8_t>({1, 1, 7}, std::vector<uint8_t>(7));
  model.constant<float>({1}, {1}).integer("K", 16).integer("N", 1).integer("bits", 4).integer("block_size",
                                                                                              16);
  const auto result = model.convert();
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("blocks of 8 bytes"), std::string::npos)
      << result.status().message();
}

TEST(ImporterFusedQuantized, GemmOfBytesAddsItsAddendInTheScaleOfTheSums) {
  const std::vector<uint8_t> a{10, 20, 30, 40};  // [2,2], transposed: rows 10 30 and 20 40
  const std::vector<int8_t> b{1, -2, 3, 4};
  // (a - 5) (b - 1): rows 5 25, 15 35 times 0 -3; 2 3
  const double sums[] = {50, 60, 70, 60};
  struct Addend {
    std::vector<int64_t> dims;
    std::vector<int32_t> values;
  };
  for (const Addend& addend : {Addend{{1, 2}, {100, -100}}, {{2}, {100, -100}}, {{1}, {-30}}, {{}, {40}}}) {
    const auto filled = [&](bool quantized) {
      NodeModel model("QGemm");
      model.constant<uint8_t>({2, 2}, a).number(0.5f).number<uint8_t>(5);
      model.constant<int8_t>({2, 2}, b).number(0.25f).number<int8_t>(1);
      model.constant<int32_t>(addend.dims, addend.values);
      if (quantized) model.number(2.0f).number<uint8_t>(7);
      model.integer("transA", 1).real("alpha", 2);
      return model.values()[0];
    };
    Numbers real, bytes;
    for (size_t i = 0; i < 4; ++i) {
      const double sum = sums[i] + addend.values[i % addend.values.size()];
      real.push_back(sum * 0.25);
      bytes.push_back(std::clamp(std::nearbyint(sum * 0.25 / 2) + 7, 0.0, 255.0));
    }
    expect_near(filled(false), real, 1e-4);
    expect_near(filled(true), bytes, 0);
  }
}

TEST(ImporterFusedQuantized, ByteMatmulsAreDequantized) {
  NodeModel model("MatMulIntegerToFloat");
  model.constant<uint8_t>({1, 2}, {3, 5}).constant<int8_t>({2, 2}, {1, -1, 2, 4});
  model.number(0.5f).constant<float>({2}, {2, 3}).number<uint8_t>(1).constant<int8_t>({2}, {0, 1});
  model.constant<float>({2}, {10, 20});
  // 2 4 times 1 2 and -2 3
  expect_near(model.values()[0], {10 + 10 * 1.0, 20 + 8 * 1.5}, 1e-5);
  // The range of x is -1 .. 4, its scale 5 / 255, its zero point 51.
  NodeModel dynamic("DynamicQuantizeMatMul");
  dynamic.constant<float>({1, 2}, {-1, 4}).constant<int8_t>({2, 1}, {3, 2}).number(0.5f);
  expect_near(dynamic.values()[0], {(-1 * 3 + 4 * 2) * 0.5}, 1e-5);
}

TEST(ImporterFusedQuantized, MeansAndChoicesBetweenBytes) {
  NodeModel mean("QLinearReduceMean");
  mean.constant<uint8_t>({2, 2}, {10, 20, 30, 60})
      .number(0.5f)
      .number<uint8_t>(2)
      .number(0.25f)
      .number<uint8_t>(1);
  mean.integers("axes", {0, 1}).integer("keepdims", 0);
  // (8 + 18 + 28 + 58) / 4 = 28, times 2, plus 1
  expect_near(mean.values()[0], {57}, 0);
}

TEST(ImporterFusedQuantized, ChoicesAreBroughtToOneScale) {
  const std::vector<uint8_t> x{12, 14, 16}, y{1, 2, 3};
  NodeModel model("QLinearWhere");
  model.condition({3}, {1, 0, 1});
  model.constant<uint8_t>({3}, x).number(0.5f).number<uint8_t>(10);
  model.constant<uint8_t>({3}, y).number(2.0f).number<uint8_t>(0).number(0.25f).number<uint8_t>(5);
  // 1, 4, 3
  expect_near(model.values()[0], {9, 21, 17}, 0);
}

TEST(ImporterFusedQuantized, SoftmaxBeforeOpset13TakesAllAxesFromTheFirst) {
  const std::vector<uint8_t> x{0, 10, 20, 30};
  const auto softmax = [&](int64_t opset) {
    NodeModel model("QLinearSoftmax");
    model.constant<uint8_t>({1, 2, 2}, x)
        .number(0.1f)
        .number<uint8_t>(0)
        .number(1 / 256.0f)
        .number<uint8_t>(0);
    return model.integer("axis", 1).integer("opset", opset).values()[0];
  };
  const double all = 1 + std::exp(1.0) + std::exp(2.0) + std::exp(3.0), two = 1 + std::exp(2.0);
  Numbers flat, column;
  for (int i = 0; i < 4; ++i) {
    flat.push_back(std::nearbyint(256 * std::exp(i) / all));
    column.push_back(std::min(255.0, std::nearbyint(256 * std::exp(i < 2 ? 0.0 : 2.0) / two)));
  }
  expect_near(softmax(12), flat, 0);
  expect_near(softmax(13), column, 0);
}

/// One step of an LSTM of one unit: gates i o f c.
TEST(ImporterFusedQuantized, LstmWeightsLieInputsFirst) {
  const std::vector<int8_t> w{10, -20, 30, 40, 5, 6, -7, 8}, r{1, 2, 3, 4};
  const double x[] = {0.5, -1}, scales[] = {0.01, 0.02, 0.03, 0.04};
  double gates[4];
  for (size_t gate = 0; gate < 4; ++gate) {
    gates[gate] = 0;
    for (size_t i = 0; i < 2; ++i) gates[gate] += x[i] * (w[i * 4 + gate] - 1) * scales[gate];
  }
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const double cell = sigmoid(gates[0]) * std::tanh(gates[3]);
  NodeModel model("DynamicQuantizeLSTM", 3);
  model.constant<float>({1, 1, 2}, {0.5f, -1}).constant<int8_t>({1, 2, 4}, w).constant<int8_t>({1, 1, 4}, r);
  model.absent(5)
      .constant<float>({1, 4}, {0.01f, 0.02f, 0.03f, 0.04f})
      .constant<int8_t>({1, 4}, {1, 1, 1, 1});
  model.constant<float>({1}, {0.01f}).constant<int8_t>({1}, {0}).integer("hidden_size", 1);
  const auto found = model.values();
  expect_near(found[0], {sigmoid(gates[1]) * std::tanh(cell)}, 1e-5);
  expect_near(found[2], {cell}, 1e-5);
}

TEST(ImporterFusedQuantized, RuntimesQuantizeLinearKnowsAxes) {
  NodeModel quantize("QuantizeLinear");
  quantize.constant<float>({2, 2}, {1, 2, 3, 4}).constant<float>({2}, {0.5f, 0.25f});
  quantize.constant<uint8_t>({2}, {1, 2}).integer("axis", 0);
  expect_near(quantize.values()[0], {3, 5, 14, 18}, 0);
  NodeModel back("DequantizeLinear");
  back.constant<uint8_t>({2, 2}, {3, 5, 14, 18})
      .constant<float>({2}, {0.5f, 0.25f})
      .constant<uint8_t>({2}, {1, 2});
  expect_near(back.integer("axis", 0).values()[0], {1, 2, 3, 4}, 0);
}

TEST(ImporterFusedQuantized, PoolsWithTheChannelsLast) {
  NodeModel pool("NhwcMaxPool");
  pool.constant<uint8_t>({1, 2, 2, 2}, {1, 8, 3, 6, 5, 4, 7, 2}).integers("kernel_shape", {2, 1});
  expect_near(pool.values()[0], {5, 8, 7, 6}, 0);
}

}  // namespace
}  // namespace librt::onnx
