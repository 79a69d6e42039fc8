#include "runtime/graph/verify.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "runtime/graph/node_view.h"

namespace librt {
namespace {

constexpr size_t kMostProblems = 12;

/// "%3 'x'" as a part of a message.
struct ValueName {
  const Graph& graph;
  ValueId id;
  friend void append(std::string& out, const ValueName& name) {
    append(out, "%", name.id);
    if (name.id < name.graph.values.size()) append(out, " '", name.graph.values[name.id].name, "'");
  }
};

class Verifier {
 public:
  Verifier(const Graph& graph, std::string where, const std::vector<State>* states,
           std::vector<std::string>& problems, int depth)
      : graph_(graph),
        where_(std::move(where)),
        states_(states),
        problems_(problems),
        depth_(depth),
        defined_(graph.values.size()) {}

  void run() {
    for (const Symbol& symbol : graph_.symbols) check_symbol(symbol);
    for (size_t id = 0; id < graph_.values.size(); ++id) check_value(static_cast<ValueId>(id));
    check_inputs();
    for (const Node& node : graph_.nodes) check_node(node);
    for (ValueId output : graph_.outputs)
      if (!is_defined(output))
        problem("output ", name(output), " is not produced by any node, input or constant");
    check_updates();
  }

 private:
  template <class... Parts>
  [[gnu::always_inline]] void problem(const Parts&... parts) {
    append(new_problem(), where_, ", ", parts...);
  }
  std::string& new_problem() {
    if (problems_.size() > kMostProblems) problems_.pop_back();
    return problems_.emplace_back();
  }

  ValueName name(ValueId id) const { return {graph_, id}; }
  bool is_defined(ValueId id) const { return id < defined_.size() && defined_[id]; }

  void check_symbol(const Symbol& symbol) {
    if (symbol.definition.empty()) return;
    if (!is_expression(symbol.definition, graph_.symbols.size())) {
      problem("symbol '", symbol.name, "': its definition is no expression of the graph's ",
              graph_.symbols.size(), " symbols");
      return;
    }
    for (const ExtentTerm& term : symbol.definition)
      if (term.op == ExtentOp::Symbol && !graph_.symbols[static_cast<size_t>(term.value)].definition.empty())
        problem("symbol '", symbol.name, "': its definition refers to '",
                graph_.symbols[static_cast<size_t>(term.value)].name, "', which has a definition itself");
  }

  void check_value(ValueId id) {
    const Value& value = graph_.values[id];
    if (!valid(value.dtype))
      problem("value ", name(id), ": unknown element type ", static_cast<int>(value.dtype));
    if (value.dims.size() > kMaxRank) {
      problem("value ", name(id), ": expected at most ", kMaxRank, " dimensions, found ", value.dims.size());
      return;
    }
    Shape known;
    for (const Dim& dim : value.dims) {
      if (dim.is_known()) known.push_back(dim.extent);
      if (dim.extent < -1) problem("value ", name(id), ": negative extent ", dim.extent);
      if (dim.symbol < -1 || dim.symbol >= static_cast<int64_t>(graph_.symbols.size()))
        problem("value ", name(id), ": refers to symbol ", dim.symbol, " of ", graph_.symbols.size());
      if (dim.is_known() && dim.symbol >= 0)
        problem("value ", name(id), ": a dimension has an extent and a symbol");
    }
    if (!known.checked_elements()) {
      problem("value ", name(id), ": ", known, " is too large" RT_FEW_ELEMENTS);
      return;
    }
    check_quantization(id);
    switch (value.role) {
      case Role::Intermediate:
      case Role::Input: break;
      case Role::Constant: check_constant(id); break;
      case Role::State: check_state(id); break;
      default: problem("value ", name(id), ": unknown role ", static_cast<int>(value.role)); return;
    }
    if (value.role != Role::Constant && value.data.data != nullptr)
      problem("value ", name(id), ": only constants have data");
    defined_[id] = value.role != Role::Intermediate;
  }

  void check_constant(ValueId id) {
    const Value& value = graph_.values[id];
    if (!value.is_static()) {
      problem("constant ", name(id), ": its dimensions are not all known");
      return;
    }
    const TensorInfo info = value.info();
    if (value.data.size != info.bytes())
      problem("constant ", name(id), ": expected ", info.bytes(), " bytes for ", info, ", found ",
              value.data.size);
  }

  void check_state(ValueId id) {
    const Value& value = graph_.values[id];
    if (!value.is_static()) problem("state ", name(id), ": its dimensions are not all known");
    if (states_ == nullptr) return;
    if (value.state >= states_->size())
      problem("state ", name(id), ": refers to state ", value.state, " of ", states_->size());
    else if (value.is_static() && !((*states_)[value.state].info == value.info()))
      problem("state ", name(id), ": is ", value.info(), " but state '", (*states_)[value.state].name,
              "' is ", (*states_)[value.state].info);
  }

