#include "tools/onnx/nested_weights.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "tools/onnx/attribute.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/weight_uses.h"
#include "tools/onnx/weights_file.h"

namespace librt::onnx {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<rt_onnx::NodeProto>;
using Renames = std::map<std::string, std::string, std::less<>>;

class NestedWeights {
 public:
  explicit NestedWeights(rt_onnx::ModelProto& model) : model_(model), main_(*model.mutable_graph()) {}

  void run() {
    count_names(main_);
    for (auto& function : *model_.mutable_functions()) count_names(*function.mutable_node());
    for (auto& function : *model_.mutable_functions()) rename_weights(function);
    for (auto& node : *main_.mutable_node())
      each_body(node, [&](rt_onnx::GraphProto& body) { empty(body, owner_of(node), {}); });
  }

 private:
  static std::string owner_of(const rt_onnx::NodeProto& node) {
    return node.name().empty() ? node.op_type() : node.name();
  }

  /// The names that the graph itself defines.
  template <class Visit>
  static void each_name(const rt_onnx::GraphProto& graph, const Visit& visit) {
    for (const auto& input : graph.input()) visit(input.name());
    for (const auto& tensor : graph.initializer()) visit(tensor.name());
    for (const auto& node : graph.node())
      for (const auto& output : node.output()) visit(output);
  }

  void count_names(rt_onnx::GraphProto& graph) {
    for (const auto& input : graph.input()) ++names_[input.name()];
    for (const auto& tensor : graph.initializer()) ++names_[tensor.name()];
    count_names(*graph.mutable_node());
  }

  void count_names(Nodes& nodes) {
    for (auto& node : nodes) {
      for (const auto& output : node.output()) ++names_[output];
      each_body(node, [&](rt_onnx::GraphProto& body) { count_names(body); });
    }
  }

  static void rename_inputs(rt_onnx::NodeProto& node, const Renames& renames) {
    for (auto& input : *node.mutable_input())
      if (const auto found = renames.find(input); found != renames.end()) input = found->second;
  }

  /// Of a function, whose names are its own.
  void rename_weights(rt_onnx::FunctionProto& function) {
    Renames renames;
    for (auto& node : *function.mutable_node()) {
      const rt_onnx::TensorProto* const tensor = tensor_of_constant(node);
      if (tensor == nullptr || !has_weight_type(*tensor) || names_[node.output(0)] == 1) continue;
      const auto& outputs = function.output();
      if (std::find(outputs.begin(), outputs.end(), node.output(0)) != outputs.end()) continue;
      std::string name = unique(text(function.name(), '/', node.output(0)));
      renames[node.output(0)] = name;
      node.set_output(0, std::move(name));
    }
    rename_reads(*function.mutable_node(), renames);
  }

  void rename_reads(Nodes& nodes, const Renames& renames) {
    if (renames.empty()) return;
    for (auto& node : nodes) {
      rename_inputs(node, renames);
      each_body(node, [&](rt_onnx::GraphProto& body) {
        Renames inner = renames;
        each_name(body, [&](const std::string& name) { inner.erase(name); });
        rename_reads(*body.mutable_node(), inner);
      });
    }
  }

  /// Moves the weights of the graph and of those inside it. renames: of weights of the graphs around it.
  void empty(rt_onnx::GraphProto& graph, const std::string& owner, Renames renames) {
    each_name(graph, [&](const std::string& name) { renames.erase(name); });
    move_weights(graph, owner, renames);
    for (auto& node : *graph.mutable_node()) {
      rename_inputs(node, renames);
      each_body(node,
                [&](rt_onnx::GraphProto& body) { empty(body, text(owner, '/', owner_of(node)), renames); });
    }
    for (const auto& output : graph.output()) {  // a graph's outputs are made by its own nodes
      const auto found = renames.find(output.name());
      if (found == renames.end()) continue;
      rt_onnx::NodeProto& identity = *graph.add_node();
      identity.set_op_type("Identity");
      identity.add_input(found->second);
      identity.add_output(output.name());
      renames.erase(found);
    }
  }

  void move_weights(rt_onnx::GraphProto& graph, const std::string& owner, Renames& renames) {
    std::set<std::string, std::less<>> inputs, outputs;
    for (const auto& input : graph.input()) inputs.insert(input.name());
    for (const auto& output : graph.output()) outputs.insert(output.name());
    const auto move = [&](const std::string& name, rt_onnx::TensorProto& tensor) {
      if (!has_weight_type(tensor) || inputs.contains(name))
        return false;  // an input's initializer is its default
      const bool keeps_name = names_[name] == 1 && !outputs.contains(name);
      const std::string moved = keeps_name ? name : unique(text(owner, '/', name));
      if (!keeps_name) renames[name] = moved;
      rt_onnx::TensorProto& to = *main_.add_initializer();
      to.Swap(&tensor);
      to.set_name(moved);
      return true;
    };
    auto& initializers = *graph.mutable_initializer();
    int kept = 0;
    for (int i = 0; i < initializers.size(); ++i)
      if (!move(std::string(initializers[i].name()), initializers[i])) initializers.SwapElements(kept++, i);
    initializers.DeleteSubrange(kept, initializers.size() - kept);
    auto& nodes = *graph.mutable_node();
    kept = 0;
    for (int i = 0; i < nodes.size(); ++i) {
      rt_onnx::TensorProto* const tensor = tensor_of_constant(nodes[i]);
      if (tensor == nullptr || !move(std::string(nodes[i].output(0)), *tensor)) nodes.SwapElements(kept++, i);
    }
    nodes.DeleteSubrange(kept, nodes.size() - kept);
  }

  std::string unique(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 2; names_.contains(name); ++i) name = text(wanted, '_', i);
    names_[name] = 1;
    return name;
  }

  rt_onnx::ModelProto& model_;
  rt_onnx::GraphProto& main_;
  std::map<std::string, int, std::less<>> names_;  ///< how often a name is defined, in all graphs
};

}  // namespace

void name_nested_weights(rt_onnx::ModelProto& model) {
  NestedWeights(model).run();
}

}  // namespace librt::onnx
