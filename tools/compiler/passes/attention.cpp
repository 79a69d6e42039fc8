// attention: recognizes scaled dot product attention that a model spells out: a MatMul of queries and keys,
// factors, masks, a softmax over the keys, and a MatMul with the values.
//
// Heads may be a separate axis or merged with the batch; keys may be transposed by a node or by a permutation
// that does more; repeated key and value heads (grouped queries) are read before the repetition. A finite
// value in place of -infinity stays an additive mask, unless no row is fully masked. Reassociates, as
// recognize does.
#include <cmath>
#include <limits>

#include "tools/compiler/passes/movement.h"
#include "tools/compiler/passes/passes.h"
#include "tools/compiler/passes/pattern.h"

namespace librt::compiler {
namespace {

/// A mask value this low or lower hides a key, whatever its score.
constexpr double kLow = -1e4;

struct Match {
  Interior interior;
  NodeId matmul = kNoNode;
  double scale = 1;
  double softcap = 0;
  bool causal = false;
  ValueId first = kNoValue;    ///< position of the first query under a causal mask
  ValueId bias = kNoValue;     ///< added to the scores
  ValueId keep = kNoValue;     ///< true where a key is not masked
  ValueId leading = kNoValue;  ///< of rank 4: batch and heads where the MatMuls merge them
};

Shape shape_of(GraphEdit& edit, ValueId value) {
  return edit.builder().comparable_shape(value);
}

/// A value times a scalar.
struct Scaled {
  ValueId value = kNoValue;
  double factor = 1;
};
std::optional<Scaled> as_scaled(GraphEdit& edit, ValueId value) {
  const Node* node = edit.producer(value);
  if (node == nullptr) return std::nullopt;
  for (size_t i = 0; i < 2 && node->kind() == OpKind::Mul; ++i)
    if (const auto number = edit.uniform(node->inputs[i]);
        number && edit.same_info(node->inputs[1 - i], value))
      return Scaled{node->inputs[1 - i], *number};
  if (node->kind() == OpKind::Div)
    if (const auto number = edit.uniform(node->inputs[1]);
        number && *number != 0 && edit.same_info(node->inputs[0], value))
      return Scaled{node->inputs[0], 1 / *number};
  return std::nullopt;
}

// --- masks

/// Adds both biases: possible where one broadcasts to the other, so that no larger mask arises.
bool add_bias(GraphEdit& edit, Match& match, ValueId bias) {
  if (match.bias == kNoValue) {
    match.bias = bias;
    return true;
  }
  const Shape a = shape_of(edit, match.bias), b = shape_of(edit, bias);
  const auto sum = broadcast(a, b);
  if (!sum || (*sum != a && *sum != b)) return false;
  match.bias = edit.emit(op::AddAttributes{}, {match.bias, bias});
  return true;
}

/// Where `condition` is `shows` the scores stay; elsewhere they are replaced by `low`, or it is added.
bool hide(GraphEdit& edit, Match& match, ValueId condition, bool shows, double low) {
  if (low > kLow) return false;
  if (const auto causal = causal_condition(edit, condition, shows); causal && !match.causal) {
    match.causal = true;
    match.first = causal->first;
    return true;
  }
  if (std::isinf(low) && match.keep == kNoValue) {
    match.keep = shows ? condition : edit.emit(op::NotAttributes{}, {condition});
    return true;
  }
  const ValueId zero = edit.builder().scalar(0, DType::F32), number = edit.builder().scalar(low, DType::F32);
  const ValueId bias = shows ? edit.emit(op::WhereAttributes{}, {condition, zero, number})
                             : edit.emit(op::WhereAttributes{}, {condition, number, zero});
  return add_bias(edit, match, bias);
}

bool add_mask(GraphEdit& edit, Match& match, ValueId mask) {
  if (!match.causal && is_causal_constant(edit, mask)) return match.causal = true;
  const Node* where = edit.producer(mask, OpKind::Where);
  if (where == nullptr) return add_bias(edit, match, mask);
  const ValueId condition = where->inputs[0];
  const auto yes = edit.uniform(where->inputs[1]), no = edit.uniform(where->inputs[2]);
  if (yes == 0 && no && *no <= kLow) return hide(edit, match, condition, true, *no);
  if (no == 0 && yes && *yes <= kLow) return hide(edit, match, condition, false, *yes);
  return add_bias(edit, match, mask);
}

// --- from the softmax back to the MatMul of queries and keys

/// Reshape that splits or merges the axes before the last two.
bool keeps_matrices(GraphEdit& edit, ValueId from, ValueId to) {
  const Shape a = shape_of(edit, from), b = shape_of(edit, to);
  if (a.rank() < 3 || b.rank() < 3 || a.back() != b.back() || a[a.rank() - 2] != b[b.rank() - 2])
    return false;
  return true;
}

/// Through what exporters put between Q K^T and the Softmax: scale, soft cap, bias and mask.
bool leads_to_matmul(GraphEdit& edit, ValueId value, int depth = 8) {
  const Node* node = edit.producer(value);
  if (node == nullptr || depth == 0) return false;
  const auto through = [&](size_t i) { return leads_to_matmul(edit, node->inputs[i], depth - 1); };
  switch (node->kind()) {
    case OpKind::MatMul: return true;
    case OpKind::Tanh:
    case OpKind::Div:
    case OpKind::Reshape: return through(0);
    case OpKind::Mul:
    case OpKind::Add: return through(0) || through(1);
    case OpKind::Where: return through(1) || through(2);
    default: return false;
  }
}

/// One step back from `value`; kNoValue: this is no attention.
ValueId step_back(GraphEdit& edit, ValueId value, Match& match) {
  const Node node = *edit.producer(value);
  const bool scaled = match.scale != 1 || match.softcap != 0;
  if (const auto factor = as_scaled(edit, value)) {
    if (match.softcap == 0 && !scaled && edit.producer(factor->value, OpKind::Tanh) != nullptr) {
      if (factor->factor <= 0) return kNoValue;
      match.softcap = factor->factor;
      match.interior.push_back(edit.producer_id(factor->value));
      return edit.producer(factor->value)->inputs[0];
    }
    match.scale *= factor->factor;
    return factor->value;
  }
  if (node.kind() == OpKind::Reshape && keeps_matrices(edit, node.inputs[0], value)) {
    for (ValueId end : {node.inputs[0], value})
      if (edit.value(end).rank() == 4) match.leading = end;
    return node.inputs[0];
  }
  if (scaled) return kNoValue;  // a mask below would be scaled
  if (node.kind() == OpKind::Add) {
    for (size_t i = 0; i < 2; ++i)
      if (edit.same_info(node.inputs[i], value) && leads_to_matmul(edit, node.inputs[i]))
        return add_mask(edit, match, node.inputs[1 - i]) ? node.inputs[i] : kNoValue;
    return kNoValue;
  }
  if (node.kind() == OpKind::Where) {
    for (size_t i = 1; i < 3; ++i)
      if (const auto low = edit.uniform(node.inputs[3 - i]); low && edit.same_info(node.inputs[i], value))
        return hide(edit, match, node.inputs[0], i == 1, *low) ? node.inputs[i] : kNoValue;
  }
  return kNoValue;
}

bool is_plain_matmul(const Node& node) {
  return node.kind() == OpKind::MatMul && node.inputs.size() == 2 &&
         node.as<op::MatMulAttributes>().epilogue == nullptr;
}

/// The softmax that produces `weights`: directly, through Reshapes, or with NaN of fully masked rows replaced
/// by 0. Its axis is the last or, if transposed, the one before.
ValueId softmax_of(GraphEdit& edit, ValueId weights, bool transposed, Match& match) {
  for (int steps = 0; steps < 4; ++steps) {
    const Node* node = edit.producer(weights);
    if (node == nullptr) return kNoValue;
    const NodeId id = edit.producer_id(weights);
    if (node->kind() == OpKind::Softmax) {
      const int rank = edit.value(weights).rank();
      const auto axis = normalized_axis(node->as<op::SoftmaxAttributes>().axis, rank);
      match.interior.push_back(id);
      return axis == rank - (transposed ? 2 : 1) ? node->inputs[0] : kNoValue;
    }
    match.interior.push_back(id);
    if (node->kind() == OpKind::Where) {
      const Node* negated = edit.producer(node->inputs[0], OpKind::Not);
      const size_t kept = negated == nullptr ? 1 : 2;
      const ValueId equal = negated == nullptr ? node->inputs[0] : negated->inputs[0];
      const Node* same = edit.producer(equal, OpKind::Equal);
      const ValueId x = node->inputs[kept];
      if (same == nullptr || same->inputs[0] != x || same->inputs[1] != x ||
          edit.uniform(node->inputs[3 - kept]) != 0)
        return kNoValue;
      match.interior.push_back(edit.producer_id(equal));
      if (negated != nullptr) match.interior.push_back(edit.producer_id(node->inputs[0]));
      weights = x;
    } else if (node->kind() == OpKind::Reshape && keeps_matrices(edit, node->inputs[0], weights)) {
      for (ValueId end : {node->inputs[0], weights})
        if (edit.value(end).rank() == 4) match.leading = end;
      weights = node->inputs[0];
    } else {
      return kNoValue;
    }
  }
  return kNoValue;
}

std::optional<Match> match_scores(GraphEdit& edit, ValueId weights, bool transposed) {
  Match match;
  ValueId value = softmax_of(edit, weights, transposed, match);
  for (int steps = 0; steps < 12 && value != kNoValue; ++steps) {
    const Node* node = edit.producer(value);
    if (node == nullptr) return std::nullopt;
    match.interior.push_back(edit.producer_id(value));
    if (node->kind() == OpKind::MatMul) {
      if (!is_plain_matmul(*node)) return std::nullopt;
      match.matmul = edit.producer_id(value);
      return match;
    }
    value = step_back(edit, value, match);
  }
  return std::nullopt;
}

// --- operands

ValueId with_rows_and_columns_swapped(GraphEdit& edit, ValueId x) {
  std::vector<int64_t> permutation;
  const int64_t rank = edit.value(x).rank();
  for (int64_t axis = 0; axis < rank; ++axis) permutation.push_back(axis);
  std::swap(permutation[static_cast<size_t>(rank - 1)], permutation[static_cast<size_t>(rank - 2)]);
  return permuted(edit, x, std::move(permutation));
}

/// x without scalar factors, also those before a Transpose.
ValueId unscaled(GraphEdit& edit, ValueId x, double& scale) {
  for (;;) {
    while (const auto scaled = as_scaled(edit, x)) {
      scale *= scaled->factor;
      x = scaled->value;
    }
    const Node* transpose = edit.producer(x, OpKind::Transpose);
    const auto inner = transpose == nullptr ? std::nullopt : as_scaled(edit, transpose->inputs[0]);
    if (!inner) return x;
    scale *= inner->factor;
    const std::vector<int64_t> permutation = permutation_of(edit, *transpose);
    x = permuted(edit, inner->value, permutation);
  }
}

/// The only axis of `expand`'s input that is repeated; -1: none, or more than one.
int repeated_axis(GraphEdit& edit, const Node& expand) {
  int found = -1;
  const Shape from = shape_of(edit, expand.inputs[0]), to = shape_of(edit, expand.outputs[0]);
  if (from.rank() != to.rank()) return -1;
  for (int axis = 0; axis < to.rank(); ++axis) {
    if (from[axis] == to[axis]) continue;
    if (from[axis] != 1 || (found >= 0 && found != axis)) return -1;
    found = axis;
  }
  return found;
}

/// x with heads along `axis`, before each was repeated; x itself where they were not.
ValueId unrepeated(GraphEdit& edit, ValueId x, int axis, int depth = 8) {
  if (const Node* transpose = edit.producer(x, OpKind::Transpose); transpose != nullptr && depth > 0) {
    const std::vector<int64_t> permutation = permutation_of(edit, *transpose);
    const ValueId input = transpose->inputs[0];
    const ValueId inner =
        unrepeated(edit, input, static_cast<int>(permutation[static_cast<size_t>(axis)]), depth - 1);
    return inner == input ? x : permuted(edit, inner, permutation);
  }
  const Node* reshape = edit.producer(x, OpKind::Reshape);
  const Node* expand = reshape == nullptr ? nullptr : edit.producer(reshape->inputs[0], OpKind::Expand);
  if (expand == nullptr || repeated_axis(edit, *expand) != axis + 1) return x;
  Shape joined = shape_of(edit, reshape->inputs[0]);
  constexpr int64_t kSymbols = int64_t{1} << 31;
  if (joined[axis] >= kSymbols || joined[axis + 1] >= kSymbols) return x;
  joined[axis] *= joined[axis + 1];
  joined.erase(axis + 1);
  if (joined != shape_of(edit, x)) return x;
  const ValueId source = expand->inputs[0];
  const auto at = static_cast<size_t>(axis);
  return reshape_to(edit, source, {{source, 0, at + 1}, {source, at + 2, edit.value(source).dims.size()}});
}

struct Operands {
  ValueId q, k, v;
};

/// Whether batches and heads agree; a key head may serve several query heads.
bool fit(GraphEdit& edit, const Operands& all, bool joined) {
  const Shape q = shape_of(edit, all.q), k = shape_of(edit, all.k), v = shape_of(edit, all.v);
  const int rank = q.rank();
  if (rank < 2 || rank > 4 || k.rank() != rank || v.rank() != rank) return false;
  if (rank == 4 && (q[0] != k[0] || q[0] != v[0])) return false;
  if (rank == 2) return true;
  const int64_t heads = q[rank - 3], groups = k[rank - 3];
  if (groups == 0 || heads % groups != 0 || (joined && heads != groups) || v[rank - 3] != groups)
    return false;
  return true;
}

ValueId of_rank_4(GraphEdit& edit, ValueId x, ValueId leading) {
  const size_t rank = edit.value(x).dims.size();
  if (rank == 4) return x;
  if (leading != kNoValue) return reshape_to(edit, x, {{leading, 0, 2}, {x, rank - 2, rank}});
  return reshape_to(edit, x, {{kNoValue, rank, 4}, {x, 0, rank}});
}

/// Whether every mask broadcasts to the scores of rank 4.
bool masks_fit(GraphEdit& edit, const Match& match, const Operands& all, ValueId leading) {
  const Shape q = shape_of(edit, all.q), k = shape_of(edit, all.k);
  const int rank = q.rank();
  Shape scores{1, 1, q[rank - 2], k[rank - 2]};
  for (int axis = 0; axis < rank - 2; ++axis) scores[axis + 4 - rank] = q[axis];
  for (int axis = 0; leading != kNoValue && axis < 2; ++axis) scores[axis] = shape_of(edit, leading)[axis];
  for (ValueId mask : {match.bias, match.keep}) {
    if (mask == kNoValue) continue;
    const auto shape = broadcast(shape_of(edit, mask), scores);
    if (!shape || *shape != scores) return false;
  }
  return true;
}

/// The mask with a query and a key axis; a scalar is broadcast over both.
ValueId as_matrix(GraphEdit& edit, ValueId mask) {
  if (mask == kNoValue || edit.value(mask).rank() >= 2) return mask;
  const size_t rank = edit.value(mask).dims.size();
  return reshape_to(edit, mask, {{kNoValue, rank, 2}, {mask, 0, rank}});
}

/// The mask operand: bools, or floats in which masked keys are -infinity.
ValueId combined_mask(GraphEdit& edit, const Match& match) {
  if (match.bias == kNoValue || match.keep == kNoValue)
    return as_matrix(edit, match.bias == kNoValue ? match.keep : match.bias);
  const ValueId hidden =
      edit.builder().scalar(-std::numeric_limits<double>::infinity(), edit.value(match.bias).dtype);
  return as_matrix(edit, edit.emit(op::WhereAttributes{}, {match.keep, match.bias, hidden}));
}

/// Keys [.., T, D] and queries [.., S, D] from the operands of the first MatMul.
Operands operands_of(GraphEdit& edit, Match& match, const Node& last) {
  const Node matmul = edit.node(match.matmul);
  const auto flags = matmul.as<op::MatMulAttributes>();
  const auto values = last.as<op::MatMulAttributes>();
  ValueId a = unscaled(edit, matmul.inputs[0], match.scale),
          b = unscaled(edit, matmul.inputs[1], match.scale);
  if (flags.transpose_a) a = with_rows_and_columns_swapped(edit, a);
  if (!flags.transpose_b) b = with_rows_and_columns_swapped(edit, b);
  Operands all{a, b, last.inputs[1]};
  if (values.transpose_a) std::swap(all.q, all.k);
  if (values.transpose_b) all.v = with_rows_and_columns_swapped(edit, all.v);
  return all;
}

void recognize_attention(GraphEdit& edit, NodeId root) {
  const Node last = edit.node(root);
  if (!is_plain_matmul(last) || edit.value(last.outputs[0]).dtype != DType::F32) return;
  for (ValueId operand : last.inputs)
    if (edit.value(operand).rank() < 2) return;
  const bool transposed = last.as<op::MatMulAttributes>().transpose_a;  // scores are [keys, queries]
  edit.name_after(root);
  auto match = match_scores(edit, last.inputs[0], transposed);
  if (!match || !is_closed(edit, root, match->interior)) return;
  if (transposed && (match->causal || match->bias != kNoValue || match->keep != kNoValue)) return;
  for (ValueId operand : edit.node(match->matmul).inputs)
    if (edit.value(operand).rank() < 2) return;
  Operands all = operands_of(edit, *match, last);
  const int rank = edit.value(all.q).rank();
  const bool split = rank == 3 && match->leading != kNoValue;  // batch and heads are one axis of the MatMuls
  if (rank > 2 && !split && edit.value(all.k).rank() == rank && edit.value(all.v).rank() == rank) {
    const Operands few{all.q, unrepeated(edit, all.k, rank - 3), unrepeated(edit, all.v, rank - 3)};
    if (fit(edit, few, false)) all = few;
  }
  const ValueId leading = split ? match->leading : kNoValue;
  if (!fit(edit, all, split) || !masks_fit(edit, *match, all, leading)) return;

  op::AttentionAttributes attributes;
  attributes.scale = static_cast<float>(match->scale);
  attributes.softcap = static_cast<float>(match->softcap);
  attributes.causal = match->causal;
  if (match->softcap != 0) attributes.scale *= attributes.softcap;
  if (attributes.scale == 0 || !std::isfinite(attributes.scale)) return;  // 0 would mean 1 / sqrt(D)
  const ValueId first =
      match->first == kNoValue ? kNoValue : reshape_to(edit, match->first, {{kNoValue, 0, 1}});
  std::vector<ValueId> inputs = {of_rank_4(edit, all.q, leading),
                                 of_rank_4(edit, all.k, leading),
                                 of_rank_4(edit, all.v, leading),
                                 combined_mask(edit, *match),
                                 kNoValue,
                                 first};
  while (inputs.back() == kNoValue) inputs.pop_back();
  ValueId y = edit.emit(attributes, inputs);
  const auto end = static_cast<size_t>(rank);
  if (rank != 4) y = reshape_to(edit, y, {{all.q, 0, end - 1}, {all.v, end - 1, end}});
  if (y != kNoValue) edit.replace(last.outputs[0], y);
}

}  // namespace

Status attention(Graph& graph, const PassContext& context) {
  GraphEdit edit(graph, context.states, context.inferred);
  const NodeId count = edit.node_count();
  for (NodeId id = 0; id < count && edit.status().ok(); ++id)
    if (edit.is_alive(id, OpKind::MatMul)) recognize_attention(edit, id);
  return edit.finish();
}

}  // namespace librt::compiler
