// dead_code, canonicalize, fold, common_subexpr, order: small graphs, their text afterwards, and equal
// results.
#include <array>
#include <limits>

#include "tests/passes/support.h"
#include "tools/compiler/report.h"

namespace librt::compiler::test {
namespace {

TEST(Canonicalize, DropsWhatDoesNothing) {
  Net net;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 4}});
  Builder& b = net.b;
  ValueId y = net.unary(op::IdentityAttributes{}, x);
  y = b.add(y, b.scalar(0, DType::F32));
  y = b.mul(b.scalar(1, DType::F32), y);
  y = b.neg(b.neg(y));
  y = b.cast(y, DType::F32);
  y = b.transpose(b.transpose(y, {1, 0}), {1, 0});
  y = b.reshape(y, b.ints(std::array<int64_t, 2>{-1, 4}));
  y = net.unary(op::ReluAttributes{}, y);
  net.output(y);
  transform(net.graph, {"canonicalize"}, 0);
  EXPECT_EQ(nodes_text(net.graph), "%y : f32[batch,4] = Relu(%x)\n");
}

// The empty operand is the only one that shows that n is 3.
TEST(Canonicalize, KeepsAnEmptyOperandOfConcatThatShowsAnExtent) {
  Net net;
  const ValueId x = net.input({net.symbol("n"), {.extent = 3}});
  const ValueId empty = net.input({{.extent = 3}, {.extent = 0}}, "empty");
  op::ConcatAttributes join;
  join.axis = 1;
  net.output(net.b.emit_many(make_op(join), std::array{empty, x}, 1)[0]);
  transform(net.graph, {"canonicalize"}, 0);
  EXPECT_EQ(nodes_text(net.graph), "%y : f32[3,3] = Concat(%empty, %x) {axis=1}\n");

  Net other;
  const ValueId a = other.input({other.symbol("n"), {.extent = 3}});
  const ValueId nothing = other.input({other.symbol("n"), {.extent = 0}}, "nothing");
  other.output(other.b.emit_many(make_op(join), std::array{nothing, a, a}, 1)[0]);
  transform(other.graph, {"canonicalize"}, 0);
  EXPECT_EQ(nodes_text(other.graph), "%y : f32[n,6] = Concat(%x, %x) {axis=1}\n");
}

