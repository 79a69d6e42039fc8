#include "runtime/graph/verify.h"

#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include "runtime/graph/node_view.h"

namespace rt {
namespace {

constexpr size_t kReported = 8;

/// Collects problems; one message at the end.
class Problems {
 public:
  template <class... Parts>
  void add(const Parts&... parts) {
    if (++count_ > kReported) return;
    if (count_ > 1) message_ += "; ";
    (append(message_, parts), ...);
  }
  bool none() const noexcept { return count_ == 0; }
  Status status() && {
    if (none()) return {};
    if (count_ > kReported) message_ += text("; and ", count_ - kReported, " more");
    return {Code::InvalidModel, std::move(message_)};
  }

 private:
  size_t count_ = 0;
  std::string message_;
};

std::string dims_text(const Value& value) {
  std::string out = text(name_of(value.dtype), "[");
  for (size_t i = 0; i < value.dims.size(); ++i) {
    if (i != 0) out += ',';
    if (value.dims[i].is_known())
      append(out, value.dims[i].extent);
    else
      out += '?';
  }
  return out + "]";
}

class Verifier {
 public:
  Verifier(const Graph& graph, size_t state_count, int depth)
      : graph_(graph), state_count_(state_count), depth_(depth) {}

  Status run() {
    if (graph_.values.size() >= kNoValue) return invalid_model("too many values");
    symbols();
    for (ValueId id = 0; id < graph_.values.size(); ++id) value(id);
    if (!problems_.none()) return std::move(problems_).status();  // what follows relies on sound values
    available_.assign(graph_.values.size(), false);
    for (ValueId id = 0; id < graph_.values.size(); ++id)
      available_[id] = graph_[id].role != Role::Intermediate;
    inputs();
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) node(id);
    for (size_t i = 0; i < graph_.outputs.size(); ++i) use(graph_.outputs[i], "output ", i);
    state_updates();
    return std::move(problems_).status();
  }

 private:
  std::string name(ValueId id) const { return text("value ", id, " '", graph_[id].name, "'"); }
  bool in_range(ValueId id) const noexcept { return id < graph_.values.size(); }

  void symbols() {
    std::set<std::string_view> names;
    for (const Symbol& symbol : graph_.symbols) {
      if (symbol.name.empty()) problems_.add("a symbol has no name");
      if (!names.insert(symbol.name).second) problems_.add("symbol '", symbol.name, "' is defined twice");
      if (symbol.bound < 0) problems_.add("symbol '", symbol.name, "': bound ", symbol.bound, " is negative");
    }
  }

  void value(ValueId id) {
    const Value& value = graph_[id];
    if (!valid(value.dtype)) problems_.add(name(id), ": unknown dtype ", static_cast<int>(value.dtype));
    if (value.dims.size() > kMaxRank)
      return problems_.add(name(id), ": rank ", value.dims.size(), ", at most ", kMaxRank, " is supported");
    Shape known;
    for (const Dim& dim : value.dims) {
      if (dim.extent < -1) problems_.add(name(id), ": negative extent ", dim.extent);
      const auto symbol_count = static_cast<int64_t>(graph_.symbols.size());
      if (dim.symbol < -1 || dim.symbol >= symbol_count)
        problems_.add(name(id), ": symbol ", dim.symbol, " of ", symbol_count);
      if (dim.is_known() && dim.symbol != -1) problems_.add(name(id), ": both an extent and a symbol");
      if (dim.is_known()) known.push_back(dim.extent);
    }
    if (!known.checked_elements()) return problems_.add(name(id), ": ", dims_text(value), " is too large");
    role(id, value);
    if (value.quantization) quantization(id, value, *value.quantization);
  }

  void role(ValueId id, const Value& value) {
    const bool constant = value.role == Role::Constant;
    const bool state = value.role == Role::State;
    if (value.role > Role::State) problems_.add(name(id), ": unknown role ", static_cast<int>(value.role));
    if ((constant || state) && !value.is_static())
      return problems_.add(name(id), ": a constant or state must have a known shape, found ",
                           dims_text(value));
    if (constant && valid(value.dtype) && value.data.size != value.info().bytes())
      problems_.add(name(id), ": ", dims_text(value), " needs ", value.info().bytes(), " bytes, found ",
                    value.data.size);
    if (constant && value.data.size != 0 && value.data.data == nullptr) problems_.add(name(id), ": no data");
    if (!constant && value.data.size != 0) problems_.add(name(id), ": data, but not a constant");
    if (!state && value.state != kNoState) problems_.add(name(id), ": a state index, but not a state");
    if (!state) return;
    if (depth_ > 0) problems_.add(name(id), ": a body has no state of its own; pass it as an input");
    if (value.state >= state_count_)
      problems_.add(name(id), ": state ", value.state, " of ", state_count_);
    else if (!states_.insert(value.state).second)
      problems_.add(name(id), ": state ", value.state, " has a second value in this graph");
  }

