#include "tools/compiler/cache/growth.h"

#include <algorithm>
#include <cstring>

#include "runtime/core/element.h"
#include "runtime/graph/node_view.h"
#include "runtime/ops/evaluate.h"
#include "runtime/ops/page.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/shape/symbols.h"

namespace librt::compiler {
namespace {

bool is_constant(const Graph& graph, const Node& node, size_t i) {
  return i < node.inputs.size() && node.inputs[i] != kNoValue && graph[node.inputs[i]].role == Role::Constant;
}

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph), producers_(producers(graph)) {
    users_.resize(graph.values.size());
    for (NodeId id = 0; id < graph.nodes.size(); ++id)
      for (const ValueId input : graph.nodes[id].inputs)
        if (input != kNoValue) users_[input].push_back(id);
  }

  /// The places where `past` grows.
  std::vector<Growth> places(ValueId past) const {
    std::vector<Growth> found;
    std::vector<ValueId> front{past};
    for (size_t i = 0; i < front.size(); ++i)
      for (const NodeId user : users_[front[i]]) {
        const Node& node = graph_.nodes[user];
        if (node.kind() == OpKind::Concat) {
          if (auto growth = growth_at(past, user, front[i])) found.push_back(*growth);
        } else if (is_movement(graph_, node) && node.inputs[0] == front[i]) {
          front.push_back(node.outputs[0]);
        }
      }
    return found;
  }

  /// The past whose grown values, and nothing else, make up `output`.
  ValueId past_of(ValueId output, const std::vector<Growth>& places) const {
    ValueId past = kNoValue;
    std::vector<ValueId> front{output};
    for (size_t i = 0; i < front.size(); ++i) {
      const auto growth = std::find_if(places.begin(), places.end(),
                                       [&](const Growth& place) { return place.grown == front[i]; });
      if (growth != places.end()) {
        if (past != kNoValue && past != growth->past) return kNoValue;
        past = growth->past;
        continue;
      }
      if (!producers_[front[i]]) return kNoValue;
      const Node& node = graph_.nodes[*producers_[front[i]]];
      const bool joins = node.kind() == OpKind::Concat;
      if (!joins && !is_movement(graph_, node)) return kNoValue;
      for (size_t input = 0; input < (joins ? node.inputs.size() : 1); ++input)
        front.push_back(node.inputs[input]);
    }
    return past;
  }

 private:
  std::optional<Growth> growth_at(ValueId past, NodeId concat, ValueId earlier) const {
    const Node& node = graph_.nodes[concat];
    if (node.inputs.size() != 2 || node.inputs[0] != earlier || node.inputs[1] == earlier) return {};
    const auto rank = graph_[earlier].rank();
    const int64_t given = node.as<op::ConcatAttributes>().axis;
    const auto axis = static_cast<size_t>(given < 0 ? given + rank : given);
    if (graph_[earlier].dims[axis].symbol < 0) return {};
    return Growth{past, concat, axis, earlier, node.inputs[1], node.outputs[0]};
  }

  const Graph& graph_;
  std::vector<std::optional<NodeId>> producers_;
  std::vector<std::vector<NodeId>> users_;
};

// --- does `present` become the next step's `past`?

/// The check of what is carried computes with examples of at most so many elements.
constexpr int64_t kMostExampleElements = int64_t{1} << 26;

/// Small integers, which every dtype holds.
Result<ops::HostTensor> numbered(const TensorInfo& info, int64_t& next) {
  if (const auto count = info.shape.checked_elements(); !count || *count > kMostExampleElements)
    return unsupported("cache: the model fits only extents too large to check it at, such as ", info,
                       "; fix dimensions with --dim");
  ops::HostTensor tensor(info);
  const int64_t modulus = info.dtype == DType::Bool ? 2 : 113;
  for (int64_t i = 0; i < info.elements(); ++i)
    store_element(tensor.bytes.data(), info.dtype, i, double(next++ % modulus));
  return tensor;
}

Result<std::vector<ops::HostTensor>> evaluate(Graph graph, std::vector<ValueId> outputs,
                                              const std::vector<ops::HostTensor>& inputs) {
  graph.outputs = std::move(outputs);
  graph.state_updates.clear();
  RT_TRY(tidy(graph));
  std::vector<ConstTensorView> views;
  for (const ops::HostTensor& input : inputs) views.push_back(input.view());
  return ops::evaluate_graph(graph, views);
}

