#include "tools/compiler/writer.h"

#include "runtime/core/atomic_file.h"
#include "runtime/graph/node_view.h"
#include "runtime/graph/verify.h"
#include "runtime/model/segments.h"
#include "schema/model_generated.h"

namespace librt::compiler {

namespace file = ::rt::file;
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr uint32_t kNoSegment = 0xffffffffu;

/// An upper bound of a graph's size in the FlatBuffer, so that the builder never hits its limit of 2 GiB,
/// where it would abort the program.
uint64_t size_bound(const Graph& graph) {
  constexpr uint64_t kTable = 256;        // a table with its vtable
  constexpr uint64_t kAttributes = 4096;  // attributes: a few short lists
  uint64_t bytes = kTable + graph.name.size() + graph.refusal.size() +
                   4 * (graph.inputs.size() + graph.outputs.size()) + 8 * graph.state_updates.size();
  for (const Symbol& symbol : graph.symbols)
    bytes += kTable + symbol.name.size() + symbol.definition.size() * sizeof(file::ExtentTerm);
  for (const Value& value : graph.values) {
    bytes += kTable + value.name.size() + 16 * value.dims.size();
    if (value.quantization) bytes += kTable + 12 * value.quantization->scale.size();
  }
  for (const Node& node : graph.nodes) {
    bytes += kTable + kAttributes + 2 * node.name.size() + node.unknown_op.size() +
             4 * (node.inputs.size() + node.outputs.size());
    for (const Graph& body : node.bodies) bytes += size_bound(body);
  }
  return bytes;
}

class Writer {
 public:
  Status build(const ModelGraph& model) {
    RT_TRY(verify(model));
    uint64_t bound = 0;
    for (const ModelGraph::Entry& entry : model.entries) bound += size_bound(entry.graph);
    for (const State& state : model.states) bound += 256 + state.name.size();
    for (const auto& [key, value] : model.metadata) bound += 64 + key.size() + value.size();
    if (bound > kLargestGraph)
      return unsupported("the graphs need up to ", bytes_text(bound),
                         " without their weights, the file format holds ", bytes_text(kLargestGraph));
    std::vector<Offset<file::Entry>> entries;
    for (const ModelGraph::Entry& entry : model.entries) {
      const auto written = graph(entry.graph);
      entries.push_back(file::CreateEntry(fbb_, fbb_.CreateString(entry.name), written));
    }
    std::vector<Offset<file::State>> states;
    for (const State& state : model.states) states.push_back(this->state(state));
    std::vector<Offset<file::KeyValue>> metadata;
    for (const auto& [key, value] : model.metadata)
      metadata.push_back(file::CreateKeyValue(fbb_, fbb_.CreateString(key), string(value)));
    std::vector<Offset<file::Segment>> segments;
    for (const SegmentRange& range : segments_.ranges())
      segments.push_back(file::CreateSegment(fbb_, range.offset, range.bytes, range.checksum));
    const auto producer = string(model.producer);
    const auto entry_list = fbb_.CreateVector(entries);
    const auto state_list = list(states);
    const auto segment_list = list(segments);
    const auto metadata_list = list(metadata);
    fbb_.Finish(file::CreateModel(fbb_, producer, entry_list, state_list, segment_list, metadata_list),
                file::ModelIdentifier());
    return {};
  }

  Status write(const ByteSink& sink) const {
    return write_container(kModelMagic, {fbb_.GetBufferPointer(), fbb_.GetSize()}, segments_, sink);
  }

 private:
  Offset<flatbuffers::String> string(const std::string& text) {
    return text.empty() ? Offset<flatbuffers::String>() : fbb_.CreateString(text);
  }
  template <class T>
  Offset<flatbuffers::Vector<T>> list(const std::vector<T>& items) {
    return items.empty() ? Offset<flatbuffers::Vector<T>>() : fbb_.CreateVector(items);
  }
  template <class T>
  Offset<flatbuffers::Vector<const T*>> structs(const std::vector<T>& items) {
    return items.empty() ? Offset<flatbuffers::Vector<const T*>>() : fbb_.CreateVectorOfStructs(items);
  }
  uint32_t segment(const Blob& blob) { return blob.size == 0 ? kNoSegment : segments_.add(blob); }

