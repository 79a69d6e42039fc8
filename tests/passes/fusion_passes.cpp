// batch_norm, recognize, fuse, precision, expand, and the whole pipeline.
#include <cmath>

#include "tests/passes/support.h"
#include "tools/compiler/passes/passes.h"
#include "tools/compiler/quantize/half.h"

namespace librt::compiler::test {
namespace {

ValueId batch_norm_of(Net& net, ValueId x, int64_t channels, uint32_t seed) {
  Builder& b = net.b;
  return b.emit(op::BatchNormAttributes{},
                {x, random_constant(b, {channels}, seed), random_constant(b, {channels}, seed + 1),
                 random_constant(b, {channels}, seed + 2), random_constant(b, {channels}, seed + 3, 0.5, 2)});
}

TEST(BatchNormFolding, IntoConvTransposeAndMatMulWithGroups) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 4}, {.extent = 4}, {.extent = 4}});
  op::ConvAttributes grouped;
  grouped.groups = 2;
  ValueId y = batch_norm_of(net, b.emit(grouped, {x, random_constant(b, {6, 2, 2, 2}, 1)}), 6, 10);
  op::ConvTransposeAttributes transposed;
  transposed.groups = 2;
  y = b.emit(transposed, {y, random_constant(b, {6, 2, 2, 5}, 2), kNoValue, random_constant(b, {10}, 4)});
  y = batch_norm_of(net, y, 10, 20);
  y = b.emit(op::MatMulAttributes{}, {y, random_constant(b, {10, 3}, 3)});
  y = b.sub(random_constant(b, {1, 3}, 5), b.div(y, random_constant(b, {3}, 6, 1, 2)));
  net.output(y);
  transform(net.graph, {"batch_norm"}, 1e-4);
  EXPECT_EQ(net.graph.nodes.size(), 3u) << print(net.graph);
}

TEST(BatchNormFolding, LeavesSharedValuesAndWeights) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 4}});
  const ValueId w = random_constant(b, {4, 4}, 1);
  const ValueId p = b.emit(op::MatMulAttributes{}, {x, w});
  net.output(b.add(b.emit(op::MatMulAttributes{}, {b.mul(p, random_constant(b, {4}, 2)), w}), p));
  transform(net.graph, {"batch_norm"});
  EXPECT_EQ(count(net.graph, OpKind::Mul), 1u);
}

// 3x3, twice, 1x1 and 1x3, as MobileOne adds them; the rest of the sum is added to them.
TEST(ParallelConv, BranchesOfOneValueAreOneConvolution) {
  for (const int64_t groups : {1, 2, 4})
    for (const int64_t stride : {1, 2})
      for (const int64_t dilation : {1, 2}) {
        SCOPED_TRACE(text(groups, " groups, stride ", stride, ", dilation ", dilation));
        Net net;
        Builder& b = net.b;
        const ValueId x = net.input({net.symbol("batch"), {.extent = 7}, {.extent = 6}, {.extent = 4}});
        op::ConvAttributes conv;
        conv.groups = groups;
        conv.strides = {stride, stride};
        conv.dilations = {dilation, dilation};
        const auto branch = [&](std::vector<int64_t> pads, Shape window, uint32_t seed, bool bias) {
          op::ConvAttributes own = conv;
          own.pads = std::move(pads);
          std::vector<ValueId> inputs{x, random_constant(b, window, seed)};
          if (bias) {
            own.epilogue = std::make_unique<op::EpilogueAttributes>();
            own.epilogue->has_bias = true;
            inputs.push_back(random_constant(b, {8}, seed + 1));
          }
          return b.emit_many(make_op(std::move(own)), inputs, 1)[0];
        };
        const int64_t d = dilation, channels = 4 / groups;
        ValueId sum = branch({d, d, d, d}, {8, 3, 3, channels}, 10, true);
        sum = b.add(b.neg(branch({0, 0, 0, 0}, {8, 1, 1, channels}, 15, false)), sum);  // has another reader
        sum = b.add(sum, branch({0, 0, 0, 0}, {8, 1, 1, channels}, 20, false));
        sum = b.add(branch({d, d, d, d}, {8, 3, 3, channels}, 30, true), sum);
        sum = b.add(sum, branch({0, d, 0, d}, {8, 1, 3, channels}, 40, false));
        net.output(net.unary(op::ReluAttributes{}, sum));
        transform(net.graph, {"parallel_conv"}, 1e-4);
        EXPECT_EQ(count(net.graph, OpKind::Conv), 2u) << print(net.graph);
        EXPECT_EQ(count(net.graph, OpKind::Add), 1u) << print(net.graph);
      }
}

