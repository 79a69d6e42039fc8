// The attention pass: the decomposed forms of attention that exporters write.
#include <array>
#include <limits>

#include "tests/passes/support.h"
#include "tools/compiler/train/train_entry.h"

namespace librt::compiler::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Queries [batch,heads,S,4], keys and values [batch,groups,T,4].
struct Heads : Net {
  ValueId q, k, v;

  explicit Heads(int64_t heads = 2, int64_t groups = 2, int64_t queries = 5, int64_t keys = 6) {
    const Dim batch = symbol("batch");
    q = input({batch, {.extent = heads}, {.extent = queries}, {.extent = 4}}, "q");
    k = input({batch, {.extent = groups}, {.extent = keys}, {.extent = 4}}, "k");
    v = input({batch, {.extent = groups}, {.extent = keys}, {.extent = 4}}, "v");
  }
  ValueId number(double value) { return b.scalar(value, DType::F32); }
  ValueId matmul(ValueId x, ValueId y) { return b.emit(op::MatMulAttributes{}, {x, y}); }
  ValueId softmax(ValueId x) { return b.emit(op::SoftmaxAttributes{}, {x}); }
  ValueId swapped(ValueId x) { return b.transpose(x, {0, 1, 3, 2}); }
  ValueId shape(std::vector<int64_t> extents) { return b.ints(extents); }
  ValueId repeated(ValueId x, int64_t groups, int64_t times, int64_t keys) {
    x = b.reshape(x, shape({-1, groups, 1, keys, 4}));
    x = b.emit(op::ExpandAttributes{}, {x, shape({1, 1, times, 1, 1})});
    return b.reshape(x, shape({-1, groups * times, keys, 4}));
  }
  ValueId bools(Shape extents, uint32_t seed) {
    return b.emit(op::GreaterAttributes{}, {random_constant(b, extents, seed), number(-0.3)});
  }
  const op::AttentionAttributes& found() {
    for (const Node& node : graph.nodes)
      if (node.kind() == OpKind::Attention) return node.as<op::AttentionAttributes>();
    ADD_FAILURE() << print(graph);
    static const op::AttentionAttributes kNone;
    return kNone;
  }
  void expect_one(size_t nodes) {
    EXPECT_EQ(count(graph, OpKind::Attention), 1u) << print(graph);
    EXPECT_EQ(count(graph, OpKind::Softmax), 0u) << print(graph);
    EXPECT_EQ(graph.nodes.size(), nodes) << print(graph);
  }
};

TEST(Attention, TransposedKeysFactorAndAddedMask) {
  Heads net;
  const ValueId mask = net.input({net.symbol("batch"), {.extent = 1}, {.extent = 1}, {.extent = 6}}, "mask");
  ValueId scores = net.b.div(net.matmul(net.q, net.swapped(net.k)), net.number(2));
  scores = net.b.add(scores, net.b.mul(net.b.sub(net.number(1), mask), net.number(-1e4)));
  net.output(net.matmul(net.softmax(scores), net.v));
  transform(net.graph, {"attention"}, 1e-4);
  net.expect_one(3);
  EXPECT_EQ(net.found().scale, 0.5f);
}

// A scalar has no query or key axes: it becomes a mask of one element.
TEST(Attention, ANumberOrARowAddedToAllScores) {
  for (const Shape& extents : {Shape{}, Shape{1}, Shape{6}}) {
    Heads net;
    const ValueId added = random_constant(net.b, extents, 3);
    const ValueId scores = net.b.add(net.matmul(net.q, net.swapped(net.k)), added);
    net.output(net.matmul(net.softmax(scores), net.v));
    transform(net.graph, {"attention", "expand"}, 1e-4);
    net.expect_one(net.graph.nodes.size());
    for (const Node& node : net.graph.nodes) {
      if (node.kind() != OpKind::Attention) continue;
      EXPECT_EQ(net.graph[node.inputs[3]].rank(), 2) << print(net.graph);
    }
  }
}

