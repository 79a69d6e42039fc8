// Attention with a state of fixed size, and the convolution in front of it that keeps its last inputs: Gated
// DeltaNet (Yang et al. 2024, arXiv:2412.06464), RetNet, Mamba. In ONNX and, first, in com.microsoft.
#include <array>
#include <cmath>
#include <limits>

#include "tools/onnx/heads.h"
#include "tools/onnx/node.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

// --- CausalConvWithState

enum CausalInput : size_t { kCausalX, kCausalWeight, kCausalBias, kCausalPast };

/// What the operator of com.microsoft has for other devices than the CPU, and states of several steps.
Status refuse_extensions(NodeContext& c) {
  for (std::string_view name :
       {"state_window", "state_update_capacity", "state_length", "input_channel_offset", "input_channels"})
    if (c.integer(name, 0) != 0) return cannot(name, " is not supported; export without it");
  if (c.integer("state_channels_last", -1) != -1)
    return cannot("state_channels_last is not supported; export without it");
  if (const int64_t axes = c.integer("ndim", 1); axes != 1)
    return cannot("a convolution along ", axes, " axes; expected one");
  return {};
}

// A depthwise convolution over x [B,C,L], preceded by the last (k - 1) dilation columns of the past.
Status causal_conv(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 4));
  RT_TRY(refuse_extensions(c));
  const std::string activation = c.string("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return invalid_model("activation: expected none, silu or swish, found ", activation);
  const bool channels_last = c.integer("channels_last", 0) != 0;
  const int64_t dilation = c.integer("dilation", 1);
  constexpr int64_t kMostTaps = int64_t{1} << 31;
  if (dilation < 1 || dilation > kMostTaps)
    return invalid_model("dilation: expected 1 to ", kMostTaps, ", found ", dilation);
  if (c.rank(kCausalX) != 3 || c.rank(kCausalWeight) != 3)
    return invalid_model("expected an input [B,C,L] and a weight [C,1,k]");
  const int64_t channels = c.extent(kCausalWeight, 0), kernel = c.extent(kCausalWeight, 2);
  if (channels < 1 || kernel < 1 || kernel > kMostTaps)
    return cannot("the extents of the weight are not known");
  Emitter& e = c.emit;
  // [B,L,C]
  const auto last = [&](ValueId x) { return channels_last ? x : to_channels_last(e, x); };
  ValueId x = last(c.input(kCausalX));
  if (c.has(kCausalPast))
    x = concat(e, std::array{last(c.input(kCausalPast)), x}, 1);
  else
    x = e.emit(op::PadAttributes{},
               {x, e.ints(std::array<int64_t, 6>{0, (kernel - 1) * dilation, 0, 0, 0, 0})});
  op::ConvAttributes conv;
  conv.groups = channels;
  conv.dilations = {dilation};
  const ValueId weight = transposed(c.emit, c.input(kCausalWeight), {0, 2, 1});
  ValueId y = e.emit(std::move(conv), {x, weight});
  if (c.has(kCausalBias)) y = e.add(y, c.input(kCausalBias));
  if (activation != "none") y = e.emit(op::SiluAttributes{}, {y});
  const int length = channels_last ? 1 : 2;
  const ValueId end = e.ints(std::array{std::numeric_limits<int64_t>::max()});
  const ValueId present = slice_between(e, x, 1, dims_product(e, c.input(kCausalX), length, length + 1), end);
  const auto as_given = [&](ValueId id) { return channels_last ? id : to_channels_first(e, id); };
  c.outputs = {as_given(y), as_given(present)};
  c.outputs.resize(std::min(c.outputs.size(), c.output_count()));
  return {};
}

// --- LinearAttention: a state [B,G,K,V] that every position decays, corrects and adds to, then reads

enum LinearInput : size_t { kLinearQuery, kLinearKey, kLinearValue, kState, kDecay, kBeta };

/// Each position becomes a handful of nodes; longer sequences become a Loop.
constexpr int64_t kMostPositions = 32;
constexpr int64_t kMostWidth = int64_t{1} << 31;

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
  ValueId query = kNoValue;  // [B,G,T,queries,K], scaled
  ValueId key = kNoValue, value = kNoValue;
  ValueId decay = kNoValue;  // factors [B,G,T,K or 1]
  ValueId beta = kNoValue;   // [B,G or 1,T,1]
  ValueId state = kNoValue;
};

