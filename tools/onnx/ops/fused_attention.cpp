// Attention as ONNX Runtime fuses it (com.microsoft): Attention and QAttention with the projections of
// their input, MultiHeadAttention without.
//
// Masks add mask_filter_value to a key's score instead of -infinity, so that the softmax of a fully masked
// row stays defined.
#include <array>
#include <limits>

#include "runtime/ops/attention.h"
#include "tools/onnx/heads.h"
#include "tools/onnx/integer_matmul.h"
#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

/// The queries, and all keys and values that they may attend to, [B,H,S,D].
struct FusedHeads {
  ValueId query = kNoValue, key = kNoValue, value = kNoValue;
  ValueId past = kNoValue;  ///< i64[1]: how many positions came before the first query; kNoValue: none
};

// --- masks

bool are_equal(const Dim& a, const Dim& b) {
  return a.is_known() ? a.extent == b.extent : a.symbol >= 0 && a.symbol == b.symbol && !b.is_known();
}

// True for keys within the sequences, which are given by their ends [B], or by ends and then starts [2 B].
Result<ValueId> kept_between(NodeContext& c, size_t mask, const FusedHeads& heads) {
  Emitter& e = c.emit;
  const Dim& extent = c.value(c.input(mask)).dims[0];
  const Dim& batch = c.value(heads.query).dims[0];
  const ValueId at = positions_along(e, heads.key, 2);
  const ValueId bounds = e.cast(c.input(mask), DType::I64);
  if (are_equal(extent, batch))
    return e.emit(op::LessAttributes{}, {at, reshape_to(e, bounds, {-1, 1, 1, 1})});
  if (!extent.is_known() || !batch.is_known() || extent.extent != 2 * batch.extent)
    return cannot(
        "a mask of rank 1 must have one or two entries for each sequence, and the batch must be "
        "known or be the same dimension; fix it with --dim");
  const ValueId both = reshape_to(e, bounds, {2, -1, 1, 1, 1});
  const auto half = [&](int64_t i) { return reshape_to(e, slice(e, both, 0, i, i + 1), {-1, 1, 1, 1}); };
  return e.emit(op::AndAttributes{}, {e.emit(op::LessAttributes{}, {at, half(0)}),
                                      e.emit(op::GreaterOrEqualAttributes{}, {at, half(1)})});
}

// The rows and columns of a mask [B,1,L,L] for the queries and keys.
ValueId part_of_square(NodeContext& c, ValueId mask, const FusedHeads& heads) {
  Emitter& e = c.emit;
  const ValueId zero = e.ints(std::array<int64_t, 1>{0});
  const ValueId first = heads.past == kNoValue ? zero : heads.past;
  op::SliceAttributes attributes;
  attributes.axes = {2, 3};
  attributes.steps = {1, 1};
  const ValueId ends =
      concat_values(e, {e.add(first, dims_product(e, heads.query, 2, 3)), dims_product(e, heads.key, 2, 3)});
  return e.emit(std::move(attributes), {mask, concat_values(e, {first, zero}), ends});
}

// True where input `mask` does not mask a score, broadcastable to [B,H,S,T].
Result<ValueId> kept_by(NodeContext& c, size_t mask, const FusedHeads& heads) {
  const int rank = c.rank(mask);
  if (rank == 1) return kept_between(c, mask, heads);
  if (rank < 2 || rank > 4) return invalid_model("expected a mask of rank 1 to 4, found ", rank);
  ValueId given = c.input(mask);
  given =
      rank == 4 ? part_of_square(c, given, heads) : columns_for(c.emit, given, heads.key, ShortMask::Refuse);
  if (rank == 2) given = unsqueeze(c.emit, given, {{1, 2}});
  if (rank == 3) given = unsqueeze(c.emit, given, {{1}});
  return c.emit.emit(op::GreaterAttributes{}, {given, c.emit.scalar_like(0, given)});
}

// What inputs `mask` and `bias` add to the scores; kNoValue: nothing.
Result<ValueId> added_to_scores(NodeContext& c, size_t mask, size_t bias, const FusedHeads& heads) {
  const float filter = c.real("mask_filter_value", -10000.0f);
  const DType dtype = c.value(heads.query).dtype;
  const DType real = dtype == DType::F64 ? dtype : DType::F32;
  ValueId sum = kNoValue;
  if (c.has(mask)) {
    RT_ASSIGN(const ValueId kept, kept_by(c, mask, heads));
    sum = c.emit.emit(op::WhereAttributes{}, {kept, c.emit.scalar(0, real), c.emit.scalar(filter, real)});
  }
  if (!c.has(bias)) return sum;
  if (c.rank(bias) != 4) return invalid_model("expected an attention_bias of rank 4, found ", c.rank(bias));
  ValueId given = columns_for(c.emit, c.input(bias), heads.key, ShortMask::Refuse);
  if (c.dtype(bias) != real) given = c.emit.cast(given, real);
  return sum == kNoValue ? given : c.emit.add(sum, given);
}

struct FusedResult {
  ValueId y = kNoValue;       ///< [B,S,H D]
  ValueId scores = kNoValue;  ///< if requested: with masks, before the softmax
};

