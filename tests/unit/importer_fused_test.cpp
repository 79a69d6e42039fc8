// Operators that ONNX Runtime's optimizer writes, against formulas: activations, matmuls, normalizations.
#include <cmath>
#include <functional>

#include "tests/support/node_model.h"

namespace librt::onnx {
namespace {

using test::expect_near;
using test::NodeModel;
using test::sample_values;
using test::sigmoid;
using Numbers = std::vector<double>;

double gelu(double x) {
  return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
}
double tanh_gelu(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
}

TEST(ImporterFused, ActivationsAddTheirBiasFirst) {
  const auto x = sample_values(6, 1, 3), bias = sample_values(3, 2);
  Numbers plain, approximate, quick;
  for (size_t i = 0; i < 6; ++i) {
    const double sum = static_cast<double>(x[i]) + static_cast<double>(bias[i % 3]),
                 a = static_cast<double>(x[i]);
    plain.push_back(gelu(sum));
    approximate.push_back(tanh_gelu(sum));
    quick.push_back(a * sigmoid(0.5 * a));
  }
  const auto with_bias = [&](const char* op) {
    return NodeModel(op).constant<float>({2, 3}, x).constant<float>({3}, bias).values()[0];
  };
  expect_near(with_bias("BiasGelu"), plain, 1e-5);
  expect_near(with_bias("FastGelu"), approximate, 1e-5);
  expect_near(NodeModel("QuickGelu").constant<float>({6}, x).real("alpha", 0.5f).values()[0], quick, 1e-5);
  expect_near(NodeModel("QuickGelu").constant<float>({1}, std::vector{2.0f}).values()[0],
              {2 * sigmoid(3.404)}, 1e-5);
}

TEST(ImporterFused, SplitGeluGatesTheFirstHalfByTheSecond) {
  NodeModel model("BiasSplitGelu");
  model.constant<float>({1, 1, 4}, {1, -2, 0.5, 3}).constant<float>({4}, {0.5, 0, 1, -1});
  expect_near(model.values()[0], {1.5 * gelu(1.5), -2 * gelu(2)}, 1e-5);
  NodeModel sum("BiasAdd");
  sum.constant<float>({1, 1, 2}, {1, 2})
      .constant<float>({2}, {10, 20})
      .constant<float>({1, 1, 2}, {100, 200});
  expect_near(sum.values()[0], {111, 222}, 0);
}

TEST(ImporterFused, ConvolutionsAddTheSumBeforeTheActivation) {
  NodeModel model("FusedConv");
  model.constant<float>({1, 1, 1, 2}, {1, 2})
      .constant<float>({2, 1, 1, 1}, {1, -1})
      .constant<float>({2}, {0.5, 0})
      .constant<float>({1, 2, 1, 2}, {0, -9, 1, 1})
      .string("activation", "Clip")
      .reals("activation_params", {-3, 1});
  // 1.5, 2.5 - 9, -1 + 1, -2 + 1
  expect_near(model.values()[0], {1, -3, 0, -1}, 1e-6);
  NodeModel unknown("FusedConv");
  unknown.constant<float>({1, 1, 1}, {1}).constant<float>({1, 1, 1}, {1}).string("activation", "Gaussian");
  EXPECT_FALSE(unknown.convert().ok());
  ASSERT_EQ(unknown.report.unsupported.size(), 1u);
  EXPECT_NE(unknown.report.unsupported[0].reason.find("Gaussian"), std::string::npos);
}

TEST(ImporterFused, GemmIsScaledBeforeItsActivation) {
  NodeModel model("FusedGemm");
  model.constant<float>({2, 1}, {1, 2}).constant<float>({2, 2}, {1, 3, -2, 5}).constant<float>({2}, {1, -8});
  model.integer("transA", 1).integer("transB", 1).real("alpha", 2).real("beta", 0.5f);
  model.string("activation", "LeakyRelu").real("activation_alpha", 0.1f);
  // rows of b: 1 3, -2 5; dot products 7 and 8
  expect_near(model.values()[0], {14.5, 12}, 1e-5);
}

// y[b][m][n] = alpha sum_k a[m][b][k] b[..]
TEST(ImporterFused, MatMulTakesRowsAlongTheFirstAxis) {
  const size_t rows = 2, stack = 3, inner = 4, columns = 2;
  const auto a = sample_values(rows * stack * inner, 1), b = sample_values(stack * columns * inner, 2);
  Numbers expected;
  for (size_t s = 0; s < stack; ++s)
    for (size_t m = 0; m < rows; ++m)
      for (size_t n = 0; n < columns; ++n) {
        double sum = 0;
        for (size_t k = 0; k < inner; ++k)
          sum += static_cast<double>(a[(m * stack + s) * inner + k]) *
                 static_cast<double>(b[(s * columns + n) * inner + k]);
        expected.push_back(0.25 * sum);
      }
  NodeModel model("FusedMatMul");
  model.constant<float>({2, 3, 4}, a).constant<float>({3, 2, 4}, b);
  model.integer("transBatchA", 1).integer("transB", 1).real("alpha", 0.25f);
  expect_near(model.values()[0], expected, 1e-5);
}

// --- normalizations

Numbers normalized(const Numbers& x, const std::vector<float>& scale, const std::vector<float>& shift,
                   double epsilon, bool centered) {
  const size_t width = scale.size();
  Numbers y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < width && centered; ++i) mean += x[row + i] / static_cast<double>(width);
    for (size_t i = 0; i < width; ++i) square += std::pow(x[row + i] - mean, 2) / static_cast<double>(width);
    for (size_t i = 0; i < width; ++i)
      y[row + i] = (x[row + i] - mean) / std::sqrt(square + epsilon) * static_cast<double>(scale[i]) +
                   (shift.empty() ? 0 : static_cast<double>(shift[i]));
  }
  return y;
}

