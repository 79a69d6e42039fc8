#include "runtime/model/unpack.h"

#include "runtime/graph/verify.h"
#include "runtime/model/attributes.h"
#include "runtime/model/schema_check.h"

namespace librt {
namespace {

constexpr uint32_t kNoSegment = 0xffffffffu;

std::string_view view_of(const flatbuffers::String* text) {
  return text == nullptr ? std::string_view() : text->string_view();
}

template <class Vector>
size_t size_of_vector(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

template <class T>
std::vector<T> copy(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? std::vector<T>() : std::vector<T>(vector->begin(), vector->end());
}

class Unpacker {
 public:
  Unpacker(const file::Model& model, const ReadLimits& limits, const FetchSegment& fetch)
      : model_(model), limits_(limits), fetch_(fetch), segments_(size_of_vector(model.segments())) {}

  Result<ModelGraph> run() {
    RT_TRY(check_table(&model_, *file::ModelTypeTable()));
    ModelGraph out;
    RT_TRY(charge_text(model_.producer()));
    out.producer = view_of(model_.producer());
    for (uint32_t i = 0; i < segments_.size(); ++i)
      RT_TRY(check_table(model_.segments()->Get(i), *file::SegmentTypeTable()).in("segment ", i));
    RT_TRY(states(out));
    RT_TRY(metadata(out));
    for (uint32_t i = 0; i < model_.entries()->size(); ++i) {
      const file::Entry& entry = *model_.entries()->Get(i);
      RT_TRY(this->entry(entry, out.entries.emplace_back()).in("entry '", entry.name()->string_view(), "'"));
    }
    return out;
  }

 private:
  // A malicious file can refer to the same table or list many times: limits apply to the size after
  // unpacking.
  Status charge(uint64_t count, size_t size) {
    if (count > (limits_.graph_bytes - graph_bytes_) / size)
      return invalid_model("the graphs need more than the limit of ", bytes_text(limits_.graph_bytes));
    graph_bytes_ += count * size;
    return {};
  }
  Status charge_text(const flatbuffers::String* text) { return charge(size_of_vector(text), 1); }

  Result<Blob> segment(uint32_t index) {
    if (index >= segments_.size()) return invalid_model("segment ", index, " of ", segments_.size());
    std::optional<Blob>& known = segments_[index];
    if (!known) {
      auto fetched = fetch_(*model_.segments()->Get(index));
      if (!fetched.ok()) return std::move(fetched).status().in("segment ", index);
      known = std::move(fetched).value();
    }
    return *known;
  }

  Status entry(const file::Entry& in, ModelGraph::Entry& out) {
    RT_TRY(check_table(&in, *file::EntryTypeTable()));
    RT_TRY(charge_text(in.name()));
    out.name = in.name()->string_view();
    return graph(*in.graph(), out.graph, 0);
  }

  Status states(ModelGraph& out) {
    for (uint32_t i = 0; i < size_of_vector(model_.states()); ++i) {
      const file::State& state = *model_.states()->Get(i);
      RT_TRY(charge(1, sizeof(State)));
      RT_TRY(charge_text(state.name()));
      RT_TRY(this->state(state, out.states.emplace_back()).in("state '", state.name()->string_view(), "'"));
    }
    return {};
  }

  Status state(const file::State& in, State& out) {
    RT_TRY(check_table(&in, *file::StateTypeTable()));
    if (size_of_vector(in.dims()) > kMaxRank)
      return invalid_model("rank ", in.dims()->size(), ", at most ", kMaxRank, " is supported");
    out.name = in.name()->string_view();
    out.info.dtype = static_cast<DType>(in.dtype());
    for (uint32_t i = 0; i < size_of_vector(in.dims()); ++i) out.info.shape.push_back(in.dims()->Get(i));
    out.kind = static_cast<StateKind>(in.kind());
    if (!valid(out.info.dtype) || !out.info.shape.checked_elements())
      return invalid_model(out.info, " is not a valid type and shape" RT_FEW_ELEMENTS);
    const uint64_t bytes = out.info.bytes();
    if (bytes > limits_.memory - state_bytes_)
      return invalid_model("the states need more than the limit of ", bytes_text(limits_.memory));
    state_bytes_ += bytes;
    if (in.segment() == kNoSegment) return {};
    RT_ASSIGN(out.initial, segment(in.segment()));
    return {};
  }

  Status metadata(ModelGraph& out) {
    for (uint32_t i = 0; i < size_of_vector(model_.metadata()); ++i) {
      const file::KeyValue& pair = *model_.metadata()->Get(i);
      RT_TRY(check_table(&pair, *file::KeyValueTypeTable()).in("metadata ", i));
      RT_TRY(charge(1, sizeof(out.metadata[0])));
      RT_TRY(charge_text(pair.key()));
      RT_TRY(charge_text(pair.value()));
      out.metadata.emplace_back(pair.key()->string_view(), view_of(pair.value()));
    }
    return {};
  }

  Status graph(const file::Graph& in, Graph& out, int depth) {
    RT_TRY(check_table(&in, *file::GraphTypeTable()));
    if (depth > kMaxBodyDepth) return invalid_model("bodies are nested more than ", kMaxBodyDepth, " deep");
    RT_TRY(charge_text(in.name()));
    out.name = view_of(in.name());
    RT_TRY(charge_text(in.refusal()));
    out.refusal = view_of(in.refusal());
    RT_TRY(charge(size_of_vector(in.symbols()), sizeof(Symbol)));
    for (uint32_t i = 0; i < size_of_vector(in.symbols()); ++i) {
      const file::Symbol& symbol = *in.symbols()->Get(i);
      RT_TRY(check_table(&symbol, *file::SymbolTypeTable()).in("symbol ", i));
      RT_TRY(charge_text(symbol.name()));
      Symbol& added = out.symbols.emplace_back(Symbol{symbol.name()->str(), symbol.bound(), {}});
      RT_TRY(charge(size_of_vector(symbol.definition()), sizeof(ExtentTerm)));
      for (uint32_t k = 0; k < size_of_vector(symbol.definition()); ++k) {
        const file::ExtentTerm& term = *symbol.definition()->Get(k);
        added.definition.push_back({static_cast<ExtentOp>(term.op()), term.value()});
      }
    }
    const uint64_t value_count = size_of_vector(in.values());
    if (value_count > limits_.values - values_)
      return invalid_model("more than the limit of ", limits_.values, " values");
    values_ += value_count;
    RT_TRY(charge(value_count, sizeof(Value)));
    out.values.reserve(static_cast<size_t>(value_count));
    for (uint32_t i = 0; i < value_count; ++i) {
      const file::Value& value = *in.values()->Get(i);
      RT_TRY(this->value(value, out.values.emplace_back()).in("value ", i, " '", view_of(value.name()), "'"));
    }
    const uint64_t node_count = size_of_vector(in.nodes());
    if (node_count > limits_.nodes - nodes_)
      return invalid_model("more than the limit of ", limits_.nodes, " nodes");
    nodes_ += node_count;
    RT_TRY(charge(node_count, sizeof(Node)));
    out.nodes.reserve(static_cast<size_t>(node_count));
    for (uint32_t i = 0; i < node_count; ++i) {
      const file::Node& node = *in.nodes()->Get(i);
      const std::string_view op = node.op_name() != nullptr
                                      ? node.op_name()->string_view()
                                      : std::string_view(op::EnumNameOp(node.op_type()));
      RT_TRY(this->node(node, out.nodes.emplace_back(), depth)
                 .in("node ", i, " '", view_of(node.name()), "' (", op, ")"));
    }
    RT_TRY(charge(size_of_vector(in.inputs()) + size_of_vector(in.outputs()), sizeof(ValueId)));
    out.inputs = copy(in.inputs());
    out.outputs = copy(in.outputs());
    RT_TRY(charge(size_of_vector(in.state_updates()), sizeof(StateUpdate)));
    for (uint32_t i = 0; i < size_of_vector(in.state_updates()); ++i) {
      const file::StateUpdate& update = *in.state_updates()->Get(i);
      out.state_updates.push_back({update.state(), update.value()});
    }
    return {};
  }

  Status value(const file::Value& in, Value& out) {
    RT_TRY(check_table(&in, *file::ValueTypeTable()));
    RT_TRY(charge_text(in.name()));
    out.name = view_of(in.name());
    out.dtype = static_cast<DType>(in.dtype());
    out.role = static_cast<Role>(in.role());
    if (size_of_vector(in.dims()) > kMaxRank)
      return invalid_model("rank ", in.dims()->size(), ", at most ", kMaxRank, " is supported");
    for (uint32_t i = 0; i < size_of_vector(in.dims()); ++i)
      out.dims.push_back({in.dims()->Get(i)->extent(), in.dims()->Get(i)->symbol()});
    if (valid(out.dtype) && out.is_static()) {
      const auto elements = out.info().shape.checked_elements();
      if (!elements || static_cast<uint64_t>(*elements) > limits_.memory / librt::size_of(out.dtype))
        return invalid_model(out.info(), " needs more than the limit of ", bytes_text(limits_.memory));
    }
    if (out.role == Role::State) {
      out.state = in.data();
    } else if (in.data() != kNoSegment) {
      RT_ASSIGN(out.data, segment(in.data()));
    }
    if (in.quantization() == nullptr) return {};
    RT_TRY(check_table(in.quantization(), *file::QuantizationTypeTable()).in("quantization"));
    RT_TRY(charge(size_of_vector(in.quantization()->scale()), sizeof(float)));
    RT_TRY(charge(size_of_vector(in.quantization()->zero_point()), sizeof(int64_t)));
    out.quantization = Quantization{.scale = copy(in.quantization()->scale()),
                                    .zero_point = copy(in.quantization()->zero_point()),
                                    .axis = in.quantization()->axis()};
    return {};
  }

  Status node(const file::Node& in, Node& out, int depth) {
    RT_TRY(check_table(&in, *file::NodeTypeTable()));
    RT_TRY(charge_text(in.name()));
    RT_TRY(charge_text(in.op_name()));
    out.name = view_of(in.name());
    RT_TRY(charge(size_of_vector(in.inputs()) + size_of_vector(in.outputs()), sizeof(ValueId)));
    out.inputs = copy(in.inputs());
    out.outputs = copy(in.outputs());
    const uint32_t body_count = static_cast<uint32_t>(size_of_vector(in.bodies()));
    RT_TRY(attributes(in, out, body_count));
    RT_TRY(charge(body_count, sizeof(Graph)));
    out.bodies.resize(body_count);
    for (uint32_t i = 0; i < body_count; ++i)
      RT_TRY(graph(*in.bodies()->Get(i), out.bodies[i], depth + 1).in("body"));
    return {};
  }

  /// An operator or attribute that is newer than this build leaves the kind NONE: the node's body replaces
  /// it.
  Status attributes(const file::Node& in, Node& out, uint32_t body_count) {
    const op::Op kind = in.op_type();
    Status unknown = invalid_model("this build does not know the operator");
    if (kind > op::Op::NONE && kind <= op::Op::MAX) {
      if (in.op() == nullptr) return invalid_model("no attributes");
      RT_TRY(charge(kMaxAttributeLength, sizeof(int64_t)));
      auto known = read_attributes(*static_cast<const flatbuffers::Table*>(in.op()), kind);
      if (known.ok()) {
        out.op = std::move(known).value();
        return {};
      }
      unknown = std::move(known).status();
    }
    if (body_count == 0) return invalid_model(unknown.message(), "; it has no body to run instead");
    if (in.op_name() != nullptr)
      out.unknown_op = in.op_name()->string_view();
    else
      append(out.unknown_op, "operator ", static_cast<int>(kind));
    return {};
  }

  const file::Model& model_;
  const ReadLimits& limits_;
  const FetchSegment& fetch_;
  std::vector<std::optional<Blob>> segments_;
  uint64_t graph_bytes_ = 0;
  uint64_t state_bytes_ = 0;
  uint64_t values_ = 0;
  uint64_t nodes_ = 0;
};

}  // namespace

Result<ModelGraph> unpack_model(const file::Model& model, const ReadLimits& limits,
                                const FetchSegment& fetch) {
  return Unpacker(model, limits, fetch).run();
}

}  // namespace librt
