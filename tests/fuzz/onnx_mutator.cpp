#include "tests/fuzz/onnx_mutator.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tools/onnx/import.h"

namespace librt::fuzz {
namespace {

using rt_onnx::AttributeProto;
using rt_onnx::GraphProto;
using rt_onnx::NodeProto;
using rt_onnx::TensorProto;

constexpr const char* kAttributes[] = {"axis",
                                       "axes",
                                       "perm",
                                       "pads",
                                       "strides",
                                       "dilations",
                                       "kernel_shape",
                                       "group",
                                       "mode",
                                       "to",
                                       "keepdims",
                                       "alpha",
                                       "beta",
                                       "epsilon",
                                       "momentum",
                                       "transA",
                                       "transB",
                                       "direction",
                                       "hidden_size",
                                       "activations",
                                       "auto_pad",
                                       "ceil_mode",
                                       "output_shape",
                                       "output_padding",
                                       "batch_dims",
                                       "block_size",
                                       "blocksize",
                                       "largest",
                                       "sorted",
                                       "exclusive",
                                       "reverse",
                                       "num_heads",
                                       "kv_num_heads",
                                       "scale",
                                       "value",
                                       "values",
                                       "split",
                                       "num_outputs",
                                       "equation",
                                       "reduction",
                                       "ignore_index",
                                       "sampling_ratio",
                                       "spatial_scale",
                                       "output_height",
                                       "coordinate_transformation_mode",
                                       "nearest_mode",
                                       "layout",
                                       "linear_before_reset",
                                       "clip",
                                       "saturate",
                                       "p",
                                       "size",
                                       "bias",
                                       "lambd",
                                       "dtype",
                                       "sample_size",
                                       "seed",
                                       "high",
                                       "low",
                                       "k",
                                       "upper",
                                       "num_groups",
                                       "stash_type",
                                       "noop_with_empty_axes",
                                       "select_last_index",
                                       "allowzero"};
constexpr float kReals[] = {0,
                            -1,
                            1,
                            0.5f,
                            1e30f,
                            -1e30f,
                            1e-42f,
                            3.4e38f,
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()};
constexpr const char* kTexts[] = {
    "",        "SAME_UPPER", "VALID",         "NOTSET",  "linear", "cubic",      "nearest",     "reflect",
    "edge",    "wrap",       "bidirectional", "reverse", "Tanh",   "Relu",       "HardSigmoid", "ij,jk->ik",
    "...i->i", "mean",       "none",          "sum",     "max",    "asymmetric", "DCR"};

template <class List>
auto& pick(List& list, Random& random) {  // of a repeated field that is not empty
  return *list.Mutable(static_cast<int>(random.below(static_cast<size_t>(list.size()))));
}

template <class List>
void erase_one(List& list, Random& random) {
  list.DeleteSubrange(static_cast<int>(random.below(static_cast<size_t>(list.size()))), 1);
}

/// Numbers of a repeated field.
template <class List, class Number>
void change_list(List& list, const Number& fresh, Random& random) {
  const int last = list.size() - 1;
  if (last < 0 || random.one_in(6))
    list.Add(fresh);
  else if (random.one_in(6))
    list.RemoveLast();
  else
    list.Set(static_cast<int>(random.below(static_cast<size_t>(last) + 1)), fresh);
}

int64_t extent(Random& random) {
  return random.one_in(8) ? random.pick(kNumbers) : static_cast<int64_t>(random.below(6));
}

void change_tensor(TensorProto& tensor, Random& random) {
  switch (random.below(5)) {
    case 0: change_list(*tensor.mutable_dims(), extent(random), random); break;
    case 1: tensor.set_data_type(static_cast<int>(random.below(26))); break;
    case 2:
      if (tensor.int64_data_size() > 0) {
        const auto at = static_cast<int>(random.below(static_cast<size_t>(tensor.int64_data_size())));
        tensor.set_int64_data(at, changed(tensor.int64_data(at), random));
      } else if (!tensor.raw_data().empty()) {
        std::string& bytes = *tensor.mutable_raw_data();
        const int64_t number = random.pick(kNumbers);
        const size_t at = random.below(bytes.size() / 8 + 1) * 8;
        for (size_t i = 0; i < 8 && at + i < bytes.size(); ++i)
          bytes[at + i] = static_cast<char>(static_cast<uint64_t>(number) >> (8 * i));
      } else {
        change_list(*tensor.mutable_float_data(), random.pick(kReals), random);
      }
      break;
    case 3: change_list(*tensor.mutable_int64_data(), extent(random), random); break;
    default: {  // as many bytes as the type and shape may need
      int64_t count = 1;
      for (const int64_t dim : tensor.dims()) count = dim < 0 || dim > 64 || count > 4096 ? 0 : count * dim;
      static constexpr int64_t kSizes[] = {1, 2, 4, 8};
      tensor.clear_float_data();
      tensor.clear_int64_data();
      tensor.mutable_raw_data()->resize(static_cast<size_t>(count * random.pick(kSizes)));
    }
  }
}

void change_attribute(AttributeProto& attribute, Random& random) {
  switch (random.below(7)) {
    case 0: attribute.set_name(random.pick(kAttributes)); break;
    case 1: attribute.set_type(static_cast<int>(random.below(13))); break;
    case 2:
      attribute.set_f(random.pick(kReals));
      if (attribute.floats_size() > 0) change_list(*attribute.mutable_floats(), random.pick(kReals), random);
      break;
    case 3:
      attribute.set_s(random.pick(kTexts));
      if (attribute.strings_size() > 0) pick(*attribute.mutable_strings(), random) = random.pick(kTexts);
      break;
    case 4:
      if (attribute.has_t()) {
        change_tensor(*attribute.mutable_t(), random);
        break;
      }
      [[fallthrough]];
    case 5: change_list(*attribute.mutable_ints(), extent(random), random); break;
    default: attribute.set_i(changed(attribute.i(), random));
  }
}

std::vector<std::string> names_of(const GraphProto& graph) {
  std::vector<std::string> names = {""};
  for (const auto& value : graph.input()) names.push_back(value.name());
  for (const auto& tensor : graph.initializer()) names.push_back(tensor.name());
  for (const auto& node : graph.node()) names.insert(names.end(), node.output().begin(), node.output().end());
  return names;
}

void change_node(GraphProto& graph, NodeProto& node, Random& random) {
  const std::vector<std::string> names = names_of(graph);
  switch (random.below(9)) {
    case 0: {
      static const auto known = onnx::supported_ops();
      const auto& other = random.pick(known);
      node.set_op_type(std::string(other.op));
      node.set_domain(std::string(other.domain));
      break;
    }
    case 1: node.add_input(random.pick(names)); break;
    case 2:
      if (node.input_size() > 0) node.mutable_input()->RemoveLast();
      break;
    case 3:
    case 4:
      if (node.input_size() > 0) pick(*node.mutable_input(), random) = random.pick(names);
      break;
    case 5:
      if (node.attribute_size() > 0) erase_one(*node.mutable_attribute(), random);
      break;
    case 6: change_attribute(*node.add_attribute(), random); break;
    default:
      if (node.attribute_size() > 0) change_attribute(pick(*node.mutable_attribute(), random), random);
  }
}

void change_value(rt_onnx::ValueInfoProto& value, Random& random) {
  auto& type = *value.mutable_type()->mutable_tensor_type();
  if (random.one_in(4)) {
    type.set_elem_type(static_cast<int>(random.below(26)));
    return;
  }
  auto& dims = *type.mutable_shape()->mutable_dim();
  if (dims.empty() || random.one_in(6))
    dims.Add()->set_dim_value(extent(random));
  else if (random.one_in(6))
    dims.RemoveLast();
  else if (random.one_in(3))
    pick(dims, random).set_dim_param(random.one_in(2) ? "n" : "m");
  else
    pick(dims, random).set_dim_value(extent(random));
}

void change_graph(GraphProto& graph, Random& random) {
  if (graph.node_size() == 0) return;
  NodeProto& node = pick(*graph.mutable_node(), random);
  for (AttributeProto& attribute : *node.mutable_attribute())
    if (attribute.has_g() && random.one_in(2)) return change_graph(*attribute.mutable_g(), random);
  switch (random.below(10)) {
    case 0: {
      NodeProto& copy = *graph.add_node();
      copy = graph.node(static_cast<int>(random.below(static_cast<size_t>(graph.node_size()) - 1)));
      for (std::string& output : *copy.mutable_output()) {
        output += "'";
        graph.add_output()->set_name(output);
      }
      break;
    }
    case 1:
      if (graph.node_size() > 1) erase_one(*graph.mutable_node(), random);
      break;
    case 2: node.Swap(&pick(*graph.mutable_node(), random)); break;
    case 3:
    case 4:
      if (graph.initializer_size() > 0) change_tensor(pick(*graph.mutable_initializer(), random), random);
      break;
    case 5:
      if (graph.input_size() > 0) change_value(pick(*graph.mutable_input(), random), random);
      break;
    default: change_node(graph, node, random);
  }
}

}  // namespace

void mutate(rt_onnx::ModelProto& model, Random& random) {
  if (random.one_in(20) && model.opset_import_size() > 0)
    pick(*model.mutable_opset_import(), random).set_version(static_cast<int64_t>(random.below(25)));
  for (size_t count = 1 + random.below(4); count > 0; --count) change_graph(*model.mutable_graph(), random);
  for (const auto& node : model.graph().node()) {  // of operators that were changed
    const auto imports = [&](const auto& import) { return import.domain() == node.domain(); };
    if (std::any_of(model.opset_import().begin(), model.opset_import().end(), imports)) continue;
    auto& import = *model.add_opset_import();
    import.set_domain(node.domain());
    import.set_version(1);
  }
}

void mutate(TensorProto& tensor, Random& random) {
  for (size_t count = 1 + random.below(4); count > 0; --count) change_tensor(tensor, random);
}

void splice(rt_onnx::ModelProto& into, const rt_onnx::ModelProto& from, Random& random) {
  GraphProto& graph = *into.mutable_graph();
  std::vector<std::string> names = names_of(graph);
  const auto has = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const TensorProto& tensor : from.graph().initializer())
    if (!has(tensor.name())) *graph.add_initializer() = tensor;
  for (const auto& value : from.graph().input())
    if (!has(value.name())) *graph.add_input() = value;
  for (const NodeProto& node : from.graph().node()) {
    NodeProto& copy = *graph.add_node();
    copy = node;
    if (copy.input_size() > 0 && random.one_in(3)) pick(*copy.mutable_input(), random) = random.pick(names);
    for (std::string& output : *copy.mutable_output()) {
      if (has(output)) output += "'";
      graph.add_output()->set_name(output);
    }
  }
}

}  // namespace librt::fuzz
