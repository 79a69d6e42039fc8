// Grouped-query attention with a KV cache, as in decoders exported for ONNX Runtime (com.microsoft), and its
// rotary embeddings.
//
// The cache may have more positions than are valid, and the number of valid ones may differ between the
// sequences of a batch: new keys are written at the positions given by seqlens_k, and a query attends to
// positions up to its own.
#include <array>
#include <limits>

#include "tools/onnx/heads.h"
#include "tools/onnx/node.h"
#include "tools/onnx/norms.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

enum GroupedInput : size_t {
  kGroupedQuery,
  kGroupedKey,
  kGroupedValue,
  kGroupedPastKey,
  kGroupedPastValue,
  kLastPositions,  ///< valid positions minus one
  kTotalLength,
  kCosines,
  kSines,
  kPositionIds,
  kGroupedBias,
  kHeadSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm,
  kQueryLengths
};

struct Group {
  ValueId query = kNoValue, key = kNoValue, value = kNoValue;  ///< [B,H,S,D], [B,G,S,D]
};

/// Positions: i64, one entry, or one for each sequence.
struct CachePositions {
  ValueId first = kNoValue;  ///< the first of the new positions
  ValueId valid = kNoValue;  ///< the number of valid positions afterwards
  /// bool: whether this is the first prompt; kNoValue: known at import (yes without a past, no with
  /// caches_grow).
  ValueId is_prompt = kNoValue;
};

ValueId one_number(Emitter& e, int64_t n) {
  return e.ints({&n, 1});
}
ValueId length_of(Emitter& e, ValueId x) {
  return dims_product(e, x, 2, 3);
}
ValueId larger(Emitter& e, ValueId a, ValueId b) {
  return e.emit(op::MaximumAttributes{}, {a, b});
}

Status refuse_grouped(NodeContext& c) {
  for (std::string_view name : {"k_quant_type", "v_quant_type"})
    if (const std::string type = c.string(name, "NONE"); type != "NONE" && !type.empty())
      return cannot(name, " ", type, ": quantized caches are not supported; export with a cache of floats");
  if (c.has(kKeyScale) || c.has(kValueScale))
    return cannot("quantized caches are not supported; export with a cache of floats");
  if (c.integer("sliding_window_cache", 0) != 0)
    return cannot("a cache as short as the window is not supported; export without sliding_window_cache");
  if (c.has(kQueryLengths))
    return cannot("query_seqlens is not supported; export without padded chunks of queries");
  c.ignore({"kv_cache_bit_width", "qk_output"});  // qk_output: of the fourth output, which is refused
  if (c.has(kGroupedPastKey) != c.has(kGroupedPastValue))
    return invalid_model("past_key and past_value belong together");
  for (size_t i : {size_t{kLastPositions}, size_t{kTotalLength}})
    if (!c.has(i)) return invalid_model("input ", i, " is missing");
  return {};
}

// --- queries, keys and values

Result<Group> grouped_rows(NodeContext& c, int64_t heads, int64_t groups) {
  if (heads < 1 || groups < 1 || heads % groups != 0)
    return invalid_model("expected query heads that are a multiple of the key heads, found ", heads, " and ",
                         groups);
  if (c.rank(kGroupedQuery) != 3) return invalid_model("expected queries [B,S,width], found rank ", c.rank());
  if (c.has(kGroupedKey) != c.has(kGroupedValue)) return invalid_model("keys and values belong together");
  if (c.has(kGroupedKey)) return Group{c.input(kGroupedQuery), c.input(kGroupedKey), c.input(kGroupedValue)};
  const int64_t width = c.extent(kGroupedQuery, 2), all = heads + 2 * groups;
  if (width < 0 || width % all != 0)
    return cannot("packed queries, keys and values of width ", width, "; expected a known multiple of ", all,
                  " heads");
  const int64_t size = width / all, first = heads * size, second = first + groups * size;
  const ValueId packed = c.input(kGroupedQuery);
  return Group{slice(c.emit, packed, 2, 0, first), slice(c.emit, packed, 2, first, second),
               slice(c.emit, packed, 2, second, width)};
}

