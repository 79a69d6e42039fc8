// Scaled dot product attention and rotary position embedding: composites, written out in smaller operators.
//
// A query without a key to look at gives 0, in value and gradient: hidden scores become the lowest number
// rather than -infinity, so that no softmax divides 0 by 0, and such queries' weights are set to 0
// afterwards.
#include "runtime/ops/attention.h"

#include <cmath>
#include <limits>

#include "runtime/ops/page_support.h"

namespace rt::ops {
namespace {

constexpr bool is_16_bit(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16;
}
/// Operands beside 16-bit data may be f32.
DTypeSet types_beside(DType x) {
  return is_16_bit(x) ? DTypeSet(x, DType::F32) : DTypeSet(x);
}

// --- pieces of bodies

ValueId widened(Emitter& e, ValueId x) {
  return is_16_bit(e.value(x).dtype) ? e.cast(x, DType::F32) : x;
}

ValueId one_int(Emitter& e, int64_t number) {
  return e.ints({&number, 1});
}
/// Extent `axis` of x as an i64 vector of one entry.
ValueId extent(Emitter& e, ValueId x, size_t axis) {
  const auto& dims = e.value(x).dims;
  if (axis < dims.size() && dims[axis].is_known()) return one_int(e, dims[axis].extent);
  op::ShapeAttributes one;
  one.start = static_cast<int64_t>(axis);
  one.end = one.start + 1;
  return e.emit(one, {x});
}
ValueId joined(Emitter& e, std::initializer_list<ValueId> parts, int64_t axis = 0) {
  op::ConcatAttributes attributes;
  attributes.axis = axis;
  return e.emit_many(make_op(attributes), {parts.begin(), parts.size()}, 1)[0];
}
/// 0, 1, .. as i64 for axis `axis` of x.
ValueId positions(Emitter& e, ValueId x, size_t axis) {
  return e.emit(op::RangeAttributes{},
                {e.scalar(0, DType::I64), extent(e, x, axis), e.scalar(1, DType::I64)});
}
ValueId both(Emitter& e, ValueId a, ValueId b) {
  if (a == kNoValue || b == kNoValue) return a == kNoValue ? b : a;
  return e.emit(op::AndAttributes{}, {a, b});
}

// --- Attention

enum AttentionInput : size_t { kQuery, kKey, kValue, kMask, kKvLength, kQueryPosition };

Status check_numbers(const op::AttentionAttributes& attributes) {
  if (!std::isfinite(attributes.scale))
    return invalid_argument("expected a finite scale, found ", attributes.scale);
  if (!(attributes.softcap >= 0) || !std::isfinite(attributes.softcap))
    return invalid_argument("expected a softcap of at least 0, found ", attributes.softcap);
  if (attributes.left_window < -1 || attributes.right_window < -1)
    return invalid_argument("expected windows of at least -1, found ", attributes.left_window, " and ",
                            attributes.right_window);
  return {};
}

Status infer_attention(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(check_numbers(node.as<op::AttentionAttributes>()));
  RT_TRY(expect_dtype(node, kQuery, "query", kFloats));
  RT_TRY(expect_same_dtype(node, kKey, "key", kQuery, "query"));
  RT_TRY(expect_same_dtype(node, kValue, "value", kQuery, "query"));
  RT_TRY(expect_rank(node, kQuery, "query", 4, 4));
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
  if (node.has(kKvLength)) {
    RT_TRY(expect_dtype(node, kKvLength, "kv_length", DTypeSet(DType::I64)));
    RT_TRY(expect_shape(node, kKvLength, "kv_length", Shape{q[0]}));
  }
  if (node.has(kQueryPosition)) {
    RT_TRY(expect_dtype(node, kQueryPosition, "query_position", DTypeSet(DType::I64)));
    const int64_t batch = node.input(kQueryPosition).elements() == 1 ? 1 : q[0];
    RT_TRY(expect_shape(node, kQueryPosition, "query_position", Shape{batch}));
  }
  outputs.push_back({.dtype = node.dtype(kQuery), .shape = {q[0], q[1], q[2], v[3]}});
  return {};
}

Cost cost_attention(const NodeView& node) {
  const Shape &q = node.shape(kQuery), &v = node.shape(kValue);
  const double scores = static_cast<double>(q.elements(0, 3)) * static_cast<double>(v[2]);
  Cost cost = elementwise_cost(node, 0);
  cost.flops = scores * (2 * static_cast<double>(q[3] + v[3]) + 5);
  if (node.as<op::AttentionAttributes>().causal && q[2] > 1) cost.flops /= 2;
  return cost;
}

ValueId optional_input(std::span<const ValueId> inputs, size_t i) {
  return i < inputs.size() ? inputs[i] : kNoValue;
}
/// [B] as [B, 1, 1, 1].
ValueId per_batch(Emitter& e, ValueId x) {
  const ValueId one = one_int(e, 1);
  return e.reshape(x, joined(e, {extent(e, x, 0), one, one, one}));
}

/// The positions of the queries, broadcastable to [B, 1, S, 1].
ValueId query_positions(Emitter& e, std::span<const ValueId> inputs, ValueId lengths) {
  const int64_t column[] = {-1, 1};
  const ValueId at = e.reshape(positions(e, inputs[kQuery], 2), e.ints(column));
  if (const ValueId first = optional_input(inputs, kQueryPosition); first != kNoValue)
    return e.add(at, per_batch(e, first));
  return lengths == kNoValue ? at : e.add(at, e.sub(lengths, extent(e, inputs[kQuery], 2)));
}

/// Which keys a query sees by its position, as bool broadcastable to the scores; kNoValue: all.
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
    return by == 0 ? at : e.add(at, e.scalar(static_cast<double>(by), DType::I64));
  };
  if (right >= 0) keep = both(e, keep, e.emit(op::LessOrEqualAttributes{}, {keys, shifted(right)}));
  if (left >= 0) keep = both(e, keep, e.emit(op::GreaterOrEqualAttributes{}, {keys, shifted(-left)}));
  return keep;
}

