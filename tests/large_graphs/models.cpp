#include "tests/large_graphs/models.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace librt::test {
namespace {

using Model = rt_onnx::ModelProto;
using rt_onnx::GraphProto;
using rt_onnx::NodeProto;

constexpr int kFloat = 1, kInt64 = 7, kBool = 9;

std::string numbered(const char* name, int index) {
  return name + std::to_string(index);
}

Model new_model() {
  Model model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  model.mutable_graph()->set_name("large");
  return model;
}

/// dims: digits are an extent, anything else is a symbol.
void input(Model& model, const std::string& name, const std::vector<std::string>& dims, int type = kFloat) {
  auto& value = *model.mutable_graph()->add_input();
  value.set_name(name);
  auto& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (const std::string& dim : dims)
    if (dim.find_first_not_of("0123456789") == std::string::npos)
      tensor.mutable_shape()->add_dim()->set_dim_value(std::stoll(dim));
    else
      tensor.mutable_shape()->add_dim()->set_dim_param(dim);
}

void output(Model& model, const std::string& name) {
  model.mutable_graph()->add_output()->set_name(name);
}

NodeProto& node(GraphProto& graph, const char* op, const std::vector<std::string>& inputs,
                const std::string& result) {
  NodeProto& added = *graph.add_node();
  added.set_op_type(op);
  added.set_name(result);
  for (const std::string& name : inputs) added.add_input(name);
  added.add_output(result);
  return added;
}

NodeProto& node(Model& model, const char* op, const std::vector<std::string>& inputs,
                const std::string& result) {
  return node(*model.mutable_graph(), op, inputs, result);
}

void integer(NodeProto& node, const char* name, int64_t value) {
  auto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(2);
  attribute.set_i(value);
}

void constant(Model& model, const std::string& name, const std::vector<int64_t>& dims,
              const std::vector<float>& values) {
  auto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(kFloat);
  for (const int64_t dim : dims) tensor.add_dims(dim);
  for (const float value : values) tensor.add_float_data(value);
}

void integers(Model& model, const std::string& name, const std::vector<int64_t>& values) {
  auto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(kInt64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) tensor.add_int64_data(value);
}

/// A balanced tree of additions; returns the name of the sum.
std::string sum(Model& model, std::vector<std::string> terms) {
  for (int made = 0; terms.size() > 1;) {
    std::vector<std::string> sums;
    for (size_t i = 0; i + 1 < terms.size(); i += 2) {
      sums.push_back(numbered("sum", made++));
      node(model, "Add", {terms[i], terms[i + 1]}, sums.back());
    }
    if (terms.size() % 2 == 1) sums.push_back(terms.back());
    terms = std::move(sums);
  }
  return terms[0];
}

/// Functions that no pass removes or merges, by turns.
const char* function(int index) {
  constexpr const char* kFunctions[] = {"Sigmoid", "Tanh", "Sin"};
  return kFunctions[index % 3];
}

// --- the models, in the order of the table below

Model chain(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4"});
  std::string last = "x";
  for (int i = 0; i < count; ++i) {
    node(model, function(i), {last}, numbered("y", i));
    last = numbered("y", i);
  }
  output(model, last);
  return model;
}

Model reversed(int count) {
  Model model = chain(count);
  auto& nodes = *model.mutable_graph()->mutable_node();
  std::reverse(nodes.pointer_begin(), nodes.pointer_end());
  return model;
}

Model cycle(int count) {
  Model model = chain(count);
  model.mutable_graph()->mutable_node(0)->set_input(0, numbered("y", count - 1));
  return model;
}

/// One value read by many nodes.
std::vector<std::string> fan(Model& model, int count) {
  input(model, "x", {"batch", "4"});
  std::vector<std::string> results;
  for (int i = 0; i < count; ++i) {
    constant(model, numbered("c", i), {1}, {static_cast<float>(i)});
    results.push_back(numbered("y", i));
    node(model, "Mul", {"x", numbered("c", i)}, results.back());
  }
  return results;
}

Model fan_out(int count) {
  Model model = new_model();
  output(model, sum(model, fan(model, count / 2)));
  return model;
}

Model wide_concat(int count) {
  Model model = new_model();
  integer(node(model, "Concat", fan(model, count), "joined"), "axis", 1);
  output(model, "joined");
  return model;
}

Model wide_sum(int count) {
  Model model = new_model();
  node(model, "Sum", fan(model, count), "total");
  output(model, "total");
  return model;
}

Model outputs(int count) {
  Model model = new_model();
  for (const std::string& name : fan(model, count)) output(model, name);
  return model;
}

Model equal_outputs(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4"});
  for (int i = 0; i < count; ++i) {
    node(model, "Sin", {"x"}, numbered("y", i));
    output(model, numbered("y", i));
  }
  return model;
}

Model repeated_output(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4"});
  node(model, "Sin", {"x"}, "y");
  for (int i = 0; i < count; ++i) output(model, "y");
  return model;
}

Model equal_nodes(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4"});
  std::vector<std::string> results;
  for (int i = 0; i < count; ++i) {
    results.push_back(numbered("y", i));
    node(model, "Sin", {"x"}, results.back());
  }
  integer(node(model, "Concat", results, "joined"), "axis", 1);
  output(model, "joined");
  return model;
}

Model equal_constants(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4"});
  std::vector<std::string> results;
  for (int i = 0; i < count / 2; ++i) {
    constant(model, numbered("c", i), {4}, {1, 2, 3, 4});
    results.push_back(numbered("y", i));
    node(model, function(i), {numbered("c", i)}, results.back());
  }
  results.push_back("x");
  output(model, sum(model, results));
  return model;
}

Model folded(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4"});
  constant(model, "c", {4}, {0.1f, 0.2f, 0.3f, 0.4f});
  std::string last = "c";
  for (int i = 0; i < count; ++i) {
    node(model, function(i), {last}, numbered("y", i));
    last = numbered("y", i);
  }
  node(model, "Add", {"x", last}, "z");
  output(model, "z");
  return model;
}

Model unused(int count) {
  Model model = chain(count);
  model.mutable_graph()->mutable_output(0)->set_name("y0");
  return model;
}

/// A scalar, the sum over the axes that the constant "all" lists.
void total(Model& model, const std::string& from, const std::string& to) {
  integer(node(model, "ReduceSum", {from, "all"}, to), "keepdims", 0);
}

/// Each input has a dimension of its own.
Model dimensions(int count) {
  Model model = new_model();
  integers(model, "all", {0});
  std::vector<std::string> results;
  for (int i = 0; i < count / 3; ++i) {
    input(model, numbered("x", i), {numbered("n", i)});
    results.push_back(numbered("y", i));
    total(model, numbered("x", i), results.back());
  }
  output(model, sum(model, results));
  return model;
}

/// The same with a node each that becomes an operator with a body, which has the dimension as well.
Model composite_dimensions(int count) {
  Model model = new_model();
  integers(model, "all", {0, 1});
  constant(model, "scale", {4}, {1, 2, 3, 4});
  std::vector<std::string> results;
  for (int i = 0; i < count / 4; ++i) {
    input(model, numbered("x", i), {numbered("n", i), "4"});
    node(model, "LayerNormalization", {numbered("x", i), "scale"}, numbered("l", i));
    results.push_back(numbered("y", i));
    total(model, numbered("l", i), results.back());
  }
  output(model, sum(model, results));
  return model;
}

/// Inputs that must have the same extent, which they call by different names.
Model equal_dimensions(int count) {
  Model model = new_model();
  std::vector<std::string> inputs;
  const int many = std::min(count, 64);  // each one changes all the names that follow
  for (int i = 0; i < many; ++i) {
    inputs.push_back(numbered("x", i));
    input(model, inputs.back(), {numbered("n", i), "4"});
  }
  std::string last = inputs[0];
  for (int i = 0; i < count; ++i) {
    const std::string result = numbered("y", i);
    if (i < many)
      node(model, "Concat", {last, inputs[static_cast<size_t>(i)]}, result);
    else
      node(model, function(i), {last}, result);
    if (i < many) {
      integer(*model.mutable_graph()->mutable_node(i), "axis", 1);
    }
    last = result;
  }
  output(model, last);
  return model;
}

/// n, n + 1, n + 2, ..
Model growing_dimension(int count) {
  Model model = new_model();
  input(model, "x", {"n"});
  constant(model, "c", {1}, {1});
  std::string last = "x";
  std::vector<std::string> totals;
  integers(model, "all", {0});
  for (int i = 0; i < count / 3; ++i) {
    integer(node(model, "Concat", {last, "c"}, numbered("y", i)), "axis", 0);
    last = numbered("y", i);
    totals.push_back(numbered("t", i));
    total(model, last, totals.back());
  }
  output(model, sum(model, totals));
  return model;
}

/// Each count of elements that are not zero is known at run time only.
Model counts_from_data(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4"});
  std::vector<std::string> results;
  for (int i = 0; i < count / 4; ++i) {
    constant(model, numbered("c", i), {1}, {static_cast<float>(i)});
    node(model, "Less", {"x", numbered("c", i)}, numbered("b", i));
    node(model, "NonZero", {numbered("b", i)}, numbered("z", i));
    results.push_back(numbered("s", i));
    integer(node(model, "ReduceMax", {numbered("z", i)}, results.back()), "keepdims", 0);
  }
  output(model, sum(model, results));
  return model;
}

/// Each count depends on the one before: a session plans and runs them one after the other.
Model chain_of_counts(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4"});
  constant(model, "t0", {1}, {0});
  for (int i = 0; i < count / 4; ++i) {
    node(model, "Less", {"x", numbered("t", i)}, numbered("b", i));
    node(model, "NonZero", {numbered("b", i)}, numbered("z", i));
    integer(node(model, "ReduceSum", {numbered("z", i)}, numbered("s", i)), "keepdims", 0);
    integer(node(model, "Cast", {numbered("s", i)}, numbered("t", i + 1)), "to", kFloat);
  }
  output(model, numbered("t", count / 4));
  return model;
}

Model shape_arithmetic(int count) {
  Model model = new_model();
  input(model, "x", {"n", "4"});
  node(model, "Shape", {"x"}, "s");
  integers(model, "zero", {0});
  integers(model, "one", {1});
  integers(model, "four", {4});
  node(model, "Gather", {"s", "zero"}, "n");
  std::string last = "n";
  for (int i = 0; i < count / 2; ++i) {
    node(model, i % 2 == 0 ? "Add" : "Sub", {last, "one"}, numbered("m", i));
    last = numbered("m", i);
  }
  integer(node(model, "Concat", {last, "four"}, "to"), "axis", 0);
  node(model, "Reshape", {"x", "to"}, "y");
  output(model, "y");
  return model;
}

/// Transposes and reshapes that cancel in pairs.
Model movement(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4", "6"});
  integers(model, "flat", {0, 24});
  integers(model, "cube", {0, 4, 6});
  std::string last = "x";
  const auto next = [&](const char* op, std::vector<std::string> inputs) -> NodeProto& {
    const std::string result = numbered("y", model.graph().node_size());
    NodeProto& added = node(model, op, inputs, result);
    last = result;
    return added;
  };
  for (int i = 0; i < count / 6; ++i) {
    for (int k = 0; k < 2; ++k) {
      auto& attribute = *next("Transpose", {last}).add_attribute();
      attribute.set_name("perm");
      attribute.set_type(7);
      for (const int64_t axis : {0, 2, 1}) attribute.add_ints(axis);
      next(function(i + k), {last});
    }
    next("Reshape", {last, "flat"});
    next("Reshape", {last, "cube"});
  }
  output(model, last);
  return model;
}

/// One Transpose that all functions read.
Model transposed_fan_out(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4", "6"});
  node(model, "Transpose", {"x"}, "t");
  std::vector<std::string> results;
  for (int i = 0; i < count / 2; ++i) {
    constant(model, numbered("c", i), {1}, {static_cast<float>(i)});
    results.push_back(numbered("y", i));
    node(model, "Mul", {"t", numbered("c", i)}, results.back());
  }
  output(model, sum(model, results));
  return model;
}

Model layers(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4"});
  std::string last = "x";
  for (int i = 0; i < count / 3; ++i) {
    std::vector<float> weight(16);
    for (size_t k = 0; k < weight.size(); ++k)
      weight[k] = 0.01f * static_cast<float>((k * 7 + static_cast<size_t>(i)) % 31);
    constant(model, numbered("layer.weight", i), {4, 4}, weight);
    constant(model, numbered("layer.bias", i), {4}, {0.1f, 0.2f, 0.3f, static_cast<float>(i)});
    node(model, "MatMul", {last, numbered("layer.weight", i)}, numbered("m", i));
    node(model, "Add", {numbered("m", i), numbered("layer.bias", i)}, numbered("a", i));
    node(model, "Tanh", {numbered("a", i)}, numbered("y", i));
    last = numbered("y", i);
  }
  output(model, last);
  return model;
}

/// One weight that many layers read.
Model shared_weight(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4"});
  constant(model, "shared.weight", {4, 4}, std::vector<float>(16, 0.25f));
  std::string last = "x";
  for (int i = 0; i < count / 2; ++i) {
    node(model, "MatMul", {last, "shared.weight"}, numbered("m", i));
    node(model, "Tanh", {numbered("m", i)}, numbered("y", i));
    last = numbered("y", i);
  }
  output(model, last);
  return model;
}

Model convolutions(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "2", "4", "4"});
  std::string last = "x";
  for (int i = 0; i < count / 3; ++i) {
    constant(model, numbered("w", i), {2, 2, 1, 1}, {0.1f, 0.2f, 0.3f, static_cast<float>(i)});
    for (const char* part : {"s", "b", "m", "v"}) constant(model, numbered(part, i), {2}, {1, 2});
    node(model, "Conv", {last, numbered("w", i)}, numbered("c", i));
    node(model, "BatchNormalization",
         {numbered("c", i), numbered("s", i), numbered("b", i), numbered("m", i), numbered("v", i)},
         numbered("n", i));
    node(model, "Relu", {numbered("n", i)}, numbered("y", i));
    last = numbered("y", i);
  }
  output(model, last);
  return model;
}