Result<Group> grouped_heads(NodeContext& c) {
  const int64_t heads = c.integer("num_heads", 0), groups = c.integer("kv_num_heads", 0);
  RT_ASSIGN(const Group rows, grouped_rows(c, heads, groups));
  Group all;
  RT_ASSIGN(all.query, split_heads(c.emit, rows.query, heads));
  RT_ASSIGN(all.key, split_heads(c.emit, rows.key, groups));
  RT_ASSIGN(all.value, split_heads(c.emit, rows.value, groups));
  if (c.has(kQueryNorm) != c.has(kKeyNorm))
    return invalid_model("q_norm_weight and k_norm_weight belong together");
  const float epsilon = c.real("qk_norm_epsilon", 1e-6f);
  const float of_query = c.real("q_norm_epsilon", epsilon), of_key = c.real("k_norm_epsilon", epsilon);
  if (!c.has(kQueryNorm) || !c.emit.status().ok()) return all;
  const bool wide = c.dtype() == DType::F16 || c.dtype() == DType::BF16;
  all.query = rms_normalized(c, all.query, c.input(kQueryNorm), 3, of_query, wide).y;
  all.key = rms_normalized(c, all.key, c.input(kKeyNorm), 3, of_key, wide).y;
  return all;
}

// --- positions

// A first prompt, as long as the total length, begins at 0; later queries end at the last valid position.
CachePositions cache_positions_of(NodeContext& c, const Group& all) {
  Emitter& e = c.emit;
  const ValueId length = length_of(e, all.query);
  CachePositions positions;
  positions.valid = e.add(as_vector(e, c.input(kLastPositions)), one_number(e, 1));
  if (!c.has(kGroupedPastKey)) {
    positions.first = one_number(e, 0);
  } else if (c.options.caches_grow) {
    positions.first = length_of(e, c.input(kGroupedPastKey));
    positions.valid = kNoValue;
  } else {
    positions.is_prompt = e.emit(op::EqualAttributes{}, {length, as_vector(e, c.input(kTotalLength))});
    positions.first = e.emit(op::WhereAttributes{},
                             {positions.is_prompt, e.scalar(0, DType::I64), e.sub(positions.valid, length)});
  }
  return positions;
}

// i64 [B,S] or [1,S]
ValueId positions_of(Emitter& e, const Group& all, const CachePositions& positions) {
  const ValueId steps = positions_along(e, all.query, 2);
  return e.add(unsqueeze(e, steps, {{0}}), reshape_to(e, positions.first, {-1, 1}));
}

// Input position_ids. For a first prompt ONNX Runtime reads only the first id, from which it counts.
ValueId given_positions(NodeContext& c, const Group& all, const CachePositions& positions) {
  Emitter& e = c.emit;
  const ValueId ids = c.input(kPositionIds);
  if (c.rank(kPositionIds) != 2 || (c.has(kGroupedPastKey) && positions.is_prompt == kNoValue)) return ids;
  const ValueId first = slice(e, slice(e, ids, 0, 0, 1), 1, 0, 1);
  const ValueId counted = e.add(first, unsqueeze(e, positions_along(e, all.query, 2), {{0}}));
  return positions.is_prompt == kNoValue ? counted
                                         : e.emit(op::WhereAttributes{}, {positions.is_prompt, counted, ids});
}

Status rotate(NodeContext& c, const CachePositions& positions, Group& all) {
  Emitter& e = c.emit;
  const bool interleaved = c.integer("rotary_interleaved", 0) != 0;
  if (c.integer("do_rotary", 0) == 0) return {};
  if (!c.has(kCosines) || !c.has(kSines)) return invalid_model("do_rotary needs cos_cache and sin_cache");
  const ValueId ids =
      c.has(kPositionIds) ? given_positions(c, all, positions) : positions_of(e, all, positions);
  op::RotaryEmbeddingAttributes attributes;
  attributes.interleaved = interleaved;
  if (c.rank(kCosines) != 2 || c.extent(kCosines, 1) < 0)
    return cannot("a cos_cache other than [positions, half the rotated width], of known width");
  attributes.rotary_dimension = 2 * c.extent(kCosines, 1);
  const ValueId cosines = e.emit(op::GatherAttributes{}, {c.input(kCosines), ids});
  const ValueId sines = e.emit(op::GatherAttributes{}, {c.input(kSines), ids});
  all.query = e.emit(attributes, {all.query, cosines, sines});
  all.key = e.emit(attributes, {all.key, cosines, sines});
  return {};
}

// --- the cache

