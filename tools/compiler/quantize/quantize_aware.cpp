#include "tools/compiler/quantize/quantize_aware.h"

#include <algorithm>
#include <numeric>

#include "tools/compiler/quantize/quantization_edit.h"

namespace librt::compiler {
namespace {

constexpr int64_t kWeightSteps = 254, kValueSteps = 255;
constexpr std::string_view kRangeLow = ".range_low", kRangeHigh = ".range_high";

bool is_fake(const Node& node) {
  return node.kind() == OpKind::FakeQuantize;
}

class Inserter : public NodeWriter {
 public:
  Inserter(Graph& graph, std::vector<State>& states)
      : NodeWriter(graph), all_states_(states), states_(states) {}

  /// FakeQuantize of the value, with a range that is state.
  ValueId through_range(ValueId value, const Range& range, const std::string& name) {
    const ValueId low = bound(text(name, kRangeLow), std::min(range.low, 0.0f));
    const ValueId high = bound(text(name, kRangeHigh), std::max(range.high, 0.0f));
    return fake(value, low, high, kValueSteps, name + "/fake_quantized");
  }

  /// FakeQuantize of the weight to -127..127, by the largest magnitude of each channel.
  ValueId fake_quantize(const Node& matmul, const std::string& name) {
    const ValueId weight = matmul.inputs[1];
    const auto rank = static_cast<int64_t>(graph_[weight].rank());
    op::ReduceMaxAttributes largest;
    for (int64_t axis = 0; axis < rank; ++axis)
      if (axis != weight_axis(matmul)) largest.axes.push_back(axis);
    largest.keep_dims = true;
    const std::vector<Dim> dims = graph_[weight].dims;
    std::vector<Dim> ones(dims.size(), Dim{.extent = 1});
    ones[static_cast<size_t>(weight_axis(matmul))] = dims[static_cast<size_t>(weight_axis(matmul))];
    const ValueId magnitude =
        node(op::AbsAttributes{}, {weight}, name + "/weight_magnitude", DType::F32, dims);
    const ValueId high = node(largest, {magnitude}, name + "/weight_high", DType::F32, ones);
    const ValueId low = node(op::NegAttributes{}, {high}, name + "/weight_low", DType::F32, ones);
    return fake(weight, low, high, kWeightSteps, name + "/weight_fake_quantized");
  }

 private:
  ValueId fake(ValueId x, ValueId low, ValueId high, int64_t levels, const std::string& name) {
    op::FakeQuantizeAttributes attributes;
    attributes.levels = levels;
    const std::vector<Dim> dims = graph_[x].dims;
    return node(attributes, {x, low, high}, name, DType::F32, dims);
  }
  ValueId bound(const std::string& name, float initial) {
    const TensorInfo info{.dtype = DType::F32, .shape = {}};
    const uint32_t state =
        states_.make(name, info, StateKind::Statistic, Blob::copy_of(&initial, sizeof initial));
    Value value;
    value.name = all_states_[state].name;
    value.dtype = DType::F32;
    value.role = Role::State;
    value.state = state;
    return graph_.add_value(std::move(value));
  }

  std::vector<State>& all_states_;
  StateTable states_;
};

std::optional<float> number_of(const Graph& graph, ValueId id) {
  const Value& value = graph[id];
  if (!is_real_constant(graph, id) || value.data.size != sizeof(float)) return std::nullopt;
  return *reinterpret_cast<const float*>(value.data.data);
}

/// Removes the FakeQuantize nodes whose results are in `replaced`, which maps them to what is read instead.
void drop_fakes(Graph& graph, const std::map<ValueId, ValueId>& replaced) {
  const auto real = [&](ValueId id) {
    for (auto at = replaced.find(id); at != replaced.end(); at = replaced.find(id)) id = at->second;
    return id;
  };
  std::erase_if(graph.nodes,
                [&](const Node& node) { return is_fake(node) && replaced.contains(node.outputs[0]); });
  for (Node& node : graph.nodes)
    for (ValueId& input : node.inputs) input = real(input);
  for (ValueId& output : graph.outputs) output = real(output);
}

}  // namespace

void insert_fake_quantization(Graph& graph, std::vector<State>& states, const QuantizationChoice& choice,
                              const std::map<ValueId, Observed>& observed) {
  Inserter inserter(graph, states);
  rewrite_matmuls(
      graph, choice,
      [&](Node& node, NodeId id, ValueId) {
        node.inputs[1] = inserter.fake_quantize(node, name_of_node(node, id));
      },
      [&](ValueId value) {
        if (!std::binary_search(choice.values.begin(), choice.values.end(), value)) return kNoValue;
        const auto seen = observed.find(value);
        const std::string name = graph[value].name.empty() ? text("value", value) : graph[value].name;
        return inserter.through_range(value, seen == observed.end() ? Range() : seen->second.range, name);
      });
}

std::vector<ValueId> emit_observed(Builder& builder, const Node& node, float momentum,
                                   std::vector<StateUpdate>& updates) {
  if (!is_fake(node) || builder.value(node.inputs[1]).role != Role::State) return {};
  const ValueId x = node.inputs[0], low = node.inputs[1], high = node.inputs[2];
  op::ReduceMinAttributes least;
  op::ReduceMaxAttributes largest;
  least.keep_dims = largest.keep_dims = false;
  const ValueId unseen = builder.emit(op::LessOrEqualAttributes{}, {high, low});
  const auto number = [&](double value) { return builder.scalar(value, DType::F32); };
  const auto followed = [&](ValueId old, ValueId now) {
    const auto kept = static_cast<double>(momentum);
    const ValueId mean = builder.add(builder.mul(old, number(kept)), builder.mul(now, number(1 - kept)));
    const ValueId next = builder.emit(op::WhereAttributes{}, {unseen, now, mean});
    updates.push_back({.state = old, .value = next});
    return next;
  };
  const ValueId zero = number(0);
  const ValueId next_low =
      followed(low, builder.emit(op::MinimumAttributes{}, {builder.emit(least, {x}), zero}));
  const ValueId next_high =
      followed(high, builder.emit(op::MaximumAttributes{}, {builder.emit(largest, {x}), zero}));
  return {builder.emit(op::FakeQuantizeAttributes(node.as<op::FakeQuantizeAttributes>()),
                       {x, next_low, next_high})};
}

bool is_quantization_aware(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), is_fake);
}

