// quantize, and the passes that insert QuantizeLinear and DequantizeLinear into an f32 graph.
#include <algorithm>

#include "runtime/ops/page.h"
#include "tests/passes/support.h"
#include "tools/compiler/quantize/calibrate.h"
#include "tools/compiler/quantize/quantize_weights.h"

namespace librt::compiler::test {
namespace {

/// One quantization step of the output, as a tolerance of transform().
constexpr double kOneStep = 0.06;

struct QuantizedNet : Net {
  ValueId number(double value, DType dtype = DType::F32) { return b.scalar(value, dtype); }
  ValueId quantize(ValueId x, double scale, double zero, DType to = DType::U8) {
    op::QuantizeLinearAttributes attributes;
    attributes.to = static_cast<uint8_t>(to);
    return b.emit(attributes, {x, number(scale), number(zero, to)});
  }
  ValueId dequantize(ValueId x, double scale, double zero) {
    op::DequantizeLinearAttributes attributes;
    attributes.to = static_cast<uint8_t>(DType::F32);
    return b.emit(attributes, {x, number(scale), number(zero, b.value(x).dtype)});
  }
  ValueId through(ValueId x, double scale, double zero, DType to = DType::U8) {
    return dequantize(quantize(x, scale, zero, to), scale, zero);
  }
  /// A quantized constant with a scale per index of an axis.
  ValueId weight(Shape shape, int64_t axis, uint32_t seed, DType dtype = DType::I8) {
    op::DequantizeLinearAttributes attributes;
    attributes.to = static_cast<uint8_t>(DType::F32);
    attributes.axis = axis;
    const int64_t channels = shape[static_cast<int>(axis)];
    const bool is_signed = dtype == DType::I8;
    const ValueId quantized =
        random_constant(b, shape, seed, is_signed ? -90 : 0, is_signed ? 90 : 250, dtype);
    const TensorInfo zeros{.dtype = dtype, .shape = {channels}};
    const std::vector<std::byte> zero(static_cast<size_t>(channels),
                                      std::byte{is_signed ? uint8_t{0} : uint8_t{128}});
    return b.emit(attributes, {quantized, random_constant(b, {channels}, seed + 1, 0.004, 0.01),
                               b.constant(zeros, Blob::copy_of(zero.data(), zero.size()))});
  }
};

TEST(Quantize, MatmulsFuseTheirScalesAndActivations) {
  for (const DType dtype : {DType::I8, DType::U8}) {
    QuantizedNet net;
    Builder& b = net.b;
    const ValueId x =
        net.through(net.input({net.symbol("batch"), {.extent = 5}, {.extent = 5}, {.extent = 4}}), 0.02, 110);
    op::ConvAttributes conv;
    conv.pads = {1, 1, 1, 1};
    ValueId y = b.emit(std::move(conv), {x, net.weight({6, 3, 3, 4}, 0, 1, dtype)});
    y = b.emit(op::ReluAttributes{}, {b.add(y, random_constant(b, {6}, 9))});
    y = net.through(y, 0.05, 3);
    y = b.emit(op::MatMulAttributes{}, {y, net.weight({6, 7}, 1, 2, dtype)});
    net.output(net.through(y, 0.05, 120));
    transform(net.graph, {"fuse", "quantize", "fold"}, kOneStep);
    EXPECT_EQ(count(net.graph, OpKind::QuantizedConv), 1u) << print(net.graph);
    EXPECT_EQ(count(net.graph, OpKind::QuantizedMatMul), 1u) << print(net.graph);
    EXPECT_EQ(net.graph.nodes.size(), 4u) << print(net.graph);  // plus one conversion at each end
  }
}

TEST(Quantize, AsymmetricWeightsAndMatmulsOfActivations) {
  QuantizedNet net;
  Builder& b = net.b;
  const ValueId x = net.through(net.input({net.symbol("batch"), {.extent = 8}}), 0.02, 110);
  const ValueId w = net.dequantize(random_constant(b, {8, 6}, 4, 0, 250, DType::U8), 0.01, 77);
  const ValueId p = net.through(b.emit(op::MatMulAttributes{}, {x, w}), 0.05, 128);
  op::MatMulAttributes transposed;
  transposed.transpose_b = true;
  net.output(net.through(b.emit(std::move(transposed), {p, p}), 0.1, 60));
  transform(net.graph, {"quantize", "fold"}, 2 * kOneStep);
  EXPECT_EQ(count(net.graph, OpKind::MatMulInteger), 2u) << print(net.graph);
  EXPECT_EQ(count(net.graph, OpKind::Requantize), 2u) << print(net.graph);
  EXPECT_EQ(count(net.graph, OpKind::DequantizeLinear), 1u) << print(net.graph);
}

TEST(Quantize, OperatorsBetweenStayQuantized) {
  QuantizedNet net;
  Builder& b = net.b;
  const ValueId x =
      net.through(net.input({net.symbol("batch"), {.extent = 6}, {.extent = 6}, {.extent = 4}}), 0.02, 110);
  op::MaxPoolAttributes pool;
  pool.kernel = {2, 2};
  pool.strides = {2, 2};
  const ValueId pooled = net.through(b.emit(std::move(pool), {x}), 0.02, 110);
  const ValueId other = net.through(
      net.input({net.symbol("batch"), {.extent = 3}, {.extent = 3}, {.extent = 4}}, "other"), 0.02, 110);
  const ValueId swished = net.through(b.emit(op::HardSwishAttributes{}, {other}), 0.015, 30);
  const ValueId sum = net.through(b.emit(op::ReluAttributes{}, {b.add(pooled, swished)}), 0.02, 0);
  op::ConcatAttributes concat;
  concat.axis = 3;
  net.output(net.through(b.emit(concat, {sum, pooled}), 0.02, 100));
  transform(net.graph, {"quantize", "common_subexpr", "fold"}, kOneStep);
  EXPECT_EQ(count(net.graph, OpKind::QuantizedAdd), 1u) << print(net.graph);
  EXPECT_EQ(count(net.graph, OpKind::QuantizeLinear), 2u) << print(net.graph);
  EXPECT_EQ(count(net.graph, OpKind::DequantizeLinear), 1u) << print(net.graph);
  EXPECT_GE(count(net.graph, OpKind::Lookup), 2u) << print(net.graph);
}

// Quantizers see no Silu, but a Sigmoid and a Mul, and quantize what is between.
TEST(Quantize, FunctionsThatReadATensorTwiceAreOneTable) {
  QuantizedNet net;
  Builder& b = net.b;
  const ValueId x = net.through(net.input({net.symbol("batch"), {.extent = 6}, {.extent = 5}}), 0.05, 110);
  const ValueId gate = net.through(b.emit(op::SigmoidAttributes{}, {x}), 1.0 / 255, 0);
  const ValueId gated = net.through(b.mul(b.mul(x, net.number(0.5)), gate), 0.02, 20);
  // One value for all, as a table.
  const ValueId half =
      net.through(b.emit(op::SigmoidAttributes{}, {b.mul(gated, net.number(1e-9))}), 1.0 / 255, 0);
  net.output(net.through(b.mul(gated, half), 0.02, 20));
  transform(net.graph, {"quantize", "common_subexpr", "fold"}, kOneStep);
  EXPECT_EQ(count(net.graph, OpKind::Lookup), 1u) << print(net.graph);
  EXPECT_EQ(net.graph.nodes.size(), 3u) << print(net.graph);  // and one conversion at each end
}

// As ONNX Runtime's quantizer writes Gelu: each step quantized, the numbers too.
TEST(Quantize, ChainsOfFunctionsAreOneTable) {
  QuantizedNet net;
  Builder& b = net.b;
  const auto number = [&](double value, double scale) {
    op::DequantizeLinearAttributes attributes;
    attributes.to = static_cast<uint8_t>(DType::F32);
    return b.emit(attributes, {net.number(value, DType::U8), net.number(scale)});
  };
  const ValueId x = net.through(net.input({net.symbol("batch"), {.extent = 6}, {.extent = 4}}), 0.02, 110);
  const ValueId erf =
      net.through(b.emit(op::ErfAttributes{}, {b.mul(x, number(181, 1.0 / 256))}), 0.008, 128);
  const ValueId sum = net.through(b.add(erf, number(100, 0.01)), 0.008, 0);
  const ValueId product = net.through(b.mul(x, sum), 0.025, 20);
  net.output(net.through(b.mul(product, number(128, 1.0 / 256)), 0.0125, 20));
  transform(net.graph, {"quantize", "fold"}, kOneStep);
  EXPECT_EQ(count(net.graph, OpKind::Lookup), 1u) << print(net.graph);
  for (const OpKind other : {OpKind::Mul, OpKind::Add, OpKind::Erf})
    EXPECT_EQ(count(net.graph, other), 0u) << print(net.graph);
}

TEST(Quantize, FactorsAndOffsetsOfChannelsAreOneNode) {
  for (const DType to : {DType::U8, DType::I8}) {
    QuantizedNet net;
    Builder& b = net.b;
    ValueId x = net.through(net.input({net.symbol("batch"), {.extent = 6}, {.extent = 4}}), 0.02, 110);
    x = b.emit(op::BatchNormAttributes{},
               {x, random_constant(b, {4}, 1, 0.5, 1.5), random_constant(b, {4}, 2),
                random_constant(b, {4}, 3), random_constant(b, {4}, 4, 0.5, 1.5)});
    x = net.through(b.emit(op::ReluAttributes{}, {b.sub(random_constant(b, {4}, 5), x)}), 0.02, 3, to);
    // A bias in 8 bits, on the left.
    op::DequantizeLinearAttributes attributes;
    attributes.to = static_cast<uint8_t>(DType::F32);
    const ValueId bias = random_constant(b, {4}, 6, 0, 250, DType::U8);
    x = b.add(b.emit(attributes, {bias, net.number(0.01), net.number(128, DType::U8)}), x);
    net.output(net.through(x, 0.05, 12));
    transform(net.graph, {"quantize", "fold"}, kOneStep);
    EXPECT_EQ(count(net.graph, OpKind::Requantize), 2u) << print(net.graph);
    for (const OpKind other : {OpKind::Add, OpKind::Sub, OpKind::BatchNorm, OpKind::Relu})
      EXPECT_EQ(count(net.graph, other), 0u) << print(net.graph);
  }
}

/// Offsets of another axis, of a tensor that is no constant, factors beyond f32, and nodes with absent
/// operands.
TEST(Quantize, OtherFactorsAndOffsetsStay) {
  QuantizedNet net;
  Builder& b = net.b;
  const ValueId changing = net.input({{.extent = 4}}, "changing");
  const ValueId x = net.through(net.input({net.symbol("batch"), {.extent = 6}, {.extent = 4}}), 0.02, 110);
  net.output(net.through(b.add(x, random_constant(b, {6, 1}, 1)), 0.05, 12));
  net.output(net.through(b.add(x, changing), 0.05, 12));
  ValueId y = x;
  for (int i = 0; i < 2; ++i) y = b.mul(y, random_constant(b, {4}, 2, 1e25, 1e26));
  net.output(net.through(b.emit(op::TanhAttributes{}, {y}), 0.01, 128));
  net.output(
      net.through(b.emit(op::LayerNormAttributes{}, {x, kNoValue, random_constant(b, {4}, 3)}), 0.05, 12));
  transform(net.graph, {"quantize", "fold"}, kOneStep);
  EXPECT_EQ(count(net.graph, OpKind::Requantize), 0u) << print(net.graph);
}

TEST(Quantize, FunctionsOfTwoTensorsStay) {
  QuantizedNet net;
  Builder& b = net.b;
  const ValueId x = net.through(net.input({net.symbol("batch"), {.extent = 6}}), 0.05, 110);
  const ValueId other = net.through(net.input({net.symbol("batch"), {.extent = 6}}, "other"), 0.05, 110);
  const ValueId gate = net.through(b.emit(op::SigmoidAttributes{}, {other}), 1.0 / 255, 0);
  net.output(net.through(b.mul(x, gate), 0.02, 20));
  transform(net.graph, {"quantize", "common_subexpr", "fold"}, kOneStep);
  EXPECT_EQ(count(net.graph, OpKind::Mul), 1u) << print(net.graph);
}

TEST(Quantize, DataIsMovedInBytes) {
  QuantizedNet net;
  Builder& b = net.b;
  const ValueId x = net.through(net.input({{.extent = 4}, {.extent = 3}}), 0.02, 110);
  const int64_t numbers[] = {3, 0, 1, 1, 2, 0};
  const ValueId indices = b.constant({DType::I64, {2, 3}}, Blob::copy_of(numbers, sizeof numbers));
  const ValueId picked = b.emit(op::GatherElementsAttributes{}, {x, indices});
  net.output(b.emit(op::ReluAttributes{}, {b.transpose(picked, {1, 0})}));
  transform(net.graph, {"quantize"}, kOneStep);
  for (const Node& node : net.graph.nodes) {
    if (!ops::moves_elements(node.kind())) continue;
    EXPECT_EQ(net.graph[node.inputs[0]].dtype, DType::U8) << print(net.graph);
  }
  EXPECT_EQ(count(net.graph, OpKind::GatherElements), 1u);
}

/// x of k spatial axes, of which one has an extent of its own, through a ConvTranspose.
struct TransposedNet : QuantizedNet {
  TransposedNet(int64_t k, std::vector<int64_t> window, std::vector<int64_t> strides, int64_t weight_axis) {
    std::vector<Dim> dims{symbol("batch"), symbol("height")};
    for (int64_t i = 1; i < k; ++i) dims.push_back({.extent = 3});
    dims.push_back({.extent = 4});
    const ValueId x = through(input(dims), 0.02, 110);
    Shape shape{4};
    for (const int64_t extent : window) shape.push_back(extent);
    shape.push_back(5);
    op::ConvTransposeAttributes attributes;
    attributes.strides = std::move(strides);
    ValueId y = b.emit(std::move(attributes),
                       {x, weight(shape, weight_axis, 1), kNoValue, random_constant(b, {5}, 9)});
    y = b.emit(op::ReluAttributes{}, {y});
    output(through(y, 0.05, 3));
  }
};

TEST(Quantize, TransposedConvolutionsOfSeparateWindowsAreMatmuls) {
  const std::vector<int64_t> windows[] = {{3}, {2, 2}, {1, 3}, {2, 1, 2}};
  for (const auto& window : windows) {
    const auto k = static_cast<int64_t>(window.size());
    TransposedNet net(k, window, window, k + 1);
    transform(net.graph, {"quantize", "fold"}, kOneStep);
    EXPECT_EQ(count(net.graph, OpKind::QuantizedMatMul), 1u) << print(net.graph);
    EXPECT_EQ(count(net.graph, OpKind::ConvTranspose), 0u) << print(net.graph);
    EXPECT_EQ(count(net.graph, OpKind::Relu), 0u) << print(net.graph);
    EXPECT_EQ(count(net.graph, OpKind::QuantizeLinear), 1u) << print(net.graph);  // of the input
  }
}

TEST(Quantize, OtherTransposedConvolutionsStay) {
  TransposedNet overlapping(2, {3, 2}, {2, 2}, 3), gaps(2, {2, 2}, {2, 3}, 3), rows(2, {2, 2}, {2, 2}, 0);
  for (TransposedNet* net : {&overlapping, &gaps, &rows}) {
    transform(net->graph, {"quantize", "fold"}, kOneStep);
    EXPECT_EQ(count(net->graph, OpKind::ConvTranspose), 1u) << print(net->graph);
  }
}

TEST(Quantize, DynamicMatmulsKeepTheirScaleAsAnOperand) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 8}});
  const std::vector<ValueId> q =
      b.emit_many(make_op(op::DynamicQuantizeLinearAttributes{}), std::array{x}, 3);
  const ValueId w = random_constant(b, {8, 6}, 3, -90, 90, DType::I8);
  const ValueId sums = b.emit(op::MatMulIntegerAttributes{}, {q[0], w, q[2]});
  const ValueId scaled =
      b.mul(b.cast(sums, DType::F32), b.mul(q[1], random_constant(b, {6}, 4, 0.004, 0.01)));
  net.output(b.emit(op::ReluAttributes{}, {b.add(scaled, random_constant(b, {6}, 5))}));
  transform(net.graph, {"quantize"}, 1e-4);
  EXPECT_EQ(count(net.graph, OpKind::QuantizedMatMul), 1u) << print(net.graph);
  EXPECT_EQ(count(net.graph, OpKind::Add) + count(net.graph, OpKind::Relu), 0u) << print(net.graph);
}