  void check_quantization(ValueId id) {
    const Value& value = graph_.values[id];
    if (!value.quantization) return;
    const Quantization& q = *value.quantization;
    if (q.axis < -1 || q.axis >= value.rank()) {
      problem("value ", name(id), ": quantization axis ", q.axis, " of rank ", value.rank());
      return;
    }
    const int64_t extent = q.axis < 0 ? 1 : value.dims[static_cast<size_t>(q.axis)].extent;
    if (static_cast<int64_t>(q.scale.size()) != extent)
      problem("value ", name(id), ": expected ", extent, " quantization scales, found ", q.scale.size());
    if (!q.zero_point.empty() && q.zero_point.size() != q.scale.size())
      problem("value ", name(id), ": ", q.zero_point.size(), " zero points for ", q.scale.size(), " scales");
    if (!std::ranges::all_of(q.scale, [](float s) { return std::isfinite(s) && s > 0; }))
      problem("value ", name(id), ": a quantization scale is not a positive number");
  }

  void check_inputs() {
    std::vector<uint8_t> listed(graph_.values.size());
    for (ValueId input : graph_.inputs) {
      if (input >= graph_.values.size() || graph_.values[input].role != Role::Input) {
        problem("input ", name(input), " is not a value with the role of an input");
        continue;
      }
      if (listed[input]) problem("input ", name(input), " is listed twice");
      listed[input] = true;
    }
    for (size_t id = 0; id < graph_.values.size(); ++id)
      if (graph_.values[id].role == Role::Input && !listed[id])
        problem("value ", name(static_cast<ValueId>(id)),
                " is an input but not listed among the graph's inputs");
  }

  bool exists(ValueId id) const { return id < graph_.values.size(); }

  void check_node(const Node& node) {
    if (node.kind() == OpKind::NONE && node.bodies.empty())
      problem(describe(node), ": no operator and no body");
    if (node.kind() != OpKind::NONE && node.op.value == nullptr) problem(describe(node), ": no attributes");
    for (ValueId input : node.inputs) {
      if (input == kNoValue) continue;
      if (!is_defined(input))
        problem(describe(node), ": input ", name(input), " is not produced before it is used");
    }
    for (ValueId output : node.outputs) {
      if (output >= graph_.values.size())
        problem(describe(node), ": output ", name(output), " is out of range");
      else if (graph_.values[output].role != Role::Intermediate || defined_[output])
        problem(describe(node), ": output ", name(output), " is produced twice");
      else
        defined_[output] = true;
    }
    if (node.outputs.empty()) problem(describe(node), ": has no output");
    if (node.kind() == OpKind::If || node.kind() == OpKind::Loop) return check_control(node);
    std::vector<ValueId> inputs = node.inputs;
    std::erase(inputs, kNoValue);
    for (const Graph& body : node.bodies) check_body(node, body, {inputs, node.outputs, 0, 0});
  }

  /// The node's values that a body's inputs and outputs correspond to, and how many others the body has
  /// before them.
  struct Interface {
    std::vector<ValueId> inputs, outputs;
    size_t own_inputs = 0, own_outputs = 0;
  };

  /// Bodies of If and Loop take the node's inputs after its own operands; those of Loop also take iteration
  /// and condition, and return a condition first. Scan outputs have one axis more than the body's.
  void check_control(const Node& node) {
    const bool loop = node.kind() == OpKind::Loop;
    const size_t own = loop ? 2 : 1;
    if (node.bodies.size() != (loop ? 1 : 2) || node.inputs.size() < own) {
      problem(describe(node), ": expected ", own, " operands and ", loop ? 1 : 2, " bodies, found ",
              node.inputs.size(), " and ", node.bodies.size());
      return;
    }
    Interface interface {
      {node.inputs.begin() + static_cast<std::ptrdiff_t>(own), node.inputs.end()}, node.outputs,
          loop ? own : size_t{0}, loop ? size_t{1} : size_t {
        0
      }
    };
    for (const ValueId input : interface.inputs)
      if (input == kNoValue) problem(describe(node), ": a value for its bodies is absent");
    if (loop && node.op.value != nullptr) {
      const auto carried = static_cast<size_t>(std::max<int64_t>(0, node.as<op::LoopAttributes>().carried));
      for (size_t i = carried; i < interface.outputs.size(); ++i) interface.outputs[i] = kNoValue;
    }
    for (const Graph& body : node.bodies) check_body(node, body, interface);
  }

