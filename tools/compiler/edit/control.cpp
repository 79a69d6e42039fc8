#include "tools/compiler/edit/control.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "runtime/core/element.h"
#include "runtime/ops/control.h"
#include "runtime/ops/evaluate.h"
#include "runtime/ops/page.h"
#include "tools/compiler/edit/graph_edit.h"

namespace librt::compiler {
namespace {

/// The nodes of a Loop's body that decide when it ends: those that compute its condition, and the carried
/// values that these read. They can be run beforehand if nothing among them depends on data.
class EndOfLoop {
 public:
  EndOfLoop(const Builder& builder, const Node& node)
      : node_(node),
        body_(node.bodies[0]),
        carried_(static_cast<size_t>(node.as<op::LoopAttributes>().carried)),
        is_known_(find_nodes() && find_values(builder)) {}

  /// How many iterations run, of at most `limit`; nullopt: it depends on data.
  std::optional<int64_t> iterations(int64_t limit) const {
    if (!is_known_) return std::nullopt;
    Graph graph = body_;
    graph.nodes.clear();
    for (const NodeId id : nodes_) graph.nodes.push_back(body_.nodes[id]);
    graph.inputs.clear();
    graph.outputs = {body_.outputs[0]};
    for (const size_t input : inputs_) {
      graph.inputs.push_back(body_.inputs[input]);
      if (is_carried(input)) graph.outputs.push_back(body_.outputs[1 + input - ops::kLoopHead]);
    }
    std::map<size_t, ops::HostTensor> values = values_;
    for (int64_t i = 0; i < limit; ++i) {
      std::memcpy(values.at(0).bytes.data(), &i, sizeof i);
      std::vector<ConstTensorView> views;
      for (const size_t input : inputs_) views.push_back(values.at(input).view());
      auto outputs = ops::evaluate_graph(graph, views);
      if (!outputs.ok()) return std::nullopt;
      if (load_element((*outputs)[0].bytes.data(), DType::Bool, 0) == 0) return i + 1;
      size_t k = 1;
      for (const size_t input : inputs_) {
        if (!is_carried(input)) continue;
        ops::HostTensor& value = values.at(input) = std::move((*outputs)[k++]);
        if (value.bytes.size() > kMostBytes) return std::nullopt;  // one that grows without end
      }
    }
    return limit;
  }

 private:
  static constexpr size_t kMostBytes = size_t{1} << 20;

  bool is_carried(size_t input) const { return input >= ops::kLoopHead && input < ops::kLoopHead + carried_; }

  /// No random numbers, no loops, and results whose size does not depend on the values that it reads.
  bool is_cheap(const Node& node) const {
    const ops::Page* const page = ops::page_of(node.kind());
    if (page == nullptr || node.kind() == OpKind::RandomUniform || node.kind() == OpKind::RandomNormal)
      return false;
    const uint32_t shapes = page->shape_operands;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] != kNoValue && i < 32 && (shapes >> i & 1u) != 0 &&
          body_[node.inputs[i]].role != Role::Constant)
        return false;
    return node.bodies.empty();
  }

  /// Sets nodes_ and inputs_. False if a node is not cheap, or reads a state.
  bool find_nodes() {
    std::vector<bool> wanted(body_.values.size());
    wanted[body_.outputs[0]] = true;
    const auto is_wanted = [&](const Node& each) {
      return std::any_of(each.outputs.begin(), each.outputs.end(),
                         [&](ValueId output) { return output != kNoValue && wanted[output]; });
    };
    for (bool grows = true; grows;) {
      grows = false;
      for (NodeId id = static_cast<NodeId>(body_.nodes.size()); id-- > 0;) {
        const Node& each = body_.nodes[id];
        if (!is_wanted(each)) continue;
        for (const ValueId input : each.inputs)
          if (input != kNoValue) wanted[input] = true;
      }
      for (size_t k = 0; k < carried_; ++k)
        if (wanted[body_.inputs[ops::kLoopHead + k]] && !wanted[body_.outputs[1 + k]])
          wanted[body_.outputs[1 + k]] = grows = true;
    }
    for (NodeId id = 0; id < body_.nodes.size(); ++id) {
      const Node& each = body_.nodes[id];
      if (!is_wanted(each)) continue;
      if (!is_cheap(each)) return false;
      nodes_.push_back(id);
    }
    for (ValueId id = 0; id < body_.values.size(); ++id)
      if (wanted[id] && body_[id].role == Role::State) return false;
    for (size_t input = 0; input < body_.inputs.size(); ++input)
      if (wanted[body_.inputs[input]]) inputs_.push_back(input);
    return true;
  }

