// The reference evaluator: graphs, states, bodies.
#include "tests/unit/page_test_support.h"

namespace librt::test {
namespace {

ValueId add_input(Graph& graph, std::string name, std::vector<Dim> dims) {
  const ValueId id = graph.add_value({.name = std::move(name), .role = Role::Input, .dims = std::move(dims)});
  graph.inputs.push_back(id);
  return id;
}

template <class Attributes>
ValueId add_node(Graph& graph, Attributes attributes, std::vector<ValueId> inputs) {
  const ValueId output = graph.add_value({.name = text("v", graph.values.size())});
  Node node;
  node.op = make_op(std::move(attributes));
  node.name = text("n", graph.nodes.size());
  node.inputs = std::move(inputs);
  node.outputs = {output};
  graph.nodes.push_back(std::move(node));
  return output;
}

TEST(EvaluateGraph, RunsAndObserves) {
  Graph graph;
  const int32_t batch = graph.symbol("batch");
  const ValueId a = add_input(graph, "a", {{.symbol = batch}});
  const ValueId b = add_input(graph, "b", {{.symbol = batch}});
  const ValueId sum = add_node(graph, op::AddAttributes{}, {a, b});
  const ValueId relu = add_node(graph, op::ReluAttributes{}, {sum});
  graph.outputs = {relu, a, relu};
  const auto x = f32({2}, {1, -5});
  const auto y = f32({2}, {2, 3});
  std::vector<NodeId> seen;
  const std::vector<ConstTensorView> inputs{x.view(), y.view()};
  const auto got =
      ops::evaluate_graph(graph, inputs, nullptr, [&](NodeId node, std::span<const ConstTensorView> outputs) {
        seen.push_back(node);
        EXPECT_EQ(outputs.size(), 1u);
      });
  ASSERT_TRUE(got.ok()) << got.status().message();
  ASSERT_EQ(got->size(), 3u);
  expect_values(numbers((*got)[0]), {3, 0});
  expect_values(numbers((*got)[1]), {1, -5});
  expect_values(numbers((*got)[2]), {3, 0});
  EXPECT_EQ(seen, (std::vector<NodeId>{0, 1}));

  const auto three = f32({3}, {1, 2, 3});
  const std::vector<ConstTensorView> unequal{x.view(), three.view()};
  const auto refused = ops::evaluate_graph(graph, unequal);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().message(), "input 'b': expected extent 2 in axis 0, found f32[3]");
}

TEST(EvaluateGraph, StatesChangePlacesAfterTheRun) {
  const std::vector<State> states{{.name = "p", .info = {.dtype = DType::F32, .shape = {}}},
                                  {.name = "q", .info = {.dtype = DType::F32, .shape = {}}}};
  Graph graph;
  const ValueId p = graph.add_value({.name = "p", .role = Role::State, .state = 0});
  const ValueId q = graph.add_value({.name = "q", .role = Role::State, .state = 1});
  graph.outputs = {p};
  graph.state_updates = {{.state = p, .value = q}, {.state = q, .value = p}};
  auto tensors = ops::initial_states(states);
  expect_values(numbers(tensors[0]), {0});
  store_element(tensors[0].bytes.data(), DType::F32, 0, 1);
  store_element(tensors[1].bytes.data(), DType::F32, 0, 2);
  const auto got = ops::evaluate_graph(graph, {}, &tensors);
  ASSERT_TRUE(got.ok()) << got.status().message();
  expect_values(numbers((*got)[0]), {1});
  expect_values(numbers(tensors[0]), {2});
  expect_values(numbers(tensors[1]), {1});
  EXPECT_FALSE(ops::evaluate_graph(graph, {}).ok());
}

TEST(EvaluateNode, RunsTheBodyOfAComposite) {
  Graph body;
  const ValueId x = add_input(body, "x", {{}});
  const ValueId sigmoid = add_node(body, op::SigmoidAttributes{}, {x});
  body.outputs = {add_node(body, op::MulAttributes{}, {x, sigmoid})};
  Graph graph;
  const ValueId outer = add_input(graph, "x", {{.extent = 2}});
  graph.outputs = {add_node(graph, op::SiluAttributes{}, {outer})};
  graph.nodes[0].bodies.push_back(body);
  const auto value = f32({2}, {0, 1});
  const std::vector<ConstTensorView> inputs{value.view()};
  const auto got = ops::evaluate_graph(graph, inputs);
  ASSERT_TRUE(got.ok()) << got.status().message();
  expect_values(numbers((*got)[0]), {0, 0.73105858});

  graph.nodes[0].bodies.clear();
  const auto refused = ops::evaluate_graph(graph, inputs);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().message().substr(0, 17), "node 'n0' (Silu):");
}

}  // namespace
}  // namespace librt::test