/// q scaled, in the type that scores are computed in.
ValueId scaled_query(Emitter& e, const op::AttentionAttributes& attributes, ValueId query) {
  const ValueId q = widened(e, query);
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

/// -infinity where a key is hidden by its position or a mask.
struct Mask {
  ValueId bias = kNoValue;  ///< added to the scores
  ValueId keep = kNoValue;  ///< true where a key is seen

  ValueId apply(Emitter& e, ValueId scores) const {
    if (bias != kNoValue) scores = e.add(scores, bias);
    return keep == kNoValue ? scores : e.emit(op::WhereAttributes{}, {keep, scores, nothing(e, scores)});
  }
  /// True for queries that see no key.
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
  return attributes.left_window >= 0 || optional_input(inputs, kMask) != kNoValue ||
         optional_input(inputs, kKvLength) != kNoValue || optional_input(inputs, kQueryPosition) != kNoValue;
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

}  // namespace

/// Query heads of one group lie one under the other, [B, G, H / G S, D], so that keys and values are not
/// copied.
AttentionParts emit_attention(Emitter& e, const op::AttentionAttributes& attributes,
                              std::span<const ValueId> inputs, DType softmax_type) {
  const ValueId k = widened(e, inputs[kKey]), v = widened(e, inputs[kValue]);
  const ValueId q = scaled_query(e, attributes, inputs[kQuery]);
  if (!e.status().ok()) return {};
  const bool grouped = !same_heads(e, q, k);
  const ValueId queries = extent(e, q, 2);
  const auto regrouped = [&](ValueId x, bool join, ValueId last_of, size_t last) {
    if (!grouped) return x;
    const ValueId heads = extent(e, join ? k : q, 1);
    const ValueId rows = join ? e.div(e.mul(queries, extent(e, q, 1)), heads) : queries;
    return e.reshape(x, joined(e, {extent(e, q, 0), heads, rows, extent(e, last_of, last)}));
  };
  AttentionParts parts;
  op::MatMulAttributes product;
  product.transpose_b = true;
  parts.product = regrouped(e.emit(std::move(product), {regrouped(q, true, q, 3), k}), false, k, 2);
  parts.capped = parts.product;
  if (attributes.softcap != 0) {
    const ValueId cap = e.scalar_like(static_cast<double>(attributes.softcap), parts.product);
    parts.capped = e.mul(e.emit(op::TanhAttributes{}, {e.div(parts.product, cap)}), cap);
  }
  const Mask mask = mask_of(e, attributes, inputs);
  parts.masked = mask.apply(e, parts.capped);
  parts.weights =
      weights_of(e, parts.masked, may_see_none(attributes, inputs) ? &mask : nullptr, softmax_type);
  const ValueId y = e.emit(op::MatMulAttributes{}, {regrouped(parts.weights, true, k, 2), v});
  const DType dtype = e.value(inputs[kQuery]).dtype;
  parts.result = regrouped(y, false, v, 3);
  if (is_16_bit(dtype)) parts.result = e.cast(parts.result, dtype);
  return parts;
}

namespace {

std::vector<ValueId> body_of_attention(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  return {emit_attention(e, node.as<op::AttentionAttributes>(), inputs).result};
}

// --- RotaryEmbedding

Status infer_rotary(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype(node, 0, "x", kFloats));
  RT_TRY(expect_rank(node, 0, "x", 4, 4));
  const Shape& x = node.shape(0);
  const int64_t given = node.as<op::RotaryEmbeddingAttributes>().rotary_dimension;
  const int64_t width = given == 0 ? x[3] : given;
  if (width < 0 || width > x[3] || width % 2 != 0)
    return invalid_argument("expected an even rotary dimension of at most ", x[3], ", found ", width);
  RT_TRY(expect_rank(node, 1, "cos", 3, 3));
  const int64_t batch = node.shape(1)[0] == 1 ? 1 : x[0];
  for (const size_t i : {size_t{1}, size_t{2}}) {
    const char* const name = i == 1 ? "cos" : "sin";
    RT_TRY(expect_dtype(node, i, name, types_beside(node.dtype(0))));
    RT_TRY(expect_shape(node, i, name, Shape{batch, x[2], width / 2}));
  }
  return infer_like_first(node, outputs);
}

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

ValueId part(Emitter& e, ValueId x, ValueId start, ValueId end, int64_t step = 1) {
  op::SliceAttributes attributes;
  attributes.axes = {3};
  attributes.steps = {step};
  return e.emit(std::move(attributes), {x, start, end});
}

/// (a, b) -> (a cos - b sin, a sin + b cos) for every pair of the rotated part.
std::vector<ValueId> body_of_rotary(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const auto& attributes = node.as<op::RotaryEmbeddingAttributes>();
  const DType dtype = e.value(inputs[0]).dtype;
  const ValueId x = widened(e, inputs[0]);
  const auto per_head = [&](ValueId table) {
    const ValueId shape =
        joined(e, {extent(e, table, 0), one_int(e, 1), extent(e, table, 1), extent(e, table, 2)});
    return e.reshape(widened(e, table), shape);
  };
  const ValueId cos = per_head(inputs[1]), sin = per_head(inputs[2]);
  const ValueId half = extent(e, inputs[1], 2), width = e.add(half, half);
  const ValueId zero = one_int(e, 0), end = one_int(e, kToTheEnd);
  const ValueId a = attributes.interleaved ? part(e, x, zero, width, 2) : part(e, x, zero, half);
  const ValueId b = attributes.interleaved ? part(e, x, one_int(e, 1), width, 2) : part(e, x, half, width);
  const ValueId real = e.sub(e.mul(a, cos), e.mul(b, sin));
  const ValueId imaginary = e.add(e.mul(a, sin), e.mul(b, cos));
  const ValueId outer = joined(e, {extent(e, x, 0), extent(e, x, 1), extent(e, x, 2)});
  ValueId y = kNoValue;
  if (attributes.interleaved) {
    const ValueId column = joined(e, {outer, half, one_int(e, 1)});
    y = joined(e, {e.reshape(real, column), e.reshape(imaginary, column)}, 4);
    y = e.reshape(y, joined(e, {outer, width}));
  } else {
    y = joined(e, {real, imaginary}, 3);
  }
  if (attributes.rotary_dimension != 0) y = joined(e, {y, part(e, x, width, end)}, 3);
  return {is_16_bit(dtype) ? e.cast(y, dtype) : y};
}

}  // namespace

RT_PAGE(Attention) = {.kind = OpKind::Attention,
                      .inputs = {3, 6},
                      .infer = infer_attention,
                      .cost = cost_attention,
                      .composite = true,
                      .arithmetic = Arithmetic::Product};
RT_COMPILER_PAGE(Attention) = {.body = body_of_attention};

RT_PAGE(RotaryEmbedding) = {.kind = OpKind::RotaryEmbedding,
                            .inputs = {3, 3},
                            .infer = infer_rotary,
                            .cost = [](const NodeView& node) { return elementwise_cost(node, 3); },
                            .composite = true};
RT_COMPILER_PAGE(RotaryEmbedding) = {.body = body_of_rotary};

}  // namespace rt::ops