// The past padded to the total length, if that is longer, with the fresh entries at their positions.
ValueId with_fresh(NodeContext& c, size_t past, ValueId fresh, const CachePositions& positions) {
  Emitter& e = c.emit;
  if (!c.has(past)) return fresh;
  if (c.options.caches_grow) return concat(e, std::array{c.input(past), fresh}, 2);
  const ValueId needed = larger(e, as_vector(e, c.input(kTotalLength)), length_of(e, fresh));
  const ValueId missing = larger(e, e.sub(needed, length_of(e, c.input(past))), one_number(e, 0));
  const std::array<int64_t, 6> before{};
  const ValueId pads = concat_values(e, {e.ints(before), missing, one_number(e, 0)});
  const ValueId padded_cache = e.emit(op::PadAttributes{}, {c.input(past), pads, e.scalar_like(0, fresh)});
  op::TensorScatterAttributes scatter;
  scatter.axis = 2;
  const ValueId batch = dims_product(e, fresh, 0, 1);
  return e.emit(scatter, {padded_cache, fresh, e.emit(op::ExpandAttributes{}, {positions.first, batch})});
}

// --- scores

// In a larger cache the columns of the bias end with the valid keys; later keys are masked in any case.
ValueId bias_for(NodeContext& c, ValueId key) {
  if (!c.has(kGroupedBias)) return kNoValue;
  ValueId bias = columns_for(c.emit, c.input(kGroupedBias), key, ShortMask::RepeatLast);
  const DType dtype = c.dtype(kGroupedBias);
  return dtype == DType::F32 || dtype == DType::F64 ? bias : c.emit.cast(bias, DType::F32);
}

// x with `before` zeros in front of and `after` zeros after the entries of an axis.
ValueId padded(Emitter& e, ValueId x, int axis, ValueId before, ValueId after) {
  const std::vector<int64_t> front(static_cast<size_t>(axis), 0);
  const std::vector<int64_t> back(static_cast<size_t>(e.value(x).rank() - axis - 1), 0);
  std::vector<ValueId> pads;
  for (ValueId amount : {before, after}) {
    if (!front.empty()) pads.push_back(e.ints(front));
    pads.push_back(amount);
    if (!back.empty()) pads.push_back(e.ints(back));
  }
  return e.emit(op::PadAttributes{}, {x, concat_values(e, pads), e.scalar_like(0, x)});
}

/// An attention sink: a per-head score in the softmax without a key. It becomes a key of zeros in front,
/// whose score is what the mask adds, with a value of zeros.
struct SinkOperands {
  ValueId key = kNoValue, value = kNoValue, mask = kNoValue;
};
SinkOperands with_sink(NodeContext& c, const op::AttentionAttributes& limits, const Group& all,
                       const CachePositions& positions, ValueId bias) {
  Emitter& e = c.emit;
  const ValueId zero = one_number(e, 0), one = one_number(e, 1), keys = length_of(e, all.key);
  const ValueId at = positions_along(e, all.key, 2);
  const ValueId own = unsqueeze(e, positions_of(e, all, positions), {{1, 3}});  // [B,1,S,1]
  ValueId seen = kNoValue;
  if (limits.causal)
    seen = e.emit(op::LessOrEqualAttributes{}, {at, own});
  else
    seen = e.emit(op::LessAttributes{}, {at, reshape_to(e, positions.valid, {-1, 1, 1, 1})});
  if (limits.left_window >= 0) {
    const ValueId from = e.sub(own, e.scalar(static_cast<double>(limits.left_window), DType::I64));
    seen = e.emit(op::AndAttributes{}, {seen, e.emit(op::GreaterOrEqualAttributes{}, {at, from})});
  }
  const DType real = bias == kNoValue ? DType::F32 : e.value(bias).dtype;
  const ValueId left = bias == kNoValue ? e.scalar(0, real) : bias;
  const ValueId hidden = e.scalar(-std::numeric_limits<double>::infinity(), real);
  SinkOperands result;
  result.mask = padded(e, e.emit(op::WhereAttributes{}, {seen, left, hidden}), 3, one, zero);
  if (c.has(kHeadSink)) {
    ValueId sink = reshape_to(e, c.input(kHeadSink), {1, -1, 1, 1});
    if (e.value(sink).dtype != real) sink = e.cast(sink, real);
    result.mask = e.add(result.mask, padded(e, sink, 3, zero, keys));
  }
  result.key = padded(e, all.key, 2, one, zero);
  result.value = padded(e, all.value, 2, one, zero);
  return result;
}