/// The model of the graph, optimized.
ModelGraph optimized(const Graph& graph) {
  ModelGraph model;
  model.entries.push_back({"infer", graph});
  const Status status = optimize(model, {}, nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  return model;
}

// A file may leave out the permutation, and may list operands that are absent.
TEST(Optimize, TakesWhatAFileLeavesToDefaults) {
  Net net;
  const ValueId x = net.input({{.extent = 2}, {.extent = 3}, {.extent = 4}});
  net.output(net.b.emit(op::TransposeAttributes{}, {x}));
  EXPECT_EQ(nodes_text(optimized(net.graph).entries[0].graph),
            "%y : f32[4,3,2] = Transpose(%x) {permutation=[2,1,0]}\n");

  Net product;
  const ValueId a = product.input({{.extent = 2}, {.extent = 3}}),
                b = product.input({{.extent = 3}, {.extent = 4}}, "b");
  Node matmul;
  matmul.op = make_op(op::MatMulAttributes{});
  matmul.inputs = {product.b.emit(op::SoftmaxAttributes{}, {a}), b, kNoValue};
  product.output(product.b.emit_node(std::move(matmul))[0]);
  const Graph result = optimized(product.graph).entries[0].graph;
  EXPECT_EQ(result.nodes.back().inputs.size(), 2u) << print(result);

  // The head of a Loop is listed always: here a trip count, no condition, and nothing carried.
  Graph body;
  const auto add = [](Graph& graph, const char* name, DType dtype, Role role) {
    Value made;
    made.name = name, made.dtype = dtype, made.role = role;
    return graph.add_value(std::move(made));
  };
  body.inputs = {add(body, "i", DType::I64, Role::Input), add(body, "go", DType::Bool, Role::Input)};
  Node minus;
  minus.op = make_op(op::NegAttributes{});
  minus.inputs = {body.inputs[0]};
  minus.outputs = {add(body, "minus", DType::I64, Role::Intermediate)};
  body.nodes.push_back(std::move(minus));
  body.outputs = {body.inputs[1], body.nodes[0].outputs[0]};
  Net counted;
  Node loop;
  loop.op = make_op(op::LoopAttributes{});
  loop.inputs = {counted.b.input("trips", DType::I64, {}), kNoValue};
  loop.outputs = {kNoValue};
  loop.bodies = {body};
  counted.output(counted.b.emit_node(std::move(loop))[0]);
  const Graph kept = optimized(counted.graph).entries[0].graph;
  EXPECT_EQ(kept.nodes.back().inputs.size(), 2u) << print(kept);
}

TEST(Canonicalize, OutputThatIsAnInputKeepsItsName) {
  Net net;
  const ValueId x = net.input({{.extent = 4}});
  net.output(net.unary(op::IdentityAttributes{}, net.b.neg(net.b.neg(x))), "a");
  net.output(net.unary(op::IdentityAttributes{}, x), "b");
  transform(net.graph, {"canonicalize", "dead_code"}, 0);
  EXPECT_EQ(nodes_text(net.graph), "%a : f32[4] = Identity(%x)\n%b : f32[4] = Identity(%x)\n");
}

TEST(Canonicalize, MergesPaddingCastsAndClips) {
  Net net;
  const ValueId x =
      net.input({net.symbol("batch"), {.extent = 5}, {.extent = 5}, {.extent = 2}}, "x", DType::F16);
  Builder& b = net.b;
  ValueId y = b.cast(b.cast(x, DType::F32), DType::F64);
  y = b.cast(y, DType::F32);
  y = b.emit(op::PadAttributes{}, {y, b.ints(std::array<int64_t, 8>{0, 1, 2, 0, 0, 1, 0, 0})});
  y = b.emit(op::ConvAttributes{}, {y, random_constant(b, {3, 3, 3, 2}, 7)});
  op::ClipAttributes low, high;
  low.minimum = 0;
  high.maximum = 6;
  y = net.unary(high, net.unary(low, y));
  net.output(y);
  transform(net.graph, {"canonicalize"});
  EXPECT_EQ(count(net.graph, OpKind::Cast), 1u);
  EXPECT_EQ(count(net.graph, OpKind::Pad), 0u);
  EXPECT_EQ(count(net.graph, OpKind::Clip), 1u);
  EXPECT_NE(print(net.graph).find("pads=[1,2,1,0]"), std::string::npos) << print(net.graph);
}

/// Padding that cannot be the maximum of a window becomes the pool's.
TEST(Canonicalize, MaxPoolPads) {
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  struct Case {
    double fill;
    bool positive;
    int64_t pads;
    bool absorbed;
    DType dtype = DType::F32;
  };
  for (const Case& c : {Case{kLowest, false, 1, true}, Case{0, true, 1, true}, Case{0, false, 1, false},
                        Case{-1, true, 1, false}, Case{1, true, 1, false}, Case{0, true, 3, false},
                        Case{0, false, 1, true, DType::U8}, Case{1, false, 1, false, DType::U8},
                        Case{-128, false, 1, true, DType::I8}, Case{0, false, 1, false, DType::I8}}) {
    Net net;
    Builder& b = net.b;
    ValueId y = net.input({net.symbol("batch"), {.extent = 5}, {.extent = 6}, {.extent = 2}}, "x", c.dtype);
    if (c.positive) y = net.unary(op::ReluAttributes{}, y);
    const ValueId pads = b.ints(std::array<int64_t, 8>{0, 0, c.pads, 0, 0, 1, 0, 0});
    y = b.emit(op::PadAttributes{}, {y, pads, b.scalar(c.fill, c.dtype)});
    op::MaxPoolAttributes pool;
    pool.kernel = {3, 3};
    pool.strides = {2, 1};
    pool.pads = {0, 0, 0, 0};
    pool.dilations = {1, 1};
    net.output(b.emit(pool, {y}));
    transform(net.graph, {"canonicalize"});
    EXPECT_EQ(count(net.graph, OpKind::Pad), c.absorbed ? 0u : 1u) << print(net.graph);
  }
}

TEST(Canonicalize, MatMulReadsTransposedFactors) {
  Net net;
  const ValueId a = net.input({net.symbol("batch"), {.extent = 4}, {.extent = 5}}, "a");
  const ValueId c = net.input({net.symbol("batch"), {.extent = 6}, {.extent = 5}}, "c");
  net.output(net.b.emit(op::MatMulAttributes{}, {a, net.b.transpose(c, {0, 2, 1})}));
  transform(net.graph, {"canonicalize"});
  EXPECT_EQ(nodes_text(net.graph), "%y : f32[batch,4,6] = MatMul(%a, %c) {transpose_b=true}\n");
}

TEST(Canonicalize, ShapeArithmeticBecomesAConstant) {
  Net net;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 4}, {.extent = 5}});
  Builder& b = net.b;
  op::ConcatAttributes join;
  join.axis = 0;
  const ValueId first = b.emit(op::SliceAttributes{}, {b.shape_of(x), b.ints(std::array<int64_t, 1>{0}),
                                                       b.ints(std::array<int64_t, 1>{1})});
  const ValueId target = b.emit(join, {first, b.ints(std::array<int64_t, 1>{20})});
  net.output(b.reshape(x, target));
  transform(net.graph, {"canonicalize"}, 0);
  EXPECT_EQ(nodes_text(net.graph), "%y : f32[batch,20] = Reshape(%x, i64[2]<-1,20>)\n");
}