  void quantization(ValueId id, const Value& value, const Quantization& quantization) {
    const size_t count = quantization.scale.size();
    if (quantization.axis < -1 || quantization.axis >= value.rank())
      return problems_.add(name(id), ": quantization axis ", quantization.axis, " for rank ", value.rank());
    if (count == 0 || (quantization.axis == -1 && count != 1))
      problems_.add(name(id), ": ", count, " quantization scales, expected ",
                    quantization.axis == -1 ? "1" : "one per channel");
    if (quantization.axis >= 0) {
      const Dim& dim = value.dims[static_cast<size_t>(quantization.axis)];
      if (dim.is_known() && static_cast<uint64_t>(dim.extent) != count)
        problems_.add(name(id), ": ", count, " quantization scales for ", dim.extent, " channels");
    }
    if (!quantization.zero_point.empty() && quantization.zero_point.size() != count)
      problems_.add(name(id), ": ", quantization.zero_point.size(), " zero points for ", count, " scales");
    for (float scale : quantization.scale)
      if (!std::isfinite(scale) || scale <= 0)
        return problems_.add(name(id), ": quantization scale ", scale, ", expected a positive number");
    for (int64_t zero : quantization.zero_point)
      if (zero < std::numeric_limits<int32_t>::min() || zero > std::numeric_limits<int32_t>::max())
        return problems_.add(name(id), ": quantization zero point ", zero, " does not fit in 32 bits");
  }

  void inputs() {
    std::vector<bool> listed(graph_.values.size(), false);
    for (ValueId id : graph_.inputs) {
      if (!in_range(id)) {
        problems_.add("graph input ", id, " of ", graph_.values.size(), " values");
        continue;
      }
      if (graph_[id].role != Role::Input)
        problems_.add(name(id), " is a graph input by list but not by role");
      if (listed[id]) problems_.add(name(id), " is listed twice as a graph input");
      listed[id] = true;
    }
    for (ValueId id = 0; id < graph_.values.size(); ++id)
      if (graph_[id].role == Role::Input && !listed[id])
        problems_.add(name(id), " has the role of an input but is not in the list of inputs");
  }

  template <class... Where>
  bool use(ValueId id, const Where&... where) {
    if (!in_range(id))
      problems_.add(where..., ": value ", id, " of ", graph_.values.size());
    else if (!available_[id])
      problems_.add(where..., ": ", name(id), " is used before anything produced it");
    else
      return true;
    return false;
  }