  void check_body(const Node& node, const Graph& body, const Interface& outer) {
    const size_t inputs = outer.own_inputs + outer.inputs.size();
    const size_t outputs = outer.own_outputs + outer.outputs.size();
    if (body.inputs.size() != inputs)
      problem(describe(node), ": its body should have ", inputs, " inputs, but has ", body.inputs.size());
    if (body.outputs.size() != outputs)
      problem(describe(node), ": its body should have ", outputs, " outputs, but has ", body.outputs.size());
    if (!body.state_updates.empty()) problem(describe(node), ": its body updates states");
    if (depth_ >= kMaxBodyDepth) {
      problem(describe(node), ": bodies are nested more than ", kMaxBodyDepth, " deep");
      return;
    }
    Verifier(body, text(where_, ", ", describe(node), ", body"), states_, problems_, depth_ + 1).run();
    if (body.inputs.size() != inputs || body.outputs.size() != outputs) return;
    const auto after = [](const std::vector<ValueId>& ids, size_t skipped) {
      return std::span(ids).subspan(skipped);
    };
    check_interface(node, outer.inputs, body, after(body.inputs, outer.own_inputs), "input");
    check_interface(node, outer.outputs, body, after(body.outputs, outer.own_outputs), "output");
  }

  void check_interface(const Node& node, const std::vector<ValueId>& outer, const Graph& body,
                       std::span<const ValueId> inner, const char* what) {
    for (size_t i = 0; i < std::min(outer.size(), inner.size()); ++i) {
      if (!exists(outer[i]) || inner[i] >= body.values.size()) continue;
      const Value& a = graph_[outer[i]];
      const Value& b = body[inner[i]];
      bool same = a.dtype == b.dtype && a.rank() == b.rank();
      for (size_t axis = 0; same && axis < a.dims.size(); ++axis)
        same = !a.dims[axis].is_known() || !b.dims[axis].is_known() ||
               a.dims[axis].extent == b.dims[axis].extent;
      if (!same)
        problem(describe(node), ": ", what, " ", i, " of its body has another type or shape than ",
                name(outer[i]));
    }
  }

  void check_updates() {
    // An index beyond these is a problem of the value.
    std::vector<uint8_t> updated(states_ != nullptr ? states_->size() : graph_.values.size());
    for (const StateUpdate& update : graph_.state_updates) {
      if (update.state >= graph_.values.size() || graph_.values[update.state].role != Role::State) {
        problem("state update: ", name(update.state), " is not a state");
        continue;
      }
      if (!is_defined(update.value)) {
        problem("state update: ", name(update.value), " is not produced by any node, input or constant");
        continue;
      }
      const Value& state = graph_.values[update.state];
      const Value& value = graph_.values[update.value];
      if (state.state < updated.size()) {
        if (updated[state.state]) problem("state update: ", name(update.state), " is updated twice");
        updated[state.state] = true;
      }
      if (value.dtype != state.dtype || (value.is_static() && value.dims != state.dims))
        problem("state update: ", name(update.value), " has not the type and dimensions of ",
                name(update.state));
    }
  }

  const Graph& graph_;
  std::string where_;
  const std::vector<State>* states_;
  std::vector<std::string>& problems_;
  int depth_;
  std::vector<uint8_t> defined_;
};

Status report(const std::vector<std::string>& problems) {
  if (problems.empty()) return {};
  std::string all;
  for (size_t i = 0; i < std::min(problems.size(), kMostProblems); ++i)
    append(all, i == 0 ? "" : "\n", problems[i]);
  if (problems.size() > kMostProblems) append(all, "\n...");
  return invalid_model(all);
}

}  // namespace

Status verify(const Graph& graph, const std::vector<State>* states) {
  std::vector<std::string> problems;
  Verifier(graph, text("graph '", graph.name, "'"), states, problems, 0).run();
  return report(problems);
}

Status verify(const ModelGraph& model) {
  std::vector<std::string> problems;
  std::set<std::string_view> names;
  for (const State& state : model.states) {
    if (!names.insert(state.name).second) problems.push_back(text("state '", state.name, "' exists twice"));
    if (!valid(state.info.dtype) || !state.info.shape.checked_elements())
      problems.push_back(text("state '", state.name, "': not a valid tensor type"));
    else if (state.initial.data != nullptr && state.initial.size != state.info.bytes())
      problems.push_back(text("state '", state.name, "': expected ", state.info.bytes(), " bytes for ",
                              state.info, ", found ", state.initial.size));
  }
  names.clear();
  for (const ModelGraph::Entry& entry : model.entries) {
    if (!names.insert(entry.name).second) problems.push_back(text("entry '", entry.name, "' exists twice"));
    Verifier(entry.graph, text("entry '", entry.name, "'"), &model.states, problems, 0).run();
  }
  return report(problems);
}

}  // namespace librt