GraphProto branch(const std::string& outer, const char* op, int index) {
  GraphProto graph;
  graph.set_name(op);
  const std::string result = op + numbered("_", index);
  node(graph, op, {outer}, result);
  graph.add_output()->set_name(result);
  return graph;
}

void set_graph(NodeProto& node, const char* name, GraphProto graph) {
  auto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(5);
  *attribute.mutable_g() = std::move(graph);
}

Model branches(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4"});
  input(model, "b", {}, kBool);
  std::string last = "x";
  for (int i = 0; i < count / 3; ++i) {
    NodeProto& added = node(model, "If", {"b"}, numbered("y", i));
    set_graph(added, "then_branch", branch(last, "Sin", i));
    set_graph(added, "else_branch", branch(last, "Tanh", i));
    last = numbered("y", i);
  }
  output(model, last);
  return model;
}

/// A branch that reads many values of the graph around it.
Model captures(int count) {
  Model model = new_model();
  input(model, "b", {}, kBool);
  const std::vector<std::string> outer = fan(model, count / 2);
  NodeProto& added = node(model, "If", {"b"}, "y");
  GraphProto then;
  then.set_name("then");
  node(then, "Sum", outer, "total");
  then.add_output()->set_name("total");
  set_graph(added, "then_branch", std::move(then));
  set_graph(added, "else_branch", branch("x", "Tanh", 0));
  output(model, "y");
  return model;
}