TEST(ParallelConv, LeavesWhatIsReadTwiceOrGrowsOrDiffers) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 7}, {.extent = 6}, {.extent = 4}}),
                y = b.neg(x);
  const auto conv = [&](ValueId from, std::vector<int64_t> pads, Shape window, uint32_t seed) {
    op::ConvAttributes attributes;
    attributes.pads = std::move(pads);
    return b.emit(std::move(attributes), {from, random_constant(b, window, seed)});
  };
  const std::vector<int64_t> around{1, 1, 1, 1};
  // Neither in the other: 1x3 and 3x1 have 6 taps, both in one window 9.
  net.output(b.add(conv(x, {0, 1, 0, 1}, {4, 1, 3, 4}, 1), conv(x, {1, 0, 1, 0}, {4, 3, 1, 4}, 2)),
             "crossed");
  net.output(b.add(conv(x, around, {4, 3, 3, 4}, 3), conv(y, around, {4, 3, 3, 4}, 4)), "others");
  const ValueId shared = conv(x, around, {4, 3, 3, 4}, 5);
  net.output(b.mul(b.add(shared, conv(x, around, {4, 3, 3, 4}, 6)), shared), "shared");
  // One result that is broadcast.
  net.output(b.add(conv(x, around, {4, 3, 3, 4}, 7), conv(x, around, {1, 3, 3, 4}, 8)), "broadcast");
  transform(net.graph, {"parallel_conv"}, 0);
  EXPECT_EQ(count(net.graph, OpKind::Conv), 8u) << print(net.graph);

  Net shifted;  // windows at other places, padded differently, with results at the same ones
  const ValueId z = shifted.input({{.extent = 1}, {.extent = 9}, {.extent = 4}});
  const auto along = [&](std::vector<int64_t> pads, int64_t taps, uint32_t seed) {
    op::ConvAttributes attributes;
    attributes.pads = std::move(pads);
    return shifted.b.emit(std::move(attributes), {z, random_constant(shifted.b, {4, taps, 4}, seed)});
  };
  shifted.output(shifted.b.add(along({3, 0}, 4, 1), along({2, 2}, 5, 2)));
  transform(shifted.graph, {"parallel_conv"}, 1e-5);
  EXPECT_EQ(count(shifted.graph, OpKind::Conv), 1u) << print(shifted.graph);
}

/// Where(Equal(i[batch,5,1], 0..6), 1, 0) times weights, with indices of -2 to 9.
ValueId one_hot_times(Net& net, ValueId index, ValueId weights) {
  Builder& b = net.b;
  const std::array<int64_t, 3> outer{-1, 5, 1};
  const std::array<int64_t, 7> range{0, 1, 2, 3, 4, 5, 6};
  const ValueId hot = b.emit(op::EqualAttributes{}, {b.reshape(index, b.ints(outer)), b.ints(range)});
  const ValueId vectors =
      b.emit(op::WhereAttributes{}, {hot, b.scalar(1, DType::F32), b.scalar(0, DType::F32)});
  return b.emit(op::MatMulAttributes{}, {vectors, weights});
}

