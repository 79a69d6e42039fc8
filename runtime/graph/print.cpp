#include "runtime/graph/print.h"

#include <flatbuffers/minireflect.h>

#include <map>

#include "runtime/core/element.h"
#include "schema/ops_generated.h"

namespace rt {
namespace {

/// Writes the fields that are present: FlatBuffers leaves out those that have their default.
class AttributeWriter final : public flatbuffers::IterationVisitor {
 public:
  explicit AttributeWriter(std::string& out) : out_(out) {}

  void StartSequence() override { out_ += '{'; }
  void EndSequence() override { out_ += '}'; }
  void Field(size_t, size_t set_index, flatbuffers::ElementaryType, bool, const flatbuffers::TypeTable*,
             const char* name, const uint8_t* value) override {
    if (value == nullptr) return;
    if (set_index > 0) out_ += ", ";
    field_ = name != nullptr ? name : "?";
    append(out_, field_);
    out_ += '=';
  }
  void UType(uint8_t x, const char* name) override { number(x, name); }
  void Bool(bool x) override { append(out_, x); }
  void Char(int8_t x, const char* name) override { number(int{x}, name); }
  void UChar(uint8_t x, const char* name) override {
    if (name == nullptr && (field_ == "to" || field_ == "dtype") && valid(DType{x}))
      append(out_, name_of(DType{x}));
    else
      number(int{x}, name);
  }
  void Short(int16_t x, const char* name) override { number(x, name); }
  void UShort(uint16_t x, const char* name) override { number(x, name); }
  void Int(int32_t x, const char* name) override { number(x, name); }
  void UInt(uint32_t x, const char* name) override { number(x, name); }
  void Long(int64_t x) override { append(out_, x); }
  void ULong(uint64_t x) override { append(out_, x); }
  void Float(float x) override { append(out_, x); }
  void Double(double x) override { append(out_, x); }
  void String(const flatbuffers::String* x) override { append(out_, x->c_str()); }
  void Unknown(const uint8_t*) override { out_ += '?'; }
  void StartVector() override { out_ += '['; }
  void EndVector() override { out_ += ']'; }
  void Element(size_t i, flatbuffers::ElementaryType, const flatbuffers::TypeTable*,
               const uint8_t*) override {
    if (i > 0) out_ += ',';
  }

 private:
  template <class Number>
  void number(Number x, const char* name) {
    if (name != nullptr)
      append(out_, name);
    else
      append(out_, x);
  }
  std::string& out_;
  std::string_view field_;
};

/// "{strides=[2,2]}", or nothing when all attributes have their defaults.
std::string attributes_text(const OpAttributes& op) {
  if (op.type == OpKind::NONE || op.value == nullptr) return "";
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(flatbuffers::Offset<flatbuffers::Table>(op::pack_op(op, builder).o));
  // Member i of the union is described by the type at i - 1: NONE has no type.
  const flatbuffers::TypeTable* types = op::OpTypeTable();
  const flatbuffers::TypeCode code = types->type_codes[static_cast<size_t>(op.type)];
  std::string out;
  AttributeWriter writer(out);
  flatbuffers::IterateObject(
      reinterpret_cast<const uint8_t*>(flatbuffers::GetRoot<flatbuffers::Table>(builder.GetBufferPointer())),
      types->type_refs[code.sequence_ref](), &writer);
  return out == "{}" ? "" : out;
}

class Printer {
 public:
  Printer(const Graph& graph, const PrintOptions& options, int indent)
      : graph_(graph), options_(options), indent_(indent) {
    for (const Value& value : graph.values)
      if (!value.name.empty()) ++names_[value.name];
  }

  std::string run() {
    line("graph '", graph_.name, "'");
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
    append(out_, text(parts...));
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
    if (value.quantization) append(out, text(" quantized(axis=", value.quantization->axis, ")"));
    return out;
  }

  std::string definition(ValueId id) const {
    if (id >= graph_.values.size()) return reference(id);
    return text(reference(id), " : ", type_of(graph_.values[id]));
  }

  void print_node(const Node& node) {
    std::string outputs;
    for (ValueId output : node.outputs)
      append(outputs, text(outputs.empty() ? "" : ", ", definition(output)));
    std::string inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      append(inputs, text(i == 0 ? "" : ", ", reference(node.inputs[i])));
    const std::string attributes = attributes_text(node.op);
    line(outputs, " = ", name_of(node.kind()), "(", inputs, ")", attributes.empty() ? "" : " ", attributes);
    if (!options_.bodies) return;
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
    append(out, text("state ", i, " '", state.name, "' : ", state.info, " ", kind < 4 ? kKinds[kind] : "?",
                     state.initial.data == nullptr ? " = 0" : "", "\n"));
  }
  for (const ModelGraph::Entry& entry : model.entries)
    append(out, text("entry '", entry.name, "'\n", print(entry.graph, options)));
  return out;
}

std::string print(const OpAttributes& op) {
  const std::string attributes = attributes_text(op);
  return text(name_of(op.type), attributes.empty() ? "" : " ", attributes);
}

}  // namespace rt