/// If nodes that read inputs, each with a dimension of its own.
Model branch_dimensions(int count) {
  Model model = new_model();
  input(model, "b", {}, kBool);
  std::vector<std::string> totals;
  integers(model, "all", {0});
  for (int i = 0; i < count / 3; ++i) {
    input(model, numbered("x", i), {numbered("n", i)});
    NodeProto& added = node(model, "If", {"b"}, numbered("y", i));
    set_graph(added, "then_branch", branch(numbered("x", i), "Sin", i));
    set_graph(added, "else_branch", branch(numbered("x", i), "Tanh", i));
    totals.push_back(numbered("t", i));
    total(model, numbered("y", i), totals.back());
  }
  output(model, sum(model, totals));
  return model;
}

/// An If with many results, in each branch one value twice.
Model branch_outputs(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4"});
  input(model, "b", {}, kBool);
  NodeProto& added = node(model, "If", {"b"}, "y0");
  std::vector<std::string> results = {"y0"};
  for (int i = 1; i <= count / 3; ++i) {
    results.push_back(numbered("y", i));
    added.add_output(results.back());
  }
  for (const auto& [name, op] : {std::pair{"then_branch", "Sin"}, std::pair{"else_branch", "Tanh"}}) {
    GraphProto graph = branch("x", op, 0);
    for (int i = 1; i < count / 3; ++i) {
      node(graph, op, {"x"}, op + numbered("_", i));
      graph.add_output()->set_name(op + numbered("_", i));
    }
    *graph.add_output() = graph.output(0);
    set_graph(added, name, std::move(graph));
  }
  output(model, sum(model, results));
  return model;
}