TEST(OneHot, VectorsTimesWeightsAreRows) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 5}});
  const ValueId index =
      b.cast(b.add(b.mul(x, b.scalar(3, DType::F32)), b.scalar(3.5, DType::F32)), DType::I64);
  const ValueId product = one_hot_times(net, index, random_constant(b, {7, 4}, 1));
  net.output(b.emit(op::TanhAttributes{}, {b.sub(random_constant(b, {4}, 2), product)}));
  transform(net.graph, {"one_hot", "fold", "dead_code"});
  EXPECT_EQ(count(net.graph, OpKind::MatMul), 0u) << print(net.graph);
  EXPECT_EQ(count(net.graph, OpKind::Gather), 1u);
  EXPECT_EQ(count(net.graph, OpKind::Tanh), 0u);  // of the table, once
}

TEST(OneHot, ComparisonsCastToNumbersAreOneHot) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 5}});
  const ValueId index = b.cast(b.mul(x, b.scalar(3, DType::F32)), DType::I32);
  const std::array<int64_t, 3> outer{-1, 5, 1};
  const std::array<int32_t, 7> range{0, 1, 2, 3, 4, 5, 6};
  for (const Shape& shape : {Shape({1, 1, 7}), Shape({7}), Shape({1, 1, 1, 7})}) {
    const ValueId numbers = b.constant({DType::I32, shape}, Blob::copy_of(range.data(), sizeof(range)));
    const ValueId hot = b.emit(op::EqualAttributes{}, {numbers, b.reshape(index, b.ints(outer))});
    net.output(b.emit(op::MatMulAttributes{}, {b.cast(hot, DType::F32), random_constant(b, {7, 4}, 1)}),
               text("of_rank", shape.rank()));
  }
  transform(net.graph, {"one_hot", "fold", "dead_code"});
  EXPECT_EQ(count(net.graph, OpKind::MatMul), 1u) << print(net.graph);  // its result has another axis
  EXPECT_EQ(count(net.graph, OpKind::Gather), 2u);
}

TEST(OneHot, LeavesInfiniteWeightsOtherRangesAndSharedRows) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 5}});
  const ValueId index = b.cast(x, DType::I64);
  std::vector<float> infinite(7 * 4, 1.0f);
  infinite[5] = std::numeric_limits<float>::infinity();
  net.output(
      one_hot_times(net, index, b.constant({DType::F32, {7, 4}}, Blob::copy_of(infinite.data(), 7 * 4 * 4))),
      "infinite");
  net.output(one_hot_times(net, index, b.reshape(b.mul(x, x), b.ints(std::array<int64_t, 2>{7, -1}))),
             "varying");
  const ValueId rows = b.emit(op::GatherAttributes{}, {random_constant(b, {9, 4}, 3), index});
  net.output(b.add(b.emit(op::ReluAttributes{}, {rows}), rows), "shared");
  Graph& graph = net.graph;
  ASSERT_TRUE(run_pass("one_hot", graph, {}).ok());
  ASSERT_TRUE(verify(graph).ok());
  EXPECT_EQ(count(graph, OpKind::MatMul), 2u) << print(graph);
  EXPECT_EQ(count(graph, OpKind::Relu), 1u);
}

TEST(Recognize, Activations) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 7}});
  const auto number = [&](double value) { return b.scalar(value, DType::F32); };
  op::ClipAttributes six;
  six.minimum = 0;
  six.maximum = 6;
  const auto relu6 = [&] { return net.unary(six, b.add(x, number(3))); };
  net.output(b.mul(x, net.unary(op::SigmoidAttributes{}, x)), "silu");
  net.output(b.mul(x, b.div(relu6(), number(6))), "swish1");
  net.output(b.div(b.mul(relu6(), x), number(6)), "swish2");
  net.output(b.mul(relu6(), number(1.0 / 6)), "sigmoid");
  const ValueId erf = b.add(net.unary(op::ErfAttributes{}, b.div(x, number(std::sqrt(2)))), number(1));
  net.output(b.mul(b.mul(x, erf), number(0.5)), "gelu1");
  const ValueId erf2 = b.add(number(1), net.unary(op::ErfAttributes{}, b.mul(x, number(std::sqrt(0.5)))));
  net.output(b.mul(x, b.mul(number(0.5), erf2)), "gelu2");
  const ValueId cube = b.emit(op::PowAttributes{}, {x, number(3)});
  const ValueId inner = b.add(x, b.mul(number(0.044715), cube));
  const ValueId tanh = net.unary(op::TanhAttributes{}, b.mul(inner, number(0.7978845608)));
  net.output(b.mul(b.mul(number(0.5), x), b.add(tanh, number(1))), "gelu3");
  transform(net.graph, {"recognize"}, 1e-4);
  EXPECT_EQ(nodes_text(net.graph),
            "%silu : f32[batch,7] = Silu(%x)\n"
            "%swish1 : f32[batch,7] = HardSwish(%x)\n"
            "%swish2 : f32[batch,7] = HardSwish(%x)\n"
            "%sigmoid : f32[batch,7] = HardSigmoid(%x) {alpha=0.16666667}\n"
            "%gelu1 : f32[batch,7] = Gelu(%x)\n"
            "%gelu2 : f32[batch,7] = Gelu(%x)\n"
            "%gelu3 : f32[batch,7] = Gelu(%x) {tanh_approximation=true}\n");
}