/// A small net of convolutions, an addition and a matmul.
void small_net(Net& net) {
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 8}, {.extent = 8}, {.extent = 4}});
  const auto conv = [&](ValueId from, Shape weight, uint32_t seed, int64_t groups, bool relu) {
    op::ConvAttributes attributes;
    attributes.pads = {1, 1, 1, 1};
    attributes.groups = groups;
    attributes.epilogue = std::make_unique<op::EpilogueAttributes>();
    attributes.epilogue->has_bias = true;
    if (relu) attributes.epilogue->activation = op::Activation::Relu;
    return b.emit(std::move(attributes), {from, random_constant(b, weight, seed, -0.3, 0.3),
                                          random_constant(b, {weight[0]}, seed + 50)});
  };
  const ValueId first = conv(x, {16, 3, 3, 4}, 1, 1, true);
  const ValueId deep = conv(first, {16, 3, 3, 1}, 2, 16, true);
  const ValueId sum = b.emit(op::ReluAttributes{}, {b.add(deep, first)});
  const ValueId flat =
      b.reshape(conv(sum, {3, 3, 3, 16}, 3, 1, false), b.ints(std::array<int64_t, 2>{-1, 192}));
  net.output(b.emit(op::MatMulAttributes{}, {flat, random_constant(b, {192, 5}, 4, -0.1, 0.1)}));
}

