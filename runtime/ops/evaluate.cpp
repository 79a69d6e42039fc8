// The reference evaluator: see evaluate.h.
#include "runtime/ops/evaluate.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/core/host_memory.h"
#include "runtime/ops/control.h"

namespace librt::ops {
namespace {

/// Data pointer of a present tensor without elements, whose own data may be null: a null pointer means
/// absent.
constexpr std::byte kNoBytes{};

/// While shapes are inferred through a body, values up to this many elements are computed: shape arithmetic.
constexpr int64_t kMaxShapeElements = 1024;

Status check_inputs(const NodeView& node, const Page& page) {
  const size_t count = node.input_count();
  if (count < page.inputs.least || (page.inputs.most != kUnbounded && count > page.inputs.most)) {
    const std::string most = page.inputs.most == kUnbounded ? " or more"
                             : page.inputs.most == page.inputs.least
                                 ? ""
                                 : text(" to ", static_cast<int>(page.inputs.most));
    return invalid_argument("expected ", static_cast<int>(page.inputs.least), most, " inputs, found ", count);
  }
  for (size_t i = 0; i < count; ++i) {
    if (!node.has(i)) {
      if (i < page.inputs.least) return invalid_argument("expected input ", i, " to be present, found none");
      continue;
    }
    const bool shape_operand = i < 32 && ((page.shape_operands >> i) & 1u) != 0;
    if (shape_operand && node.inputs[i].value == nullptr && node.input(i).elements() != 0)
      return invalid_argument("expected the value of shape operand ", i,
                              " to be known while planning, found one that depends on data");
  }
  return {};
}

Status check_outputs(const NodeView& node, std::span<const TensorInfo> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!runs_on_host(node.kind()) && !outputs[i].shape.checked_elements())
      return invalid_argument("expected output ", i, " of at most " RT_MOST_ELEMENTS " elements, found ",
                              outputs[i]);
  if (!node.node.outputs.empty() && node.node.outputs.size() != outputs.size())
    return invalid_argument("expected ", outputs.size(), " outputs, found ", node.node.outputs.size());
  return {};
}

/// The operands that a body takes: the present ones.
std::vector<Operand> present_operands(const NodeView& node) {
  std::vector<Operand> present;
  for (const Operand& operand : node.inputs)
    if (operand.present) present.push_back(operand);
  return present;
}

Result<Operand> constant_operand(const Value& value) {
  if (!value.is_static()) return invalid_model("constant '", value.name, "' has no known shape");
  const TensorInfo info = value.info();
  if (value.data.size != info.bytes())
    return invalid_model("constant '", value.name, "': expected ", info.bytes(), " bytes, found ",
                         value.data.size);
  return Operand{.present = true, .info = info, .value = value.data.data};
}

Status infer_body(const Graph& body, std::span<const Operand> inputs, std::vector<TensorInfo>& outputs) {
  if (body.inputs.size() != inputs.size())
    return invalid_argument("expected a body with ", inputs.size(), " inputs, found ", body.inputs.size());
  std::vector<Operand> known(body.values.size());
  std::vector<HostTensor> computed(body.values.size());
  for (size_t id = 0; id < body.values.size(); ++id) {
    if (body.values[id].role != Role::Constant) continue;
    RT_ASSIGN(known[id], constant_operand(body.values[id]));
  }
  for (size_t i = 0; i < inputs.size(); ++i) known[body.inputs[i]] = inputs[i];

  for (const Node& node : body.nodes) {
    std::vector<Operand> operands;
    std::vector<ConstTensorView> views;
    bool all_known = true;
    for (ValueId input : node.inputs) {
      operands.push_back(input == kNoValue ? Operand{} : known[input]);
      const Operand& operand = operands.back();
      views.push_back({operand.value, operand.info});
      all_known =
          all_known && (operand.value != nullptr || input == kNoValue || operand.info.elements() == 0);
    }
    std::vector<TensorInfo> infos;
    RT_TRY(infer_node({.node = node, .inputs = operands}, infos));
    if (node.outputs.size() != infos.size())
      return invalid_argument(describe(node), ": expected ", infos.size(), " outputs, found ",
                              node.outputs.size());
    // Shape needs no values; other nodes are computed where all their inputs are known and small.
    bool compute = (all_known || node.kind() == OpKind::Shape) && can_evaluate(node, host_value);
    for (const TensorInfo& info : infos) {
      if (!info.shape.checked_elements())
        return unsupported(describe(node), ": its extents depend on data, so a body cannot hold it");
      compute = compute && info.elements() <= kMaxShapeElements;
    }
    std::vector<TensorView> results;
    for (size_t i = 0; i < infos.size(); ++i) {
      const ValueId id = node.outputs[i];
      if (id == kNoValue) {
        compute = false;
        continue;
      }
      known[id] = {.present = true, .info = infos[i]};
      if (!compute) continue;
      computed[id] = HostTensor(infos[i]);
      results.push_back(computed[id].view());
    }
    if (!compute) continue;
    RT_TRY(evaluate_node({.node = node, .inputs = operands, .outputs = infos}, views, results, host_value));
    for (ValueId id : node.outputs) known[id].value = computed[id].bytes.data();
  }
  for (ValueId id : body.outputs) outputs.push_back(known[id].info);
  return {};
}

Status infer_unnamed(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const Page* page = page_of(node.kind());
  if (page != nullptr) {
    RT_TRY(check_inputs(node, *page));
    RT_TRY(page->infer(node, outputs));
  } else if (!node.node.bodies.empty()) {
    RT_TRY(infer_body(node.node.bodies[0], present_operands(node), outputs));
  } else {
    return unsupported("expected an operator that this version knows, or a body, found neither");
  }
  return check_outputs(node, outputs);
}

Status evaluate_body(const NodeView& node, std::span<const ConstTensorView> inputs,
                     std::span<const TensorView> outputs, EvalLookup values) {
  if (node.node.bodies.empty())
    return invalid_argument("expected a reference value or the composite's body, found neither");
  std::vector<ConstTensorView> present;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (node.has(i)) present.push_back(inputs[i]);
  RT_ASSIGN(const std::vector<HostTensor> results,
            evaluate_graph(node.node.bodies[0], present, nullptr, {}, values));
  if (results.size() != outputs.size())
    return invalid_argument("expected a body with ", outputs.size(), " outputs, found ", results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].info != outputs[i].info)
      return invalid_argument("expected output ", i, " of the body to be ", outputs[i].info, ", found ",
                              results[i].info);
    if (!results[i].bytes.empty())
      std::memcpy(outputs[i].data, results[i].bytes.data(), results[i].bytes.size());
  }
  return {};
}