TEST(ImporterFused, NormalizationsOfSumsGiveTheSumAsWell) {
  const auto x = sample_values(24, 1), skip = sample_values(12, 2), scale = sample_values(4, 3);
  const auto shift = sample_values(4, 4), bias = sample_values(4, 5);
  Numbers sum;
  for (size_t i = 0; i < 24; ++i)  // the skip is broadcast over the batch
    sum.push_back(static_cast<double>(x[i]) + static_cast<double>(skip[i % 12]) +
                  static_cast<double>(bias[i % 4]));
  NodeModel layer("SkipLayerNormalization", 4);
  layer.constant<float>({2, 3, 4}, x).constant<float>({1, 3, 4}, skip).constant<float>({4}, scale);
  layer.constant<float>({4}, shift).constant<float>({4}, bias).real("epsilon", 0.01f);
  ASSERT_FALSE(layer.convert().ok());  // the mean output is only for training
  EXPECT_NE(layer.report.unsupported.at(0).reason.find("output 1"), std::string::npos);

  NodeModel rms("SkipSimplifiedLayerNormalization");
  rms.constant<float>({2, 3, 4}, x).constant<float>({3, 4}, skip).constant<float>({4}, scale);
  rms.constant<float>({4}, bias).real("epsilon", 0.01f);
  expect_near(rms.values()[0], normalized(sum, scale, {}, 0.01, false), 1e-5);
  NodeModel one("SkipLayerNormalization");
  one.constant<float>({2, 3, 4}, x).constant<float>({3, 4}, skip).constant<float>({4}, scale);
  one.constant<float>({4}, shift).constant<float>({4}, bias).real("epsilon", 0.01f);
  expect_near(one.values()[0], normalized(sum, scale, shift, 0.01, true), 1e-5);
}

