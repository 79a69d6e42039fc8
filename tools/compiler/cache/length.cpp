#include "tools/compiler/cache/length.h"

#include <algorithm>

#include "runtime/core/element.h"
#include "runtime/graph/node_view.h"
#include "runtime/ops/evaluate.h"
#include "tools/compiler/edit/graph_edit.h"
#include "tools/compiler/pipeline.h"

namespace librt::compiler {
namespace {

constexpr size_t kMaskOperand = 3;
/// A float mask hides a key with a value this low or lower, and keeps the score with 0.
constexpr double kHidden = -1e4;

/// A cache's length and the number of new tokens.
struct Lengths {
  int64_t past, fresh;
};

/// Nodes from a length to what is computed with it.
constexpr int kMostDepth = 256;

/// Whether only the shape of the result depends on shape operands, not its elements: Slice and Pad, which
/// have shape operands as well, select elements by them.
bool shapes_only(OpKind kind) {
  return kind == OpKind::Reshape || kind == OpKind::Expand || kind == OpKind::Tile ||
         kind == OpKind::ConstantOfShape;
}

}  // namespace

class LengthValues::Search {
 public:
  Search(const Graph& graph, const std::vector<State>& states, const Growths& growths, LengthValues& found)
      : graph_(graph), states_(states), growths_(growths), found_(found), producers_(producers(graph)) {}

  Status run() {
    RT_TRY(find_symbols());
    mark_derived();
    for (const Node& node : graph_.nodes) {
      if (derives(node)) continue;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId input = node.inputs[i];
        if (input == kNoValue || !found_.derived_[input] || is_shape_operand(node, i)) continue;
        if (node.kind() == OpKind::Attention && i == kMaskOperand)
          RT_TRY(recognize_mask(node, input));
        else
          RT_TRY(resolve(node, input));
      }
    }
    return {};
  }

 private:
  /// past_ and fresh: the symbols of the two lengths.
  Status find_symbols() {
    for (const Growth& growth : growths_.places) {
      const Dim& past = graph_[growth.earlier].dims[growth.axis];
      const Dim& fresh = graph_[growth.fresh].dims[growth.axis];
      if (&growth != growths_.places.data() && (past != past_ || fresh != found_.fresh_))
        return unsupported(describe(graph_.nodes[growth.concat]),
                           ": the length of the cache or of the new entries has another name here than "
                           "elsewhere; export the model with one name for each");
      past_ = past;
      found_.fresh_ = fresh;
    }
    if (!found_.fresh_.is_known() && found_.fresh_.symbol < 0)
      return unsupported(describe(graph_.nodes[growths_.places[0].concat]),
                         ": the number of new entries is neither static nor a named dimension of an input");
    return {};
  }

  bool has_total(const Value& value) const {
    return std::any_of(value.dims.begin(), value.dims.end(), [&](const Dim& dim) {
      return dim.symbol >= 0 && dim.symbol != past_.symbol && dim.symbol != found_.fresh_.symbol;
    });
  }