std::map<ValueId, Observed> observe(const Graph& graph, const QuantizationChoice& choice) {
  std::map<ValueId, Observed> observed;
  std::vector<ValueId> values = choice.values;
  for (const NodeId id : choice.matmuls) values.push_back(graph.nodes[id].inputs[0]);
  for (const ValueId value : values) {
    Graph copy = graph;
    copy.outputs = {value};
    const ops::HostTensor seen = results_of(copy)[0];
    Observed& here = observed[value] = {};
    const int64_t channels = seen.info.shape.back(), elements_of_channel = seen.info.elements() / channels;
    here.mean.resize(static_cast<size_t>(channels));
    for (int64_t i = 0; i < seen.info.elements(); ++i) {
      const double number = load_element(seen.bytes.data(), DType::F32, i);
      here.range.low = std::min(here.range.low, static_cast<float>(number));
      here.range.high = std::max(here.range.high, static_cast<float>(number));
      here.mean[static_cast<size_t>(i % channels)] += number / static_cast<double>(elements_of_channel);
    }
  }
  return observed;
}

double decibels(const ops::HostTensor& want, const ops::HostTensor& got) {
  double power = 0, noise = 0;
  for (int64_t i = 0; i < want.info.elements(); ++i) {
    const double w = load_element(want.bytes.data(), DType::F32, i),
                 g = load_element(got.bytes.data(), DType::F32, i);
    power += w * w;
    noise += (w - g) * (w - g);
  }
  return 10 * std::log10(power / noise);
}

