// Attention, operators exported around it (rotary embeddings, caches, gates), and its recurrent variants.
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
  const ValueId asked = scores[mode];
  return asked == kNoValue || c.value(asked).dtype == c.dtype() ? asked : c.emit.cast(asked, c.dtype());
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

// --- caches and gates

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

// a sigmoid(alpha a)
ValueId swish(NodeContext& c, ValueId a, float alpha) {
  if (alpha == 1) return c.emit.emit(op::SiluAttributes{}, {a});
  const ValueId scaled = c.emit.mul(a, c.emit.scalar_like(static_cast<double>(alpha), a));
  return c.emit.mul(a, c.emit.emit(op::SigmoidAttributes{}, {scaled}));
}

Status swiglu(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  return c.result(c.emit.mul(swish(c, c.input(0), c.real("alpha", 1)), c.input(1)));
}

// A depthwise convolution over x [B,C,L], preceded by the last k - 1 columns of the past.
Status causal_conv(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 4));
  const std::string activation = c.string("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return invalid_model("activation: expected none, silu or swish, found ", activation);
  if (c.rank(0) != 3 || c.rank(1) != 3)
    return invalid_model("expected an input [B,C,L] and a weight [C,1,k]");
  const int64_t channels = c.extent(1, 0), kernel = c.extent(1, 2);
  if (channels < 1 || kernel < 1) return cannot("the extents of the weight are not known");
  op::PadAttributes zeros;
  ValueId x = c.input(0);
  if (c.has(3))
    x = concat(c.emit, std::array{c.input(3), x}, 2);
  else
    x = c.emit.emit(zeros, {x, c.emit.ints(std::array<int64_t, 6>{0, 0, kernel - 1, 0, 0, 0})});
  op::ConvAttributes conv;
  conv.groups = channels;
  const ValueId weight = transposed(c.emit, c.input(1), {0, 2, 1});
  ValueId y = c.emit.emit(std::move(conv), {to_channels_last(c.emit, x), weight});
  if (c.has(2)) y = c.emit.add(y, c.input(2));
  if (activation != "none") y = swish(c, y, 1);
  op::SliceAttributes last;
  last.axes = {2};
  last.steps = {1};
  const ValueId end = c.emit.ints(std::array{std::numeric_limits<int64_t>::max()});
  c.outputs = {to_channels_first(c.emit, y),
               c.emit.emit(std::move(last), {x, dims_product(c.emit, c.input(0), 2, 3), end})};
  c.outputs.resize(std::min(c.outputs.size(), c.output_count()));
  return {};
}

// --- LinearAttention: a state [B,G,K,V] that every position decays, corrects and adds to, then reads

enum LinearInput : size_t { kState = 3, kDecay, kBeta };

/// Each position becomes a handful of nodes.
constexpr int64_t kMostPositions = 1024;

struct LinearRule {
  bool gated, delta;
};

Result<LinearRule> linear_rule(NodeContext& c) {
  const std::string name = c.string("update_rule", "gated_delta");
  if (name != "linear" && name != "gated" && name != "delta" && name != "gated_delta")
    return invalid_model("update_rule: expected linear, gated, delta or gated_delta, found ", name);
  const LinearRule rule{name.starts_with("gated"), name.ends_with("delta")};
  if (rule.gated != c.has(kDecay)) return invalid_model(name, rule.gated ? " needs" : " has no", " decay");
  if (rule.delta != c.has(kBeta)) return invalid_model(name, rule.delta ? " needs" : " has no", " beta");
  return rule;
}

// The operands of the recurrence, each with the positions at axis 2.
struct LinearOperands {
  ValueId query;  // [B,G,T,H / G,K], scaled
  ValueId key, value;
  ValueId decay = kNoValue;  // factors [B,G,T,K or 1]
  ValueId beta = kNoValue;   // [B,G or 1,T,1]
  ValueId state = kNoValue;
};

ValueId in_f32(NodeContext& c, ValueId x) {
  const bool narrow = c.value(x).dtype == DType::F16 || c.value(x).dtype == DType::BF16;
  return narrow ? c.emit.cast(x, DType::F32) : x;
}

