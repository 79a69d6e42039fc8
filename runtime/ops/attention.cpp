// Scaled dot product attention, a composite of smaller operators, and its gradient.
//
// A query with all keys masked gives 0, in result and gradient: masked scores become the lowest finite f32
// rather than -infinity, so that no softmax divides 0 by 0, and such queries' weights are set to 0
// afterwards.
#include "runtime/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/ops/attention_support.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

// --- pieces of bodies

ValueId both(Emitter& e, ValueId a, ValueId b) {
  if (a == kNoValue || b == kNoValue) return a == kNoValue ? b : a;
  return e.emit(op::AndAttributes{}, {a, b});
}

// --- Attention

enum AttentionInput : size_t { kQuery, kKey, kValue, kMask, kKvLength, kQueryPosition, kOutput, kGradOutput };

template <class Attributes>
Status check_scalars(const Attributes& attributes) {
  if (!std::isfinite(attributes.scale))
    return invalid_argument("expected a finite scale, found ", attributes.scale);
  if (!(attributes.softcap >= 0) || !std::isfinite(attributes.softcap))
    return invalid_argument("expected a softcap of at least 0, found ", attributes.softcap);
  if (attributes.left_window < -1 || attributes.right_window < -1)
    return invalid_argument("expected windows of at least -1, found ", attributes.left_window, " and ",
                            attributes.right_window);
  return {};
}

/// The operands that Attention and its gradient share.
Status check_operands(const NodeView& node) {
  RT_TRY(expect_dtype_and_rank(node, kQuery, "query", kFloats, 4, 4));
  RT_TRY(expect_same_dtype(node, kKey, "key", kQuery, "query"));
  RT_TRY(expect_same_dtype(node, kValue, "value", kQuery, "query"));
  const Shape& q = node.shape(kQuery);
  RT_TRY(expect_rank(node, kKey, "key", 4, 4));
  const Shape &k = node.shape(kKey), &v = node.shape(kValue);
  RT_TRY(expect_shape(node, kKey, "key", Shape{q[0], k[1], k[2], q[3]}));
  RT_TRY(expect_rank(node, kValue, "value", 4, 4));
  RT_TRY(expect_shape(node, kValue, "value", Shape{q[0], k[1], k[2], v[3]}));
  if (k[1] == 0 ? q[1] != 0 : q[1] % k[1] != 0)
    return invalid_argument("expected query heads that are a multiple of the ", k[1], " key heads, found ",
                            q[1]);
  if (node.has(kMask)) {
    RT_TRY(expect_dtype(node, kMask, "mask", types_beside(node.dtype(kQuery)) | DTypeSet(DType::Bool)));
    const Shape scores{q[0], q[1], q[2], k[2]};
    const auto shape = broadcast(node.shape(kMask), scores);
    if (!shape || *shape != scores)
      return invalid_argument("expected a mask broadcastable to the scores ", scores, ", found ",
                              node.shape(kMask));
  }
  if (node.has(kKvLength))
    RT_TRY(expect_dtype_and_shape(node, kKvLength, "kv_length", DTypeSet(DType::I64), Shape{q[0]}));
  if (node.has(kQueryPosition)) {
    const int64_t batch = node.input(kQueryPosition).elements() == 1 ? 1 : q[0];
    RT_TRY(
        expect_dtype_and_shape(node, kQueryPosition, "query_position", DTypeSet(DType::I64), Shape{batch}));
  }
  return {};
}

Shape output_shape(const NodeView& node) {
  const Shape& q = node.shape(kQuery);
  return {q[0], q[1], q[2], node.shape(kValue)[3]};
}

Status infer_attention(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(check_scalars(node.as<op::AttentionAttributes>()));
  RT_TRY(check_operands(node));
  return add_output(outputs, node.dtype(kQuery), output_shape(node));
}

