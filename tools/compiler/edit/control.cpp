#include "tools/compiler/edit/control.h"

#include <algorithm>

#include "runtime/core/element.h"
#include "runtime/ops/control.h"
#include "tools/compiler/edit/graph_edit.h"

namespace librt::compiler {
namespace {

/// The trip count of a Loop; nullopt where it depends on data or is 0.
std::optional<int64_t> known_trips(const Builder& builder, const Node& node) {
  if (node.inputs[0] == kNoValue || !ops::never_breaks(node.bodies[0])) return std::nullopt;
  if (node.inputs[1] != kNoValue) {
    const auto condition = builder.known_value(node.inputs[1]);
    if (!condition || load_element(condition->data, condition->info.dtype, 0) == 0) return std::nullopt;
  }
  const auto count = builder.known_value(node.inputs[0]);
  if (!count) return std::nullopt;
  const int64_t trips = load_integer(count->data, count->info.dtype, 0);
  return trips > 0 ? std::optional(trips) : std::nullopt;
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
  const auto trips = known_trips(builder, node);
  const auto size = static_cast<int64_t>(node.bodies[0].nodes.size());
  if (!trips || *trips > kMostLoopNodes / std::max<int64_t>(size, 1)) return {};
  return write_loop(builder, node, *trips);
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
