#include "tests/differential/minimize.h"

#include <set>

namespace librt::test {

namespace {

void read_names(const rt_onnx::GraphProto& graph, std::set<std::string>& names) {
  for (const auto& node : graph.node()) {
    for (const auto& input : node.input()) names.insert(std::string(input));
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) read_names(attribute.g(), names);
  }
  for (const auto& output : graph.output()) names.insert(std::string(output.name()));
}

template <class List, class Keep>
void keep_if(List& list, const Keep& keep) {
  int kept = 0;
  for (int i = 0; i < list.size(); ++i)
    if (keep(list[i])) list.SwapElements(kept++, i);
  while (list.size() > kept) list.RemoveLast();
}

// Nodes and constants that no output needs, in the graph and its bodies.
void drop_unread(rt_onnx::GraphProto& graph) {
  for (int before = -1; before != graph.node_size();) {
    before = graph.node_size();
    std::set<std::string> names;
    read_names(graph, names);
    keep_if(*graph.mutable_node(), [&](const rt_onnx::NodeProto& node) {
      for (const auto& output : node.output())
        if (names.contains(std::string(output))) return true;
      return false;
    });
    keep_if(*graph.mutable_initializer(),
            [&](const rt_onnx::TensorProto& tensor) { return names.contains(std::string(tensor.name())); });
    keep_if(*graph.mutable_input(),
            [&](const rt_onnx::ValueInfoProto& input) { return names.contains(std::string(input.name())); });
  }
}

void rename(rt_onnx::GraphProto& graph, const std::string& from, const std::string& to) {
  for (auto& node : *graph.mutable_node()) {
    for (auto& input : *node.mutable_input())
      if (std::string(input) == from) input = to;
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.has_g()) rename(*attribute.mutable_g(), from, to);
  }
  for (auto& output : *graph.mutable_output())
    if (std::string(output.name()) == from) output.set_name(to);
}

class Minimizer {
 public:
  Minimizer(rt_onnx::ModelProto model, const std::function<bool(const rt_onnx::ModelProto&)>& still_wrong,
            int tries)
      : best_(std::move(model)), still_wrong_(still_wrong), tries_(tries) {}

  rt_onnx::ModelProto run() {
    attempt(best_);  // removes unread nodes
    one_output();
    for (bool better = true; better && tries_ > 0;) better = earlier_output() || pass_by();
    return std::move(best_);
  }

 private:
  bool attempt(rt_onnx::ModelProto model) {
    if (tries_-- <= 0) return false;
    drop_unread(*model.mutable_graph());
    if (model.graph().node_size() == 0 || !still_wrong_(model)) return false;
    best_ = std::move(model);
    return true;
  }

  void one_output() {
    for (int i = 0; i < best_.graph().output_size() && best_.graph().output_size() > 1; ++i) {
      rt_onnx::ModelProto model = best_;
      const std::string name(best_.graph().output(i).name());
      if (attempt_output(std::move(model), name)) return;
    }
  }
  bool attempt_output(rt_onnx::ModelProto model, const std::string& name) {
    model.mutable_graph()->clear_output();
    model.mutable_graph()->add_output()->set_name(name);
    return attempt(std::move(model));
  }

  // Makes an earlier node's result the output.
  bool earlier_output() {
    if (best_.graph().output_size() != 1) return false;
    const std::string present(best_.graph().output(0).name());
    const rt_onnx::ModelProto start = best_;
    for (const auto& node : start.graph().node())
      for (const auto& name : node.output()) {
        if (std::string(name) == present) continue;
        if (attempt_output(start, std::string(name)) && best_.graph().node_size() < start.graph().node_size())
          return true;
      }
    best_ = start;
    return false;
  }

  // Replaces a node's result by one of its operands.
  bool pass_by() {
    const rt_onnx::ModelProto start = best_;
    for (const auto& node : start.graph().node())
      for (const auto& input : node.input()) {
        if (input.empty() || node.output_size() != 1) continue;
        rt_onnx::ModelProto model = start;
        rename(*model.mutable_graph(), std::string(node.output(0)), std::string(input));
        if (attempt(std::move(model)) && best_.graph().node_size() < start.graph().node_size()) return true;
      }
    best_ = start;
    return false;
  }

  rt_onnx::ModelProto best_;
  const std::function<bool(const rt_onnx::ModelProto&)>& still_wrong_;
  int tries_;
};

}  // namespace

rt_onnx::ModelProto minimize(const rt_onnx::ModelProto& model,
                             const std::function<bool(const rt_onnx::ModelProto&)>& still_wrong, int tries) {
  return Minimizer(model, still_wrong, tries).run();
}

}  // namespace librt::test