Status infer_attention_grad(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(check_scalars(node.as<op::AttentionGradAttributes>()));
  RT_TRY(check_operands(node));
  for (const size_t i : {kOutput, kGradOutput}) {
    const char* const name = i == kOutput ? "y" : "grad_y";
    if (!node.has(i)) return invalid_argument("expected an input '", name, "'");
    RT_TRY(expect_like(node, i, name, kQuery, "query", output_shape(node)));
  }
  for (const size_t i : {kQuery, kKey, kValue}) RT_TRY(add_output(outputs, node.dtype(i), node.shape(i)));
  return {};
}

/// Two matmuls over the scores forward, five backward.
template <class Attributes>
Cost cost_attention(const NodeView& node) {
  constexpr bool kBackward = std::is_same_v<Attributes, op::AttentionGradAttributes>;
  const Shape &q = node.shape(kQuery), &v = node.shape(kValue);
  const double scores = static_cast<double>(q.elements(0, 3)) * static_cast<double>(v[2]);
  const auto d = static_cast<double>(q[3]), e = static_cast<double>(v[3]);
  Cost cost = elementwise_cost(node, 0);
  cost.flops = scores * (kBackward ? 6 * d + 4 * e + 10 : 2 * (d + e) + 5);
  if (node.as<Attributes>().causal && q[2] > 1) cost.flops /= 2;
  return cost;
}

ValueId optional_input(std::span<const ValueId> inputs, size_t i) {
  return i < inputs.size() ? inputs[i] : kNoValue;
}
/// [B] as [B, 1, 1, 1].
ValueId per_batch(Emitter& e, ValueId x) {
  const ValueId one = one_int(e, 1);
  return e.reshape(x, concatenated(e, {extent(e, x, 0), one, one, one}));
}

/// Positions further than any key give the same masks; sums of a few of these do not overflow.
constexpr int64_t kFar = int64_t{1} << 61;
ValueId bounded(Emitter& e, ValueId position) {
  constexpr auto kMost = static_cast<double>(kFar);
  const ValueId most = e.scalar(kMost, DType::I64), least = e.scalar(-kMost, DType::I64);
  return e.emit(op::MaximumAttributes{}, {e.emit(op::MinimumAttributes{}, {position, most}), least});
}

/// The positions of the queries, broadcastable to [B, 1, S, 1].
ValueId query_positions(Emitter& e, std::span<const ValueId> inputs, ValueId lengths) {
  const int64_t column[] = {-1, 1};
  const ValueId at = e.reshape(positions(e, inputs[kQuery], 2), e.ints(column));
  if (const ValueId first = optional_input(inputs, kQueryPosition); first != kNoValue)
    return e.add(at, bounded(e, per_batch(e, first)));
  return lengths == kNoValue ? at : e.add(at, e.sub(bounded(e, lengths), extent(e, inputs[kQuery], 2)));
}

/// The positional mask (lengths, causal, windows), as bool broadcastable to the scores; kNoValue: all
/// visible.
ValueId visible_keys(Emitter& e, const op::AttentionAttributes& attributes, std::span<const ValueId> inputs) {
  const int64_t left = attributes.left_window, right = attributes.causal ? 0 : attributes.right_window;
  const ValueId length = optional_input(inputs, kKvLength);
  if (right < 0 && left < 0 && length == kNoValue) return kNoValue;
  const ValueId keys = positions(e, inputs[kKey], 2);
  const ValueId lengths = length == kNoValue ? kNoValue : per_batch(e, length);
  ValueId keep = length == kNoValue ? kNoValue : e.emit(op::LessAttributes{}, {keys, lengths});
  if (right < 0 && left < 0) return keep;
  const ValueId at = query_positions(e, inputs, lengths);
  const auto shifted = [&](int64_t by) {
    const auto near = static_cast<double>(std::clamp(by, -kFar, kFar));
    return by == 0 ? at : e.add(at, e.scalar(near, DType::I64));
  };
  if (right >= 0) keep = both(e, keep, e.emit(op::LessOrEqualAttributes{}, {keys, shifted(right)}));
  if (left >= 0) keep = both(e, keep, e.emit(op::GreaterOrEqualAttributes{}, {keys, shifted(-left)}));
  return keep;
}