TEST(Recognize, LayerNormWithScaleAndBias) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 3}, {.extent = 8}});
  const ValueId d = b.sub(x, b.reduce_mean(x, {-1}));
  const ValueId variance = b.reduce_mean(b.emit(op::PowAttributes{}, {d, b.scalar(2, DType::F32)}), {2});
  const ValueId deviation = net.unary(op::SqrtAttributes{}, b.add(variance, b.scalar(1e-5, DType::F32)));
  const ValueId y = b.mul(b.div(d, deviation), random_constant(b, {8}, 1));
  net.output(b.add(random_constant(b, {8}, 2), y));
  transform(net.graph, {"recognize"}, 1e-4);
  ASSERT_EQ(net.graph.nodes.size(), 1u) << print(net.graph);
  EXPECT_EQ(net.graph.nodes[0].inputs.size(), 3u);
}

TEST(Recognize, RmsNormWithScale) {
  const auto recognized = [](bool reciprocal, bool add_bias) {
    Net net;
    Builder& b = net.b;
    const ValueId x = net.input({net.symbol("batch"), {.extent = 3}, {.extent = 8}});
    const ValueId mean = b.reduce_mean(b.emit(op::PowAttributes{}, {x, b.scalar(2, DType::F32)}), {-1});
    const ValueId root = net.unary(op::SqrtAttributes{}, b.add(mean, b.scalar(1e-6, DType::F32)));
    ValueId y = reciprocal ? b.mul(x, net.unary(op::ReciprocalAttributes{}, root)) : b.div(x, root);
    y = b.mul(random_constant(b, {8}, 1), y);
    net.output(add_bias ? b.add(y, random_constant(b, {8}, 2)) : y);
    transform(net.graph, {"recognize"}, 1e-4);
    return nodes_text(net.graph);
  };
  EXPECT_NE(recognized(false, false).find("RmsNorm("), std::string::npos) << recognized(false, false);
  EXPECT_EQ(recognized(true, false), recognized(false, false));
  EXPECT_NE(recognized(true, true).find("= Add("), std::string::npos) << recognized(true, true);
}

TEST(Recognize, NotWhenAnInnerValueIsReadOutside) {
  Net net;
  const ValueId x = net.input({{.extent = 7}});
  const ValueId gate = net.unary(op::SigmoidAttributes{}, x);
  net.output(net.b.mul(x, gate), "y");
  net.output(gate, "gate");
  transform(net.graph, {"recognize"});
  EXPECT_EQ(count(net.graph, OpKind::Silu), 0u);
}