Model calls(int count) {
  Model model = new_model();
  auto& import = *model.add_opset_import();
  import.set_domain("local");
  import.set_version(1);
  auto& function = *model.add_functions();
  function.set_domain("local");
  function.set_name("Squash");
  function.add_input("x");
  function.add_output("y");
  function.add_opset_import()->set_version(17);
  for (const auto& [op, from, to] : {std::array{"Sin", "x", "s"}, std::array{"Tanh", "s", "y"}}) {
    NodeProto& inner = *function.add_node();
    inner.set_op_type(op);
    inner.add_input(from);
    inner.add_output(to);
  }
  input(model, "x", {"batch", "4"});
  std::string last = "x";
  for (int i = 0; i < count / 2; ++i) {
    node(model, "Squash", {last}, numbered("y", i)).set_domain("local");
    last = numbered("y", i);
  }
  output(model, last);
  return model;
}

Model quantized(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4"});
  constant(model, "scale", {}, {0.05f});
  auto& zero = *model.mutable_graph()->add_initializer();
  zero.set_name("zero");
  zero.set_data_type(2);  // uint8
  zero.add_int32_data(128);
  std::string last = "x";
  for (int i = 0; i < count / 3; ++i) {
    node(model, "QuantizeLinear", {last, "scale", "zero"}, numbered("q", i));
    node(model, "DequantizeLinear", {numbered("q", i), "scale", "zero"}, numbered("d", i));
    node(model, function(i), {numbered("d", i)}, numbered("y", i));
    last = numbered("y", i);
  }
  output(model, last);
  return model;
}