TEST(ImporterFused, OnnxRuntimesNormalizationsInTheDefaultDomain) {
  const auto x = sample_values(8, 1), scale = sample_values(4, 2), shift = sample_values(4, 3);
  const Numbers wide(x.begin(), x.end());
  NodeModel rms("SimplifiedLayerNormalization", 2, "");
  rms.constant<float>({2, 4}, x).constant<float>({4}, scale).real("epsilon", 0.1f).integer("axis", -1);
  const auto found = rms.values();
  expect_near(found[0], normalized(wide, scale, {}, 0.1, false), 1e-5);
  double square = 0;
  for (size_t i = 0; i < 4; ++i) square += wide[i] * wide[i] / 4;
  ASSERT_EQ(found[1].size(), 2u);
  EXPECT_NEAR(found[1][0], 1 / std::sqrt(square + 0.1), 1e-5);
}

TEST(ImporterFused, EmbeddingsAreSummedNormalizedAndCounted) {
  const auto words = sample_values(20, 1), positions = sample_values(12, 2), types = sample_values(8, 3);
  const std::vector<float> scale{1, 2, 3, 4}, shift{0, 1, 0, -1};
  const std::vector<int32_t> ids{4, 0, 2, 1}, segments{0, 1, 1, 0}, mask{1, 0, 1, 1};
  Numbers sum;
  for (size_t i = 0; i < 4; ++i)
    for (size_t k = 0; k < 4; ++k)
      sum.push_back(static_cast<double>(words[static_cast<size_t>(ids[i]) * 4 + k]) +
                    static_cast<double>(positions[i % 2 * 4 + k]) +
                    static_cast<double>(types[static_cast<size_t>(segments[i]) * 4 + k]));
  NodeModel model("EmbedLayerNormalization", 3);
  model.constant<int32_t>({2, 2}, ids).constant<int32_t>({2, 2}, segments);
  model.constant<float>({5, 4}, words).constant<float>({3, 4}, positions).constant<float>({2, 4}, types);
  model.constant<float>({4}, scale)
      .constant<float>({4}, shift)
      .constant<int32_t>({2, 2}, mask)
      .real("epsilon", 0.1f);
  const auto found = model.values();
  expect_near(found[0], normalized(sum, scale, shift, 0.1, true), 1e-5);
  expect_near(found[1], {1, 2}, 0);
  expect_near(found[2], sum, 1e-6);
}

// --- what is not imported

TEST(ImporterFused, OtherOperatorsOfTheRuntimeAreRefusedWithAdvice) {
  for (const char* domain : {"com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc"}) {
    NodeModel model("PackedAttention", 1, domain);
    model.constant<float>({1, 1, 1, 1}, {1});
    EXPECT_FALSE(model.convert().ok());
    ASSERT_EQ(model.report.unsupported.size(), 1u) << domain;
    EXPECT_NE(model.report.unsupported[0].help.find("optimization level basic"), std::string::npos);
    EXPECT_EQ(model.report.unsupported[0].domain, domain);
  }
  NodeModel foreign("Conv", 1, "org.example.engine");
  foreign.constant<float>({1}, {1});
  EXPECT_FALSE(foreign.convert().ok());
  ASSERT_EQ(foreign.report.unsupported.size(), 1u);
  EXPECT_NE(foreign.report.unsupported[0].help.find("runtime-specific optimization"), std::string::npos);
}

TEST(ImporterFused, DistancesOfAllPairsOfRows) {
  const auto a = sample_values(6, 1), b = sample_values(8, 2);
  Numbers squares, roots;
  for (size_t m = 0; m < 3; ++m)
    for (size_t k = 0; k < 4; ++k) {
      double sum = 0;
      for (size_t n = 0; n < 2; ++n)
        sum += std::pow(static_cast<double>(a[m * 2 + n]) - static_cast<double>(b[k * 2 + n]), 2);
      squares.push_back(sum);
      roots.push_back(std::sqrt(sum));
    }
  const auto found = [&](const char* metric) {
    NodeModel model("CDist");
    model.input<float>({3, 2}, a, {{0, "m"}}).constant<float>({4, 2}, b).string("metric", metric);
    return model.values()[0];
  };
  expect_near(found("sqeuclidean"), squares, 1e-5);
  expect_near(found("euclidean"), roots, 1e-4);
}

