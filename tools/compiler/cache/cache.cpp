#include "tools/compiler/cache/cache.h"

#include <algorithm>

#include "runtime/graph/node_view.h"
#include "runtime/ops/page.h"
#include "tools/compiler/builder.h"
#include "tools/compiler/cache/growth.h"
#include "tools/compiler/cache/length.h"
#include "tools/compiler/edit/graph_edit.h"

namespace librt::compiler {
namespace {

enum AttentionOperand : size_t {
  kKey = 1,
  kValue = 2,
  kMask = 3,
  kKvLength = 4,
  kQueryPosition = 5,
  kOperands = 6
};

/// Copies the graph node by node into a new one, in which every grown value is a state.
class Rewriter {
 public:
  Rewriter(const Graph& from, std::vector<State>& states, const CacheOptions& options, const Growths& growths,
           const LengthValues& lengths)
      : from_(from),
        states_(states),
        options_(options),
        growths_(growths),
        lengths_(lengths),
        builder_(to_, &states) {}

  Result<Graph> run() {
    to_.name = from_.name;
    map_.assign(from_.values.size(), kNoValue);
    data_ = map_;
    RT_TRY(copy_sources());
    count_positions();
    RT_TRY(Status(builder_.status()));
    const std::vector<bool> needed = needed_nodes();
    for (NodeId id = 0; id < from_.nodes.size(); ++id) {
      if (!needed[id]) continue;
      RT_TRY(copy_node(id).in(describe(from_.nodes[id])));
      RT_TRY(Status(builder_.status()).in(describe(from_.nodes[id])));
    }
    for (const ValueId output : from_.outputs)
      if (!growths_.is_present(output)) RT_TRY(copy_output(output));
    for (const StateUpdate& update : from_.state_updates)
      to_.state_updates.push_back({map_[update.state], map_[update.value]});
    RT_TRY(tidy(to_));
    return std::move(to_);
  }

 private:
  /// Excludes nodes that only lead to removed outputs.
  std::vector<bool> needed_nodes() const {
    std::vector<bool> value(from_.values.size()), needed(from_.nodes.size());
    for (const ValueId output : from_.outputs) value[output] = !growths_.is_present(output);
    for (const StateUpdate& update : from_.state_updates) value[update.value] = true;
    for (size_t id = from_.nodes.size(); id-- > 0;) {
      const Node& node = from_.nodes[id];
      needed[id] = growths_.at(static_cast<NodeId>(id)) != nullptr ||
                   std::any_of(node.outputs.begin(), node.outputs.end(),
                               [&](ValueId output) { return output != kNoValue && value[output]; });
      if (!needed[id]) continue;
      for (const ValueId input : node.inputs)
        if (input != kNoValue) value[input] = true;
    }
    return needed;
  }

  std::vector<Dim> renamed(std::vector<Dim> dims) {
    for (Dim& dim : dims)
      if (dim.symbol >= 0) {
        const Symbol& symbol = from_.symbols[static_cast<size_t>(dim.symbol)];
        dim.symbol = to_.symbol(symbol.name);
        to_.symbols[static_cast<size_t>(dim.symbol)].bound = symbol.bound;
      }
    return dims;
  }

  Status copy_sources() {
    for (const ValueId id : from_.inputs)
      if (!growths_.is_past(id) && !lengths_.is_mask_input(id))
        map_[id] = builder_.input(from_[id].name, from_[id].dtype, renamed(from_[id].dims));
    for (ValueId id = 0; id < from_.values.size(); ++id) {
      const Value& value = from_[id];
      if (value.role == Role::Constant) {
        map_[id] = builder_.constant(value.info(), value.data);
        if (map_[id] == kNoValue) break;
        to_[map_[id]].name = value.name;
        to_[map_[id]].quantization = value.quantization;
      } else if (value.role == Role::State) {
        map_[id] = builder_.state(value.name, value.state, value.info());
      }
    }
    return builder_.status();
  }

  ValueId add_state(std::string name, const TensorInfo& info, StateKind kind) {
    const auto index = static_cast<uint32_t>(states_.size());
    states_.push_back({.name = name, .info = info, .kind = kind, .initial = {}});
    return builder_.state(std::move(name), index, info);
  }

  /// The number of new tokens, i64[1], from the shape of an input that has as many.
  ValueId fresh_count() {
    if (lengths_.fresh().is_known()) return builder_.ints(std::vector{lengths_.fresh().extent});
    for (const ValueId id : from_.inputs)
      for (size_t axis = 0; axis < from_[id].dims.size(); ++axis)
        if (map_[id] != kNoValue && from_[id].dims[axis] == lengths_.fresh()) return extent(map_[id], axis);
    builder_.fail(unsupported("cache: no input has a dimension for the number of new tokens"));
    return kNoValue;
  }
  ValueId extent(ValueId x, size_t axis) {
    op::ShapeAttributes one;
    one.start = static_cast<int64_t>(axis);
    one.end = one.start + 1;
    return builder_.emit(one, {x});
  }