/// q [B, H, S, D] times the scale.
ValueId scaled(Emitter& e, const op::AttentionAttributes& attributes, ValueId q) {
  if (!e.status().ok()) return q;
  if (attributes.scale != 0) return e.mul(q, e.scalar_like(static_cast<double>(attributes.scale), q));
  const int last[] = {3};
  if (const Dim& width = e.value(q).dims[3]; width.is_known())
    return e.mul(q, e.scalar_like(1 / std::sqrt(static_cast<double>(width.extent)), q));
  return e.mul(q, e.emit(op::SqrtAttributes{}, {reciprocal_count(e, q, last)}));
}

bool same_heads(Emitter& e, ValueId q, ValueId k) {
  const Dim &a = e.value(q).dims[1], &b = e.value(k).dims[1];
  return a.is_known() ? a.extent == b.extent : a.symbol >= 0 && a.symbol == b.symbol && !b.is_known();
}

/// -infinity where a key is masked by its position or the mask operand.
struct Mask {
  ValueId bias = kNoValue;  ///< added to the scores
  ValueId keep = kNoValue;  ///< true where a key is visible

  ValueId apply(Emitter& e, ValueId scores) const {
    if (bias != kNoValue) scores = e.add(scores, bias);
    return keep == kNoValue ? scores : e.emit(op::WhereAttributes{}, {keep, scores, nothing(e, scores)});
  }
  /// True for queries with all keys masked.
  ValueId sees_none(Emitter& e, ValueId scores) const {
    ValueId mask = bias == kNoValue ? e.scalar_like(0, scores) : bias;
    if (keep != kNoValue) mask = e.emit(op::WhereAttributes{}, {keep, mask, nothing(e, scores)});
    op::ReduceMaxAttributes over_keys;
    over_keys.axes = {-1};
    return e.emit(op::EqualAttributes{}, {e.emit(std::move(over_keys), {mask}), nothing(e, scores)});
  }

 private:
  static ValueId nothing(Emitter& e, ValueId like) {
    return e.scalar_like(-std::numeric_limits<double>::infinity(), like);
  }
};

Mask mask_of(Emitter& e, const op::AttentionAttributes& attributes, std::span<const ValueId> inputs) {
  Mask mask{.keep = visible_keys(e, attributes, inputs)};
  const ValueId given = optional_input(inputs, kMask);
  if (given == kNoValue) return mask;
  if (e.value(given).dtype == DType::Bool)
    mask.keep = both(e, mask.keep, given);
  else
    mask.bias = widened(e, given);
  return mask;
}

bool may_see_none(const op::AttentionAttributes& attributes, std::span<const ValueId> inputs) {
  const bool ends = attributes.causal || attributes.right_window >= 0;
  return attributes.left_window >= 0 || optional_input(inputs, kMask) != kNoValue ||
         optional_input(inputs, kKvLength) != kNoValue ||
         (ends && optional_input(inputs, kQueryPosition) != kNoValue);
}

ValueId weights_of(Emitter& e, ValueId masked, const Mask* mask, DType softmax_type) {
  const DType dtype = e.value(masked).dtype;
  const bool wide = softmax_type == DType::F64 && dtype != DType::F64;
  ValueId x = masked;
  if (mask != nullptr)
    x = e.emit(op::MaximumAttributes{},
               {x, e.scalar_like(-static_cast<double>(std::numeric_limits<float>::max()), x)});
  x = e.emit(op::SoftmaxAttributes{}, {wide ? e.cast(x, DType::F64) : x});
  if (wide) x = e.cast(x, dtype);
  if (mask == nullptr) return x;
  return e.emit(op::WhereAttributes{}, {mask->sees_none(e, masked), e.scalar_like(0, x), x});
}