TEST(Calibrate, TheWholeNetInBytes) {
  Net net;
  small_net(net);
  const auto want = results_of(net.graph);
  const QuantizationChoice choice = choose_quantized(net.graph, [](const std::string&) { return false; });
  EXPECT_EQ(choice.matmuls.size(), 4u);
  const auto observed = observe(net.graph, choice);
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = net.graph});
  insert_quantization(model.entries[0].graph, choice, observed);
  ASSERT_TRUE(verify(model.entries[0].graph).ok()) << verify(model.entries[0].graph).message();
  ASSERT_TRUE(optimize(model, {}, nullptr).ok());
  const Graph& graph = model.entries[0].graph;
  EXPECT_EQ(count(graph, OpKind::QuantizedConv), 3u) << print(graph);
  EXPECT_EQ(count(graph, OpKind::QuantizedAdd), 1u) << print(graph);
  EXPECT_EQ(count(graph, OpKind::QuantizedMatMul), 1u) << print(graph);
  EXPECT_EQ(count(graph, OpKind::QuantizeLinear), 1u) << print(graph);
  EXPECT_EQ(count(graph, OpKind::DequantizeLinear), 0u) << print(graph);
  Graph expanded = graph;
  ASSERT_TRUE(expand_composites(expanded, {}).ok());
  EXPECT_GT(decibels(want[0], results_of(expanded)[0]), 30);
  // The error of each node alone is smaller than that of all of them.
  const auto pairs = results_of(error_graph(net.graph, choice, observed));
  ASSERT_EQ(pairs.size(), 2 * choice.matmuls.size());
  for (size_t i = 0; i < pairs.size(); i += 2) EXPECT_GT(decibels(pairs[i], pairs[i + 1]), 33);
}