  void node(NodeId id) {
    const Node& node = graph_.nodes[id];
    const std::string where = text("node ", id, " '", node.name, "' (", op_name(node), ")");
    if (node.kind() != OpKind::NONE && node.op.value == nullptr) problems_.add(where, ": no attributes");
    bool sound = true;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] != kNoValue) sound &= use(node.inputs[i], where, ", input ", i);
    if (node.outputs.empty()) problems_.add(where, ": no outputs");
    for (size_t i = 0; i < node.outputs.size(); ++i) sound &= produce(node.outputs[i], where, i);
    if (sound) bodies(node, where);
  }

  bool produce(ValueId id, const std::string& where, size_t i) {
    if (!in_range(id))
      problems_.add(where, ", output ", i, ": value ", id, " of ", graph_.values.size());
    else if (graph_[id].role != Role::Intermediate)
      problems_.add(where, ", output ", i, ": ", name(id), " is an input, constant or state");
    else if (available_[id])
      problems_.add(where, ", output ", i, ": ", name(id), " is produced twice");
    else {
      available_[id] = true;
      return true;
    }
    return false;
  }

  void bodies(const Node& node, const std::string& where) {
    if (node.kind() == OpKind::NONE && node.bodies.empty())
      problems_.add(where, ": this build does not know the operator, and it has no body to run instead");
    if (node.bodies.empty()) return;
    if (node.bodies.size() > 1)
      return problems_.add(where, ": ", node.bodies.size(), " bodies, at most one is supported");
    if (depth_ >= kMaxBodyDepth)
      return problems_.add(where, ": bodies are nested more than ", kMaxBodyDepth, " deep");
    const Graph& body = node.bodies[0];
    if (Status status = Verifier(body, 0, depth_ + 1).run(); !status.ok())
      return problems_.add(where, ", body: ", status.message());
    if (!body.state_updates.empty()) problems_.add(where, ", body: updates a state");
    std::vector<ValueId> present;
    for (ValueId input : node.inputs)
      if (input != kNoValue) present.push_back(input);
    interface(present, body, body.inputs, where, "input");
    interface(node.outputs, body, body.outputs, where, "output");
  }

  void interface(const std::vector<ValueId>& outer, const Graph& body, const std::vector<ValueId>& inner,
                 const std::string& where, std::string_view what) {
    if (outer.size() != inner.size())
      return problems_.add(where, ": the body has ", inner.size(), " ", what, "s, the node ", outer.size());
    for (size_t i = 0; i < outer.size(); ++i) {
      const Value& a = graph_[outer[i]];
      const Value& b = body[inner[i]];
      bool same = a.dtype == b.dtype && a.dims.size() == b.dims.size();
      for (size_t axis = 0; same && axis < a.dims.size(); ++axis)
        same = !a.dims[axis].is_known() || !b.dims[axis].is_known() ||
               a.dims[axis].extent == b.dims[axis].extent;
      if (!same)
        problems_.add(where, ": the body's ", what, " ", i, " is ", dims_text(b), ", the node's is ",
                      dims_text(a));
    }
  }

  void state_updates() {
    std::set<ValueId> updated;
    for (size_t i = 0; i < graph_.state_updates.size(); ++i) {
      const auto [state, value] = graph_.state_updates[i];
      if (!use(state, "state update ", i) || !use(value, "state update ", i)) continue;
      const Value& target = graph_[state];
      if (target.role != Role::State) problems_.add("state update ", i, ": ", name(state), " is not a state");
      if (!updated.insert(state).second) problems_.add(name(state), " is updated twice");
      if (graph_[value].dtype != target.dtype || graph_[value].dims != target.dims)
        problems_.add("state update ", i, ": ", name(state), " is ", dims_text(target), ", ", name(value),
                      " is ", dims_text(graph_[value]));
    }
  }

  const Graph& graph_;
  size_t state_count_;
  int depth_;
  Problems problems_;
  std::vector<bool> available_;
  std::set<uint32_t> states_;
};

void verify_states(const std::vector<State>& states, Problems& problems) {
  std::set<std::string_view> names;
  for (const State& state : states) {
    const std::string where = text("state '", state.name, "'");
    if (state.name.empty() || !names.insert(state.name).second)
      problems.add(where, ": the name must be unique");
    if (!valid(state.info.dtype) || !state.info.shape.checked_elements())
      problems.add(where, ": ", state.info, " is not a valid type and shape");
    else if (state.initial.size != 0 && state.initial.size != state.info.bytes())
      problems.add(where, ": ", state.info, " needs ", state.info.bytes(), " bytes, found ",
                   state.initial.size);
    if (state.kind > StateKind::Counter) problems.add(where, ": unknown kind ", static_cast<int>(state.kind));
  }
}

}  // namespace

Status verify(const Graph& graph, size_t state_count) {
  Status status = Verifier(graph, state_count, 0).run();
  return graph.name.empty() ? status : std::move(status).in(text("graph '", graph.name, "'"));
}

Status verify(const ModelGraph& model) {
  Problems problems;
  verify_states(model.states, problems);
  std::set<std::string_view> names;
  for (const ModelGraph::Entry& entry : model.entries) {
    if (entry.name.empty() || !names.insert(entry.name).second)
      problems.add("entry '", entry.name, "': the name must be unique");
    if (Status status = Verifier(entry.graph, model.states.size(), 0).run(); !status.ok()) {
      problems.add("entry '", entry.name, "', ", status.message());
      continue;
    }
    for (const Value& value : entry.graph.values)
      if (value.role == Role::State && value.info() != model.states[value.state].info)
        problems.add("entry '", entry.name, "', value '", value.name, "' is ", value.info(), ", state '",
                     model.states[value.state].name, "' is ", model.states[value.state].info);
  }
  return std::move(problems).status();
}

}  // namespace rt