/// The operands with non-null data; those without elements, and that of Shape, get a placeholder.
Result<std::vector<ConstTensorView>> with_bytes(const NodeView& node,
                                                std::span<const ConstTensorView> inputs) {
  std::vector<ConstTensorView> operands(inputs.begin(), inputs.end());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!node.has(i) || operands[i].data != nullptr) continue;
    if (operands[i].info.elements() != 0 && node.kind() != OpKind::Shape)
      return invalid_argument("expected the bytes of input ", i, ", found none");
    operands[i].data = &kNoBytes;
  }
  return operands;
}

Status evaluate_unnamed(const NodeView& node, std::span<const ConstTensorView> inputs,
                        std::span<const TensorView> outputs, EvalLookup values) {
  // Nothing to compute, however long the other axes of an empty tensor are.
  const auto is_empty = [](const TensorView& output) { return output.info.bytes() == 0; };
  if (!outputs.empty() && std::ranges::all_of(outputs, is_empty)) return {};
  RT_ASSIGN(const std::vector<ConstTensorView> operands, with_bytes(node, inputs));
  if (const EvalFunction eval = values(node.kind()); eval != nullptr) return eval(node, operands, outputs);
  return evaluate_body(node, operands, outputs, values);
}

class HostResults final : public ResultMaker {
 public:
  explicit HostResults(std::vector<HostTensor>& tensors) : tensors_(tensors) {}
  Result<TensorView> make(size_t output, const TensorInfo& info) override {
    if (const uint64_t memory = host_memory_bytes(); memory > 0 && info.bytes() > memory)
      return Status::make(Code::OutOfMemory, "output ", output, " of ", info, ": the machine has ",
                          bytes_text(memory));
    if (output >= tensors_.size()) tensors_.resize(output + 1);
    tensors_[output].info = info;
    tensors_[output].bytes.resize(info.bytes());
    return tensors_[output].view();
  }