/// Taps in the padding read zeros: the bias corrects nothing for them. On one pixel of ones, which 8 bits
/// hold, it corrects the result to what f32 gives.
TEST(Calibrate, TheBiasKnowsThePadding) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 1}, {.extent = 1}, {.extent = 8}});
  const ValueId ones = b.add(b.mul(x, random_constant(b, {}, 1, 0, 0)), random_constant(b, {}, 1, 1, 1));
  op::ConvAttributes attributes;
  attributes.pads = {1, 1, 1, 1};
  net.output(b.emit(std::move(attributes), {ones, random_constant(b, {4, 3, 3, 8}, 2, -0.3, 0.3)}));
  const auto want = results_of(net.graph);
  const QuantizationChoice choice = choose_quantized(net.graph, [](const std::string&) { return false; });
  ASSERT_EQ(choice.matmuls.size(), 1u);
  insert_quantization(net.graph, choice, observe(net.graph, choice));
  EXPECT_GT(decibels(want[0], results_of(net.graph)[0]), 100);
}

TEST(Calibrate, KeptNodesStayInFloat) {
  Net net;
  small_net(net);
  net.graph.nodes[0].name = "stem";
  const QuantizationChoice choice =
      choose_quantized(net.graph, [](const std::string& name) { return name == "stem"; });
  EXPECT_EQ(choice.matmuls.size(), 3u);
  EXPECT_FALSE(std::binary_search(choice.values.begin(), choice.values.end(), net.graph.inputs[0]));
}

