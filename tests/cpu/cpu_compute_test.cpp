// MatMul, convolutions, pools: every row of the kernel table, constant and variable weights.
#include <algorithm>
#include <limits>

#include "backends/cpu/device/device.h"
#include "backends/cpu/onednn/kernels.h"
#include "runtime/core/element.h"
#include "tests/cpu/cpu_support.h"

namespace librt::test {
namespace {

std::unique_ptr<op::EpilogueAttributes> epilogue(op::Activation activation, bool bias, bool residual,
                                                 float alpha = 0, float beta = 0) {
  auto made = std::make_unique<op::EpilogueAttributes>();
  made->activation = activation;
  made->has_bias = bias;
  made->has_residual = residual;
  made->alpha = alpha;
  made->beta = beta;
  return made;
}

void check_matmul(const Shape& a, const Shape& b, bool ta = false, bool tb = false) {
  op::MatMulAttributes attributes;
  attributes.transpose_a = ta;
  attributes.transpose_b = tb;
  SCOPED_TRACE(text(a, ta ? "^T" : "", " x ", b, tb ? "^T" : ""));
  check_node(cpu_device(), make_node(attributes, 2), {f32(a, -1, 1, 1), f32(b, -1, 1, 2)}, 2);
}

TEST(CpuMatMul, Shapes) {
  check_matmul(Shape{1, 1}, Shape{1, 1});
  check_matmul(Shape{7, 13}, Shape{13, 5});
  check_matmul(Shape{13, 7}, Shape{13, 5}, true);
  check_matmul(Shape{7, 13}, Shape{5, 13}, false, true);
  check_matmul(Shape{13, 7}, Shape{5, 13}, true, true);
  check_matmul(Shape{64, 96}, Shape{96, 128});
  check_matmul(Shape{4, 7, 13}, Shape{13, 5});
  check_matmul(Shape{4, 7, 13}, Shape{4, 13, 5});
  check_matmul(Shape{4, 13, 7}, Shape{4, 5, 13}, true, true);
  check_matmul(Shape{2, 1, 7, 13}, Shape{3, 13, 5});
  check_matmul(Shape{3, 7, 13}, Shape{1, 13, 5}, false, false);
  check_matmul(Shape{13}, Shape{13, 5});
  check_matmul(Shape{7, 13}, Shape{13});
  check_matmul(Shape{13}, Shape{13});
  check_matmul(Shape{7, 0}, Shape{0, 5});
  check_matmul(Shape{0, 4}, Shape{4, 5});
}

TEST(CpuMatMul, Epilogues) {
  using A = op::Activation;
  const auto check = [](A activation, std::optional<Shape> bias, bool residual, float alpha = 0,
                        float beta = 0) {
    op::MatMulAttributes attributes;
    attributes.epilogue = epilogue(activation, bias.has_value(), residual, alpha, beta);
    NodeInputs inputs{f32(Shape{2, 9, 16}, -1, 1, 1), f32(Shape{16, 12}, -1, 1, 2)};
    if (bias) inputs.emplace_back(f32(*bias, -1, 1, 3));
    if (residual) inputs.emplace_back(f32(Shape{2, 9, 12}, -1, 1, 4));
    SCOPED_TRACE(
        text(op::EnumNameActivation(activation), bias ? text(*bias) : "", residual ? " residual" : ""));
    check_node(cpu_device(), make_node(attributes, inputs.size()), inputs, 2);
  };
  for (const A activation :
       {A::None, A::Relu, A::Sigmoid, A::Tanh, A::HardSwish, A::Silu, A::Gelu, A::GeluTanh})
    check(activation, Shape{12}, true);
  check(A::Clip, Shape{12}, true, -0.5f, 0.75f);
  check(A::LeakyRelu, Shape{12}, false, 0.1f);
  check(A::HardSigmoid, Shape{12}, false, 0.2f, 0.5f);
  check(A::Relu, std::nullopt, true);
  check(A::Relu, Shape{1, 12}, false);
  check(A::Relu, Shape{9, 1}, true);
  check(A::Gelu, Shape{2, 1, 12}, false);
  check(A::None, Shape{}, false);
  check(A::None, Shape{2, 9, 12}, false);
}

TEST(CpuMatMul, Integers) {
  for (const DType dtype : {DType::I8, DType::I32, DType::I64, DType::U8}) {
    op::MatMulAttributes attributes;
    attributes.epilogue = epilogue(op::Activation::Relu, true, false);
    check_node(cpu_device(), make_node(attributes, 3),
               {ramp(dtype, Shape{2, 3, 4}, 0, 5, 1), ramp(dtype, Shape{4, 5}, 0, 5, 2),
                ramp(dtype, Shape{5}, 0, 5, 3)});
  }
}

struct ConvCase {
  Shape x, weight;
  std::vector<int64_t> strides, pads, dilations;
  int64_t groups = 1;
};
const ConvCase kConvs[] = {
    {Shape{2, 9, 9, 16}, Shape{32, 3, 3, 16}, {1, 1}, {1, 1, 1, 1}, {}},
    {Shape{1, 14, 14, 32}, Shape{32, 3, 3, 32}, {1, 1}, {1, 1, 1, 1}, {}},
    {Shape{2, 9, 11, 3}, Shape{8, 3, 3, 3}, {2, 2}, {1, 1, 1, 1}, {}},
    {Shape{1, 15, 15, 3}, Shape{16, 7, 7, 3}, {2, 2}, {3, 3, 3, 3}, {}},
    {Shape{2, 8, 8, 5}, Shape{7, 1, 1, 5}, {}, {}, {}},
    {Shape{1, 8, 8, 16}, Shape{16, 1, 1, 16}, {2, 2}, {}, {}},
    {Shape{2, 14, 14, 3}, Shape{48, 1, 1, 3}, {2, 2}, {}, {}},
    {Shape{2, 33, 33, 7}, Shape{16, 1, 1, 7}, {2, 2}, {}, {}},
    {Shape{1, 10, 10, 8}, Shape{8, 3, 3, 1}, {1, 1}, {1, 1, 1, 1}, {}, 8},
    {Shape{1, 10, 10, 16}, Shape{16, 3, 3, 1}, {2, 2}, {0, 1, 1, 0}, {}, 16},
    {Shape{1, 10, 10, 12}, Shape{6, 3, 3, 4}, {1, 1}, {1, 1, 1, 1}, {}, 3},
    {Shape{1, 12, 12, 4}, Shape{5, 3, 3, 4}, {1, 1}, {2, 2, 2, 2}, {2, 2}},
    {Shape{2, 20, 6}, Shape{4, 5, 6}, {2}, {2, 1}, {}},
    {Shape{1, 6, 7, 8, 4}, Shape{5, 3, 3, 3, 4}, {1, 2, 1}, {1, 1, 1, 1, 1, 1}, {}},
    {Shape{1, 7, 9, 2}, Shape{3, 2, 3, 2}, {3, 2}, {}, {}},
};

/// x [rows, k] times weights of 8 or 4 bits, with a bias, by all rows of the kernel table, against f64.
void check_weights(ops::HostTensor x, int64_t bits, int64_t n, int64_t group) {
  const int64_t rows = x.info.shape[0], k = x.info.shape[1];
  SCOPED_TRACE(text(rows, "x", k, " times ", n, " columns of ", bits, " bits in groups of ", group));
  op::WeightQuantizedMatMulAttributes attributes;
  attributes.bits = bits;
  attributes.group_size = group;
  const NodeInputs inputs{x,
                          bits == 8 ? ramp(DType::I8, Shape{n, k}, -128, 127.9, 2)
                                    : ramp(DType::U8, Shape{n, k / 2}, 0, 255.9, 2),
                          f32(Shape{n, k / group}, -0.002, 0.002, 3), f32(Shape{n}, -1, 1, 4)};
  const auto element = [&](size_t input, int64_t i) {
    return load_element(inputs[input]->bytes.data(), inputs[input]->info.dtype, i);
  };
  ops::HostTensor want({DType::F32, Shape{rows, n}});
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < n; ++column) {
      double sum = element(3, column);
      for (int64_t i = 0; i < k; ++i) {
        const int64_t at = column * k + i;
        const auto pair = static_cast<int>(bits == 4 ? element(1, at / 2) : 0);
        const double weight = bits == 8 ? element(1, at) : (i % 2 == 0 ? pair % 16 : pair / 16) - 8;
        sum += element(0, row * k + i) * weight * element(2, at / group);
      }
      store_element(want.bytes.data(), DType::F32, row * n + column, sum);
    }
  const Node node = make_node(attributes, 4);
  const auto kernels = rows_for(cpu_device(), node, inputs);
  ASSERT_TRUE(kernels.ok()) << kernels.status().message();
  for (const std::string& kernel : *kernels) {
    RunNodeOptions options;
    options.row = kernel;
    const auto got = run_node(cpu_device(), node, inputs, options);
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_TRUE(near(got->outputs[0], want, ops::Tolerance{1e-4, 1e-4})) << kernel;
  }
}

/// Rows and columns beside whole tiles and panels, groups that are blocks of 16 bits, several of them, or
/// none.
TEST(CpuMatMul, WeightsOfFewBits) {
  for (const int64_t bits : {8, 4}) {
    check_weights(f32(Shape{1, 128}), bits, 9, 32);
    check_weights(f32(Shape{4, 16}), bits, 1, 16);
    check_weights(f32(Shape{5, 32}), bits, 33, 32);
    check_weights(f32(Shape{67, 96}), bits, 64, 96);
    check_weights(f32(Shape{9, 80}), bits, 40, 16);
    check_weights(f32(Shape{6, 192}), bits, 31, 64);
    check_weights(f32(Shape{131, 256}), bits, 70, 128);
    check_weights(f32(Shape{5, 48}), bits, 7, 24);
    check_weights(f32(Shape{18, 40}), bits, 5, 20);
    check_weights(f32(Shape{7, 768}), bits, 32, 768);
    check_weights(f32(Shape{8, 64}, 0, 0), bits, 3, 64);
  }
}

/// 16 bits do not hold what is not finite: such rows are computed in f32, the others are not touched.
TEST(CpuMatMul, InfinityTimesWeightsOfFewBits) {
  for (const int64_t bits : {8, 4})
    for (const int64_t rows : {3, 21}) {
      ops::HostTensor x = f32(Shape{rows, 128});
      auto* values = reinterpret_cast<float*>(x.bytes.data());
      values[5] = std::numeric_limits<float>::infinity();
      values[128 + 7] = -std::numeric_limits<float>::infinity();
      if (rows > 3) values[9 * 128 + 9] = std::numeric_limits<float>::quiet_NaN();
      check_weights(x, bits, 40, 32);
    }
}

TEST(CpuConv, Forward) {
  for (const ConvCase& c : kConvs) {
    SCOPED_TRACE(text(c.x, c.weight));
    op::ConvAttributes attributes;
    attributes.strides = c.strides;
    attributes.pads = c.pads;
    attributes.dilations = c.dilations;
    attributes.groups = c.groups;
    check_node(cpu_device(), make_node(attributes, 2), {f32(c.x, -1, 1, 1), f32(c.weight, -1, 1, 2)}, 2);
    attributes.epilogue = epilogue(op::Activation::Relu, true, false);
    check_node(cpu_device(), make_node(attributes, 3),
               {f32(c.x, -1, 1, 1), f32(c.weight, -1, 1, 2), f32(Shape{c.weight[0]}, -1, 1, 3)}, 6);
  }
}

TEST(CpuConv, Residual) {
  using enum op::Activation;
  for (const auto activation : {None, Relu, Silu, Sigmoid, Tanh, Gelu, GeluTanh}) {
    op::ConvAttributes attributes;
    attributes.pads = {1, 1, 1, 1};
    attributes.epilogue = epilogue(activation, true, true);
    for (const int64_t channels : {3, 16}) {
      SCOPED_TRACE(text(op::EnumNameActivation(activation), " ", channels));
      check_node(cpu_device(), make_node(attributes, 4),
                 {f32(Shape{2, 9, 9, channels}, -1, 1, 1), f32(Shape{16, 3, 3, channels}, -1, 1, 2),
                  f32(Shape{16}, -1, 1, 3), f32(Shape{2, 9, 9, 16}, -1, 1, 4)},
                 2);
    }
  }
}

TEST(CpuConv, Gradients) {
  for (const ConvCase& c : kConvs) {
    SCOPED_TRACE(text(c.x, c.weight));
    op::ConvAttributes forward;
    forward.strides = c.strides;
    forward.pads = c.pads;
    forward.dilations = c.dilations;
    forward.groups = c.groups;
    const auto y = reference_node(make_node(forward, 2), {f32(c.x, -1, 1, 1), f32(c.weight, -1, 1, 2)});
    ASSERT_TRUE(y.ok()) << y.status().message();
    const auto grad = f32((*y)[0].info.shape, -1, 1, 3);

    op::ConvWeightGradAttributes weight;
    weight.strides = c.strides;
    weight.pads = c.pads;
    weight.dilations = c.dilations;
    weight.groups = c.groups;
    std::vector<int64_t> extents;
    for (int i = 1; i + 1 < c.weight.rank(); ++i) weight.kernel.push_back(c.weight[i]);
    for (int i = 1; i + 1 < c.x.rank(); ++i) extents.push_back(c.x[i]);
    check_node(cpu_device(), make_node(weight, 2), {f32(c.x, -1, 1, 1), grad}, 0, ops::Tolerance{1e-4, 2e-4});

    op::ConvTransposeAttributes data;
    data.strides = c.strides;
    data.pads = c.pads;
    data.dilations = c.dilations;
    data.groups = c.groups;
    check_node(cpu_device(), make_node(data, 3), {grad, f32(c.weight, -1, 1, 2), ints_tensor(extents)}, 2);
    const int64_t channels = c.x.back();
    check_node(cpu_device(), make_node(data, 4),
               {grad, f32(c.weight, -1, 1, 2), ints_tensor(extents), f32(Shape{channels}, -1, 1, 4)}, 2);
  }
}

std::vector<std::string> conv_rows(const op::ConvAttributes& attributes, const Shape& x, int64_t channels,
                                   bool constant) {
  const auto rows =
      rows_for(cpu_device(), make_node(attributes, 2),
               {f32(x, -1, 1, 1), f32(Shape{channels, 3, 3, channels}, -1, 1, 2)}, constant ? 2 : 0);
  return rows.ok() ? *rows : std::vector<std::string>{};
}

TEST(CpuConv, WinogradComesFirstWhereItPays) {
  op::ConvAttributes attributes;
  attributes.pads = {1, 1, 1, 1};
  const auto rows = conv_rows(attributes, {1, 14, 14, 32}, 32, true);
  if (std::find(rows.begin(), rows.end(), "conv.winograd2x2") == rows.end())
    GTEST_SKIP() << "oneDNN has no Winograd convolution on this CPU";
  EXPECT_EQ(rows.front(), "conv.winograd2x2");
  EXPECT_EQ(conv_rows(attributes, {1, 14, 14, 32}, 32, false).front(), "conv");
  EXPECT_EQ(conv_rows(attributes, {1, 48, 48, 32}, 32, true).front(), "conv.winograd4x4");
  EXPECT_EQ(conv_rows(attributes, {1, 48, 48, 16}, 16, true).front(), "conv");
  attributes.epilogue = epilogue(op::Activation::Silu, false, false);
  EXPECT_EQ(conv_rows(attributes, {1, 14, 14, 32}, 32, true).front(), "conv.winograd2x2");
}

/// Without AVX-512 our own kernels are candidates beside oneDNN's; with it, last resorts.
TEST(CpuConv, OwnKernelsAreTimedWithoutAvx512) {
  op::ConvAttributes attributes;
  attributes.pads = {1, 1, 1, 1};
  const auto conv = conv_rows(attributes, {1, 28, 28, 32}, 32, true);
  const auto matmul = rows_for(cpu_device(), make_node(op::MatMulAttributes{}, 2),
                               {f32(Shape{70, 80}, -1, 1, 1), f32(Shape{80, 90}, -1, 1, 2)}, 2);
  ASSERT_TRUE(matmul.ok()) << matmul.status().message();
  const auto place = [](const std::vector<std::string>& rows, std::string_view row) {
    return std::find(rows.begin(), rows.end(), row) - rows.begin();
  };
  const std::string_view set = static_cast<const cpu::CpuDevice&>(cpu_device()).simd().name;
  if (cpu::onednn::kBuilt && set == "avx512") {
    EXPECT_LT(place(conv, "conv"), place(conv, "conv.winograd"));
    EXPECT_LT(place(conv, "conv"), place(conv, "conv.gemm"));
    EXPECT_LT(place(*matmul, "matmul"), place(*matmul, "matmul.gemm"));
    return;
  }
  EXPECT_EQ(place(conv, "conv.winograd"), 0);
  EXPECT_LT(place(conv, "conv.gemm"), 3);
  EXPECT_LT(place(*matmul, "matmul.gemm"), 2);
}

// Odd extents leave partial tiles. The transforms lose some precision: up to 5e-6 of the largest value.
TEST(CpuConv, WinogradValues) {
  const ops::Tolerance tolerance{1e-4, 2e-4};
  for (const int64_t pad : {0, 1})
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{13, 15}, {47, 53}}) {
      SCOPED_TRACE(text(height, "x", width, " pad ", pad));
      op::ConvAttributes attributes;
      attributes.pads = {pad, pad, pad, pad};
      const Shape y{1, height + 2 * pad - 2, width + 2 * pad - 2, 48};
      for (const auto activation : {op::Activation::Relu, op::Activation::Silu, op::Activation::HardSwish}) {
        attributes.epilogue = epilogue(activation, true, true);
        check_node(cpu_device(), make_node(attributes, 4),
                   {f32(Shape{1, height, width, 32}, -1, 1, 1), f32(Shape{48, 3, 3, 32}, -1, 1, 2),
                    f32(Shape{48}, -1, 1, 3), f32(y, -1, 1, 4)},
                   2, tolerance);
      }
      op::ConvWeightGradAttributes weight;
      weight.kernel = {3, 3};
      weight.pads = attributes.pads;
      check_node(cpu_device(), make_node(weight, 2),
                 {f32(Shape{1, height, width, 32}, -1, 1, 1), f32(y, -1, 1, 2)}, 0,
                 ops::Tolerance{1e-4, 2e-3});
      op::ConvTransposeAttributes data;
      data.pads = attributes.pads;
      check_node(cpu_device(), make_node(data, 3),
                 {f32(y, -1, 1, 1), f32(Shape{48, 3, 3, 32}, -1, 1, 2), ints_tensor({height, width})}, 2,
                 tolerance);
    }
}

