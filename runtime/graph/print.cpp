#include "runtime/graph/print.h"

#include <map>

#include "runtime/core/element.h"
#include "runtime/graph/attributes.h"

namespace librt {
namespace {

class Printer {
 public:
  Printer(const Graph& graph, const PrintOptions& options, int indent)
      : graph_(graph), options_(options), indent_(indent) {
    for (const Value& value : graph.values)
      if (!value.name.empty()) ++names_[value.name];
  }

  std::string run() {
    line("graph '", graph_.name, "'");
    if (!graph_.refusal.empty()) line("refused: ", graph_.refusal);
    indent_ += 2;
    for (const Symbol& symbol : graph_.symbols)
      if (symbol.bound > 0) line("symbol ", symbol.name, " <= ", symbol.bound);
    for (ValueId input : graph_.inputs) line("input ", definition(input));
    declare(Role::State, "state ");
    declare(Role::Constant, "constant ");
    for (const Node& node : graph_.nodes) print_node(node);
    for (ValueId output : graph_.outputs) line("output ", reference(output));
    for (const StateUpdate& update : graph_.state_updates)
      line("update ", reference(update.state), " <- ", reference(update.value));
    return std::move(out_);
  }

 private:
  template <class... Parts>
  void line(const Parts&... parts) {
    out_.append(static_cast<size_t>(indent_), ' ');
    append(out_, parts...);
    out_ += '\n';
  }

  void declare(Role role, std::string_view word) {
    const std::vector<uint32_t> uses = use_counts_of_known_ids();
    for (ValueId id = 0; id < graph_.values.size(); ++id)
      if (graph_.values[id].role == role && uses[id] > 0 && !is_inline(id)) line(word, definition(id));
  }

  std::vector<uint32_t> use_counts_of_known_ids() const {
    std::vector<uint32_t> counts(graph_.values.size());
    const auto use = [&](ValueId id) {
      if (id < counts.size()) ++counts[id];
    };
    for (const Node& node : graph_.nodes)
      for (ValueId input : node.inputs) use(input);
    for (ValueId output : graph_.outputs) use(output);
    for (const StateUpdate& update : graph_.state_updates) {
      use(update.value);
      use(update.state);
    }
    return counts;
  }

  bool is_inline(ValueId id) const {
    const Value& value = graph_.values[id];
    if (value.role != Role::Constant || !value.is_static() || value.data.data == nullptr) return false;
    const TensorInfo info = value.info();
    return info.elements() <= options_.inline_elements && value.data.size == info.bytes();
  }

  std::string reference(ValueId id) const {
    if (id == kNoValue) return "_";
    if (id >= graph_.values.size()) return text("%", id, "!");
    if (is_inline(id)) return literal(graph_.values[id]);
    const std::string& name = graph_.values[id].name;
    if (name.empty()) return text("%", id);
    return names_.at(name) == 1 ? text("%", name) : text("%", name, "#", id);
  }

  static std::string literal(const Value& value) {
    const TensorInfo info = value.info();
    std::string out(name_of(value.dtype));
    if (info.shape.rank() > 0) append(out, info.shape);
    out += '<';
    for (int64_t i = 0; i < info.elements(); ++i) {
      if (i > 0) out += ',';
      if (is_float(value.dtype))
        append(out, static_cast<float>(load_element(value.data.data, value.dtype, i)));
      else
        append(out, load_integer(value.data.data, value.dtype, i));
    }
    return out + ">";
  }

  std::string type_of(const Value& value) const {
    std::string out(name_of(value.dtype));
    out += '[';
    for (size_t i = 0; i < value.dims.size(); ++i) {
      const Dim& dim = value.dims[i];
      if (i > 0) out += ',';
      if (dim.is_known())
        append(out, dim.extent);
      else if (dim.symbol >= 0 && static_cast<size_t>(dim.symbol) < graph_.symbols.size())
        append(out, graph_.symbols[static_cast<size_t>(dim.symbol)].name);
      else
        out += '?';
    }
    out += ']';
    if (value.quantization) append(out, " quantized(axis=", value.quantization->axis, ")");
    return out;
  }

  std::string definition(ValueId id) const {
    if (id >= graph_.values.size()) return reference(id);
    return text(reference(id), " : ", type_of(graph_.values[id]));
  }

  void print_node(const Node& node) {
    std::string outputs;
    for (ValueId output : node.outputs) append(outputs, outputs.empty() ? "" : ", ", definition(output));
    std::string inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      append(inputs, i == 0 ? "" : ", ", reference(node.inputs[i]));
    const std::string attributes = attributes_text(node.op);
    line(outputs, " = ", name_of(node.kind()), "(", inputs, ")", attributes.empty() ? "" : " ", attributes);
    // Numbers alone do not tell what a chain computes.
    const bool shown =
        node.kind() == OpKind::If || node.kind() == OpKind::Loop || node.kind() == OpKind::Elementwise;
    if (!options_.bodies && !shown) return;
    for (const Graph& body : node.bodies) out_ += Printer(body, options_, indent_ + 2).run();
  }

  const Graph& graph_;
  const PrintOptions& options_;
  int indent_;
  std::map<std::string_view, int> names_;
  std::string out_;
};

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) {
  return Printer(graph, options, 0).run();
}

std::string print(const ModelGraph& model, const PrintOptions& options) {
  static constexpr std::string_view kKinds[] = {"parameter", "statistic", "optimizer", "counter"};
  std::string out;
  for (size_t i = 0; i < model.states.size(); ++i) {
    const State& state = model.states[i];
    const auto kind = static_cast<size_t>(state.kind);
    append(out, "state ", i, " '", state.name, "' : ", state.info, " ", kind < 4 ? kKinds[kind] : "?",
           state.initial.data == nullptr ? " = 0" : "", "\n");
  }
  for (const ModelGraph::Entry& entry : model.entries)
    append(out, "entry '", entry.name, "'\n", print(entry.graph, options));
  return out;
}

std::string print(const OpAttributes& op) {
  const std::string attributes = attributes_text(op);
  return text(name_of(op.type), attributes.empty() ? "" : " ", attributes);
}

}  // namespace librt