/// x [B, H, S, ..] as [B, G, H / G S, ..]: the query heads of one group are stacked along the rows, so that
/// keys and values are not copied. Unchanged where there are as many key heads as query heads.
ValueId grouped(Emitter& e, const AttentionParts& parts, ValueId x, ValueId last_of, size_t last) {
  if (same_heads(e, parts.query, parts.key)) return x;
  const ValueId heads = extent(e, parts.key, 1);
  const ValueId rows = e.div(e.mul(extent(e, parts.query, 2), extent(e, parts.query, 1)), heads);
  return e.reshape(x, concatenated(e, {extent(e, parts.query, 0), heads, rows, extent(e, last_of, last)}));
}
/// The inverse.
ValueId ungrouped(Emitter& e, const AttentionParts& parts, ValueId x, ValueId last_of, size_t last) {
  if (same_heads(e, parts.query, parts.key)) return x;
  const ValueId q = parts.query;
  return e.reshape(
      x, concatenated(e, {extent(e, q, 0), extent(e, q, 1), extent(e, q, 2), extent(e, last_of, last)}));
}

ValueId matmul(Emitter& e, ValueId a, ValueId b, bool transpose_a = false, bool transpose_b = false) {
  op::MatMulAttributes attributes;
  attributes.transpose_a = transpose_a;
  attributes.transpose_b = transpose_b;
  return e.emit(std::move(attributes), {a, b});
}

ValueId in_type_of(Emitter& e, ValueId x, ValueId like) {
  const DType dtype = e.value(like).dtype;
  return is_16_bit(dtype) ? e.cast(x, dtype) : x;
}

/// All but the result.
AttentionParts emit_weights(Emitter& e, const op::AttentionAttributes& attributes,
                            std::span<const ValueId> inputs, DType softmax_type) {
  AttentionParts parts;
  parts.key = widened(e, inputs[kKey]);
  parts.value = widened(e, inputs[kValue]);
  parts.query = scaled(e, attributes, widened(e, inputs[kQuery]));
  if (!e.status().ok()) return parts;
  const ValueId k = parts.key;
  parts.matmul =
      ungrouped(e, parts, matmul(e, grouped(e, parts, parts.query, parts.query, 3), k, false, true), k, 2);
  parts.capped = parts.matmul;
  if (attributes.softcap != 0) {
    const ValueId cap = e.scalar_like(static_cast<double>(attributes.softcap), parts.matmul);
    parts.capped = e.mul(e.emit(op::TanhAttributes{}, {e.div(parts.matmul, cap)}), cap);
  }
  const Mask mask = mask_of(e, attributes, inputs);
  parts.masked = mask.apply(e, parts.capped);
  parts.weights =
      weights_of(e, parts.masked, may_see_none(attributes, inputs) ? &mask : nullptr, softmax_type);
  return parts;
}

}  // namespace

AttentionParts emit_attention(Emitter& e, const op::AttentionAttributes& attributes,
                              std::span<const ValueId> inputs, DType softmax_type) {
  AttentionParts parts = emit_weights(e, attributes, inputs, softmax_type);
  if (!e.status().ok()) return {};
  const ValueId y = matmul(e, grouped(e, parts, parts.weights, parts.key, 2), parts.value);
  parts.result = in_type_of(e, ungrouped(e, parts, y, parts.value, 3), inputs[kQuery]);
  return parts;
}