TEST(Fuse, BiasResidualAndActivation) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 4}, {.extent = 4}, {.extent = 3}});
  ValueId y = b.emit(op::ConvAttributes{}, {x, random_constant(b, {3, 1, 1, 3}, 1)});
  y = b.add(y, random_constant(b, {1, 1, 1, 3}, 2));
  y = net.unary(op::ReluAttributes{}, b.add(x, y));
  y = b.emit(op::MatMulAttributes{}, {y, random_constant(b, {3, 5}, 3)});
  y = b.add(y, random_constant(b, {5}, 4));
  op::LeakyReluAttributes leaky;
  leaky.alpha = 0.25;
  net.output(net.unary(leaky, y));
  transform(net.graph, {"fuse", "fold"}, 1e-4);
  EXPECT_EQ(
      nodes_text(net.graph),
      "%Relu : f32[batch,4,4,3] = Conv(%x, %1, %Reshape, %x) {epilogue={activation=Relu, has_bias=true, "
      "has_residual=true}}\n"
      "%y : f32[batch,4,4,5] = MatMul(%Relu, %2, %3) {epilogue={activation=LeakyRelu, alpha=0.25, "
      "has_bias=true}}\n");
}

TEST(Fuse, ResidualsBecomeAdditionsAgainWhereUnwanted) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 4}, {.extent = 4}, {.extent = 3}});
  ValueId y = b.emit(op::ConvAttributes{}, {x, random_constant(b, {3, 1, 1, 3}, 1)});
  y = net.unary(op::ReluAttributes{}, b.add(x, b.add(y, random_constant(b, {1, 1, 1, 3}, 2))));
  net.output(b.add(y, b.emit(op::MatMulAttributes{}, {y, random_constant(b, {3, 3}, 3)})));
  transform(net.graph, {"fuse", "fold"}, 1e-4);
  ASSERT_EQ(count(net.graph, OpKind::Add), 0u);
  const auto want = results_of(net.graph);
  ASSERT_TRUE(fuse(net.graph, {.states = {}, .residuals = false}).ok());
  EXPECT_EQ(count(net.graph, OpKind::Add), 2u) << print(net.graph);
  EXPECT_EQ(count(net.graph, OpKind::Relu), 1u);
  const auto got = results_of(net.graph);
  ASSERT_EQ(want.size(), got.size());
  for (int64_t i = 0; i < want[0].info.elements(); ++i)
    ASSERT_NEAR(load_element(want[0].bytes.data(), DType::F32, i),
                load_element(got[0].bytes.data(), DType::F32, i), 1e-5);
}

TEST(Fuse, NotWhenTheSumIsReadTwice) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 3}});
  const ValueId p = b.emit(op::MatMulAttributes{}, {x, random_constant(b, {3, 3}, 1)});
  net.output(b.mul(net.unary(op::ReluAttributes{}, p), p));
  transform(net.graph, {"fuse"});
  EXPECT_EQ(count(net.graph, OpKind::Relu), 1u);
}

TEST(Precision, HalfModelComputesInFloat) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 3}}, "x", DType::F16);
  const ValueId w = random_constant(b, {3, 3}, 1, -1, 1, DType::F16);
  ValueId y = b.emit(op::MatMulAttributes{}, {x, w});
  net.output(b.cast(b.mul(y, b.scalar(0.5, DType::F16)), DType::F16));
  transform(net.graph, {"precision", "canonicalize"}, 2e-3);
  for (const Node& node : net.graph.nodes) {
    if (node.kind() == OpKind::MatMul) {
      EXPECT_EQ(net.graph[node.outputs[0]].dtype, DType::F32);
    }
  }
  EXPECT_EQ(net.graph[net.graph.outputs[0]].dtype, DType::F16);
}

/// softmax(relu(x a) b) with node names.
struct Classifier : Net {
  Classifier() {
    const ValueId x = input({symbol("batch"), {.extent = 8}});
    b.set_scope("first");
    ValueId y =
        unary(op::ReluAttributes{}, b.emit(op::MatMulAttributes{}, {x, random_constant(b, {8, 16}, 1)}));
    b.set_scope("second");
    y = b.emit(op::MatMulAttributes{}, {y, random_constant(b, {16, 4}, 2)});
    op::SoftmaxAttributes softmax;
    softmax.axis = -1;
    b.set_scope("softmax");
    output(b.emit(std::move(softmax), {y}));
  }
};