bool is_range(const State& state) {
  return state.kind == StateKind::Statistic && state.info.shape.rank() == 0 &&
         (state.name.ends_with(kRangeLow) || state.name.ends_with(kRangeHigh));
}

std::set<std::string> release_weights(Graph& graph) {
  const std::vector<bool> constant = constant_values(graph);
  const auto producer = producers(graph);
  const auto reads_fake = [&](ValueId value) {
    const auto from = producer[before_moves(graph, producer, value)];
    return from && is_fake(graph.nodes[*from]);
  };
  std::set<std::string> kept;
  std::map<ValueId, ValueId> weights;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    if (is_fake(node) && constant[node.inputs[0]]) weights[node.outputs[0]] = node.inputs[0];
    if (!is_matmul_or_conv(graph, node, [&](ValueId value) { return constant[value]; })) continue;
    if (reads_fake(node.inputs[0]) && !reads_fake(node.inputs[1])) kept.insert(name_of_node(node, id));
  }
  drop_fakes(graph, weights);
  return kept;
}

Result<TrainedQuantization> quantize_as_trained(Graph& graph, const std::set<std::string>& kept) {
  TrainedQuantization made;
  const auto producer = producers(graph);
  QuantizationChoice choice;
  std::map<ValueId, Observed> observed;
  std::map<ValueId, ValueId> tensors;
  for (const Node& node : graph.nodes) {
    if (!is_fake(node)) continue;
    const auto low = number_of(graph, node.inputs[1]), high = number_of(graph, node.inputs[2]);
    const std::string& name = graph[node.inputs[0]].name;
    if (!low || !high)
      return invalid_argument("the range of '", name,
                              "' is no constant; give the checkpoint of its training");
    tensors[node.outputs[0]] = node.inputs[0];
    if (*low < *high)
      observed[node.inputs[0]].range = {*low, *high};
    else
      made.zeros.push_back(name);  // FakeQuantize lets everything pass
  }
  if (observed.empty() && !made.zeros.empty())
    return invalid_argument(
        "the range of '", made.zeros[0],
        "' has seen nothing but zeros, as all others; train some steps before, or compile the training "
        "with --calibrate");
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    if (!is_matmul_or_conv(graph, node) || kept.contains(name_of_node(node, id))) continue;
    const auto quantized = tensors.find(before_moves(graph, producer, node.inputs[0]));
    if (quantized != tensors.end() && observed.contains(quantized->second)) choice.matmuls.push_back(id);
  }
  // The parts of a Concat take the range of the whole.
  std::vector<ValueId> wholes;
  for (const auto& [x, seen] : observed) wholes.push_back(x);
  for (size_t i = 0; i < wholes.size(); ++i) {
    const auto from = producer[before_moves(graph, producer, wholes[i])];
    if (!from || graph.nodes[*from].kind() != OpKind::Concat) continue;
    for (const ValueId part : graph.nodes[*from].inputs) {
      const ValueId source = before_moves(graph, producer, part);
      if (graph[source].role == Role::Constant || tensors.contains(source) || observed.contains(source))
        continue;
      observed[source].range = observed[wholes[i]].range;
      wholes.push_back(source);
    }
  }
  for (const auto& [x, seen] : observed) {
    choice.values.push_back(x);
    choice.scale_of.push_back(x);
  }
  // Node ids change when nodes are removed, so Conv and MatMul nodes are looked up by their results.
  std::set<ValueId> results;
  for (const NodeId id : choice.matmuls) results.insert(graph.nodes[id].outputs[0]);
  drop_fakes(graph, tensors);
  choice.matmuls.clear();
  for (NodeId id = 0; id < graph.nodes.size(); ++id)
    if (results.contains(graph.nodes[id].outputs[0])) choice.matmuls.push_back(id);
  insert_quantization(graph, choice, observed);
  made.matmuls = choice.matmuls.size();
  return made;
}

}  // namespace librt::compiler