 private:
  std::vector<HostTensor>& tensors_;
};

/// One run of a graph: the values that are live.
class Evaluation {
 public:
  Evaluation(const Graph& graph, std::vector<HostTensor>* states, EvalLookup values, StopSignal* stop)
      : graph_(graph),
        states_(states),
        values_(values),
        stop_(stop),
        views_(graph.values.size()),
        owned_(graph.values.size()),
        uses_(use_counts(graph)),
        symbols_(graph.symbols.size(), -1) {}

  Status bind(std::span<const ConstTensorView> inputs) {
    if (inputs.size() != graph_.inputs.size())
      return invalid_argument("graph '", graph_.name, "': expected ", graph_.inputs.size(), " inputs, found ",
                              inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      RT_TRY(check_input(graph_.values[graph_.inputs[i]], inputs[i].info));
      views_[graph_.inputs[i]] = inputs[i];
    }
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      const Value& value = graph_.values[id];
      if (value.role == Role::Constant) {
        RT_ASSIGN(const Operand operand, constant_operand(value));
        views_[id] = ConstTensorView{operand.value, operand.info};
      } else if (value.role == Role::State) {
        if (states_ == nullptr || value.state >= states_->size())
          return invalid_argument("value '", value.name, "': expected state ", value.state, ", found ",
                                  states_ == nullptr ? 0 : states_->size(), " states");
        views_[id] = std::as_const((*states_)[value.state]).view();
      }
    }
    return {};
  }

  Status run(NodeId id, const std::function<void(NodeId, std::span<const ConstTensorView>)>& observe) {
    const Node& node = graph_.nodes[id];
    std::vector<Operand> operands;
    std::vector<ConstTensorView> inputs;
    for (ValueId input : node.inputs) {
      if (input == kNoValue) {
        operands.push_back({});
        inputs.push_back({});
        continue;
      }
      if (!views_[input])
        return invalid_model(describe(node), ": reads value '", graph_.values[input].name,
                             "' before it is produced");
      operands.push_back({.present = true, .info = views_[input]->info, .value = views_[input]->data});
      inputs.push_back(*views_[input]);
    }
    RT_ASSIGN(std::vector<HostTensor> results,
              evaluate_node({.node = node, .inputs = operands}, inputs, values_, stop_));
    if (node.outputs.size() != results.size())
      return invalid_model(describe(node), ": expected ", results.size(), " outputs, found ",
                           node.outputs.size());
    if (observe) {
      std::vector<ConstTensorView> outputs;
      for (const HostTensor& result : results) outputs.push_back(result.view());
      observe(id, outputs);
    }

    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId output = node.outputs[i];
      if (output == kNoValue || uses_[output] == 0) continue;
      owned_[output] = std::move(results[i]);
      views_[output] = std::as_const(owned_[output]).view();
    }
    for (ValueId input : node.inputs)
      if (input != kNoValue) release(input);
    return {};
  }

  /// The bytes of a value, moved out where this is its last use.
  Result<HostTensor> take(ValueId id) {
    if (!views_[id])
      return invalid_model("graph '", graph_.name, "': value '", graph_.values[id].name,
                           "' is never produced");
    HostTensor tensor;
    tensor.info = views_[id]->info;
    if (uses_[id] == 1 && graph_.values[id].role == Role::Intermediate) {
      tensor = std::move(owned_[id]);
    } else if (tensor.info.bytes() != 0) {
      const auto* first = static_cast<const std::byte*>(views_[id]->data);
      tensor.bytes.assign(first, first + tensor.info.bytes());
    }
    release(id);
    return tensor;
  }

 private:
  /// A symbol has the same extent in all inputs.
  Status check_input(const Value& value, const TensorInfo& info) {
    if (info.dtype != value.dtype)
      return invalid_argument("input '", value.name, "': expected type ", name_of(value.dtype), ", found ",
                              info);
    if (info.shape.rank() != value.rank())
      return invalid_argument("input '", value.name, "': expected rank ", value.rank(), ", found ", info);
    for (int axis = 0; axis < value.rank(); ++axis) {
      const Dim& dim = value.dims[static_cast<size_t>(axis)];
      int64_t expected = dim.extent;
      if (!dim.is_known() && dim.symbol >= 0 && static_cast<size_t>(dim.symbol) < symbols_.size()) {
        int64_t& extent = symbols_[static_cast<size_t>(dim.symbol)];
        if (extent < 0) extent = info.shape[axis];
        expected = extent;
      }
      if (expected >= 0 && info.shape[axis] != expected)
        return invalid_argument("input '", value.name, "': expected extent ", expected, " in axis ", axis,
                                ", found ", info);
    }
    return {};
  }

  void release(ValueId id) {
    if (--uses_[id] != 0 || graph_.values[id].role != Role::Intermediate) return;
    owned_[id] = {};
    views_[id].reset();
  }

  const Graph& graph_;
  std::vector<HostTensor>* states_;
  EvalLookup values_;
  StopSignal* stop_;
  std::vector<std::optional<ConstTensorView>>
      views_;                      ///< by value; empty before it is produced and after last use
  std::vector<HostTensor> owned_;  ///< by value: bytes of the intermediates
  std::vector<uint32_t> uses_;     ///< by value: reads still to come
  std::vector<int64_t> symbols_;   ///< -1: unbound
};

}  // namespace