/// What reads a tensor that 8 bits cannot hold stays in f32, and nothing of it is quantized.
TEST(Calibrate, UnfitTensorsStayInFloat) {
  Net net;
  small_net(net);
  const auto keep = [](const std::string&) { return false; };
  for (const ValueId unfit : choose_quantized(net.graph, keep).values) {
    const QuantizationChoice choice = choose_quantized(net.graph, keep, {unfit});
    EXPECT_FALSE(std::binary_search(choice.values.begin(), choice.values.end(), unfit));
    for (const NodeId id : choice.matmuls) EXPECT_NE(net.graph.nodes[id].inputs[0], unfit);
  }
}

TEST(Calibrate, EqualizedChannelsComputeTheSame) {
  Net net;
  small_net(net);
  Net pair;  // without the sum, so that nothing else reads the first result
  {
    Builder& b = pair.b;
    const ValueId x = pair.input({pair.symbol("batch"), {.extent = 6}, {.extent = 6}, {.extent = 4}});
    const ValueId first =
        b.emit(op::ReluAttributes{},
               {b.emit(op::ConvAttributes{}, {x, random_constant(b, {8, 1, 1, 4}, 1, -2, 2)})});
    op::ConvAttributes deep;
    deep.groups = 8;
    pair.output(b.emit(std::move(deep), {first, random_constant(b, {8, 3, 3, 1}, 2, -0.01, 0.01)}));
    ASSERT_TRUE(run_pass("fuse", pair.graph, {}).ok());
  }
  EXPECT_EQ(equalize_channels(net.graph), 0u);
  const auto before = results_of(pair.graph);
  EXPECT_EQ(equalize_channels(pair.graph), 1u);
  const auto after = results_of(pair.graph);
  for (int64_t i = 0; i < before[0].info.elements(); ++i)
    EXPECT_NEAR(load_element(before[0].bytes.data(), DType::F32, i),
                load_element(after[0].bytes.data(), DType::F32, i), 1e-4);
}