TEST(Fold, ComputesConstants) {
  Net net;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 3}});
  Builder& b = net.b;
  const ValueId w = random_constant(b, {3, 2}, 3);
  const ValueId sum = b.add(b.transpose(w, {1, 0}), b.scalar(2, DType::F32));
  net.output(b.add(b.emit(op::MatMulAttributes{}, {x, b.transpose(sum, {1, 0})}),
                   b.cast(b.shape_of(w), DType::F32)));
  transform(net.graph, {"fold"});
  EXPECT_EQ(net.graph.nodes.size(), 2u) << print(net.graph);
}

TEST(Fold, DoesNotMakeTheFileGrow) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({{.extent = 1}});
  const ValueId big =
      b.emit(op::ExpandAttributes{}, {b.scalar(1, DType::F32), b.ints(std::array<int64_t, 2>{1024, 512})});
  net.output(b.add(x, b.reduce_sum(big, {0, 1})));
  ASSERT_TRUE(run_pass("fold", net.graph, {}).ok());
  EXPECT_EQ(count(net.graph, OpKind::Expand), 1u);
}

TEST(CommonSubexpr, MergesEqualNodesAndConstants) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 3}});
  const ValueId p = b.mul(x, random_constant(b, {3}, 5)), q = b.mul(random_constant(b, {3}, 5), x);
  op::LeakyReluAttributes steep;
  steep.alpha = 0.5;
  net.output(b.sub(b.add(net.unary(op::LeakyReluAttributes{}, p), net.unary(op::LeakyReluAttributes{}, q)),
                   net.unary(steep, q)));
  transform(net.graph, {"common_subexpr"}, 0);
  EXPECT_EQ(count(net.graph, OpKind::Mul), 1u);
  EXPECT_EQ(count(net.graph, OpKind::LeakyRelu), 2u) << print(net.graph);
}

TEST(CommonSubexpr, StatesWithEqualValuesStayApart) {
  Graph graph;
  const TensorInfo info{.dtype = DType::F32, .shape = {2}};
  const std::vector<State> states{{.name = "a", .info = info}, {.name = "b", .info = info}};
  Builder b(graph, &states);
  b.output(b.sub(b.state("a", 0, info), b.state("b", 1, info)));
  ASSERT_TRUE(b.status().ok()) << b.status().message();
  ASSERT_TRUE(run_pass("common_subexpr", graph, states).ok());
  EXPECT_NE(graph.nodes[0].inputs[0], graph.nodes[0].inputs[1]);
}

TEST(Order, WideningWaitsForItsReader) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({{.extent = 64}});
  const ValueId half = random_constant(b, {64}, 1, -1, 1, DType::F16);
  const ValueId wide = b.cast(half, DType::F32);
  ValueId y = x;
  for (int i = 0; i < 3; ++i) y = net.unary(op::SigmoidAttributes{}, y);
  net.output(b.add(y, wide));
  transform(net.graph, {"order"}, 0);
  EXPECT_EQ(net.graph.nodes[3].kind(), OpKind::Cast) << print(net.graph);
}

TEST(Order, AnOptimizerStepRunsAfterTheReadersOfItsState) {
  Graph graph;
  const TensorInfo info{.dtype = DType::F32, .shape = {8}};
  const std::vector<State> states{{.name = "w", .info = info}};
  Builder b(graph, &states);
  const ValueId x = b.input("x", DType::F32, {{.extent = 8}}), w = b.state("w", 0, info);
  const ValueId next = b.sub(w, x);
  b.output(b.emit(op::ExpAttributes{}, {b.mul(w, x)}));
  ASSERT_TRUE(b.status().ok()) << b.status().message();
  graph.state_updates.push_back({.state = w, .value = next});
  ASSERT_TRUE(run_pass("order", graph, states).ok());
  EXPECT_EQ(graph.nodes[0].kind(), OpKind::Mul) << print(graph);
}

