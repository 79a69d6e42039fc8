// The pass elementwise and its inverse.
#include "runtime/geometry/elementwise.h"
#include "tests/passes/support.h"

namespace librt::compiler::test {
namespace {

/// The attributes of the first node that has them; defaults if there is none.
template <class Attributes>
Attributes of_kind(const Graph& graph) {
  const OpKind kind = make_op(Attributes{}).type;
  for (const Node& node : graph.nodes)
    if (node.kind() == kind) return node.as<Attributes>();
  ADD_FAILURE() << "no " << name_of(kind) << " in " << print(graph);
  return {};
}

TEST(Elementwise, JoinsWhatNothingElseReads) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({net.symbol("batch"), {.extent = 3}, {.extent = 16}});
  const ValueId scaled = b.mul(x, random_constant(b, {16}, 1));
  const ValueId moved = b.add(scaled, random_constant(b, {3, 1}, 2));
  net.output(net.unary(op::SigmoidAttributes{}, moved));
  transform(net.graph, {"elementwise"}, 0);
  ASSERT_EQ(net.graph.nodes.size(), 1u) << print(net.graph);
  const Node& node = net.graph.nodes[0];
  EXPECT_EQ(node.inputs.size(), 3u);
  EXPECT_EQ(node.inputs[0], x);
  const auto numbers = [](OpKind kind) { return static_cast<int64_t>(kind); };
  EXPECT_EQ(of_kind<op::ElementwiseAttributes>(net.graph).steps,
            (std::vector<int64_t>{numbers(OpKind::Mul), 0, 1, -1, numbers(OpKind::Add), 3, 2, -1,
                                  numbers(OpKind::Sigmoid), 4, -1, -1}));
  transform(net.graph, {"write_out"}, 0);
  EXPECT_EQ(net.graph.nodes.size(), 3u) << print(net.graph);
}

TEST(Elementwise, AttributesSurvive) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({{.extent = 2}, {.extent = 40}});
  op::ClipAttributes clip;
  clip.minimum = -0.5f;
  clip.maximum = 0.75f;
  op::HardSigmoidAttributes gate;
  gate.alpha = 0.3f;
  gate.beta = 0.4f;
  op::GeluAttributes gelu;
  gelu.tanh_approximation = true;
  op::ModAttributes mod;
  mod.truncated = true;
  ValueId y = net.unary(gate, net.unary(clip, x));
  y = b.emit(mod, {net.unary(gelu, y), b.scalar(0.25, DType::F32)});
  op::LeakyReluAttributes leaky;
  leaky.alpha = 0.125f;
  net.output(net.unary(leaky, b.sub(y, x)));
  transform(net.graph, {"elementwise"}, 0);
  EXPECT_EQ(net.graph.nodes.size(), 1u) << print(net.graph);
  transform(net.graph, {"write_out"}, 0);
  EXPECT_EQ(of_kind<op::ClipAttributes>(net.graph).maximum, 0.75f);
  EXPECT_EQ(of_kind<op::HardSigmoidAttributes>(net.graph).beta, 0.4f);
  EXPECT_TRUE(of_kind<op::GeluAttributes>(net.graph).tanh_approximation);
  EXPECT_TRUE(of_kind<op::ModAttributes>(net.graph).truncated);
  EXPECT_EQ(of_kind<op::LeakyReluAttributes>(net.graph).alpha, 0.125f);
}

TEST(Elementwise, ConditionsAndMasks) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({{.extent = 4}, {.extent = 10}});
  const ValueId mask = net.input({{.extent = 4}, {.extent = 10}}, "mask", DType::Bool);
  const ValueId large = b.emit(op::GreaterAttributes{}, {x, b.scalar(0.5, DType::F32)});
  const ValueId both = b.emit(op::AndAttributes{}, {net.unary(op::NotAttributes{}, mask), large});
  const ValueId chosen = b.emit(op::WhereAttributes{}, {both, x, b.scalar(-1, DType::F32)});
  net.output(b.mul(chosen, b.cast(mask, DType::F32)));
  transform(net.graph, {"elementwise"}, 0);
  EXPECT_EQ(net.graph.nodes.size(), 1u) << print(net.graph);
  EXPECT_EQ(net.graph.nodes[0].inputs[0], x);
}

TEST(Elementwise, LongChainsBecomeSeveralNodes) {
  Net net;
  Builder& b = net.b;
  ValueId y = net.input({{.extent = 4}, {.extent = 10}});
  for (int i = 0; i < 2 * kMostElementwiseSteps; ++i)
    y = i % 2 == 0 ? b.add(y, random_constant(b, {10}, static_cast<uint32_t>(i)))
                   : net.unary(op::TanhAttributes{}, y);
  net.output(y);
  transform(net.graph, {"elementwise"}, 0);
  EXPECT_EQ(count(net.graph, OpKind::Elementwise), 2u) << print(net.graph);
  EXPECT_EQ(net.graph.nodes.size(), 2u);
}