Result<LinearOperands> linear_operands(NodeContext& c, int64_t heads, int64_t groups) {
  for (size_t i : {kQuery, kKey, kValue})
    if (c.rank(i) != 3 || c.extent(i, 2) < 0) return cannot("inputs other than [B,T,width] of known width");
  const int64_t width = c.extent(kQuery, 2) / heads, value_width = c.extent(kValue, 2) / groups;
  LinearOperands all{};
  std::vector<Extent> grouped = extents_of(c.emit, c.input(kQuery));
  grouped.back() = Extent::of(groups);
  grouped.insert(grouped.end(), {Extent::of(heads / groups), Extent::of(width)});
  const float scale = c.real("scale", 0);
  const double factor = scale != 0 ? static_cast<double>(scale) : 1 / std::sqrt(static_cast<double>(width));
  const ValueId query =
      c.emit.transpose(reshape_to(c.emit, in_f32(c, c.input(kQuery)), grouped), {0, 2, 1, 3, 4});
  all.query = c.emit.mul(query, c.emit.scalar_like(factor, query));
  RT_ASSIGN(const ValueId key, split_heads(c.emit, c.input(kKey), groups));
  RT_ASSIGN(const ValueId value, split_heads(c.emit, c.input(kValue), groups));
  all.key = in_f32(c, key);
  all.value = in_f32(c, value);
  if (c.has(kDecay)) {
    RT_ASSIGN(const ValueId decay, split_heads(c.emit, c.input(kDecay), groups));
    all.decay = c.emit.emit(op::ExpAttributes{}, {in_f32(c, decay)});
  }
  if (c.has(kBeta)) {
    RT_ASSIGN(const ValueId beta, split_heads(c.emit, c.input(kBeta), c.extent(kBeta, 2) == 1 ? 1 : groups));
    all.beta = in_f32(c, beta);
  }
  if (c.has(kState)) {
    all.state = in_f32(c, c.input(kState));
    return all;
  }
  op::ConstantOfShapeAttributes zeros;
  zeros.dtype = static_cast<uint8_t>(c.value(all.query).dtype);
  const Extent shape[] = {Extent::dim(c.emit, c.input(kQuery), 0), Extent::of(groups), Extent::of(width),
                          Extent::of(value_width)};
  all.state = c.emit.emit(zeros, {shape_vector(c.emit, shape)});
  return all;
}

Status linear_attention(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 6));
  c.ignore({"chunk_size"});
  RT_ASSIGN(const LinearRule rule, linear_rule(c));
  const int64_t heads = c.integer("q_num_heads", 0), groups = c.integer("kv_num_heads", 0);
  if (heads < 1 || groups < 1 || heads % groups != 0)
    return invalid_model("expected query heads that are a multiple of the key heads, found ", heads, " and ",
                         groups);
  RT_ASSIGN(const LinearOperands all, linear_operands(c, heads, groups));
  const int64_t length = c.extent(kQuery, 1);
  if (length < 1 || length > kMostPositions)
    return cannot("sequences of unknown length or of more than ", kMostPositions,
                  " positions; fix the length with --dim");
  op::MatMulAttributes outer;
  outer.transpose_a = true;
  ValueId state = all.state;
  std::vector<ValueId> results;
  for (int64_t t = 0; t < length && c.emit.status().ok(); ++t) {
    const auto at = [&](ValueId x) { return slice(c.emit, x, 2, t, t + 1); };
    const ValueId key = at(all.key);
    ValueId value = at(all.value);
    if (rule.gated) state = c.emit.mul(state, c.emit.transpose(at(all.decay), {0, 1, 3, 2}));
    if (rule.delta) {
      const ValueId stored = c.emit.emit(op::MatMulAttributes{}, {key, state});
      value = c.emit.mul(at(all.beta), c.emit.sub(value, stored));
    }
    state = c.emit.add(state, c.emit.emit(outer, {key, value}));
    const int axis[] = {2};
    const ValueId query = squeeze(c.emit, at(all.query), axis);
    results.push_back(unsqueeze(c.emit, c.emit.emit(op::MatMulAttributes{}, {query, state}), axis));
  }
  if (!c.emit.status().ok()) return {};
  const ValueId y = c.emit.transpose(concat(c.emit, results, 2), {0, 2, 1, 3, 4});
  std::vector<Extent> joined = extents_of(c.emit, c.input(kQuery));
  joined.back() = Extent::of(c.extent(kValue, 2) / groups * heads);
  const DType state_type = c.has(kState) ? c.dtype(kState) : c.dtype();
  const auto in_type = [&](ValueId x, DType dtype) {
    return c.value(x).dtype == dtype ? x : c.emit.cast(x, dtype);
  };
  c.outputs = {in_type(reshape_to(c.emit, y, joined), c.dtype()), in_type(state, state_type)};
  c.outputs.resize(std::min(c.outputs.size(), c.output_count()));
  return {};
}

constexpr ImportRow kAttentionRows[] = {
    {"", "Attention", 23, kNewestOpset, attention},
    {"", "RotaryEmbedding", 23, kNewestOpset, rotary_embedding},
    {"", "TensorScatter", 24, kNewestOpset, tensor_scatter},
    {"", "SwiGLU", 26, kNewestOpset, swiglu},
    {"", "LinearAttention", 26, kNewestOpset, linear_attention},
    {"", "CausalConvWithState", 26, kNewestOpset, causal_conv},
};

}  // namespace

std::span<const ImportRow> rows_attention() {
  return kAttentionRows;
}

}  // namespace librt::onnx