TEST(Attention, RootOfTheFactorOnBothSidesBeforeAPermutation) {
  Heads net;
  const ValueId keys = net.b.transpose(
      net.input({net.symbol("batch"), {.extent = 6}, {.extent = 2}, {.extent = 4}}, "x"), {0, 2, 3, 1});
  const ValueId scores = net.matmul(net.b.mul(net.q, net.number(0.5)), net.b.mul(keys, net.number(0.5)));
  net.output(net.matmul(net.softmax(scores), net.v));
  transform(net.graph, {"attention"}, 1e-4);
  EXPECT_EQ(nodes_text(net.graph),
            "%MatMul_1_1 : f32[batch,2,6,4] = Transpose(%x) {permutation=[0,2,1,3]}\n"
            "%y : f32[batch,2,5,4] = Attention(%q, %MatMul_1_1, %v) {scale=0.25}\n");
}

TEST(Attention, CausalByPositionsThatReplaceScores) {
  Heads net;
  const ValueId columns =
      net.b.emit(op::RangeAttributes{},
                 {net.b.scalar(0, DType::I64), net.b.scalar(6, DType::I64), net.b.scalar(1, DType::I64)});
  ValueId rows = net.b.emit(op::RangeAttributes{}, {net.b.scalar(0, DType::I64), net.b.scalar(5, DType::I64),
                                                    net.b.scalar(1, DType::I64)});
  rows = net.b.reshape(rows, net.shape({5, 1}));
  const ValueId hidden = net.b.emit(op::GreaterAttributes{}, {columns, rows});
  const ValueId scores = net.b.mul(net.matmul(net.q, net.swapped(net.k)), net.number(0.3));
  const ValueId masked = net.b.emit(op::WhereAttributes{}, {hidden, net.number(-1e9), scores});
  net.output(net.matmul(net.softmax(masked), net.v));
  transform(net.graph, {"attention"}, 1e-4);
  net.expect_one(1);
  EXPECT_TRUE(net.found().causal);
}

TEST(Attention, CausalConstant) {
  Heads net(2, 2, 6, 6);
  std::vector<float> mask(36);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 6 > i / 6 ? -3.4e38f : 0.0f;
  const ValueId constant = net.b.constant({.dtype = DType::F32, .shape = {1, 1, 6, 6}},
                                          Blob::copy_of(mask.data(), mask.size() * sizeof(float)));
  const ValueId scores = net.b.add(net.matmul(net.q, net.swapped(net.k)), constant);
  net.output(net.matmul(net.softmax(scores), net.v));
  transform(net.graph, {"attention"}, 1e-4);
  net.expect_one(1);
  EXPECT_TRUE(net.found().causal);
}

TEST(Attention, PositionsAfterACache) {
  Heads net(2, 2, 3, 3);
  const ValueId past =
      net.input({net.symbol("batch"), {.extent = 2}, net.symbol("past"), {.extent = 4}}, "past");
  op::ConcatAttributes concat;
  concat.axis = 2;
  const ValueId k = net.b.emit(concat, {past, net.k}), v = net.b.emit(concat, {past, net.v});
  op::ShapeAttributes extent;
  extent.start = 2;
  extent.end = 3;
  const auto positions = [&](ValueId of) {
    return net.b.emit(op::RangeAttributes{},
                      {net.b.scalar(0, DType::I64), net.b.emit(extent, {of}), net.b.scalar(1, DType::I64)});
  };
  const ValueId rows =
      net.b.reshape(net.b.add(positions(net.q), net.b.emit(extent, {past})), net.shape({3, 1}));
  const ValueId seen = net.b.emit(op::LessOrEqualAttributes{}, {positions(k), rows});
  const ValueId scores = net.matmul(net.q, net.swapped(k));
  const ValueId masked = net.b.emit(op::WhereAttributes{}, {seen, scores, net.number(-kInfinity)});
  net.output(net.matmul(net.softmax(masked), v));
  transform(net.graph, {"attention"}, 1e-4);
  net.expect_one(5);
  EXPECT_TRUE(net.found().causal);
}