FusedResult fused_result(NodeContext& c, const FusedHeads& heads, ValueId mask, bool with_scores) {
  op::AttentionAttributes attributes;
  attributes.causal = c.integer("unidirectional", 0) != 0;
  attributes.scale = c.real("scale", 0);
  const ValueId inputs[] = {heads.query, heads.key, heads.value, mask, kNoValue, heads.past};
  FusedResult result;
  if (!c.emit.status().ok()) return result;
  if (with_scores) {
    const ops::AttentionParts parts = ops::emit_attention(c.emit, attributes, inputs);
    result = {parts.result, parts.masked};
    if (c.value(result.scores).dtype != c.dtype()) result.scores = c.emit.cast(result.scores, c.dtype());
  } else {
    result.y = c.emit.emit_many(make_op(attributes), inputs, 1)[0];
  }
  result.y = merge_heads(c.emit, result.y);
  return result;
}

// --- Attention, QAttention

/// Indices of the inputs of these operators; the number of inputs for one that the operator lacks.
struct ProjectedInputs {
  size_t mask, past, bias, past_length;
};

Status refuse_attributes(NodeContext& c) {
  if (c.integer("do_rotary", 0) != 0)
    return cannot("do_rotary without tables of cosines is not supported; ", kWithoutFusion);
  if (c.integer("past_present_share_buffer", 0) != 0)
    return cannot("past and present in one buffer; export without past_present_share_buffer");
  c.ignore({"rotary_embedding_dim"});
  return {};
}

// The widths of queries, keys and values in a projection of `width` columns.
Result<std::array<int64_t, 3>> projected_widths(NodeContext& c, int64_t width) {
  const std::vector<int64_t> sizes = c.integers("qkv_hidden_sizes");
  if (sizes.empty()) {
    if (width < 0 || width % 3 != 0)
      return cannot("weights of ", width, " columns; expected a known multiple of 3");
    return std::array<int64_t, 3>{width / 3, width / 3, width / 3};
  }
  if (sizes.size() != 3 || sizes[0] != sizes[1] || sizes[0] < 0 || sizes[2] < 0 ||
      (width >= 0 && sizes[0] > width) || (width >= 0 && sizes[0] + sizes[1] + sizes[2] != width))
    return invalid_model("qkv_hidden_sizes: expected three sizes, the first two equal, that add up to the ",
                         width, " columns of the weights");
  return std::array<int64_t, 3>{sizes[0], sizes[1], sizes[2]};
}

// projection: [B,S,widths of queries, keys and values]
Status projected_attention(NodeContext& c, ValueId projection, const ProjectedInputs& at) {
  Emitter& e = c.emit;
  RT_TRY(refuse_attributes(c));
  if (c.has(at.past_length))
    return cannot("past_sequence_length is for past and present in one buffer; export without that");
  if (projection == kNoValue) return {};
  if (c.value(projection).rank() != 3)
    return invalid_model("expected an input [B,S,width], found rank ", c.value(projection).rank());
  const int64_t heads = c.integer("num_heads", 0);
  RT_ASSIGN(const auto widths, projected_widths(c, c.value(projection).dims[2].extent));
  std::array<ValueId, 3> parts{};
  int64_t begin = 0;
  for (size_t i = 0; i < 3; begin += widths[i++]) {
    RT_ASSIGN(parts[i], split_heads(e, slice(e, projection, 2, begin, begin + widths[i]), heads));
  }
  FusedHeads all{parts[0], parts[1], parts[2], kNoValue};
  if (c.has(at.past)) {
    if (c.rank(at.past) != 5)
      return invalid_model("expected a past [2,B,H,P,D], found rank ", c.rank(at.past));
    const int first[] = {0};
    const auto half = [&](int64_t i) { return squeeze(e, slice(e, c.input(at.past), 0, i, i + 1), first); };
    all.past = dims_product(e, c.input(at.past), 3, 4);
    all.key = concat(e, std::array{half(0), all.key}, 2);
    all.value = concat(e, std::array{half(1), all.value}, 2);
  }
  RT_ASSIGN(const ValueId mask, added_to_scores(c, at.mask, at.bias, all));
  c.outputs = {fused_result(c, all, mask, false).y};
  if (!c.wants(1)) return {};
  const int front[] = {0};
  c.outputs.push_back(concat(e, std::array{unsqueeze(e, all.key, front), unsqueeze(e, all.value, front)}, 0));
  return {};
}

// (input, weights, [bias], [mask], [past], [bias of the scores], [past length]) -> (y, [present])
Status fused_attention(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 7));
  ValueId projection = c.emit.emit(op::MatMulAttributes{}, {c.input(0), c.input(1)});
  if (c.has(2)) projection = c.emit.add(projection, c.input(2));
  return projected_attention(c, projection, {.mask = 3, .past = 4, .bias = 5, .past_length = 6});
}

// (input, weights, bias, input scale, weight scale, [mask], [input zero], [weight zero], [past])
Status quantized_attention(NodeContext& c) {
  RT_TRY(c.expect_inputs(5, 9));
  const ValueId projection = scaled_integer_matmul(c, {c.input(0), c.input(3), c.input(6)},
                                                   {c.input(1), c.input(4), c.input(7)}, c.input(2));
  return projected_attention(c, projection, {.mask = 5, .past = 8, .bias = 9, .past_length = 9});
}