// Odd extents leave partial tiles, and the last block of tiles is partial.
TEST(CpuConv, WinogradValuesOfFewPoints) {
  const ops::Tolerance tolerance{1e-4, 3e-4};
  const std::pair<int64_t, std::vector<int64_t>> sizes[] = {{4, {1, 1, 1, 1}}, {7, {0, 1, 1, 0}}};
  for (const auto& [size, pad] : sizes) {
    const int64_t batch = size == 4 ? 26 : 10, shrunk = size + pad[0] + pad[2] - 2;
    SCOPED_TRACE(text(size, " pad ", pad[0]));
    const Shape x{batch, size, size, 64}, weight{128, 3, 3, 64};
    const Shape y{batch, shrunk, size + pad[1] + pad[3] - 2, 128};
    op::ConvAttributes attributes;
    attributes.pads = pad;
    const NodeInputs inputs{f32(x, -1, 1, 1), f32(weight, -1, 1, 2)};
    check_node(cpu_device(), make_node(attributes, 2), inputs, 0, tolerance);
    op::ConvWeightGradAttributes weights;
    weights.kernel = {3, 3};
    weights.pads = pad;
    check_node(cpu_device(), make_node(weights, 2), {f32(x, -1, 1, 1), f32(y, -1, 1, 2)}, 0, tolerance);
    op::ConvTransposeAttributes data;
    data.pads = pad;
    check_node(cpu_device(), make_node(data, 3),
               {f32(y, -1, 1, 1), f32(weight, -1, 1, 2), ints_tensor({size, size})}, 0, tolerance);
    const auto rows = rows_for(cpu_device(), make_node(attributes, 2), inputs, 0);
    ASSERT_TRUE(rows.ok());
    // Both need AVX-512.
    if (std::find(rows->begin(), rows->end(), "conv.blocked") != rows->end()) {
      EXPECT_EQ(rows->front(), "conv.winograd_cached");
    }
  }
}