  /// length_ before and after this step.
  void count_positions() {
    builder_.set_scope(kCacheLengthState);
    length_ = add_state(kCacheLengthState, {.dtype = DType::I64, .shape = {1}}, StateKind::Counter);
    count_ = fresh_count();
    longer_ = builder_.add(length_, count_);
    to_.state_updates.push_back({length_, longer_});
  }

  Status copy_node(NodeId id) {
    const Node& node = from_.nodes[id];
    builder_.set_scope(node.name);
    if (const Growth* growth = growths_.at(id)) return write_entries(*growth);
    const bool derived = std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
      return output == kNoValue || lengths_.is_derived(output);
    });
    if (derived) return copy_derived(node);
    Node copy = node;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] != kNoValue) copy.inputs[i] = operand(node, i);
    if (node.kind() == OpKind::Attention) RT_TRY(tell_length(node, copy));
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue || copy.inputs[i] != kNoValue) continue;
      if (node.kind() == OpKind::Attention && i == kMask) continue;  // removed by tell_length()
      if (is_movement(from_, node)) return {};  // leads to where the past grows, and is removed with it
      return unsupported("reads keys or values of earlier steps before new ones are appended");
    }
    if (const size_t i = cached_operand(copy); i < copy.inputs.size() && node.kind() != OpKind::Attention)
      if (!(i == 0 && is_movement(to_, copy)) && node.kind() != OpKind::Expand)
        return unsupported(
            "reads keys or values of the cache, of which only a part is valid; only Attention takes the "
            "valid length, and this is not part of a recognized attention");
    RT_ASSIGN(const std::vector<ValueId> outputs, emit(node, std::move(copy)));
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNoValue) {
        map_[node.outputs[i]] = outputs[i];
        to_[outputs[i]].name = from_[node.outputs[i]].name;
      }
    return {};
  }

  /// The copy of a derived value that the operand needs: for its elements, or for a shape.
  ValueId operand(const Node& node, size_t i) const {
    const ValueId id = node.inputs[i];
    return data_[id] != kNoValue && !is_shape_operand(node, i) ? data_[id] : map_[id];
  }

  /// Copies twice where needed: for shapes, which are static now, and for readers of the elements.
  Status copy_derived(const Node& node) {
    if (node.kind() == OpKind::Shape && map_[node.inputs[0]] == kNoValue) {
      RT_TRY(gone_shape(node));
    } else {
      RT_TRY(copy_derived(node, map_, [&](size_t i) { return map_[node.inputs[i]]; }));
    }
    if (node.outputs.size() != 1 || !lengths_.is_data(node.outputs[0])) return {};
    if (const Positions* positions = lengths_.positions(node.outputs[0])) {
      data_[node.outputs[0]] = positions_value(from_[node.outputs[0]], *positions);
      return builder_.status();
    }
    return copy_derived(node, data_, [&](size_t i) { return operand(node, i); });
  }
  template <class Operand>
  Status copy_derived(const Node& node, std::vector<ValueId>& map, const Operand& operand_of) {
    Node copy = node;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      copy.inputs[i] = operand_of(i);
      if (copy.inputs[i] == kNoValue) return {};  // depends on a removed input
    }
    RT_ASSIGN(const std::vector<ValueId> outputs, emit(node, std::move(copy)));
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNoValue) map[node.outputs[i]] = outputs[i];
    return {};
  }

  Result<std::vector<ValueId>> emit(const Node& node, Node copy) {
    // A page writes the body again, for the changed node.
    const ops::CompilerPage* page = ops::compiler_page_of(node.kind());
    if (page != nullptr && page->body != nullptr) copy.bodies.clear();
    const bool cached = cached_operand(copy) < copy.inputs.size() && node.kind() != OpKind::Attention &&
                        node.kind() != OpKind::Shape;
    std::vector<ValueId> outputs = builder_.emit_node(std::move(copy));
    RT_TRY(Status(builder_.status()));
    if (cached) cached_.insert(cached_.end(), outputs.begin(), outputs.end());
    return outputs;
  }

  /// The first operand that holds the whole cache; the number of operands if there is none.
  size_t cached_operand(const Node& node) const {
    const auto at =
        std::find_first_of(node.inputs.begin(), node.inputs.end(), cached_.begin(), cached_.end());
    return static_cast<size_t>(at - node.inputs.begin());
  }

  /// The shape of a removed input: the past's length is the capacity less the new entries, a mask's is the
  /// capacity, so that sizes computed from them are those of the cache.
  Status gone_shape(const Node& node) {
    const auto& attributes = node.as<op::ShapeAttributes>();
    const std::vector<Dim>& dims = from_[node.inputs[0]].dims;
    std::vector<ValueId> entries;
    const int64_t rank = static_cast<int64_t>(dims.size());
    const auto clamped = [&](int64_t bound) {
      return std::clamp<int64_t>(bound < 0 ? bound + rank : bound, 0, rank);
    };
    for (int64_t axis = clamped(attributes.start); axis < clamped(attributes.end); ++axis) {
      const Dim& dim = dims[static_cast<size_t>(axis)];
      const ValueId whole = builder_.ints(std::vector{dim.is_known() ? dim.extent : options_.length});
      const bool rest = !dim.is_known() && !lengths_.is_mask_input(node.inputs[0]);
      entries.push_back(rest ? builder_.sub(whole, count_) : whole);
    }
    op::ConcatAttributes joined;
    joined.axis = 0;
    map_[node.outputs[0]] =
        entries.size() == 1 ? entries[0] : builder_.emit_many(make_op(joined), entries, 1)[0];
    return builder_.status();
  }

  /// grown = TensorScatter(state, fresh, length). The first axis of both is the batch, added with extent 1
  /// where there is none.
  Status write_entries(const Growth& growth) {
    std::vector<int64_t> grown, fresh, cache;
    for (size_t axis = 0; axis < from_[growth.grown].dims.size(); ++axis) {
      const Dim& dim = from_[growth.fresh].dims[axis];
      if (axis != growth.axis && !dim.is_known())
        return unsupported("input '", from_[growth.past].name, "': a cache needs static extents, but axis ",
                           axis, " of the appended entries is ",
                           dim.symbol >= 0 ? from_.symbols[size_t(dim.symbol)].name : "unknown",
                           "; give --dim NAME=N");
      fresh.push_back(axis == growth.axis && !dim.is_known() ? -1 : dim.extent);
      grown.push_back(axis == growth.axis ? options_.length : dim.extent);
    }
    const bool batched = growth.axis > 0 && grown[0] == 1;
    cache = grown;
    if (!batched) {
      cache.insert(cache.begin(), 1);
      fresh.insert(fresh.begin(), 1);
    }
    TensorInfo info{.dtype = from_[growth.grown].dtype, .shape = {}};
    for (const int64_t extent : cache) info.shape.push_back(extent);
    const ValueId state = add_state(state_name(growth), info, StateKind::Statistic);
    ValueId entries = map_[growth.fresh];
    if (!batched) entries = builder_.reshape(entries, builder_.ints(fresh));
    op::TensorScatterAttributes scatter;
    scatter.axis = static_cast<int64_t>(growth.axis) + (batched ? 0 : 1);
    const ValueId written = builder_.emit(scatter, {state, entries, length_});
    to_.state_updates.push_back({state, written});
    const ValueId result = batched ? written : builder_.reshape(written, builder_.ints(grown));
    RT_TRY(Status(builder_.status()));
    map_[growth.grown] = result;
    cached_.push_back(result);
    return {};
  }

  std::string state_name(const Growth& growth) const {
    const std::string& name = from_[growth.past].name;
    size_t index = 0, count = 0;
    for (const Growth& place : growths_.places) {
      if (place.past != growth.past) continue;
      if (&place == &growth) index = count;
      ++count;
    }
    return count == 1 ? name : text(name, '.', index);
  }

  /// length + offset + 0, 1, .., of this value's shape and dtype.
  ValueId positions_value(const Value& value, const Positions& positions) {
    ValueId first = length_;
    if (positions.offset != 0) first = builder_.add(first, builder_.ints(std::vector{positions.offset}));
    std::vector<int64_t> shape;
    bool several = false;
    for (const Dim& dim : value.dims) {
      several = several || !dim.is_known() || dim.extent > 1;
      shape.push_back(dim.is_known() ? dim.extent : -1);
    }
    if (several) {
      const ValueId zero = builder_.scalar(0, DType::I64), one = builder_.scalar(1, DType::I64);
      const ValueId count = builder_.reshape(count_, builder_.ints({}));
      first = builder_.add(first, builder_.emit(op::RangeAttributes{}, {zero, count, one}));
    }
    const ValueId shaped = builder_.reshape(first, builder_.ints(shape));
    return value.dtype == DType::I64 ? shaped : builder_.cast(shaped, value.dtype);
  }

  /// kv_length is the number of valid positions after this step, so queries are at their end.
  Status tell_length(const Node& node, Node& copy) {
    const auto is_cached = [&](size_t i) {
      return std::find(cached_.begin(), cached_.end(), copy.inputs[i]) != cached_.end();
    };
    const MaskMeaning* mask = node.inputs.size() > kMask ? lengths_.mask(node.inputs[kMask]) : nullptr;
    if (!is_cached(kKey) && !is_cached(kValue))
      return mask == nullptr ? Status()
                             : unsupported("its mask follows from the length of the cache, its keys do not");
    copy.inputs.resize(kOperands, kNoValue);
    if (!is_cached(kKey) || !is_cached(kValue))
      return unsupported("only one of its keys and values comes from a cache");
    if (copy.inputs[kKvLength] != kNoValue) return unsupported("its number of valid keys is given already");
    auto& attributes = copy.as<op::AttentionAttributes>();
    const bool by_position = attributes.causal || attributes.left_window >= 0 || attributes.right_window >= 0;
    if (mask != nullptr) {
      if (*mask == MaskMeaning::Causal && by_position)
        return unsupported("it has a causal mask and limits by position");
      copy.inputs[kMask] = kNoValue;
      attributes.causal = attributes.causal || *mask == MaskMeaning::Causal;
    } else if (by_position && copy.inputs[kQueryPosition] == kNoValue) {
      copy.inputs[kQueryPosition] = builder_.ints(std::vector<int64_t>{0});  // as it was without kv_length
    }
    const Dim& queries = from_[node.inputs[0]].dims[2];
    if (attributes.causal && copy.inputs[kQueryPosition] == kNoValue && queries != lengths_.fresh())
      return unsupported("its number of queries differs from its number of new keys");
    const Dim& batch = from_[node.inputs[0]].dims[0];
    copy.inputs[kKvLength] = batch == Dim{.extent = 1} ? longer_
                                                       : builder_.emit(op::ExpandAttributes{},
                                                                       {longer_, extent(copy.inputs[0], 0)});
    return builder_.status();
  }

  Status copy_output(ValueId output) {
    const Value& value = from_[output];
    if (map_[output] == kNoValue)
      return unsupported("output '", value.name,
                         "' follows from keys, values or the length of earlier steps");
    if (std::find(cached_.begin(), cached_.end(), map_[output]) != cached_.end())
      return unsupported("output '", value.name, "' shows the cache, but is no input of the next step");
    builder_.output(map_[output]);
    return {};
  }

  const Graph& from_;
  Graph to_;
  std::vector<State>& states_;
  const CacheOptions& options_;
  const Growths& growths_;
  const LengthValues& lengths_;
  Builder builder_;
  std::vector<ValueId> map_;     ///< new value of an old one; kNoValue: gone
  std::vector<ValueId> data_;    ///< of a derived one, for readers of its elements
  std::vector<ValueId> cached_;  ///< new values that hold a whole cache
  ValueId length_ = kNoValue, longer_ = kNoValue, count_ = kNoValue;
};

}  // namespace