  /// Sets values_. False if a carried or captured value that is read is not known.
  bool find_values(const Builder& builder) {
    for (size_t head = 0; head < ops::kLoopHead; ++head) {
      const TensorInfo info = body_[body_.inputs[head]].info();
      if (info.elements() != 1) return false;
      values_.emplace(head, info);
    }
    values_.at(1).bytes[0] = std::byte{1};
    for (const size_t input : inputs_) {
      if (input < ops::kLoopHead) continue;
      const auto known = builder.known_value(node_.inputs[input]);
      if (!known) return false;
      ops::HostTensor& value = values_.emplace(input, known->info).first->second;
      std::memcpy(value.bytes.data(), known->data, value.bytes.size());
    }
    return true;
  }

  const Node& node_;
  const Graph& body_;
  size_t carried_;
  std::vector<NodeId> nodes_;
  std::vector<size_t> inputs_;  ///< those of the body that they read
  std::map<size_t, ops::HostTensor>
      values_;  ///< of these in the first iteration, and of the iteration and condition
  bool is_known_;
};

/// How many iterations of a Loop run, at most `most`; nullopt where it depends on data, or is 0.
std::optional<int64_t> known_iterations(const Builder& builder, const Node& node, int64_t most) {
  int64_t trips = std::numeric_limits<int64_t>::max();
  if (node.inputs[1] != kNoValue) {
    const auto condition = builder.known_value(node.inputs[1]);
    if (!condition || load_element(condition->data, condition->info.dtype, 0) == 0) return std::nullopt;
  }
  if (node.inputs[0] != kNoValue) {
    const auto count = builder.known_value(node.inputs[0]);
    if (!count) return std::nullopt;
    trips = load_integer(count->data, count->info.dtype, 0);
  }
  if (trips <= 0) return std::nullopt;
  const int64_t limit = std::min(trips, most + 1);
  const std::optional<int64_t> count =
      ops::never_breaks(node.bodies[0]) ? limit : EndOfLoop(builder, node).iterations(limit);
  return count && *count <= most ? count : std::nullopt;
}

/// Concatenates the slices along a new first axis.
ValueId emit_concatenated(Builder& builder, std::span<const ValueId> slices) {
  const ValueId one = builder.ints(std::vector<int64_t>{1});
  std::vector<ValueId> rows;
  for (const ValueId slice : slices)
    rows.push_back(
        builder.reshape(slice, builder.emit(op::ConcatAttributes{}, {one, builder.shape_of(slice)})));
  return rows.size() == 1 ? rows[0] : builder.emit_many(make_op(op::ConcatAttributes{}), rows, 1)[0];
}

std::vector<ValueId> write_loop(Builder& builder, const Node& node, int64_t trips) {
  const Graph& body = node.bodies[0];
  const auto carried = static_cast<size_t>(node.as<op::LoopAttributes>().carried);
  const BodyWriter writer(builder, body);
  const auto scalar = [&](size_t input) { return body[body.inputs[input]].rank() == 0 ? Shape{} : Shape{1}; };
  constexpr bool kGoesOn = true;
  std::vector<ValueId> inputs = {kNoValue, builder.constant({.dtype = DType::Bool, .shape = scalar(1)},
                                                            Blob::copy_of(&kGoesOn, sizeof kGoesOn))};
  inputs.insert(inputs.end(), node.inputs.begin() + ops::kLoopHead, node.inputs.end());
  std::vector<std::vector<ValueId>> scanned(body.outputs.size() - 1 - carried);
  for (int64_t i = 0; i < trips && builder.status().ok(); ++i) {
    inputs[0] = builder.constant({.dtype = DType::I64, .shape = scalar(0)}, Blob::copy_of(&i, sizeof i));
    const std::vector<ValueId> outputs = writer.write(inputs, text(node.name, "/", i, "/"));
    if (outputs.empty()) return {};
    std::copy_n(outputs.begin() + 1, carried, inputs.begin() + ops::kLoopHead);
    for (size_t k = 0; k < scanned.size(); ++k) scanned[k].push_back(outputs[1 + carried + k]);
  }
  std::vector<ValueId> results(inputs.begin() + ops::kLoopHead,
                               inputs.begin() + static_cast<std::ptrdiff_t>(ops::kLoopHead + carried));
  for (const std::vector<ValueId>& slices : scanned) results.push_back(emit_concatenated(builder, slices));
  return results;
}