// --- channels last, as in diffusion models optimized for a GPU

/// x [2,2,2,4] normalized over two groups of two channels, scaled, shifted, SiLU.
Numbers group_normalized(const Numbers& x, const std::vector<float>& scale, const std::vector<float>& shift) {
  Numbers y(x.size());
  for (size_t n = 0; n < 2; ++n)
    for (size_t group = 0; group < 2; ++group) {
      const auto at = [&](size_t i) { return n * 16 + i / 2 * 4 + group * 2 + i % 2; };
      double mean = 0, square = 0;
      for (size_t i = 0; i < 8; ++i) mean += x[at(i)] / 8;
      for (size_t i = 0; i < 8; ++i) square += (x[at(i)] - mean) * (x[at(i)] - mean) / 8;
      for (size_t i = 0; i < 8; ++i) {
        const size_t channel = at(i) % 4;
        const double a = (x[at(i)] - mean) / std::sqrt(square + 1e-5) * static_cast<double>(scale[channel]) +
                         static_cast<double>(shift[channel]);
        y[at(i)] = a * sigmoid(a);
      }
    }
  return y;
}

TEST(ImporterFused, GroupsOfTheLastAxisAreNormalized) {
  const auto x = sample_values(32, 1), scale = sample_values(4, 2), shift = sample_values(4, 3);
  const auto skip = sample_values(8, 4), bias = sample_values(4, 5);
  Numbers plain(x.begin(), x.end()), sum;
  for (size_t i = 0; i < 32; ++i)
    sum.push_back(plain[i] + static_cast<double>(skip[i / 16 * 4 + i % 4]) +
                  static_cast<double>(bias[i % 4]));
  NodeModel norm("GroupNorm");
  norm.input<float>({2, 2, 2, 4}, x, {{0, "n"}, {1, "h"}})
      .constant<float>({4}, scale)
      .constant<float>({4}, shift);
  norm.integer("groups", 2).integer("activation", 1).real("epsilon", 1e-5f);
  expect_near(norm.values()[0], group_normalized(plain, scale, shift), 1e-4);
  NodeModel with_skip("SkipGroupNorm", 2);
  with_skip.input<float>({2, 2, 2, 4}, x, {{0, "n"}, {1, "h"}})
      .constant<float>({4}, scale)
      .constant<float>({4}, shift);
  with_skip.input<float>({2, 4}, skip, {{0, "n"}}).constant<float>({4}, bias);
  with_skip.integer("groups", 2).integer("activation", 1).real("epsilon", 1e-5f);
  const auto found = with_skip.values();
  expect_near(found[0], group_normalized(sum, scale, shift), 1e-4);
  expect_near(found[1], sum, 1e-5);
}

TEST(ImporterFused, AConvolutionWithChannelsLast) {
  const auto x = sample_values(3 * 3 * 2, 1), w = sample_values(3 * 2 * 2 * 2, 2), bias = sample_values(3, 3);
  Numbers expected;
  for (size_t row = 0; row < 2; ++row)
    for (size_t column = 0; column < 2; ++column)
      for (size_t o = 0; o < 3; ++o) {
        double sum = static_cast<double>(bias[o]);
        for (size_t i = 0; i < 8; ++i)
          sum += static_cast<double>(w[o * 8 + i]) *
                 static_cast<double>(x[((row + i / 4) * 3 + column + i / 2 % 2) * 2 + i % 2]);
        expected.push_back(sum);
      }
  NodeModel model("NhwcConv");
  model.input<float>({1, 3, 3, 2}, x, {{0, "n"}}).constant<float>({3, 2, 2, 2}, w).constant<float>({3}, bias);
  expect_near(model.integers("strides", {1, 1}).values()[0], expected, 1e-5);
}

}  // namespace
}  // namespace librt::onnx