Model unsupported(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4"});
  for (int i = 0; i < count; ++i) {
    node(model, i % 2 == 0 ? "NoSuchOperator" : "Sin", {"x"}, numbered("y", i));
    output(model, numbered("y", i));
  }
  return model;
}

/// Nodes whose operands do not fit, for all extents.
Model invalid(int count) {
  Model model = new_model();
  input(model, "x", {"batch", "4"});
  constant(model, "c", {5}, {1, 2, 3, 4, 5});
  for (int i = 0; i < count / 2; ++i) {
    node(model, function(i), {"x"}, numbered("y", i));
    node(model, "Add", {numbered("y", i), "c"}, numbered("z", i));
  }
  output(model, "z0");
  return model;
}

constexpr LargeModel kModels[] = {
    {"chain", "functions, one after the other", chain},
    {"reversed", "the same, listed from the last to the first", reversed},
    {"cycle", "the same with its end as its input: refused", cycle, false, false, true},
    {"fan_out", "a value with half as many readers, and the sum of their results", fan_out},
    {"wide_concat", "a Concat of as many operands", wide_concat},
    {"wide_sum", "a Sum of as many operands", wide_sum},
    {"outputs", "as many outputs", outputs},
    {"equal_outputs", "as many outputs, all equal", equal_outputs},
    {"repeated_output", "one value as every output", repeated_output},
    {"equal_nodes", "nodes that are equal, and a Concat of their results", equal_nodes},
    {"equal_constants", "half as many constants, all equal", equal_constants},
    {"folded", "a chain of nodes that read constants only", folded},
    {"unused", "a chain without a reader", unused},
    {"dimensions", "inputs, each with a dimension of its own", dimensions},
    {"composite_dimensions", "LayerNormalization of inputs, each with a dimension of its own",
     composite_dimensions},
    {"equal_dimensions", "64 dimensions that must be equal, then a chain", equal_dimensions},
    {"growing_dimension", "n + 1, n + 2, ..", growing_dimension},
    {"counts_from_data", "NonZero", counts_from_data},
    {"chain_of_counts", "NonZero, each of a comparison with the sum of the one before", chain_of_counts},
    {"shape_arithmetic", "a chain of sums that gives a shape", shape_arithmetic},
    {"movement", "Transpose and Reshape that cancel", movement},
    {"transposed_fan_out", "a Transpose with half as many readers, and the sum of their results",
     transposed_fan_out},
    {"layers", "MatMul, Add, Tanh", layers},
    {"shared_weight", "MatMul with one weight for all", shared_weight},
    {"convolutions", "Conv, BatchNormalization, Relu", convolutions},
    {"branches", "If, one after the other", branches},
    {"captures", "an If that reads half as many outer values", captures},
    {"branch_dimensions", "If of inputs, each with a dimension of its own", branch_dimensions},
    {"branch_outputs", "an If with a third as many results", branch_outputs},
    {"calls", "calls of a model-local function", calls},
    {"quantized", "QuantizeLinear and DequantizeLinear between functions", quantized},
    {"trained_layers", "the layers with a training step", layers, true},
    {"trained_shared_weight", "the same with one weight for all", shared_weight, true},
    {"unsupported", "half as many unknown operators: refused", unsupported, false, false, true},
    {"invalid", "operands that do not fit: refused", invalid, false, false, true},
};

}  // namespace

std::span<const LargeModel> large_models() {
  return kModels;
}

}  // namespace librt::test