ValueId in_f32(NodeContext& c, ValueId x) {
  const bool narrow = c.value(x).dtype == DType::F16 || c.value(x).dtype == DType::BF16;
  return narrow ? c.emit.cast(x, DType::F32) : x;
}

// x [B,T,heads * width] -> [B,G,T,rows,width]: heads / G rows read one state, or a row reads G / heads
// states.
ValueId rows_by_state(NodeContext& c, ValueId x, int64_t heads, int64_t groups, int64_t width) {
  const int64_t shared = std::min(heads, groups);
  std::vector<Extent> extents = extents_of(c.emit, x);
  extents.back() = Extent::of(shared);
  extents.insert(extents.end(), {Extent::of(heads / shared), Extent::of(width)});
  ValueId rows = reshape_to(c.emit, in_f32(c, x), extents);
  if (groups > heads) {
    const ValueId repeats = c.emit.ints(std::array<int64_t, 5>{1, 1, 1, groups / heads, 1});
    extents[2] = Extent::of(groups);
    extents[3] = Extent::of(1);
    rows = reshape_to(c.emit, c.emit.emit(op::TileAttributes{}, {rows, repeats}), extents);
  }
  return c.emit.transpose(rows, {0, 2, 1, 3, 4});
}

Result<LinearOperands> linear_operands(NodeContext& c, int64_t heads, int64_t groups) {
  for (size_t i : {kLinearQuery, kLinearKey, kLinearValue})
    if (c.rank(i) != 3 || c.extent(i, 2) < 0 || c.extent(i, 2) > kMostWidth)
      return cannot("inputs other than [B,T,width] of known width up to ", kMostWidth);
  const int64_t width = c.extent(kLinearQuery, 2) / heads, value_width = c.extent(kLinearValue, 2) / groups;
  const int64_t key_heads = width > 0 ? c.extent(kLinearKey, 2) / width : 0;
  if (key_heads < 1 || key_heads * width != c.extent(kLinearKey, 2) || groups % key_heads != 0)
    return invalid_model("expected keys of a number of heads of width ", width, " that divides ", groups,
                         ", found width ", c.extent(kLinearKey, 2));
  LinearOperands all{};
  const float scale = c.real("scale", 0);
  const double factor = scale != 0 ? static_cast<double>(scale) : 1 / std::sqrt(static_cast<double>(width));
  const ValueId query = rows_by_state(c, c.input(kLinearQuery), heads, groups, width);
  all.query = c.emit.mul(query, c.emit.scalar_like(factor, query));
  all.key = squeeze(c.emit, rows_by_state(c, c.input(kLinearKey), key_heads, groups, width), {{3}});
  RT_ASSIGN(const ValueId value, split_heads(c.emit, c.input(kLinearValue), groups));
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
  const Extent shape[] = {Extent::dim(c.emit, c.input(kLinearQuery), 0), Extent::of(groups),
                          Extent::of(width), Extent::of(value_width)};
  all.state = c.emit.emit(zeros, {shape_vector(c.emit, shape)});
  return all;
}

// One position: what it makes of the state [B,G,K,V], and what it reads, [B,G,1,queries,V]. `at`: the
// operands at this position, their third axis of extent 1.
std::array<ValueId, 2> linear_step(Emitter& e, const LinearRule& rule, const LinearOperands& at,
                                   ValueId state) {
  op::MatMulAttributes outer;
  outer.transpose_a = true;
  ValueId value = at.value;
  if (rule.gated) state = e.mul(state, e.transpose(at.decay, {0, 1, 3, 2}));
  if (rule.delta) {
    const ValueId stored = e.emit(op::MatMulAttributes{}, {at.key, state});
    value = e.mul(at.beta, e.sub(value, stored));
  }
  state = e.add(state, e.emit(outer, {at.key, value}));
  const int axis[] = {2};
  const ValueId query = squeeze(e, at.query, axis);
  return {state, unsqueeze(e, e.emit(op::MatMulAttributes{}, {query, state}), axis)};
}

template <class Function>
LinearOperands each(const LinearOperands& all, const Function& function) {
  const auto optional = [&](ValueId id) { return id == kNoValue ? id : function(id); };
  return {function(all.query), function(all.key), function(all.value), optional(all.decay),
          optional(all.beta)};
}