/// What must stay as it is, or the result would be computed more often, lost, or wrong.
TEST(Elementwise, LeavesOthersAlone) {
  const auto nodes_after = [](const std::function<void(Net&, Builder&, ValueId)>& build) {
    Net net;
    build(net, net.b, net.input({{.extent = 4}, {.extent = 10}}));
    const size_t before = net.graph.nodes.size();
    transform(net.graph, {"elementwise"}, 0);
    EXPECT_EQ(count(net.graph, OpKind::Elementwise), 0u) << print(net.graph);
    return net.graph.nodes.size() == before;
  };
  // An output of the graph.
  EXPECT_TRUE(nodes_after([](Net& net, Builder& b, ValueId x) {
    const ValueId y = net.unary(op::ExpAttributes{}, x);
    net.output(y, "first");
    net.output(b.add(y, x), "second");
  }));
  // Read by another operator.
  EXPECT_TRUE(nodes_after([](Net& net, Builder& b, ValueId x) {
    const ValueId y = net.unary(op::ExpAttributes{}, x);
    net.output(b.add(y, x), "first");
    net.output(b.reduce_sum(y, {1}), "second");
  }));
  // Smaller than the result: it would be computed for each row.
  EXPECT_TRUE(nodes_after([](Net& net, Builder& b, ValueId x) {
    const ValueId row = net.input({{.extent = 10}}, "row");
    net.output(b.add(net.unary(op::ExpAttributes{}, row), x));
  }));
  // Integers and f64.
  EXPECT_TRUE(nodes_after([](Net& net, Builder& b, ValueId) {
    for (const DType type : {DType::I32, DType::F64}) {
      const std::string name(name_of(type));
      const ValueId x = net.input({{.extent = 40}}, "x" + name, type);
      net.output(b.mul(b.add(x, x), x), "y" + name);
    }
  }));
  // Shape arithmetic is computed while planning, from symbols.
  EXPECT_TRUE(nodes_after([](Net& net, Builder& b, ValueId x) {
    const ValueId extents = b.cast(b.shape_of(x), DType::F32);
    const ValueId half = net.unary(op::FloorAttributes{}, b.mul(extents, b.scalar(0.5, DType::F32)));
    net.output(b.cast(half, DType::I64));
  }));
}

TEST(Elementwise, CompiledAgain) {
  Net net;
  Builder& b = net.b;
  const ValueId x = net.input({{.extent = 4}, {.extent = 10}});
  net.output(b.mul(net.unary(op::TanhAttributes{}, b.add(x, random_constant(b, {10}, 3))), x));
  ModelGraph model;
  model.entries.push_back({.name = "infer", .graph = net.graph});
  ASSERT_TRUE(optimize(model, {}, nullptr).ok());
  EXPECT_EQ(count(model.entries[0].graph, OpKind::Elementwise), 1u);
  ModelGraph written = model;
  ASSERT_TRUE(write_out_chains(written).ok());
  EXPECT_EQ(count(written.entries[0].graph, OpKind::Elementwise), 0u);
  EXPECT_EQ(count(written.entries[0].graph, OpKind::Tanh), 1u);
  // Compiled again, it is what it was.
  const std::string once = print(model.entries[0].graph, {.bodies = true});
  ASSERT_TRUE(optimize(model, {}, nullptr).ok());
  EXPECT_EQ(print(model.entries[0].graph, {.bodies = true}), once);
}

TEST(Elementwise, StepsThatAreNoneAreRefused) {
  using Attributes = op::ElementwiseAttributes;
  const auto program = [](std::vector<int64_t> steps, std::vector<float> parameters, size_t inputs = 2) {
    Attributes attributes;
    attributes.steps = std::move(steps);
    attributes.parameters = std::move(parameters);
    return elementwise_program(attributes, inputs).has_value();
  };
  const auto add = static_cast<int64_t>(OpKind::Add), conv = static_cast<int64_t>(OpKind::Conv);
  EXPECT_TRUE(program({add, 0, 1, -1}, {0, 0}));
  EXPECT_FALSE(program({}, {}));
  EXPECT_FALSE(program({add, 0, 1}, {0, 0}));
  EXPECT_FALSE(program({add, 0, 1, -1}, {0}));
  EXPECT_FALSE(program({add, 0, 2, -1}, {0, 0}));   // its own result
  EXPECT_FALSE(program({add, 0, -1, -1}, {0, 0}));  // too few operands
  EXPECT_FALSE(program({conv, 0, 1, -1}, {0, 0}));
  EXPECT_FALSE(program({0, 0, 1, -1}, {0, 0}));
  EXPECT_FALSE(program({int64_t{1} << 40, 0, 1, -1}, {0, 0}));
  EXPECT_FALSE(program({add + 256, 0, 1, -1}, {0, 0}));
  EXPECT_FALSE(program({add, 0, 1, -1}, {0, 0}, 7));
  EXPECT_FALSE(program({add, 0, 0, -1}, {0, 0}, 0));
  std::vector<int64_t> many;
  for (int i = 0; i <= kMostElementwiseSteps; ++i) many.insert(many.end(), {add, 0, 1, -1});
  EXPECT_FALSE(program(many, std::vector<float>(2 * (kMostElementwiseSteps + 1))));

  // Types: a sum of a boolean would be read past its end.
  Attributes attributes;
  attributes.steps = {add, 0, 1, -1};
  attributes.parameters = {0, 0};
  Node node;
  node.op = make_op(attributes);
  const auto typed = [&](DType second) {
    const Operand operands[] = {{.present = true, .info = {DType::F32, {8}}},
                                {.present = true, .info = {second, {8}}}};
    return elementwise_program({.node = node, .inputs = operands}).ok();
  };
  EXPECT_TRUE(typed(DType::F32));
  EXPECT_FALSE(typed(DType::Bool));
}

}  // namespace
}  // namespace librt::compiler::test