Status infer_node(const NodeView& node, std::vector<TensorInfo>& outputs) {
  outputs.clear();
  return infer_unnamed(node, outputs).in(describe(node.node));
}

bool can_evaluate(const Node& node, EvalLookup values) {
  if (values(node.kind()) != nullptr) return true;
  if (node.bodies.empty() || runs_on_host(node.kind())) return false;
  const std::vector<Node>& nodes = node.bodies.front().nodes;
  return std::ranges::all_of(nodes, [&](const Node& inner) { return can_evaluate(inner, values); });
}

Status evaluate_node(const NodeView& node, std::span<const ConstTensorView> inputs,
                     std::span<const TensorView> outputs, EvalLookup values) {
  return evaluate_unnamed(node, inputs, outputs, values).in(describe(node.node));
}

namespace {

/// If and Loop, with their bodies run by this evaluator.
Status evaluate_control(const NodeView& node, std::span<const ConstTensorView> inputs, ResultMaker& results,
                        EvalLookup values, StopSignal* outer) {
  StopSignal own;
  StopSignal& stop = outer != nullptr ? *outer : own;
  std::vector<HostTensor> last[2];  // the results of one run are the inputs of the next
  std::vector<ConstTensorView> views;
  size_t next = 0;
  const RunBody run_body =
      [&](size_t body,
          std::span<const ConstTensorView> operands) -> Result<std::span<const ConstTensorView>> {
    std::vector<HostTensor>& tensors = last[next];
    next = 1 - next;
    RT_ASSIGN(tensors, evaluate_graph(node.node.bodies[body], operands, nullptr, {}, values, &stop));
    views.clear();
    for (const HostTensor& tensor : tensors) views.push_back(tensor.view());
    return std::span<const ConstTensorView>(views);
  };
  return run_control(node, inputs, stop, run_body, results);
}

Status run_unnamed(const NodeView& node, std::span<const ConstTensorView> inputs, ResultMaker& results,
                   EvalLookup values, StopSignal* stop) {
  std::vector<TensorInfo> infos;
  RT_TRY(infer_unnamed(node, infos));
  if (runs_on_host(node.kind())) {
    RT_ASSIGN(const std::vector<ConstTensorView> operands, with_bytes(node, inputs));
    return is_control(node.kind()) ? evaluate_control(node, operands, results, values, stop)
                                   : page_of(node.kind())->run(node, operands, results);
  }
  // Data movement looks up source offsets in a table for each axis.
  double tables = 0;
  for (const TensorInfo& info : infos)
    for (const int64_t extent : info.bytes() == 0 ? Shape() : info.shape)
      tables += static_cast<double>(extent) * sizeof(int64_t);
  RT_TRY(results.hold(tables));
  std::vector<TensorView> outputs;
  for (size_t i = 0; i < infos.size(); ++i) {
    RT_ASSIGN(const TensorView output, results.make(i, infos[i]));
    outputs.push_back(output);
  }
  return evaluate_unnamed({.node = node.node, .inputs = node.inputs, .outputs = infos}, inputs, outputs,
                          values);
}

}  // namespace