TEST(QuantizeWeights, WeightsOf16BitsAreWidenedFirst) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 96}});
  const ValueId weight = random_constant(b, {96, 64}, 1, -1, 1, DType::F16);
  net.output(b.emit(op::MatMulAttributes{}, {x, b.cast(weight, DType::F32)}));
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = net.graph});
  const auto matmuls = [&] {
    return choose_quantized(model.entries[0].graph, [](const std::string&) { return false; }).matmuls.size();
  };
  ASSERT_TRUE(optimize(model, {}, nullptr).ok());
  EXPECT_EQ(matmuls(), 0u) << print(model.entries[0].graph);
  ASSERT_TRUE(optimize(model, {.widen = true}, nullptr).ok());
  EXPECT_EQ(matmuls(), 1u) << print(model.entries[0].graph);
}

TEST(QuantizeWeights, DynamicAndInGroups) {
  const auto keep = [](const std::string&) { return false; };
  for (const int64_t bits : {0, 8, 4}) {
    Net net;
    Builder& b = net.b;
    const ValueId x = net.input({net.symbol("batch"), {.extent = 64}});
    const ValueId y = b.add(b.emit(op::MatMulAttributes{}, {x, random_constant(b, {64, 16}, 1)}),
                            random_constant(b, {16}, 2));
    op::MatMulAttributes transposed;
    transposed.transpose_b = true;
    net.output(
        b.emit(op::ReluAttributes{}, {b.emit(std::move(transposed), {x, random_constant(b, {16, 64}, 3)})}),
        "z");
    net.output(y);
    ASSERT_TRUE(run_pass("fuse", net.graph, {}).ok());
    const auto want = results_of(net.graph);
    const auto changed = bits == 0 ? quantize_dynamically(net.graph, {}, keep)
                                   : quantize_weights(net.graph, {}, keep, bits, 32);
    ASSERT_TRUE(changed.ok()) << changed.status().message();
    EXPECT_EQ(*changed, 2u);
    EXPECT_EQ(count(net.graph, OpKind::MatMul), 0u);
    EXPECT_EQ(count(net.graph, OpKind::DynamicQuantizeLinear), bits == 0 ? 1u : 0u);
    ASSERT_TRUE(expand_composites(net.graph, {}).ok());
    const auto got = results_of(net.graph);
    for (size_t i = 0; i < 2; ++i) EXPECT_GT(decibels(want[i], got[i]), bits == 4 ? 18 : 35);
  }
}

TEST(QuantizeWeights, RowsOfAnEmbedding) {
  const auto keep = [](const std::string&) { return false; };
  Net net;
  Builder& b = net.b;
  const ValueId indices = net.input({net.symbol("batch"), {.extent = 5}}, "indices", DType::I64);
  const ValueId table = random_constant(b, {100, 32}, 1), small = random_constant(b, {3, 32}, 2);
  const ValueId tied = random_constant(b, {80, 32}, 3);
  op::MatMulAttributes transposed;
  transposed.transpose_b = true;
  const ValueId zero = b.mul(indices, b.scalar(0, DType::I64));
  const ValueId x =
      b.add(b.emit(op::GatherAttributes{}, {table, indices}), b.emit(op::GatherAttributes{}, {small, zero}));
  net.output(b.add(x, b.emit(op::GatherAttributes{}, {tied, indices})), "x");
  net.output(b.emit(std::move(transposed), {x, tied}), "scores");
  const auto want = results_of(net.graph);
  const auto tables = [&] {
    const auto changed = quantize_tables(net.graph, {}, keep);
    EXPECT_TRUE(changed.ok()) << changed.status().message();
    return changed.ok() ? *changed : 0;
  };
  EXPECT_EQ(tables(), 1u);  // `small` is too small, a matmul reads all of `tied`
  EXPECT_EQ(*quantize_dynamically(net.graph, {}, keep), 1u);
  EXPECT_EQ(tables(), 1u);
  EXPECT_EQ(tables(), 0u);
  ASSERT_TRUE(expand_composites(net.graph, {}).ok());
  const auto got = results_of(net.graph);
  for (size_t i = 0; i < 2; ++i) EXPECT_GT(decibels(want[i], got[i]), 35);
}

}  // namespace
}  // namespace librt::compiler::test