Status add_cache(ModelGraph& model, const CacheOptions& options, CacheReport* report) {
  if (options.length < 1)
    return invalid_argument("cache: expected a length of at least 1, found ", options.length);
  if (model.entry("infer") == nullptr || model.entries.size() != 1)
    return invalid_argument("cache: expected a model with the entry 'infer' only");
  Graph& graph = model.entries[0].graph;
  std::vector<State> states = model.states;
  RT_ASSIGN(const Growths growths, find_growths(graph, states, options.pairs));
  RT_TRY(unite_lengths(graph, states, growths));
  RT_ASSIGN(const LengthValues lengths, LengthValues::find(graph, states, growths));
  RT_ASSIGN(Graph rewritten, Rewriter(graph, states, options, growths, lengths).run());
  if (report != nullptr) {
    *report = {};
    for (size_t i = model.states.size(); i < states.size(); ++i) report->bytes += states[i].info.bytes();
    report->states = growths.places.size();
    for (const ValueId id : graph.inputs)
      if (growths.is_past(id) || lengths.is_mask_input(id)) report->inputs.push_back(graph[id].name);
    for (const ValueId id : graph.outputs)
      if (growths.is_present(id)) report->outputs.push_back(graph[id].name);
  }
  graph = std::move(rewritten);
  model.states = std::move(states);
  model.metadata.emplace_back(kCacheCapacityKey, std::to_string(options.length));
  return {};
}

}  // namespace librt::compiler