/// Inlines the node and returns the values of its results; empty where it stays.
std::vector<ValueId> write_out(Builder& builder, const Node& node) {
  if (node.kind() == OpKind::If) {
    const auto condition = builder.known_value(node.inputs[0]);
    if (!condition) return {};
    const bool taken = load_element(condition->data, condition->info.dtype, 0) != 0;
    const Graph& body = node.bodies[taken ? 0 : 1];
    if (!body.refusal.empty()) return {};  // the run reports why
    return BodyWriter(builder, body).write(std::span(node.inputs).subspan(1), node.name + "/");
  }
  const auto size = static_cast<int64_t>(node.bodies[0].nodes.size());
  const auto count = known_iterations(builder, node, kMostLoopNodes / std::max<int64_t>(size, 1));
  return count ? write_loop(builder, node, *count) : std::vector<ValueId>();
}

}  // namespace

BodyWriter::BodyWriter(Builder& builder, const Graph& body)
    : builder_(builder), body_(body), map_(body.values.size(), kNoValue) {
  for (ValueId id = 0; id < body.values.size(); ++id) {
    const Value& value = body[id];
    if (value.role == Role::Constant) map_[id] = builder.constant(value.info(), value.data);
    if (value.role == Role::State) map_[id] = builder.state(value.name, value.state, value.info());
    if (map_[id] == kNoValue) continue;
    builder.graph()[map_[id]].name = value.name;
    builder.graph()[map_[id]].quantization = value.quantization;
  }
}

std::vector<ValueId> BodyWriter::write(std::span<const ValueId> inputs, const std::string& prefix) const {
  std::vector<ValueId> map = map_;
  for (size_t i = 0; i < inputs.size(); ++i) map[body_.inputs[i]] = inputs[i];
  for (const Node& node : body_.nodes) {
    Node copy = node;
    copy.name = prefix + node.name;
    for (ValueId& input : copy.inputs)
      if (input != kNoValue) input = map[input];
    const std::vector<ValueId> outputs = builder_.emit_node(std::move(copy));
    if (!builder_.status().ok()) return {};
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNoValue) map[node.outputs[i]] = outputs[i];
  }
  std::vector<ValueId> outputs;
  for (const ValueId output : body_.outputs) outputs.push_back(map[output]);
  return outputs;
}

Status write_out_control(Graph& graph, const std::vector<State>& states) {
  for (;;) {
    const bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                 [](const Node& node) { return ops::is_control(node.kind()); });
    if (!any) return {};
    GraphEdit edit(graph, states);
    RT_TRY(Status(edit.status()));
    for (NodeId id = 0; id < edit.node_count(); ++id) {
      if (!edit.is_alive(id) || !ops::is_control(edit.node(id).kind())) continue;
      const Node node = edit.node(id);
      const std::vector<ValueId> results = write_out(edit.builder(), node);
      RT_TRY(Status(edit.status()).in(describe(node)));
      for (size_t i = 0; i < results.size(); ++i)
        if (node.outputs[i] != kNoValue) edit.replace(node.outputs[i], results[i]);
    }
    const bool changed = edit.changes() > 0;
    RT_TRY(edit.finish());
    if (!changed) return {};
  }
}

}  // namespace librt::compiler