namespace {

std::vector<ValueId> body_of_attention(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  return {emit_attention(e, node.as<op::AttentionAttributes>(), inputs).result};
}

// --- its gradient

template <class To, class From>
To copy_attributes(const From& from) {
  To to;
  to.scale = from.scale;
  to.softcap = from.softcap;
  to.causal = from.causal;
  to.left_window = from.left_window;
  to.right_window = from.right_window;
  return to;
}

struct AttentionGradients {
  ValueId query = kNoValue, key = kNoValue, value = kNoValue;
  ValueId mask = kNoValue;  ///< [B, H, S, T], f32 for 16-bit inputs
};

/// With y = P v and P = softmax(s): grad_v = P' grad_y, grad_P = grad_y v', and grad_s = P (grad_P - D)
/// elementwise, where D is the row sum of grad_y y, equal to that of P grad_P.
AttentionGradients emit_gradients(Emitter& e, const op::AttentionAttributes& attributes,
                                  std::span<const ValueId> inputs, ValueId y, ValueId grad_y) {
  const AttentionParts parts = emit_weights(e, attributes, inputs, DType::F32);
  if (!e.status().ok()) return {};
  const ValueId k = parts.key, v = parts.value, q = parts.query;
  const ValueId grad = widened(e, grad_y), rows = grouped(e, parts, grad, v, 3);
  AttentionGradients gradients;
  gradients.value = matmul(e, grouped(e, parts, parts.weights, k, 2), rows, true);
  const ValueId grad_weights = ungrouped(e, parts, matmul(e, rows, v, false, true), k, 2);
  const ValueId along = e.reduce_sum(e.mul(grad, widened(e, y)), {3});
  gradients.mask = e.mul(parts.weights, e.sub(grad_weights, along));
  ValueId scores = gradients.mask;
  if (attributes.softcap != 0) {  // tanh' = 1 - tanh^2
    const ValueId ratio =
        e.div(parts.capped, e.scalar_like(static_cast<double>(attributes.softcap), parts.capped));
    scores = e.mul(scores, e.sub(e.scalar_like(1, ratio), e.mul(ratio, ratio)));
  }
  scores = grouped(e, parts, scores, k, 2);
  gradients.query = scaled(e, attributes, ungrouped(e, parts, matmul(e, scores, k), q, 3));
  gradients.key = matmul(e, scores, grouped(e, parts, q, q, 3), true);
  return gradients;
}

std::vector<ValueId> body_of_attention_grad(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const auto attributes = copy_attributes<op::AttentionAttributes>(node.as<op::AttentionGradAttributes>());
  const AttentionGradients gradients =
      emit_gradients(e, attributes, inputs.first(kOutput), inputs[kOutput], inputs[kGradOutput]);
  if (!e.status().ok()) return {};
  return {in_type_of(e, gradients.query, inputs[kQuery]), in_type_of(e, gradients.key, inputs[kKey]),
          in_type_of(e, gradients.value, inputs[kValue])};
}

/// A trained mask (a relative position bias) needs the gradients of all scores: then nodes are emitted for
/// the whole gradient, instead of an AttentionGrad.
void gradient_of_attention(GradContext& c) {
  const auto& attributes = c.node.as<op::AttentionAttributes>();
  const ValueId operands[] = {c.input(kQuery),    c.input(kKey),           c.input(kValue), c.input(kMask),
                              c.input(kKvLength), c.input(kQueryPosition), c.output(),      c.grad()};
  if (c.needs(kMask)) {
    const AttentionGradients gradients =
        emit_gradients(c.emit, attributes, std::span(operands).first(kOutput), c.output(), c.grad());
    if (!c.emit.status().ok()) return;
    c.set(kQuery, in_type_of(c.emit, gradients.query, operands[kQuery]));
    c.set(kKey, in_type_of(c.emit, gradients.key, operands[kKey]));
    c.set(kValue, in_type_of(c.emit, gradients.value, operands[kValue]));
    c.set(kMask, in_type_of(c.emit, gradients.mask, operands[kMask]));
    return;
  }
  const auto gradients =
      c.emit.emit_many(make_op(copy_attributes<op::AttentionGradAttributes>(attributes)), operands, 3);
  for (const size_t i : {kQuery, kKey, kValue}) c.set(i, gradients[i]);
}

}  // namespace

RT_PAGE(Attention) = {.kind = OpKind::Attention,
                      .inputs = {3, 6},
                      .infer = infer_attention,
                      .cost = cost_attention<op::AttentionAttributes>,
                      .composite = true,
                      .arithmetic = Arithmetic::Matmul,
                      .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(Attention) = {.gradient = gradient_of_attention, .body = body_of_attention};

RT_PAGE(AttentionGrad) = {.kind = OpKind::AttentionGrad,
                          .inputs = {3, 8},
                          .outputs = {3, 3},
                          .infer = infer_attention_grad,
                          .cost = cost_attention<op::AttentionGradAttributes>,
                          .composite = true,
                          .arithmetic = Arithmetic::Matmul,
                          .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(AttentionGrad) = {.body = body_of_attention_grad};

}  // namespace librt::ops