ModelGraph model_of(const Graph& graph) {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = graph});
  return model;
}

DType type_of(const Graph& graph, std::string_view node) {
  for (const Node& candidate : graph.nodes)
    if (candidate.name == node) return graph[candidate.inputs[0]].dtype;
  ADD_FAILURE() << "no node " << node << " in\n" << print(graph);
  return DType::Bool;
}

TEST(Half, MatmulsAndTheOperatorsBetweenThem) {
  for (const DType dtype : {DType::F16, DType::BF16}) {
    const Classifier net;
    const auto want = results_of(net.graph);
    ModelGraph model = model_of(net.graph);
    const Status status = optimize(model, {.precision = dtype}, nullptr);
    ASSERT_TRUE(status.ok()) << status.message();
    const Graph& graph = model.entries[0].graph;
    EXPECT_EQ(type_of(graph, "first"), dtype);
    EXPECT_EQ(type_of(graph, "second"), dtype);
    EXPECT_EQ(type_of(graph, "softmax"), DType::F32);
    EXPECT_EQ(count(graph, OpKind::Cast), 2u) << print(graph);  // x, and the logits
    for (const Value& value : graph.values)
      EXPECT_TRUE(value.role != Role::Constant || value.dtype == dtype) << print(graph);
    EXPECT_EQ(graph[graph.inputs[0]].dtype, DType::F32);
    EXPECT_EQ(graph[graph.outputs[0]].dtype, DType::F32);
    const auto got = results_of(graph);
    ASSERT_EQ(got.size(), 1u);
    bool equal = true;
    for (int64_t i = 0; i < want[0].info.elements(); ++i) {
      const double w = load_element(want[0].bytes.data(), DType::F32, i);
      const double g = load_element(got[0].bytes.data(), DType::F32, i);
      EXPECT_NEAR(w, g, 0.03);
      equal = equal && w == g;
    }
    EXPECT_FALSE(equal);  // rounding has occurred
  }
}

TEST(Half, LargeTablesAreHalved) {
  Net net;
  Builder& b = net.b;
  const ValueId ids = net.input({{.extent = 3}}, "ids", DType::I64);
  const ValueId row = b.emit(op::GatherAttributes{}, {random_constant(b, {1024, 8}, 1), ids});
  net.output(net.unary(op::ExpAttributes{}, row));
  ModelGraph model = model_of(net.graph);
  ASSERT_TRUE(optimize(model, {.precision = DType::BF16}, nullptr).ok());
  const Graph& graph = model.entries[0].graph;
  EXPECT_EQ(count(graph, OpKind::Cast), 1u) << print(graph);
  for (const Value& value : graph.values)
    EXPECT_TRUE(value.role != Role::Constant || value.rank() != 2 || value.dtype == DType::BF16);
}

/// Both round at the same points, so they differ only by the rounding of the reference's accumulation.
TEST(Half, RoundingMadeExplicitIsTheSame) {
  const Classifier net;
  ModelGraph model = model_of(net.graph);
  ASSERT_TRUE(optimize(model, {.precision = DType::BF16}, nullptr).ok());
  const auto types = node_types(net.graph, {.states = {}, .dtype = DType::BF16});
  EXPECT_EQ(types, (std::vector<DType>{DType::BF16, DType::BF16, DType::BF16, DType::F32}));
  const auto graph = rounded(net.graph, {}, types, {});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto want = results_of(model.entries[0].graph), got = results_of(*graph);
  for (int64_t i = 0; i < want[0].info.elements(); ++i)
    EXPECT_NEAR(load_element(want[0].bytes.data(), DType::F32, i),
                load_element(got[0].bytes.data(), DType::F32, i), 1e-5);
}