// --- MultiHeadAttention

enum FusedInput : size_t {
  kFusedQuery,
  kFusedKey,
  kFusedValue,
  kFusedBias,
  kFusedMask,
  kFusedScoreBias,
  kFusedPastKey,
  kFusedPastValue,
  kFusedPastLength,
  kFusedIndirection
};

/// Part i of x [B,S,H,parts,D] as [B,S,H D].
ValueId part_of_packed(NodeContext& c, ValueId x, int64_t i) {
  const int axis[] = {3};
  std::vector<Extent> extents = extents_of(c.emit, x);
  const bool known = extents[2].is_number() && extents[4].is_number();
  const Extent width = Extent::of(known ? extents[2].number * extents[4].number : -1);
  const Extent rows[] = {extents[0], extents[1], width};
  return reshape_to(c.emit, squeeze(c.emit, slice(c.emit, x, 3, i, i + 1), axis), rows);
}

/// Queries, keys and values as rows [B,S,width], keys and values also as [B,H,T,D].
Result<std::array<ValueId, 3>> fused_rows(NodeContext& c) {
  const ValueId query = c.input(kFusedQuery);
  if (c.rank(kFusedQuery) == 5)
    return std::array{part_of_packed(c, query, 0), part_of_packed(c, query, 1), part_of_packed(c, query, 2)};
  if (c.rank(kFusedQuery) != 3)
    return invalid_model("expected queries of rank 3 or 5, found ", c.rank(kFusedQuery));
  if (!c.has(kFusedKey)) return invalid_model("keys are missing, and the queries are not packed");
  if (c.rank(kFusedKey) == 5)
    return std::array{query, part_of_packed(c, c.input(kFusedKey), 0),
                      part_of_packed(c, c.input(kFusedKey), 1)};
  if (!c.has(kFusedValue)) return invalid_model("values are missing, and the keys are not packed");
  if (c.rank(kFusedKey) != c.rank(kFusedValue) || (c.rank(kFusedKey) != 3 && c.rank(kFusedKey) != 4))
    return invalid_model("expected keys and values of rank 3 or 4, found ", c.rank(kFusedKey), " and ",
                         c.rank(kFusedValue));
  return std::array{query, c.input(kFusedKey), c.input(kFusedValue)};
}

/// The rows split into heads, with their part of the bias added.
Result<FusedHeads> fused_heads(NodeContext& c) {
  Emitter& e = c.emit;
  const int64_t heads = c.integer("num_heads", 0);
  RT_ASSIGN(auto rows, fused_rows(c));
  std::array<ValueId, 3> parts{};
  int64_t begin = 0;
  for (size_t i = 0; i < 3 && e.status().ok(); ++i) {
    if (e.value(rows[i]).rank() == 4) {  // already split into heads, with the bias added
      parts[i] = rows[i];
      continue;
    }
    if (c.has(kFusedBias)) {
      const int64_t width = e.value(rows[i]).dims[2].extent;
      if (width < 0) return cannot("a bias of queries, keys and values needs to know their widths");
      rows[i] = e.add(rows[i], slice(e, c.input(kFusedBias), 0, begin, begin + width));
      begin += width;
    }
    RT_ASSIGN(parts[i], split_heads(e, rows[i], heads));
  }
  FusedHeads all{parts[0], parts[1], parts[2], kNoValue};
  if (c.has(kFusedPastKey) != c.has(kFusedPastValue))
    return invalid_model("past_key and past_value belong together");
  if (!c.has(kFusedPastKey)) return all;
  all.past = dims_product(e, c.input(kFusedPastKey), 2, 3);
  all.key = concat(e, std::array{c.input(kFusedPastKey), all.key}, 2);
  all.value = concat(e, std::array{c.input(kFusedPastValue), all.value}, 2);
  return all;
}

Status multi_head_attention(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 10));
  if (c.has(kFusedPastLength) || c.has(kFusedIndirection))
    return cannot(
        "past_sequence_length and cache_indirection are for past and present in one buffer; export "
        "without that");
  RT_ASSIGN(const FusedHeads all, fused_heads(c));
  if (!c.emit.status().ok()) return {};
  RT_ASSIGN(const ValueId mask, added_to_scores(c, kFusedMask, kFusedScoreBias, all));
  const FusedResult result = fused_result(c, all, mask, c.wants(3));
  c.outputs = {result.y, all.key, all.value, result.scores};
  return {};
}

constexpr ImportRow kFusedAttentionRows[] = {
    {"com.microsoft", "Attention", 1, kNewestOpset, fused_attention},
    {"com.microsoft", "QAttention", 1, kNewestOpset, quantized_attention},
    {"com.microsoft", "MultiHeadAttention", 1, kNewestOpset, multi_head_attention},
};

}  // namespace

std::span<const ImportRow> rows_fused_attention() {
  return kFusedAttentionRows;
}

}  // namespace librt::onnx
