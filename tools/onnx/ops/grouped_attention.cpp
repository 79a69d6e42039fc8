// Grouped-query attention with a KV cache, as in decoders exported for ONNX Runtime (com.microsoft), and its
// rotary embeddings.
//
// The cache may have more positions than are valid, and the number of valid ones may differ between the
// sequences of a batch: new keys are written at the positions given by seqlens_k, and a query attends to
// positions up to its own. With sliding_window_cache it holds only the last positions.
#include <algorithm>
#include <array>
#include <functional>
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

/// Bool [B or 1,1,S,K]: which keys, at positions `at` (i64, broadcast to [B,1,S,K]), a query attends to.
ValueId seen_keys(NodeContext& c, const op::AttentionAttributes& limits, const Group& all,
                  const CachePositions& positions, ValueId at) {
  Emitter& e = c.emit;
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
  return seen;
}

/// What is added to the scores: the bias, if any, and minus infinity for keys that are not seen.
ValueId mask_of(Emitter& e, ValueId seen, ValueId bias) {
  const DType real = bias == kNoValue ? DType::F32 : e.value(bias).dtype;
  return e.emit(op::WhereAttributes{}, {seen, bias == kNoValue ? e.scalar(0, real) : bias,
                                        e.scalar(-std::numeric_limits<double>::infinity(), real)});
}

/// An attention sink: a per-head score in the softmax without a key. It becomes a key of zeros in front,
/// whose score is what the mask adds, with a value of zeros.
struct SinkOperands {
  ValueId key = kNoValue, value = kNoValue, mask = kNoValue;
};
SinkOperands with_sink(NodeContext& c, const Group& all, ValueId mask) {
  Emitter& e = c.emit;
  const ValueId zero = one_number(e, 0), one = one_number(e, 1);
  const DType real = e.value(mask).dtype;
  SinkOperands result;
  result.mask = padded(e, mask, 3, one, zero);
  if (c.has(kHeadSink)) {
    ValueId sink = reshape_to(e, c.input(kHeadSink), {1, -1, 1, 1});
    if (e.value(sink).dtype != real) sink = e.cast(sink, real);
    result.mask = e.add(result.mask, padded(e, sink, 3, zero, length_of(e, all.key)));
  }
  result.key = padded(e, all.key, 2, one, zero);
  result.value = padded(e, all.value, 2, one, zero);
  return result;
}

// --- a cache that holds the last positions only

/// Rows [0, resident) of the past hold the positions just before the new ones, in order.
struct WindowedCache {
  ValueId at = kNoValue;    ///< i64 [B,1,1,C+S]: positions of the past's rows and the new ones
  ValueId rows = kNoValue;  ///< i64 [B,1,C']: which of these rows the next step's cache keeps
};

// The rows that a cache of `capacity` rows holds of `count` positions: all of them, or as many as are left
// when it drops the oldest `slack` at a time, as few times as make the rest fit.
ValueId resident_of(Emitter& e, ValueId count, ValueId capacity, ValueId slack) {
  const ValueId beyond = larger(e, e.sub(count, capacity), one_number(e, 0));
  const ValueId times = e.div(e.add(beyond, e.sub(slack, one_number(e, 1))), slack);
  return e.sub(count, e.mul(slack, times));
}