TEST(Attention, BoolMaskAndNaNOfEmptyRows) {
  Heads net;
  const ValueId scores = net.b.mul(net.matmul(net.q, net.swapped(net.k)), net.number(0.5));
  const ValueId masked =
      net.b.emit(op::WhereAttributes{}, {net.bools({2, 1, 5, 6}, 3), scores, net.number(-kInfinity)});
  const ValueId weights = net.softmax(net.b.add(masked, random_constant(net.b, {5, 6}, 4)));
  const ValueId same = net.b.emit(op::EqualAttributes{}, {weights, weights});
  const ValueId guarded = net.b.emit(op::WhereAttributes{}, {same, weights, net.number(0)});
  net.output(net.matmul(guarded, net.v));
  ASSERT_TRUE(run_pass("attention", net.graph, {}).ok());
  EXPECT_EQ(count(net.graph, OpKind::Attention), 0u);  // neither mask broadcasts to the other
}

TEST(Attention, KeysThatAreRepeated) {
  Heads net(6, 2);
  const ValueId k = net.repeated(net.k, 2, 3, 6), v = net.repeated(net.v, 2, 3, 6);
  const ValueId seen = net.bools({5, 6}, 3);
  ValueId scores = net.b.mul(net.matmul(net.q, net.swapped(k)), net.number(0.5));
  scores = net.b.emit(op::WhereAttributes{}, {seen, scores, net.number(-1e9)});
  net.output(net.matmul(net.softmax(scores), v));
  transform(net.graph, {"attention", "canonicalize"}, 1e-4);
  EXPECT_EQ(count(net.graph, OpKind::Attention), 1u) << print(net.graph);
  EXPECT_EQ(count(net.graph, OpKind::Expand), 0u) << print(net.graph);
}

TEST(Attention, ThreeAxesWithAMaskOverFour) {
  Net net;
  Builder& b = net.b;
  const ValueId q = net.input({{.extent = 6}, {.extent = 5}, {.extent = 4}}, "q");
  const ValueId k = net.input({{.extent = 6}, {.extent = 7}, {.extent = 4}}, "k");
  const ValueId mask = net.input({{.extent = 3}, {.extent = 1}, {.extent = 5}, {.extent = 7}}, "mask");
  ValueId scores = b.emit(op::MatMulAttributes{}, {q, b.transpose(k, {0, 2, 1})});
  scores = b.add(b.reshape(scores, b.ints(std::array<int64_t, 4>{3, 2, 5, 7})), mask);
  scores = b.reshape(scores, b.ints(std::array<int64_t, 3>{6, 5, 7}));
  const ValueId weights = b.emit(op::SoftmaxAttributes{}, {scores});
  net.output(b.emit(op::MatMulAttributes{}, {weights, k}));
  transform(net.graph, {"attention"}, 1e-4);
  EXPECT_EQ(count(net.graph, OpKind::Attention), 1u) << print(net.graph);
}

TEST(Attention, WithoutHeads) {
  Net net;
  const ValueId x = net.input({net.symbol("sequence"), {.extent = 4}});
  op::MatMulAttributes transposed;
  transposed.transpose_b = true;
  const ValueId weights = net.unary(op::SoftmaxAttributes{}, net.b.emit(transposed, {x, x}));
  net.output(net.b.emit(op::MatMulAttributes{}, {weights, x}));
  transform(net.graph, {"attention", "common_subexpr"}, 1e-4);
  EXPECT_EQ(nodes_text(net.graph),
            "%MatMul_1_1 : f32[1,1,sequence,4] = Reshape(%x, %1)\n"
            "%MatMul_1_4 : f32[1,1,sequence,4] = Attention(%MatMul_1_1, %MatMul_1_1, %MatMul_1_1) {scale=1}\n"
            "%y : f32[sequence,4] = Reshape(%MatMul_1_4, i64[2]<-1,4>)\n");
}