Status run_node(const NodeView& node, std::span<const ConstTensorView> inputs, ResultMaker& results,
                EvalLookup values, StopSignal* stop) {
  return run_unnamed(node, inputs, results, values, stop).in(describe(node.node));
}

Result<std::vector<HostTensor>> evaluate_node(const NodeView& node, std::span<const ConstTensorView> inputs,
                                              EvalLookup values, StopSignal* stop) {
  std::vector<HostTensor> tensors;
  HostResults results(tensors);
  RT_TRY(run_node(node, inputs, results, values, stop));
  return tensors;
}

std::vector<HostTensor> initial_states(const std::vector<State>& states) {
  std::vector<HostTensor> tensors;
  tensors.reserve(states.size());
  for (const State& state : states) {
    HostTensor& tensor = tensors.emplace_back(state.info);
    if (state.initial.size == tensor.bytes.size() && state.initial.size != 0)
      std::memcpy(tensor.bytes.data(), state.initial.data, state.initial.size);
  }
  return tensors;
}

Result<std::vector<HostTensor>> evaluate_graph(
    const Graph& graph, std::span<const ConstTensorView> inputs, std::vector<HostTensor>* states,
    const std::function<void(NodeId, std::span<const ConstTensorView>)>& observe, EvalLookup values,
    StopSignal* stop) {
  Evaluation evaluation(graph, states, values, stop);
  RT_TRY(evaluation.bind(inputs));
  for (NodeId id = 0; id < graph.nodes.size(); ++id) RT_TRY(evaluation.run(id, observe));

  std::vector<HostTensor> outputs;
  for (ValueId id : graph.outputs) {
    RT_ASSIGN(HostTensor output, evaluation.take(id));
    outputs.push_back(std::move(output));
  }
  // All new states are taken before the first is written: an update may read another state's old value.
  std::vector<HostTensor> updated;
  for (const StateUpdate& update : graph.state_updates) {
    RT_ASSIGN(HostTensor value, evaluation.take(update.value));
    const TensorInfo& expected = (*states)[graph.values[update.state].state].info;
    if (value.info != expected)
      return invalid_model("state '", graph.values[update.state].name, "': expected a new value ", expected,
                           ", found ", value.info);
    updated.push_back(std::move(value));
  }
  for (size_t i = 0; i < updated.size(); ++i)
    (*states)[graph.values[graph.state_updates[i].state].state] = std::move(updated[i]);
  return outputs;
}

}  // namespace librt::ops