TEST(Half, KeepsWhatIsNamed) {
  ModelGraph model = model_of(Classifier().graph);
  ASSERT_TRUE(optimize(model, {.precision = DType::BF16, .keep_fp32 = {"sec*"}}, nullptr).ok());
  EXPECT_EQ(type_of(model.entries[0].graph, "first"), DType::BF16);
  EXPECT_EQ(type_of(model.entries[0].graph, "second"), DType::F32);
  model = model_of(Classifier().graph);
  const Status status = optimize(model, {.precision = DType::BF16, .keep_fp32 = {"third"}}, nullptr);
  EXPECT_NE(status.message().find("'third'"), std::string::npos) << status.message();
}

TEST(Half, HalfModelKeepsItsWeights) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 3}}, "x", DType::F16);
  const ValueId w = random_constant(b, {3, 3}, 1, -1, 1, DType::F16);
  net.output(b.emit(op::MatMulAttributes{}, {x, w}));
  ModelGraph model = model_of(net.graph);
  ASSERT_TRUE(optimize(model, {.precision = DType::F16}, nullptr).ok());
  const Graph& graph = model.entries[0].graph;
  EXPECT_EQ(graph.nodes.size(), 1u) << print(graph);
  for (const Value& value : graph.values) EXPECT_EQ(value.dtype, DType::F16) << print(graph);
}

TEST(Half, LargeConstantsStayFinite) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({{.extent = 2}, {.extent = 2}});
  const ValueId y = b.emit(op::MatMulAttributes{}, {x, random_constant(b, {2, 2}, 1)});
  net.output(b.add(y, b.scalar(-3e38, DType::F32)));
  ModelGraph model = model_of(net.graph);
  ASSERT_TRUE(optimize(model, {.disabled = {"fuse"}, .precision = DType::F16}, nullptr).ok());
  for (const Value& value : model.entries[0].graph.values)
    if (value.role == Role::Constant && value.rank() == 0) {
      EXPECT_EQ(value.dtype, DType::F16);
      EXPECT_EQ(load_element(value.data.data, DType::F16, 0), -65504);
    }
}

/// A row whose scores are all masked by the lowest number has equal weights in f32. In 16 bits the mask would
/// be minus infinity and the row NaN, if it were only rounded: as a constant, or where f32 becomes 16 bits.
TEST(Half, MasksStayFinite) {
  for (const DType dtype : {DType::F16, DType::BF16})
    for (const bool computed : {false, true}) {
      Net net;
      Builder& b = net.b;
      const ValueId x = net.input({{.extent = 2}, {.extent = 4}});
      const ValueId masked = net.input({{.extent = 2}, {.extent = 4}}, "masked");
      const ValueId lowest = b.scalar(std::numeric_limits<float>::lowest(), DType::F32);
      ValueId scores = b.emit(op::MatMulAttributes{}, {x, random_constant(b, {4, 4}, 1)});
      const ValueId zero = b.scalar(0, DType::F32);
      const ValueId hidden = b.emit(op::GreaterOrEqualAttributes{}, {masked, b.scalar(-9, DType::F32)});
      if (computed)  // x's numbers are small
        scores = b.add(scores, b.emit(op::WhereAttributes{}, {hidden, lowest, zero}));
      else
        scores = b.emit(op::WhereAttributes{}, {hidden, lowest, scores});
      net.output(b.emit(op::SoftmaxAttributes{}, {scores}));
      const auto types = node_types(net.graph, {.states = {}, .dtype = dtype});
      ModelGraph model = model_of(net.graph);
      ASSERT_TRUE(optimize(model, {.precision = dtype}, nullptr).ok());
      const auto want = results_of(net.graph), got = results_of(model.entries[0].graph);
      const auto explicitly = rounded(net.graph, {}, types, {});
      ASSERT_TRUE(explicitly.ok()) << explicitly.status().message();
      const auto simulated = results_of(*explicitly);
      for (int64_t i = 0; i < want[0].info.elements(); ++i) {
        EXPECT_NEAR(load_element(want[0].bytes.data(), DType::F32, i), 0.25, 1e-6);
        EXPECT_NEAR(load_element(got[0].bytes.data(), DType::F32, i), 0.25, 1e-3) << name_of(dtype);
        EXPECT_NEAR(load_element(simulated[0].bytes.data(), DType::F32, i), 0.25, 1e-3) << name_of(dtype);
      }
    }
}