// Few positions: partial runs of input channels, partial blocks of positions, windows over the border,
// samples.
TEST(CpuConv, StreamedValues) {
  struct {
    Shape x, weight;
    std::vector<int64_t> strides, pads, dilations;
  } const sizes[] = {
      {{2, 3, 4, 64}, {256, 3, 3, 64}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
      {{1, 7, 5, 208}, {96, 3, 3, 208}, {2, 2}, {1, 0, 1, 2}, {1, 1}},
      {{1, 6, 6, 128}, {64, 5, 5, 128}, {1, 1}, {4, 4, 4, 4}, {2, 2}},
      {{3, 1, 1, 512}, {288, 1, 1, 512}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
      {{2, 9, 160}, {128, 7, 160}, {1}, {3, 3}, {1}},
  };
  for (const auto& [x, weight, strides, pads, dilations] : sizes) {
    SCOPED_TRACE(text(x, " ", weight));
    op::ConvAttributes attributes;
    attributes.strides = strides;
    attributes.pads = pads;
    attributes.dilations = dilations;
    const NodeInputs two{f32(x, -1, 1, 1), f32(weight, -1, 1, 2)};
    check_node(cpu_device(), make_node(attributes, 2), two, 2, ops::Tolerance{1e-4, 1e-4});
    const auto y = reference_node(make_node(attributes, 2), two);
    ASSERT_TRUE(y.ok()) << y.status().message();
    attributes.epilogue = epilogue(op::Activation::LeakyRelu, true, true, 0.5F);
    const NodeInputs four{two[0], two[1], f32(Shape{weight[0]}, -1, 1, 3), f32((*y)[0].info.shape, -1, 1, 4)};
    check_node(cpu_device(), make_node(attributes, 4), four, 2, ops::Tolerance{1e-4, 1e-4});
    const auto rows = rows_for(cpu_device(), make_node(attributes, 4), four, 2);
    ASSERT_TRUE(rows.ok());
    // Both need AVX-512.
    if (std::find(rows->begin(), rows->end(), "conv.blocked") == rows->end()) continue;
    EXPECT_EQ(rows->front(), "conv.streamed");
    RunNodeOptions options;
    options.row = "conv.streamed";
    options.constants = 2;
    options.producers = {cpu::kBlocked16, kDense, kDense, cpu::kBlocked16};
    const auto blocked = run_node(cpu_device(), make_node(attributes, 4), four, options);
    ASSERT_TRUE(blocked.ok()) << blocked.status().message();
    const auto want = reference_node(make_node(attributes, 4), four);
    ASSERT_TRUE(want.ok()) << want.status().message();
    EXPECT_TRUE(near(blocked->outputs[0], (*want)[0], ops::Tolerance{1e-4, 1e-4}));
  }
}

// 0 times infinity: the padding of a window would become NaN.
TEST(CpuConv, StreamedNeedsFiniteWeightsWherePadded) {
  op::ConvAttributes attributes;
  attributes.pads = {1, 1, 1, 1};
  ops::HostTensor weight = f32(Shape{256, 3, 3, 64}, -1, 1, 2);
  store_element(weight.bytes.data(), DType::F32, 5, std::numeric_limits<double>::infinity());
  const NodeInputs inputs{f32(Shape{1, 3, 3, 64}, -1, 1, 1), weight};
  RunNodeOptions options;
  options.row = "conv.streamed";
  options.constants = 2;
  const auto got = run_node(cpu_device(), make_node(attributes, 2), inputs, options);
  ASSERT_FALSE(got.ok());
  // Where the row is not offered at all: no AVX-512.
  if (got.status().code() != Code::NotFound) {
    EXPECT_NE(got.status().message().find("finite"), std::string::npos);
  }
}

TEST(CpuPool, AllKinds) {
  const auto check = [](auto attributes, const Shape& x, std::vector<int64_t> kernel,
                        std::vector<int64_t> strides, std::vector<int64_t> pads, bool ceil_mode) {
    attributes.kernel = std::move(kernel);
    attributes.strides = std::move(strides);
    attributes.pads = std::move(pads);
    attributes.ceil_mode = ceil_mode;
    SCOPED_TRACE(text(x, ceil_mode));
    const NodeInputs inputs{f32(x, -1, 1, 1)};
    check_node(cpu_device(), make_node(attributes, 1), inputs);
    const auto y = reference_node(make_node(attributes, 1), inputs);
    ASSERT_TRUE(y.ok()) << y.status().message();
    const auto grad = f32((*y)[0].info.shape, -1, 1, 2);
    if constexpr (std::is_same_v<decltype(attributes), op::MaxPoolAttributes>) {
      op::MaxPoolGradAttributes backward;
      backward.kernel = attributes.kernel;
      backward.strides = attributes.strides;
      backward.pads = attributes.pads;
      backward.ceil_mode = ceil_mode;
      check_node(cpu_device(), make_node(backward, 2), {inputs[0], grad});
    } else {
      op::AveragePoolGradAttributes backward;
      backward.kernel = attributes.kernel;
      backward.strides = attributes.strides;
      backward.pads = attributes.pads;
      backward.ceil_mode = ceil_mode;
      backward.count_include_pad = attributes.count_include_pad;
      check_node(cpu_device(), make_node(backward, 2), {ints_tensor({x.begin(), x.end()}), grad});
    }
  };
  op::AveragePoolAttributes with_pads;
  with_pads.count_include_pad = true;
  for (const bool ceil_mode : {false, true}) {
    for (const auto& x : {Shape{2, 9, 11, 5}, Shape{1, 12, 12, 32}, Shape{1, 10, 10, 100}, Shape{1, 9, 40, 1},
                          Shape{2, 8, 9, 2}, Shape{1, 8, 9, 4}, Shape{1, 6, 3000, 3}}) {
      check(op::MaxPoolAttributes{}, x, {3, 3}, {2, 2}, {1, 1, 1, 1}, ceil_mode);
      check(op::MaxPoolAttributes{}, x, {2, 2}, {2, 2}, {}, ceil_mode);
      check(op::AveragePoolAttributes{}, x, {3, 3}, {2, 2}, {1, 1, 1, 1}, ceil_mode);
      check(with_pads, x, {3, 2}, {1, 2}, {1, 0, 1, 1}, ceil_mode);
      check(op::MaxPoolAttributes{}, x, {3, 3}, {1, 1}, {1, 1, 1, 1}, ceil_mode);
      check(op::AveragePoolAttributes{}, x, {2, 3}, {3, 1}, {0, 1, 1, 1}, ceil_mode);
      check(op::MaxPoolAttributes{}, x, {2, 2}, {3, 3}, {1, 1, 1, 1}, ceil_mode);
    }
    check(op::MaxPoolAttributes{}, Shape{2, 20, 3}, {3}, {2}, {1, 1}, ceil_mode);
    check(op::AveragePoolAttributes{}, Shape{1, 5, 6, 7, 4}, {2, 3, 2}, {2, 1, 2}, {}, ceil_mode);
  }
}

/// As in a session when the producer of the first input has a blocked layout.
TEST(CpuLayouts, KernelsFollowABlockedProducer) {
  const auto check = [](Node node, NodeInputs inputs, uint32_t tensors) {
    RunNodeOptions options;
    for (size_t i = 0; i < inputs.size(); ++i)
      options.producers.push_back(((tensors >> i) & 1u) != 0 ? 1 : kDense);
    const auto got = run_node(cpu_device(), node, inputs, options);
    const auto want = reference_node(node, inputs);
    ASSERT_TRUE(got.ok()) << got.status().message();
    ASSERT_TRUE(want.ok()) << want.status().message();
    for (size_t i = 0; i < want->size(); ++i)
      EXPECT_TRUE(near(got->outputs[i], (*want)[i], {1e-4, 1e-4})) << name_of(node.kind()) << " output " << i;
  };
  const auto x = f32(Shape{2, 6, 6, 32}, -1, 1, 1), g = f32(Shape{2, 6, 6, 32}, -1, 1, 2);
  check(make_node(op::ReluAttributes{}, 1), {x}, 1);
  check(make_node(op::AddAttributes{}, 2), {x, g}, 3);
  // The gradient of Relu: a mask, and the masked gradient.
  const auto zero = scalar_tensor(DType::F32, 0);
  const auto mask = random_tensor({DType::Bool, Shape{2, 6, 6, 32}}, 0, 1, 3);
  check(make_node(op::GreaterAttributes{}, 2), {x, zero}, 1);
  check(make_node(op::MulAttributes{}, 2), {scalar_tensor(DType::F32, 3), g}, 2);
  for (const uint32_t blocked : {1u, 2u, 3u})
    check(make_node(op::WhereAttributes{}, 3), {mask, g, zero}, blocked);
  check(make_node(op::WhereAttributes{}, 3), {mask, zero, g}, 5);
  check(make_node(op::WhereAttributes{}, 3), {mask, f32(Shape{32}, -1, 1, 4), g}, 5);  // stays dense
  op::MaxPoolAttributes pool;
  pool.kernel = {3, 3};
  pool.strides = {2, 2};
  pool.pads = {1, 1, 1, 1};
  check(make_node(pool, 1), {x}, 1);
  const auto c = [](uint64_t seed) { return f32(Shape{32}, 0.5, 1.5, seed); };
  check(make_node(op::BatchNormTrainAttributes{}, 5, 5), {x, c(1), c(2), c(3), c(4)}, 1);
  check(make_node(op::BatchNormGradAttributes{}, 5, 3), {x, g, c(1), c(2), c(3)}, 3);
}

}  // namespace
}  // namespace librt::test