Result<op::AttentionAttributes> grouped_attributes(NodeContext& c) {
  op::AttentionAttributes attributes;
  attributes.causal = c.integer("causal", 1) != 0;
  attributes.scale = c.real("scale", 0);
  attributes.softcap = c.real("softcap", 0);
  const int64_t window = c.integer("local_window_size", -1);
  if (window == 0 || window < -1) return invalid_model("local_window_size: found ", window);
  if (window > 0) attributes.left_window = window - 1;  // local_window_size counts the query's own position
  return attributes;
}

Status group_query_attention(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 17));
  RT_TRY(refuse_grouped(c));
  Emitter& e = c.emit;
  RT_ASSIGN(Group all, grouped_heads(c));
  RT_ASSIGN(const op::AttentionAttributes attributes, grouped_attributes(c));
  const bool sink = c.integer("smooth_softmax", 0) == 1 || c.has(kHeadSink);
  if (!e.status().ok()) return {};
  const CachePositions positions = cache_positions_of(c, all);
  RT_TRY(rotate(c, positions, all));
  all.key = with_fresh(c, kGroupedPastKey, all.key, positions);
  all.value = with_fresh(c, kGroupedPastValue, all.value, positions);
  if (!e.status().ok()) return {};
  const ValueId bias = bias_for(c, all.key);
  ValueId y = kNoValue;
  if (sink) {
    if (positions.valid == kNoValue && !attributes.causal)
      return cannot("a sink without a causal mask in a cache that grows; convert without --cache-length");
    const SinkOperands with = with_sink(c, attributes, all, positions, bias);
    op::AttentionAttributes plain;
    plain.scale = attributes.scale;
    plain.softcap = attributes.softcap;
    y = e.emit(plain, {all.query, with.key, with.value, with.mask});
  } else {
    const ValueId valid = attributes.causal ? kNoValue : positions.valid;
    y = e.emit(attributes, {all.query, all.key, all.value, bias, valid, positions.first});
  }
  c.outputs = {merge_heads(e, y), all.key, all.value};
  return {};
}

// --- RotaryEmbedding

// (x [B,S,width] or [B,H,S,D], positions [1] or [B,S], cosines, sines [positions, R/2])
Status rotary_by_position(NodeContext& c) {
  RT_TRY(c.expect_inputs(4, 4));
  Emitter& e = c.emit;
  c.ignore({"scale", "is_packed_batching"});  // which ONNX Runtime's kernels do not read
  op::RotaryEmbeddingAttributes attributes;
  attributes.interleaved = c.integer("interleaved", 0) != 0;
  attributes.rotary_dimension = c.integer("rotary_embedding_dim", 0);
  int64_t heads = c.integer("num_heads", 0);
  const int rank = c.rank();
  if (rank != 3 && rank != 4) return invalid_model("expected an input of rank 3 or 4, found ", rank);
  const int64_t half = c.rank(2) == 2 ? c.extent(2, 1) : -1;
  if (half < 0) return cannot("cosines other than [positions, half the rotated width], of known width");
  ValueId x = c.input(0);
  if (rank == 3) {
    // Without num_heads, a head is as wide as its rotated part.
    if (attributes.rotary_dimension == 0 && heads == 0 && half > 0) heads = c.extent(0, 2) / (2 * half);
    RT_ASSIGN(x, split_heads(e, x, heads));
  }
  if (attributes.rotary_dimension == 0) attributes.rotary_dimension = 2 * half;
  ValueId ids = c.input(1);
  if (c.rank(1) == 1) {  // the first position
    const ValueId steps = unsqueeze(e, positions_along(e, x, 2), {{0}});
    ids = e.add(steps, reshape_to(e, e.cast(ids, DType::I64), {1, 1}));
  }
  const ValueId cosines = e.emit(op::GatherAttributes{}, {c.input(2), ids});
  const ValueId sines = e.emit(op::GatherAttributes{}, {c.input(3), ids});
  const ValueId y = e.emit(attributes, {x, cosines, sines});
  return c.result(rank == 3 ? merge_heads(e, y) : y);
}

constexpr ImportRow kGroupedAttentionRows[] = {
    {"com.microsoft", "GroupQueryAttention", 1, kNewestOpset, group_query_attention},
    {"com.microsoft", "RotaryEmbedding", 1, kNewestOpset, rotary_by_position},
};

}  // namespace

std::span<const ImportRow> rows_grouped_attention() {
  return kGroupedAttentionRows;
}

}  // namespace librt::onnx
