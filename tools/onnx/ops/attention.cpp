// Attention, and operators exported around it: rotary embeddings and caches.
#include "runtime/ops/attention.h"

#include <cmath>
#include <limits>

#include "tools/onnx/heads.h"
#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

// --- Attention

enum AttentionInput : size_t { kQuery, kKey, kValue, kMask, kPastKey, kPastValue, kLength, kAttentionInputs };

struct AttentionOperands {
  ValueId query, key, value;
};

Result<AttentionOperands> operands_of_attention(NodeContext& c) {
  const int64_t query_heads = c.integer("q_num_heads", 0), key_heads = c.integer("kv_num_heads", 0);
  const int rank = c.rank(kQuery);
  if ((rank != 3 && rank != 4) || c.rank(kKey) != rank || c.rank(kValue) != rank)
    return invalid_model("expected query, key and value of rank 3 or 4, found ", rank, ", ", c.rank(kKey),
                         " and ", c.rank(kValue));
  AttentionOperands all{c.input(kQuery), c.input(kKey), c.input(kValue)};
  if (rank == 3) {
    RT_ASSIGN(all.query, split_heads(c.emit, c.input(kQuery), query_heads));
    RT_ASSIGN(all.key, split_heads(c.emit, c.input(kKey), key_heads));
    RT_ASSIGN(all.value, split_heads(c.emit, c.input(kValue), key_heads));
  }
  if (c.has(kPastKey) != c.has(kPastValue)) return invalid_model("past_key and past_value belong together");
  if (c.has(kPastKey) && c.has(kLength))
    return invalid_model("nonpad_kv_seqlen is for caches outside the node, past_key for those inside");
  if (c.has(kPastKey)) {
    all.key = concat(c.emit, std::array{c.input(kPastKey), all.key}, 2);
    all.value = concat(c.emit, std::array{c.input(kPastValue), all.value}, 2);
  }
  return all;
}

// Whether the mask may have fewer columns than there are keys. One column was broadcast before opset 24.
bool may_be_short(NodeContext& c, ValueId mask, ValueId key) {
  const compiler::Extent columns = c.emit.known(mask).dims.back(), keys = c.emit.known(key).dims[2];
  if (columns.is_constant(1)) return c.opset >= 24 && !keys.is_constant(1);
  // Different symbols: before opset 24 a mask was as long as the keys.
  if (!columns.is_constant() && c.opset < 24) return false;
  compiler::ExtentTable& extents = c.emit.extents();
  return !extents.is_nonnegative(extents.subtract(columns, keys));
}

// As bool or in the query's type; keys after its last column are masked.
Result<ValueId> mask_of(NodeContext& c, ValueId key) {
  if (!c.has(kMask) || key == kNoValue) return ValueId{kNoValue};
  ValueId mask = c.input(kMask);
  const int rank = c.rank(kMask);
  if (rank < 1 || rank > 4) return invalid_model("expected a mask of rank 1 to 4, found ", rank);
  const bool is_bool = c.dtype(kMask) == DType::Bool;
  if (!is_bool && c.dtype(kMask) != c.dtype()) mask = c.emit.cast(mask, c.dtype());
  if (!may_be_short(c, mask, key)) return mask;
  std::vector<int64_t> before(static_cast<size_t>(2 * rank - 1), 0);
  const int64_t none = 0;
  const ValueId missing =
      c.emit.emit(op::MaximumAttributes{},
                  {c.emit.sub(dims_product(c.emit, key, 2, 3), dims_product(c.emit, mask, rank - 1, rank)),
                   c.emit.ints({&none, 1})});
  const ValueId hidden = is_bool ? c.emit.scalar(0, DType::Bool)
                                 : c.emit.scalar_like(-std::numeric_limits<double>::infinity(), mask);
  return c.emit.emit(op::PadAttributes{},
                     {mask, concat_values(c.emit, {c.emit.ints(before), missing}), hidden});
}

Result<op::AttentionAttributes> attention_attributes(NodeContext& c) {
  op::AttentionAttributes attributes;
  attributes.causal = c.integer("is_causal", 0) != 0;
  attributes.softcap = c.real("softcap", 0);
  attributes.scale = c.real("scale", 0);
  if (attributes.scale == 0 && c.attribute("scale") != nullptr)
    return cannot("a scale of 0 makes all scores equal");
  if (c.opset >= 25) {
    attributes.left_window = c.integer("left_window_size", -1);
    attributes.right_window = c.integer("right_window_size", -1);
  }
  return attributes;
}