TEST(Attention, ScoresWithKeysAsRows) {
  Net net;
  Builder& b = net.b;
  const ValueId q = net.input({{.extent = 3}, {.extent = 5}, {.extent = 4}}, "q");
  const ValueId k = net.input({{.extent = 3}, {.extent = 7}, {.extent = 4}}, "k");
  op::SoftmaxAttributes over_keys;
  over_keys.axis = 1;
  op::MatMulAttributes transposed;
  transposed.transpose_a = true;
  const ValueId scores = b.emit(op::MatMulAttributes{}, {k, b.transpose(q, {0, 2, 1})});
  net.output(b.emit(transposed, {net.unary(over_keys, scores), k}));
  transform(net.graph, {"attention"}, 1e-4);
  EXPECT_EQ(count(net.graph, OpKind::Attention), 1u) << print(net.graph);
}

TEST(Attention, Softcap) {
  Heads net;
  ValueId scores = net.b.mul(net.matmul(net.q, net.swapped(net.k)), net.number(0.5));
  scores = net.b.mul(net.unary(op::TanhAttributes{}, net.b.div(scores, net.number(3))), net.number(3));
  net.output(net.matmul(net.softmax(scores), net.v));
  transform(net.graph, {"attention"}, 1e-4);
  net.expect_one(1);
  EXPECT_FLOAT_EQ(net.found().softcap, 3);
  EXPECT_FLOAT_EQ(net.found().scale, 0.5f);
}

/// So that its gradient is a single operator too.
TEST(Attention, IsFoundBeforeGradientsAreMade) {
  for (const bool find : {true, false}) {
    Heads net;
    const ValueId weight = random_constant(net.b, {4, 4}, 7);
    net.graph.values[weight].name = "weight";
    const ValueId scores = net.matmul(net.matmul(net.q, weight), net.swapped(net.k));
    net.output(net.matmul(net.softmax(scores), net.v));
    ModelGraph model;
    model.entries.push_back({.name = "infer", .graph = std::move(net.graph)});
    TrainOptions options;
    options.loss.loss = Loss::MeanSquaredError;
    options.find_attention = find;
    const Status status = add_train_entry(model, options, nullptr);
    ASSERT_TRUE(status.ok()) << status.message();
    const Graph& step = *model.entry("train_step");
    EXPECT_EQ(count(step, OpKind::AttentionGrad), find ? 1u : 0u) << print(step);
    EXPECT_EQ(count(step, OpKind::Softmax), find ? 0u : 1u) << print(step);
  }
}

TEST(Attention, NotWhenTheWeightsAreAskedFor) {
  Heads net;
  const ValueId weights = net.softmax(net.matmul(net.q, net.swapped(net.k)));
  net.output(net.matmul(weights, net.v), "y");
  net.output(weights, "weights");
  transform(net.graph, {"attention"});
  EXPECT_EQ(count(net.graph, OpKind::Attention), 0u);
}

TEST(Attention, NotWhenAFactorFollowsAMask) {
  Heads net;
  const ValueId masked = net.b.add(net.matmul(net.q, net.swapped(net.k)), random_constant(net.b, {5, 6}, 4));
  net.output(net.matmul(net.softmax(net.b.mul(masked, net.number(0.5))), net.v));
  transform(net.graph, {"attention"});
  EXPECT_EQ(count(net.graph, OpKind::Attention), 0u);
}