/// With arbitrary new entries: what the next step reads as past must be what this step had as grown.
Status check_carried(const Graph& graph, const std::vector<State>& states, const Growths& growths) {
  Graph step = graph;
  const Builder builder(step, &states);
  RT_TRY(Status(builder.status()));
  int64_t next = 1;
  std::vector<ops::HostTensor> inputs;
  for (const ValueId input : graph.inputs) {
    RT_ASSIGN(ops::HostTensor example, numbered(builder.example_info(input), next));
    inputs.push_back(std::move(example));
  }
  std::vector<ValueId> outputs, earlier;
  std::vector<ops::HostTensor> step_inputs = inputs;
  for (const Growth& growth : growths.places) {
    const ValueId entries = step.add_value({.name = "entries",
                                            .dtype = graph[growth.fresh].dtype,
                                            .role = Role::Input,
                                            .dims = graph[growth.fresh].dims});
    step.nodes[growth.concat].inputs[1] = entries;
    step.inputs.push_back(entries);
    RT_ASSIGN(ops::HostTensor example, numbered(builder.example_info(growth.fresh), next));
    step_inputs.push_back(std::move(example));
    outputs.push_back(growth.grown);
    earlier.push_back(growth.earlier);
  }
  for (const Growths::Pair& pair : growths.pairs) outputs.push_back(pair.present);
  RT_ASSIGN(std::vector<ops::HostTensor> results, evaluate(step, outputs, step_inputs));
  for (size_t k = 0; k < growths.pairs.size(); ++k) {
    const auto at = std::find(graph.inputs.begin(), graph.inputs.end(), growths.pairs[k].past);
    inputs[static_cast<size_t>(at - graph.inputs.begin())] = results[growths.places.size() + k];
  }
  RT_ASSIGN(const std::vector<ops::HostTensor> found, evaluate(graph, earlier, inputs));
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i].info != results[i].info || found[i].bytes != results[i].bytes)
      return unsupported("input '", graph[growths.places[i].past].name,
                         "': ", describe(graph.nodes[growths.places[i].concat]),
                         " appends new entries to it, but the output's layout differs from the next step's "
                         "input, so it is no cache");
  return {};
}

const std::string* partner(const std::vector<std::pair<std::string, std::string>>& pairs,
                           const std::string& input) {
  for (const auto& [name, output] : pairs)
    if (name == input) return &output;
  return nullptr;
}

}  // namespace

const Growth* Growths::at(NodeId concat) const {
  for (const Growth& place : places)
    if (place.concat == concat) return &place;
  return nullptr;
}
bool Growths::is_past(ValueId id) const {
  return std::any_of(pairs.begin(), pairs.end(), [&](const Pair& pair) { return pair.past == id; });
}
bool Growths::is_present(ValueId id) const {
  return std::any_of(pairs.begin(), pairs.end(), [&](const Pair& pair) { return pair.present == id; });
}

bool is_movement(const Graph& graph, const Node& node) {
  switch (node.kind()) {
    case OpKind::Identity:
    case OpKind::Cast:
    case OpKind::Reshape:
    case OpKind::Transpose: return true;
    case OpKind::Gather: return is_constant(graph, node, 1) && graph[node.inputs[1]].info().elements() == 1;
    case OpKind::Slice: return is_constant(graph, node, 1) && is_constant(graph, node, 2);
    default: return false;
  }
}

bool is_shape_operand(const Node& node, size_t i) {
  const ops::Page* page = ops::page_of(node.kind());
  return page != nullptr && i < 32 && (page->shape_operands >> i & 1u) != 0;
}

Status unite_lengths(Graph& graph, const std::vector<State>& states, const Growths& growths) {
  const Growth& first = growths.places[0];
  const auto length = [&](const Growth& growth) { return graph[growth.earlier].dims[growth.axis].symbol; };
  const auto is_free = [&](int32_t symbol) {
    return graph.symbols[static_cast<size_t>(symbol)].definition.empty();
  };
  bool changed = false;
  for (const Growth& growth : growths.places) {
    const int32_t own = length(growth), wanted = length(first);
    const bool same_entries = graph[growth.fresh].dims[growth.axis] == graph[first.fresh].dims[first.axis];
    if (own == wanted || !same_entries || !is_free(own) || !is_free(wanted)) continue;
    const std::string name = graph.symbols[static_cast<size_t>(own)].name;
    const std::string other = graph.symbols[static_cast<size_t>(wanted)].name;
    changed |= replace_symbol(graph, name, 0, other);
  }
  return changed ? Status(Builder(graph, &states).status()) : Status();
}

Result<Growths> find_growths(const Graph& graph, const std::vector<State>& states,
                             const std::vector<std::pair<std::string, std::string>>& pairs) {
  const Finder finder(graph);
  Growths growths;
  for (const auto& [input, output] : pairs)
    if (std::none_of(graph.inputs.begin(), graph.inputs.end(),
                     [&, &wanted = input](ValueId id) { return graph[id].name == wanted; }))
      return invalid_argument("cache: the model has no input '", input, "'");
  for (const ValueId input : graph.inputs) {
    const std::string* output = partner(pairs, graph[input].name);
    if (!pairs.empty() && output == nullptr) continue;
    const std::vector<Growth> places = finder.places(input);
    ValueId present = kNoValue;
    for (const ValueId candidate : graph.outputs)
      if (!places.empty() && finder.past_of(candidate, places) == input &&
          (output == nullptr || graph[candidate].name == *output))
        present = candidate;
    if (present == kNoValue) {
      if (output == nullptr) continue;
      return unsupported("cache: output '", *output, "' is not input '", graph[input].name,
                         "' with new entries appended by Concat along a symbolic dimension");
    }
    growths.places.insert(growths.places.end(), places.begin(), places.end());
    growths.pairs.push_back({input, present});
  }
  if (growths.pairs.empty())
    return unsupported(
        "cache: no input has new entries appended by a Concat along a symbolic dimension and is returned as "
        "an output; export the model with its keys and values as inputs and outputs");
  RT_TRY(check_carried(graph, states, growths));
  return growths;
}

}  // namespace librt::compiler