// A past with fewer rows than the window, as none before the first prompt, grows up to the window.
WindowedCache windowed_cache(NodeContext& c, const Group& all, const CachePositions& positions,
                             int64_t window) {
  Emitter& e = c.emit;
  const ValueId one = one_number(e, 1), width = one_number(e, window);
  const ValueId fresh = length_of(e, all.key), before = positions.first;
  const ValueId capacity = length_of(e, c.input(kGroupedPastKey));
  const ValueId both = e.add(capacity, fresh);
  const ValueId next = larger(e, capacity, e.emit(op::MinimumAttributes{}, {both, width}));
  const auto slack_of = [&](ValueId rows) { return larger(e, e.add(e.sub(rows, width), one), one); };
  const auto column = [&](ValueId x) { return reshape_to(e, x, {-1, 1}); };

  const ValueId resident = resident_of(e, before, capacity, slack_of(capacity));
  const ValueId first = column(e.sub(before, resident));  // the position of the past's first row
  const auto counting_to = [&](ValueId count) {
    return unsqueeze(e, counting(c.emit, e.reshape(count, e.ints({}))), {{0}});
  };
  const ValueId row = counting_to(both);  // [1,C+S]
  const ValueId in_past = e.emit(op::LessAttributes{}, {row, column(resident)});
  const ValueId is_fresh = e.emit(op::GreaterOrEqualAttributes{}, {row, capacity});
  const ValueId of_fresh = e.add(e.sub(row, capacity), column(before));
  const ValueId never = e.scalar(static_cast<double>(int64_t{1} << 40), DType::I64);  // after every query
  const ValueId of_past = e.emit(op::WhereAttributes{}, {in_past, e.add(row, first), never});
  WindowedCache cache;
  cache.at = unsqueeze(e, e.emit(op::WhereAttributes{}, {is_fresh, of_fresh, of_past}), {{1, 2}});

  const ValueId kept = resident_of(e, positions.valid, next, slack_of(next));
  const ValueId position = e.add(counting_to(next), column(e.sub(positions.valid, kept)));  // [B,C']
  const ValueId from_past = e.sub(position, first);
  const ValueId from_fresh = e.add(e.sub(position, column(before)), capacity);
  const ValueId is_new = e.emit(op::GreaterOrEqualAttributes{}, {position, column(before)});
  const ValueId source = e.emit(op::WhereAttributes{}, {is_new, from_fresh, from_past});
  // Rows after those that are kept are not specified: any.
  cache.rows = unsqueeze(e, e.emit(op::MinimumAttributes{}, {source, e.sub(both, one)}), {{1}});
  return cache;
}

// Rows of x [B,G,K,D] by index [B,1,C]: [B,G,C,D], each row copied as a whole.
ValueId rows_by_head(compiler::Builder& e, ValueId x, ValueId rows) {
  const ValueId heads = dims_product(e, x, 0, 2), keys = length_of(e, x);
  const ValueId head = counting(e, e.reshape(heads, e.ints({})));
  const ValueId start =
      e.reshape(e.mul(head, keys),
                concat_values(e, {dims_product(e, x, 0, 1), dims_product(e, x, 1, 2), one_number(e, 1)}));
  const std::vector<Extent> flat{Extent::of(-1), Extent::dim(e, x, 3)};
  return take(e, reshape_to(e, x, flat), e.add(rows, start), 0);
}

Status check_windowed(NodeContext& c, int64_t window) {
  if (window < 1 || c.integer("causal", 1) == 0)
    return invalid_model("sliding_window_cache needs a causal mask and local_window_size, found ", window);
  if (!c.has(kGroupedPastKey)) return invalid_model("sliding_window_cache needs past_key and past_value");
  if (c.has(kGroupedBias))
    return cannot("attention_bias together with sliding_window_cache; export without sliding_window_cache");
  return {};
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
  compiler::Builder& e = c.emit;
  RT_ASSIGN(Group all, grouped_heads(c));
  RT_ASSIGN(const op::AttentionAttributes attributes, grouped_attributes(c));
  const bool sink = c.integer("smooth_softmax", 0) == 1 || c.has(kHeadSink);
  // A cache that becomes a state holds all positions, of which the mask leaves the window.
  const bool windowed = c.integer("sliding_window_cache", 0) != 0 && !c.options.caches_grow;
  const int64_t window = c.integer("local_window_size", -1);
  if (windowed) RT_TRY(check_windowed(c, window));
  if (!e.status().ok()) return {};
  const CachePositions positions = cache_positions_of(c, all);
  RT_TRY(rotate(c, positions, all));
  ValueId at = kNoValue;
  Group next;
  if (windowed) {
    const WindowedCache cache = windowed_cache(c, all, positions, window);
    at = cache.at;
    all.key = concat(e, std::array{c.input(kGroupedPastKey), all.key}, 2);
    all.value = concat(e, std::array{c.input(kGroupedPastValue), all.value}, 2);
    next.key = rows_by_head(e, all.key, cache.rows);
    next.value = rows_by_head(e, all.value, cache.rows);
  } else {
    next.key = all.key = with_fresh(c, kGroupedPastKey, all.key, positions);
    next.value = all.value = with_fresh(c, kGroupedPastValue, all.value, positions);
    if (sink) at = positions_along(e, all.key, 2);
  }
  if (!e.status().ok()) return {};
  const ValueId bias = bias_for(c, all.key);
  ValueId y = kNoValue;
  if (at != kNoValue) {
    if (positions.valid == kNoValue && !attributes.causal)
      return cannot("a sink without a causal mask in a cache that grows; convert without --cache-length");
    ValueId mask = mask_of(e, seen_keys(c, attributes, all, positions, at), bias);
    if (sink) {
      const SinkOperands with = with_sink(c, all, mask);
      all.key = with.key;
      all.value = with.value;
      mask = with.mask;
    }
    op::AttentionAttributes plain;
    plain.scale = attributes.scale;
    plain.softcap = attributes.softcap;
    y = e.emit(plain, {all.query, all.key, all.value, mask});
  } else {
    const ValueId valid = attributes.causal ? kNoValue : positions.valid;
    y = e.emit(attributes, {all.query, all.key, all.value, bias, valid, positions.first});
  }
  c.outputs = {merge_heads(e, y), next.key, next.value};
  return {};
}