struct RotatedHalves : Net {
  ValueId piece(ValueId x, int64_t start, int64_t end) {
    op::SliceAttributes attributes;
    attributes.axes = {b.value(x).rank() - 1};
    attributes.steps = {1};
    return b.emit(std::move(attributes), {x, b.ints({&start, 1}), b.ints({&end, 1})});
  }
  ValueId concatenated(ValueId first, ValueId second) {
    op::ConcatAttributes attributes;
    attributes.axis = -1;
    return b.emit(attributes, {first, second});
  }
  ValueId pair(ValueId x, ValueId cos, ValueId sin, int64_t half) {
    const ValueId first = piece(x, 0, half), second = piece(x, half, 2 * half);
    return concatenated(b.sub(b.mul(first, cos), b.mul(second, sin)),
                        b.add(b.mul(second, cos), b.mul(sin, first)));
  }
  void expect_one(bool interleaved) {
    ASSERT_EQ(count(graph, OpKind::RotaryEmbedding), 1u) << print(graph);
    EXPECT_EQ(count(graph, OpKind::Slice), 0u) << print(graph);
    for (const Node& node : graph.nodes) {
      if (node.kind() != OpKind::RotaryEmbedding) continue;
      EXPECT_EQ(node.as<op::RotaryEmbeddingAttributes>().interleaved, interleaved);
    }
  }
};

TEST(Rotary, PairsAsTheLastAxis) {
  RotatedHalves net;
  const Dim tokens = net.symbol("tokens");
  const ValueId x = net.input({tokens, {.extent = 4}, {.extent = 3}, {.extent = 2}}, "x");
  const ValueId cos = net.input({tokens, {.extent = 1}, {.extent = 3}, {.extent = 1}}, "cos");
  const ValueId sin = net.input({tokens, {.extent = 1}, {.extent = 3}, {.extent = 1}}, "sin");
  net.output(net.pair(x, cos, sin, 1));
  transform(net.graph, {"rotary"}, 1e-5);
  net.expect_one(true);
}

TEST(Rotary, OppositelyRotatedHalves) {
  RotatedHalves net;
  const Dim batch = net.symbol("batch"), sequence = net.symbol("sequence");
  const ValueId x = net.input({batch, {.extent = 4}, sequence, {.extent = 6}}, "x");
  const ValueId angles = net.input({{.extent = 1}, {.extent = 1}, sequence, {.extent = 3}}, "angles");
  const ValueId both = net.concatenated(angles, angles);
  const ValueId cos = net.unary(op::CosAttributes{}, both), sin = net.unary(op::SinAttributes{}, both);
  const ValueId rotated =
      net.concatenated(net.unary(op::NegAttributes{}, net.piece(x, 3, 6)), net.piece(x, 0, 3));
  net.output(net.b.add(net.b.mul(x, cos), net.b.mul(rotated, sin)));
  transform(net.graph, {"rotary"}, 1e-5);
  EXPECT_EQ(count(net.graph, OpKind::RotaryEmbedding), 1u) << print(net.graph);
}

TEST(Rotary, TablesForEachBatch) {
  RotatedHalves net;
  const Dim batch = net.symbol("batch"), sequence = net.symbol("sequence");
  const ValueId x = net.input({batch, {.extent = 4}, sequence, {.extent = 6}}, "x");
  const ValueId cos = net.input({batch, {.extent = 1}, sequence, {.extent = 3}}, "cos");
  const ValueId sin = net.input({batch, {.extent = 1}, sequence, {.extent = 3}}, "sin");
  net.output(net.pair(x, cos, sin, 3));
  transform(net.graph, {"rotary"}, 1e-5);
  net.expect_one(false);
}

TEST(Rotary, NotWhenTheHalvesOfTheTablesMayDiffer) {
  RotatedHalves net;
  const ValueId x = net.input({{.extent = 4}, {.extent = 5}, {.extent = 6}}, "x");
  const ValueId cos = net.input({{.extent = 5}, {.extent = 6}}, "cos"),
                sin = net.input({{.extent = 5}, {.extent = 6}}, "sin");
  const ValueId rotated =
      net.concatenated(net.unary(op::NegAttributes{}, net.piece(x, 3, 6)), net.piece(x, 0, 3));
  net.output(net.b.add(net.b.mul(x, cos), net.b.mul(rotated, sin)));
  transform(net.graph, {"rotary"});
  EXPECT_EQ(count(net.graph, OpKind::RotaryEmbedding), 0u);
}

}  // namespace
}  // namespace librt::compiler::test