  /// A node whose results are derived: it reads shapes of the past, or only derived values and constants.
  bool derives(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId output) { return output != kNoValue && found_.derived_[output]; });
  }

  /// Three kinds of values: the past's own (moved, grown), derived ones, and everything else.
  void mark_derived() {
    const size_t count = graph_.values.size();
    found_.derived_.assign(count, false);
    found_.mask_input_.assign(count, false);
    std::vector<bool> depends(count), data(count), past(count);
    for (const ValueId input : graph_.inputs) {
      data[input] = true;
      past[input] = growths_.is_past(input);
      // A mask as long as the text so far: values derived from it are known when it is all ones.
      if (!past[input] && graph_[input].rank() == 2 && graph_[input].dims[0].is_known() &&
          has_total(graph_[input])) {
        found_.mask_input_[input] = found_.derived_[input] = depends[input] = true;
        data[input] = false;
      }
    }
    for (const Value& value : graph_.values)
      if (value.role == Role::State) data[static_cast<size_t>(&value - graph_.values.data())] = true;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const Node& node = graph_.nodes[id];
      bool any_data = false, any_length = false, any_past = growths_.at(id) != nullptr;
      for (const ValueId input : node.inputs) {
        if (input == kNoValue) continue;
        any_data = any_data || data[input];
        any_length = any_length || depends[input];
        any_past = any_past || (past[input] && is_movement(graph_, node));
      }
      if (node.kind() == OpKind::Shape) {
        any_data = false;
        any_length = past[node.inputs[0]] || depends[node.inputs[0]];
      }
      for (const ValueId output : node.outputs) {
        if (output == kNoValue) continue;
        past[output] = any_past;
        data[output] = any_data || any_past;
        depends[output] = any_length;
        found_.derived_[output] = any_length && !data[output];
      }
    }
  }

  /// `id` is read for its elements by `reader`.
  Status resolve(const Node& reader, ValueId id, int depth = kMostDepth) {
    if (!found_.data_.insert(id).second) return {};
    if (recognize_positions(id)) return {};
    const auto refuse = [&] {
      return unsupported(
          describe(reader), ": it computes with '", graph_[id].name,
          "', which follows from the length of the cache in a way that is neither positions nor a "
          "causal mask of an Attention");
    };
    if (!producers_[id] || depth == 0) return refuse();
    const Node& node = graph_.nodes[*producers_[id]];
    if (node.kind() == OpKind::Shape) return refuse();
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (input == kNoValue || !found_.derived_[input]) continue;
      if (is_shape_operand(node, i) && shapes_only(node.kind())) continue;
      if (is_shape_operand(node, i)) return refuse();
      RT_TRY(resolve(node, input, depth - 1));
    }
    return {};
  }

  bool recognize_positions(ValueId id) {
    const DType dtype = graph_[id].dtype;
    if (dtype != DType::I64 && dtype != DType::I32) return false;
    std::optional<int64_t> offset;
    for (const Lengths& lengths : tried()) {
      const auto value = evaluate(id, lengths);
      if (!value.ok()) return false;
      const int64_t count = value->info.elements();
      if (count != 1 && (count != lengths.fresh || value->info.shape[value->info.shape.rank() - 1] != count))
        return false;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t shift = load_integer(value->bytes.data(), dtype, i) - lengths.past - i;
        if (offset.value_or(shift) != shift) return false;
        offset = shift;
      }
    }
    found_.positions_[id] = {*offset};
    return true;
  }

  Status recognize_mask(const Node& node, ValueId id) {
    if (found_.masks_.contains(id)) return {};
    bool all = true, causal = true;
    for (const Lengths& lengths : tried()) {
      RT_ASSIGN(const ops::HostTensor mask, evaluate(id, lengths));
      const Shape& shape = mask.info.shape;
      const int64_t keys = shape.rank() > 0 ? shape[shape.rank() - 1] : 1;
      const int64_t queries = shape.rank() > 1 ? shape[shape.rank() - 2] : 1;
      for (int64_t i = 0; i < mask.info.elements(); ++i) {
        const double number = load_element(mask.bytes.data(), mask.info.dtype, i);
        const bool boolean = mask.info.dtype == DType::Bool;
        const bool seen = boolean ? number != 0 : number == 0;
        if (!boolean && !seen && !(number <= kHidden)) all = causal = false;
        const int64_t key = i % keys, query = i / keys % queries;
        all = all && seen;
        // Only a mask of full extents can be causal: an axis of extent 1 would be broadcast.
        const bool whole = keys == lengths.past + lengths.fresh && queries == lengths.fresh;
        causal = causal && whole && seen == (key <= lengths.past + query);
      }
    }
    if (!all && !causal)
      return unsupported(describe(node), ": its mask '", graph_[id].name,
                         "' follows from the length of the cache, and is neither causal nor a no-op when no "
                         "token is masked");
    found_.masks_[id] = all ? MaskMeaning::Everything : MaskMeaning::Causal;
    return {};
  }

  std::vector<Lengths> tried() const {
    if (found_.fresh_.is_known()) {
      const int64_t s = found_.fresh_.extent;
      return {{3, s}, {5, s}, {1, s}};
    }
    return {{3, 2}, {5, 4}, {1, 3}};
  }

  /// A derived value at these lengths.
  Result<ops::HostTensor> evaluate(ValueId id, const Lengths& lengths) const {
    Graph part = graph_;
    part.outputs = {id};
    part.state_updates.clear();
    RT_TRY(tidy(part));
    for (Node& node : part.nodes) node.bodies.clear();
    RT_TRY(expand_composites(part, states_));
    std::vector<ops::HostTensor> inputs;
    for (size_t i = 0; i < part.inputs.size(); ++i) {
      const Value& value = part[part.inputs[i]];
      TensorInfo info{.dtype = value.dtype, .shape = {}};
      for (const Dim& dim : value.dims)
        info.shape.push_back(dim.is_known()                       ? dim.extent
                             : dim.symbol == past_.symbol         ? lengths.past
                             : dim.symbol == found_.fresh_.symbol ? lengths.fresh
                                                                  : lengths.past + lengths.fresh);
      inputs.emplace_back(info);
      if (found_.mask_input_[graph_.inputs[i]])
        for (int64_t k = 0; k < info.elements(); ++k)
          store_element(inputs.back().bytes.data(), info.dtype, k, 1);
    }
    std::vector<ConstTensorView> views;
    for (const ops::HostTensor& input : inputs) views.push_back(std::as_const(input).view());
    RT_ASSIGN(std::vector<ops::HostTensor> results, ops::evaluate_graph(part, views));
    return std::move(results[0]);
  }

  const Graph& graph_;
  const std::vector<State>& states_;
  const Growths& growths_;
  LengthValues& found_;
  std::vector<std::optional<NodeId>> producers_;
  Dim past_;
};

Result<LengthValues> LengthValues::find(const Graph& graph, const std::vector<State>& states,
                                        const Growths& growths) {
  LengthValues found;
  RT_TRY(Search(graph, states, growths, found).run());
  return found;
}

const Positions* LengthValues::positions(ValueId id) const {
  const auto at = positions_.find(id);
  return at == positions_.end() ? nullptr : &at->second;
}

const MaskMeaning* LengthValues::mask(ValueId id) const {
  const auto at = masks_.find(id);
  return at == masks_.end() ? nullptr : &at->second;
}

}  // namespace librt::compiler