// --- RotaryEmbedding

/// Rotates x [B,S,width] or [B,H,S,D]. by_position: what an input, [positions, R/2], is at the positions of x
/// by heads: cosines or sines [B,S,R/2].
Status rotated(NodeContext& c, const std::function<ValueId(size_t input, ValueId by_heads)>& by_position) {
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
  const ValueId y = e.emit(attributes, {x, by_position(2, x), by_position(3, x)});
  return c.result(rank == 3 ? merge_heads(e, y) : y);
}

// (x, positions [1] or [B,S], cosines, sines)
Status rotary_by_position(NodeContext& c) {
  RT_TRY(c.expect_inputs(4, 4));
  return rotated(c, [&c](size_t input, ValueId x) {
    Emitter& e = c.emit;
    ValueId ids = c.input(1);
    if (c.rank(1) == 1) {  // the first position
      const ValueId steps = unsqueeze(e, positions_along(e, x, 2), {{0}});
      ids = e.add(steps, reshape_to(e, e.cast(ids, DType::I64), {1, 1}));
    }
    return e.emit(op::GatherAttributes{}, {c.input(input), ids});
  });
}

/// For each of the columns, whether it is rotated by the position in time, height or width: f32 or the like
/// [3,1,1,columns] of 0 and 1. Sections side by side, or height and width in turn after each of time's
/// columns.
ValueId stream_of_columns(Emitter& e, std::span<const int64_t> sections, bool in_turn, DType dtype) {
  const int64_t columns = sections[0] + sections[1] + sections[2];
  std::vector<double> chosen(static_cast<size_t>(3 * columns), 0);
  for (int64_t column = 0; column < columns; ++column) {
    int64_t stream = column < sections[0] ? 0 : column < sections[0] + sections[1] ? 1 : 2;
    if (in_turn) {
      const int64_t turn = column % 3;
      stream = turn > 0 && column < 3 * sections[static_cast<size_t>(turn)] ? turn : 0;
    }
    chosen[static_cast<size_t>(stream * columns + column)] = 1;
  }
  return float_values(e, {3, 1, 1, columns}, chosen, dtype);
}

// (x, positions [3,B,S] in time, height and width, cosines, sines)
Status rotary_by_three_positions(NodeContext& c) {
  RT_TRY(c.expect_inputs(4, 4));
  const std::vector<int64_t> sections = c.integers("mrope_section");
  const int64_t layout = c.integer("mrope_layout", 0);
  if (layout != 0 && layout != 1) return invalid_model("mrope_layout: expected 0 or 1, found ", layout);
  if (c.rank(1) != 3) return invalid_model("expected position_ids [3,B,S], found rank ", c.rank(1));
  const int64_t columns = c.rank(2) == 2 ? c.extent(2, 1) : -1;
  if (sections.size() != 3 || std::ranges::any_of(sections, [](int64_t n) { return n < 0; }) ||
      sections[0] + sections[1] + sections[2] != columns)
    return invalid_model("mrope_section: expected 3 numbers whose sum is the cosines' width, ", columns);
  return rotated(c, [&](size_t input, ValueId) {
    Emitter& e = c.emit;
    const ValueId rows = e.emit(op::GatherAttributes{}, {c.input(input), c.input(1)});  // [3,B,S,columns]
    return e.reduce_sum(e.mul(rows, stream_of_columns(e, sections, layout == 1, c.dtype(input))), {0}, false);
  });
}

constexpr ImportRow kGroupedAttentionRows[] = {
    {"com.microsoft", "GroupQueryAttention", 1, kNewestOpset, group_query_attention},
    {"com.microsoft", "RotaryEmbedding", 1, kNewestOpset, rotary_by_position},
    {"com.microsoft", "MRotaryEmbedding", 1, kNewestOpset, rotary_by_three_positions},
};

}  // namespace

std::span<const ImportRow> rows_grouped_attention() {
  return kGroupedAttentionRows;
}

}  // namespace librt::onnx