// softmax_precision is the number of an ONNX type.
Result<DType> softmax_type(NodeContext& c) {
  constexpr int64_t kFloat = 1, kHalf = 10, kDouble = 11, kBfloat = 16;
  const int64_t type = c.integer("softmax_precision", kFloat);
  if (type == kDouble) return DType::F64;
  // 16-bit scores are computed in f32 in any case.
  if (type == kFloat || type == kHalf || type == kBfloat) return DType::F32;
  return invalid_model("softmax_precision: expected a type of floating point numbers, found ", type);
}

Result<ValueId> asked_scores(NodeContext& c, const ops::AttentionParts& parts) {
  const int64_t mode = c.integer("qk_matmul_output_mode", 0);
  const ValueId scores[] = {parts.matmul, parts.capped, parts.masked, parts.weights};
  if (mode < 0 || mode > 3) return invalid_model("qk_matmul_output_mode: expected 0 to 3, found ", mode);
  return as_type(c.emit, scores[mode], c.dtype());
}

Status attention(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, c.opset >= 24 ? kAttentionInputs : kLength));
  RT_ASSIGN(const AttentionOperands all, operands_of_attention(c));
  RT_ASSIGN(const ValueId mask, mask_of(c, all.key));
  RT_ASSIGN(const op::AttentionAttributes attributes, attention_attributes(c));
  RT_ASSIGN(const DType softmax, softmax_type(c));
  const ValueId past = c.has(kPastKey) ? dims_product(c.emit, c.input(kPastKey), 2, 3) : kNoValue;
  const ValueId inputs[] = {all.query, all.key, all.value, mask, c.input(kLength), past};
  if (!c.emit.status().ok()) return {};
  ValueId y = kNoValue, scores = kNoValue;
  if (c.wants(3) || (softmax == DType::F64 && c.dtype() != DType::F64)) {
    const ops::AttentionParts parts = ops::emit_attention(c.emit, attributes, inputs, softmax);
    y = parts.result;
    RT_ASSIGN(scores, asked_scores(c, parts));
  } else {
    c.ignore({"qk_matmul_output_mode"});
    y = c.emit.emit_many(make_op(attributes), inputs, 1)[0];
  }
  if (c.rank(kQuery) == 3) y = merge_heads(c.emit, y);
  c.outputs = {y, all.key, all.value, scores};
  c.outputs.resize(std::min(c.outputs.size(), c.output_count()));
  return {};
}

// --- RotaryEmbedding

// The rows of a table at the positions, [B,S,R/2].
ValueId rows_of(NodeContext& c, size_t table) {
  if (!c.has(3)) return c.input(table);
  return c.emit.emit(op::GatherAttributes{}, {c.input(table), c.input(3)});
}

Status rotary_embedding(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 4));
  op::RotaryEmbeddingAttributes attributes;
  attributes.interleaved = c.integer("interleaved", 0) != 0;
  attributes.rotary_dimension = c.integer("rotary_embedding_dim", 0);
  const int64_t heads = c.integer("num_heads", 0);
  const int rank = c.rank();
  if (rank != 3 && rank != 4) return invalid_model("expected an input of rank 3 or 4, found ", rank);
  ValueId x = c.input(0);
  if (rank == 3) {
    RT_ASSIGN(x, split_heads(c.emit, c.input(0), heads));
  }
  const ValueId y = c.emit.emit(attributes, {x, rows_of(c, 1), rows_of(c, 2)});
  return c.result(rank == 3 ? merge_heads(c.emit, y) : y);
}

// --- caches

Status tensor_scatter(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 3));
  op::TensorScatterAttributes attributes;
  RT_ASSIGN(attributes.axis, c.axis(c.integer("axis", -2), c.rank()));
  const std::string mode = c.string("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return invalid_model("mode: expected linear or circular, found ", mode);
  attributes.circular = mode == "circular";
  return c.result(c.emit.emit(attributes, {c.input(0), c.input(1), c.input(2)}));
}

constexpr ImportRow kAttentionRows[] = {
    {"", "Attention", 23, kNewestOpset, attention},
    {"", "RotaryEmbedding", 23, kNewestOpset, rotary_embedding},
    {"", "TensorScatter", 24, kNewestOpset, tensor_scatter},
};

}  // namespace

std::span<const ImportRow> rows_attention() {
  return kAttentionRows;
}

}  // namespace librt::onnx