  Offset<file::State> state(const State& state) {
    const std::vector<int64_t> dims(state.info.shape.begin(), state.info.shape.end());
    const auto name = fbb_.CreateString(state.name);
    const auto dim_list = list(dims);
    return file::CreateState(fbb_, name, static_cast<uint8_t>(state.info.dtype), dim_list,
                             static_cast<file::StateKind>(state.kind), segment(state.initial));
  }

  Offset<file::Value> value(const Value& value) {
    std::vector<file::Dim> dims;
    for (const Dim& dim : value.dims) dims.emplace_back(dim.extent, dim.symbol);
    const auto name = string(value.name);
    const auto dim_list = structs(dims);
    Offset<file::Quantization> quantization;
    if (value.quantization) {
      const auto scale = list(value.quantization->scale);
      const auto zero_point = list(value.quantization->zero_point);
      quantization = file::CreateQuantization(fbb_, scale, zero_point, value.quantization->axis);
    }
    const uint32_t data = value.role == Role::State      ? value.state
                          : value.role == Role::Constant ? segment(value.data)
                                                         : kNoSegment;
    return file::CreateValue(fbb_, name, static_cast<uint8_t>(value.dtype),
                             static_cast<file::Role>(value.role), dim_list, data, quantization);
  }

  Offset<file::Node> node(const Node& node) {
    std::vector<Offset<file::Graph>> bodies;
    for (const Graph& body : node.bodies) bodies.push_back(graph(body));
    const auto attributes = node.kind() == OpKind::NONE ? Offset<void>() : op::pack_op(node.op, fbb_);
    const auto name = string(node.name);
    const auto inputs = list(node.inputs);
    const auto outputs = list(node.outputs);
    const auto body_list = list(bodies);
    const auto operator_name = fbb_.CreateSharedString(std::string(op_name(node)));
    return file::CreateNode(fbb_, node.kind(), attributes, name, inputs, outputs, body_list, operator_name);
  }

  Offset<file::Graph> graph(const Graph& graph) {
    std::vector<Offset<file::Symbol>> symbols;
    for (const Symbol& symbol : graph.symbols) {
      std::vector<file::ExtentTerm> terms;
      for (const ExtentTerm& term : symbol.definition)
        terms.emplace_back(static_cast<uint8_t>(term.op), term.value);
      const auto name = fbb_.CreateString(symbol.name);
      const auto definition = terms.empty() ? 0 : fbb_.CreateVectorOfStructs(terms);
      symbols.push_back(file::CreateSymbol(fbb_, name, symbol.bound, definition));
    }
    std::vector<Offset<file::Value>> values;
    for (const Value& value : graph.values) values.push_back(this->value(value));
    std::vector<Offset<file::Node>> nodes;
    for (const Node& node : graph.nodes) nodes.push_back(this->node(node));
    std::vector<file::StateUpdate> updates;
    for (const StateUpdate& update : graph.state_updates) updates.emplace_back(update.state, update.value);
    const auto name = string(graph.name);
    const auto symbol_list = list(symbols);
    const auto value_list = list(values);
    const auto node_list = list(nodes);
    const auto inputs = list(graph.inputs);
    const auto outputs = list(graph.outputs);
    const auto update_list = structs(updates);
    const auto refusal = graph.refusal.empty() ? Offset<flatbuffers::String>() : string(graph.refusal);
    return file::CreateGraph(fbb_, name, symbol_list, value_list, node_list, inputs, outputs, update_list,
                             refusal);
  }

  FlatBufferBuilder fbb_{1 << 16};
  SegmentTable segments_;
};

}  // namespace

Status write_model(const ModelGraph& model, const std::string& path) {
  Writer writer;
  RT_TRY(writer.build(model).in(path));
  AtomicFile out(path);
  RT_TRY(out.open());
  RT_TRY(writer.write([&](const void* bytes, size_t size) { return out.write(bytes, size); }));
  return out.commit();
}

Result<std::vector<std::byte>> serialize_model(const ModelGraph& model) {
  Writer writer;
  RT_TRY(writer.build(model));
  std::vector<std::byte> out;
  RT_TRY(writer.write([&](const void* bytes, size_t size) {
    const auto* first = static_cast<const std::byte*>(bytes);
    out.insert(out.end(), first, first + size);
    return Status();
  }));
  return out;
}

}  // namespace librt::compiler