/// Two values with the first number of elements, then a chain of values with the second, and for each of
/// these a weight whose gradient follows from it, with an SGD step. Ordered; the positions of the steps.
struct OrderedSteps {
  std::vector<size_t> positions;
  uint64_t live = 0;
  size_t groups() const {
    size_t count = 0;
    for (size_t i = 0; i < positions.size(); ++i) count += i == 0 || positions[i] != positions[i - 1] + 1;
    return count;
  }
};
OrderedSteps ordered_steps(int count, int64_t first_elements, int64_t chain_elements,
                           int64_t weight_elements) {
  Graph graph;
  const TensorInfo info{.dtype = DType::F32, .shape = {weight_elements}};
  std::vector<State> states;
  for (int i = 0; i < 2 * count; ++i) states.push_back({.name = text("s", i), .info = info});
  Builder b(graph, &states);
  const ValueId rate = b.input("rate", DType::F32, {});
  ValueId x = b.input("x", DType::F32, {{.extent = first_elements}});
  for (int i = 0; i < 2; ++i) x = b.emit(op::SoftmaxAttributes{}, {x});
  op::SliceAttributes part;
  part.axes = {0};
  x = b.emit(part, {x, b.ints(std::array<int64_t, 1>{0}), b.ints(std::array{chain_elements})});
  op::SgdStepAttributes momentum;
  momentum.momentum = 0.9f;
  for (int i = 0; i < count; ++i) {
    const auto first = static_cast<uint32_t>(2 * i);
    x = b.emit(op::SoftmaxAttributes{}, {x});
    const ValueId w = b.state(states[first].name, first, info);
    const ValueId v = b.state(states[first + 1].name, first + 1, info);
    const ValueId grad = b.mul(w, b.reduce_sum(x, {0}));
    const auto next = b.emit_many(make_op(momentum), std::array{w, grad, v, rate}, 2);
    graph.state_updates.push_back({.state = w, .value = next[0]});
    graph.state_updates.push_back({.state = v, .value = next[1]});
  }
  b.output(x);
  EXPECT_TRUE(b.status().ok()) << b.status().message();
  EXPECT_TRUE(run_pass("order", graph, states).ok());
  EXPECT_TRUE(verify(graph, &states).ok());
  OrderedSteps ordered;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].kind() == OpKind::SgdStep) ordered.positions.push_back(i);
  const auto report = report_of(graph, states, {});
  EXPECT_TRUE(report.ok()) << report.status().message();
  if (report.ok()) ordered.live = report->live_bytes;
  return ordered;
}

TEST(Order, OptimizerStepsRunBeforeTheirGradientsAddToThePeak) {
  const OrderedSteps large = ordered_steps(16, 64, 64, 1000);
  EXPECT_EQ(large.positions.size(), 16u);
  // One gradient, the values of the chain, a sum.
  EXPECT_LE(large.live, 4u * (1000 + 2 * 64 + 1));
}

TEST(Order, OptimizerStepsStayTogetherWhereTheirGradientsAreSmall) {
  EXPECT_EQ(ordered_steps(16, 10000, 10000, 100).groups(), 1u);
}

// At the beginning the chain takes as much as twelve gradients, later almost nothing.
TEST(Order, OptimizerStepsAreTogetherAsFarAsThePeakAllows) {
  const OrderedSteps steps = ordered_steps(16, 6000, 64, 1000);
  EXPECT_LE(steps.live, 4u * 2 * 6000);
  EXPECT_EQ(steps.groups(), 2u);
}

TEST(Symbols, BindingGivesExtents) {
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = {}});
  Graph& graph = model.entries[0].graph;
  Builder b(graph);
  const ValueId x =
      b.input("x", DType::F32, {{.symbol = graph.symbol("batch")}, {.symbol = graph.symbol("seq")}});
  b.output(b.reshape(x, b.ints(std::array<int64_t, 1>{-1})));
  ASSERT_TRUE(b.status().ok());
  EXPECT_FALSE(graph[graph.outputs[0]].dims[0].is_known());
  ASSERT_TRUE(bind_symbol(model, "batch", 8).ok());
  ASSERT_TRUE(bind_symbol(model, "seq", 5).ok());
  EXPECT_EQ(graph[graph.outputs[0]].dims[0].extent, 40);
  EXPECT_FALSE(bind_symbol(model, "batch", 8).ok());
}

TEST(Builder, TriesOtherProbesWhenANodeDoesNotFit) {
  Net net;
  // Two lengths that must be equal, and a dimension that must be a multiple of 32.
  const ValueId p = net.input({net.symbol("n"), net.symbol("s")}, "p");
  const ValueId q = net.input({net.symbol("m"), net.symbol("t")}, "q");
  const ValueId sum = net.b.add(p, q);
  ASSERT_TRUE(net.b.status().ok()) << net.b.status().message();
  EXPECT_FALSE(net.graph[sum].dims[0].is_known());
  const ValueId blocks = net.b.reshape(sum, net.b.ints(std::array<int64_t, 2>{-1, 32}));
  ASSERT_TRUE(net.b.status().ok()) << net.b.status().message();
  EXPECT_EQ(net.graph[blocks].dims[1].extent, 32);
}

TEST(Builder, NamesTheNodeThatFails) {
  Net net;
  const ValueId x = net.input({net.symbol("n"), {.extent = 3}});
  net.b.set_scope("layer7");
  net.b.emit(op::MatMulAttributes{}, {x, random_constant(net.b, {4, 5}, 1)});
  EXPECT_NE(net.b.status().message().find("layer7"), std::string::npos) << net.b.status().message();
}

}  // namespace
}  // namespace librt::compiler::test