/// The state after the last position, and what all have read, [B,G,T,queries,V].
std::array<ValueId, 2> linear_positions(NodeContext& c, const LinearRule& rule, const LinearOperands& all) {
  const int64_t length = c.extent(kLinearQuery, 1);
  if (length > 0 && length <= kMostPositions) {
    ValueId state = all.state;
    std::vector<ValueId> results;
    for (int64_t t = 0; t < length && c.emit.status().ok(); ++t) {
      const auto at = [&](ValueId x) { return slice(c.emit, x, 2, t, t + 1); };
      const auto [after, read] = linear_step(c.emit, rule, each(all, at), state);
      state = after;
      results.push_back(read);
    }
    return {state, c.emit.status().ok() ? concat(c.emit, results, 2) : kNoValue};
  }
  const ValueId trips = reshape_to(c.emit, dims_product(c.emit, c.input(kLinearQuery), 1, 2), {});
  const std::vector<ValueId> results =
      c.bodies().repeat(trips, {all.state}, [&](const BodyWriter::Body& body) -> std::vector<ValueId> {
        Emitter& e = body.emit;
        const ValueId index = reshape_to(e, body.inputs[0], {1});
        const auto at = [&](ValueId x) { return take(e, body.within(x), index, 2); };
        const auto [after, read] = linear_step(e, rule, each(all, at), body.inputs[1]);
        const int axis[] = {2};
        return {after, squeeze(e, read, axis)};
      });
  if (results.size() != 2) return {kNoValue, kNoValue};
  return {results[0], c.emit.transpose(results[1], {1, 2, 0, 3, 4})};
}

Status linear_attention(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 6));
  if (c.integer("state_window", 0) != 0) return cannot("state_window is not supported; export without it");
  c.ignore({"chunk_size"});
  RT_ASSIGN(const LinearRule rule, linear_rule(c));
  const int64_t heads = c.integer("q_num_heads", 0), groups = c.integer("kv_num_heads", 0);
  if (heads < 1 || groups < 1 || std::max(heads, groups) % std::min(heads, groups) != 0)
    return invalid_model("expected query heads that are a multiple or a divisor of the key heads, found ",
                         heads, " and ", groups);
  RT_ASSIGN(const LinearOperands all, linear_operands(c, heads, groups));
  if (!c.emit.status().ok()) return {};
  const auto [state, read] = linear_positions(c, rule, all);
  if (!c.emit.status().ok()) return {};
  const ValueId y = c.emit.transpose(read, {0, 2, 1, 3, 4});
  std::vector<Extent> joined = extents_of(c.emit, c.input(kLinearQuery));
  joined.back() = Extent::of(c.extent(kLinearValue, 2) / groups * std::max(heads, groups));
  const DType state_type = c.has(kState) ? c.dtype(kState) : c.dtype();
  c.outputs = {as_type(c.emit, reshape_to(c.emit, y, joined), c.dtype()), as_type(c.emit, state, state_type)};
  c.outputs.resize(std::min(c.outputs.size(), c.output_count()));
  return {};
}

// --- LinearAttentionGate: decay = decay_scale Softplus(a + dt_bias), beta = Sigmoid(b)

Status linear_attention_gate(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 4));
  const DType dtype = c.dtype();
  const ValueId shifted = c.emit.add(in_f32(c, c.input(0)), c.input(1));
  const ValueId decay = c.emit.mul(c.emit.emit(op::SoftplusAttributes{}, {shifted}), c.input(2));
  c.outputs = {as_type(c.emit, decay, dtype)};
  if (!c.has(3)) return {};
  const ValueId beta = c.emit.emit(op::SigmoidAttributes{}, {in_f32(c, c.input(3))});
  c.outputs.push_back(as_type(c.emit, beta, dtype));
  return {};
}

constexpr ImportRow kLinearAttentionRows[] = {
    {"", "LinearAttention", 26, kNewestOpset, linear_attention},
    {"", "CausalConvWithState", 26, kNewestOpset, causal_conv},
    {"com.microsoft", "LinearAttention", 1, kNewestOpset, linear_attention},
    {"com.microsoft", "LinearAttentionGate", 1, kNewestOpset, linear_attention_gate},
    {"com.microsoft", "CausalConvWithState", 1, kNewestOpset, causal_conv},
};

}  // namespace

std::span<const ImportRow> rows_linear_attention() {
  return kLinearAttentionRows;
}

}  // namespace librt::onnx