/// y / max(sqrt(sum(y * y)), 1e-12) for a row of zeros, and for one whose squares f16 does not hold.
TEST(Half, NormsKeepTheirRange) {
  for (const double number : {0.0, 300.0}) {
    Net net;
    Builder& b = net.b;
    const ValueId x = net.input({{.extent = 1}, {.extent = 4}});
    const ValueId made = b.emit(op::MatMulAttributes{}, {x, random_constant(b, {4, 4}, 1)});
    const ValueId y = b.add(b.mul(made, b.scalar(0, DType::F32)), b.scalar(number, DType::F32));
    op::ReduceSumAttributes sum;
    sum.axes = {1};
    const ValueId norm = net.unary(op::SqrtAttributes{}, b.emit(sum, {b.mul(y, y)}));
    op::ClipAttributes guard;
    guard.minimum = 1e-12f;
    net.output(b.div(y, b.emit(guard, {norm})));
    ModelGraph model = model_of(net.graph);
    ASSERT_TRUE(optimize(model, {.disabled = {"canonicalize"}, .precision = DType::F16}, nullptr).ok());
    const auto got = results_of(model.entries[0].graph);
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_NEAR(load_element(got[0].bytes.data(), DType::F32, i), number == 0 ? 0 : 0.5, 1e-3)
          << print(model.entries[0].graph);
  }
}

TEST(Half, NothingToGainNothingDone) {
  Net net;
  net.output(net.unary(op::ReluAttributes{}, net.input({{.extent = 4}})));
  ModelGraph model = model_of(net.graph);
  ASSERT_TRUE(optimize(model, {.precision = DType::BF16}, nullptr).ok());
  EXPECT_EQ(print(model.entries[0].graph), print(net.graph));
}

TEST(Pipeline, ConvolutionalNet) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 3}, {.extent = 8}, {.extent = 8}});
  const auto block = [&](ValueId in, Shape weight, uint32_t seed) {
    const int64_t channels = weight[0];
    ValueId y = net.conv(in, weight, seed, {1, 1, 1, 1});
    y = net.to_first(batch_norm_of(net, net.to_last(y), channels, seed + 1));
    return y;
  };
  ValueId y = net.unary(op::ReluAttributes{}, block(x, {4, 3, 3, 3}, 1));
  y = net.unary(op::ReluAttributes{}, b.add(block(y, {4, 3, 3, 4}, 11), y));
  y = b.reshape(b.reduce_mean(y, {2, 3}), b.ints(std::array<int64_t, 2>{-1, 4}));
  y = b.add(b.emit(op::MatMulAttributes{}, {y, random_constant(b, {4, 5}, 21)}), random_constant(b, {5}, 22));
  net.output(net.unary(op::GeluAttributes{}, y));

  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = net.graph});
  PipelineReport report;
  const Status status = optimize(model, {}, &report);
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<std::string> names;
  for (const Pass& pass : all_passes()) names.emplace_back(pass.name);
  EXPECT_EQ(report.passes.size(), names.size());
  transform(net.graph, names, 1e-4);
  const Graph& graph = model.entries[0].graph;
  EXPECT_EQ(print(graph), print(net.graph));
  EXPECT_EQ(graph.nodes.size(), 6u) << print(graph);

  EXPECT_FALSE(optimize(model, {.disabled = {"no_such_pass"}}, nullptr).ok());
}

TEST(Expand, BodyKeepsSymbols) {
  Net net;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 3}, net.symbol("seq")});
  const ValueId flat = net.b.reshape(x, net.b.ints(std::array<int64_t, 1>{-1}));
  net.output(net.unary(op::SiluAttributes{}, flat));
  transform(net.graph, {"expand"});
  ASSERT_EQ(net.graph.nodes.back().bodies.size(), 1u);
  EXPECT_EQ(count(net.graph.nodes.back().bodies[0], OpKind::Sigmoid), 1u);
}

}  // namespace
}  // namespace librt::compiler::test
