// Rotary position embedding, a composite of smaller operators.
#include <limits>

#include "runtime/ops/attention_support.h"

namespace librt::ops {
namespace {

Status infer_rotary(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_dtype_and_rank(node, 0, "x", kFloats, 4, 4));
  const Shape& x = node.shape(0);
  const int64_t given = node.as<op::RotaryEmbeddingAttributes>().rotary_dimension;
  const int64_t width = given == 0 ? x[3] : given;
  if (width < 0 || width > x[3] || width % 2 != 0)
    return invalid_argument("expected an even rotary dimension of at most ", x[3], ", found ", width);
  RT_TRY(expect_rank(node, 1, "cos", 3, 3));
  const int64_t batch = node.shape(1)[0] == 1 ? 1 : x[0];
  for (const size_t i : {size_t{1}, size_t{2}}) {
    const char* const name = i == 1 ? "cos" : "sin";
    RT_TRY(expect_dtype_and_shape(node, i, name, types_beside(node.dtype(0)), Shape{batch, x[2], width / 2}));
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
        concatenated(e, {extent(e, table, 0), one_int(e, 1), extent(e, table, 1), extent(e, table, 2)});
    return e.reshape(widened(e, table), shape);
  };
  const ValueId cos = per_head(inputs[1]), sin = per_head(inputs[2]);
  const ValueId half = extent(e, inputs[1], 2), width = e.add(half, half);
  const ValueId zero = one_int(e, 0), end = one_int(e, kToTheEnd);
  const ValueId a = attributes.interleaved ? part(e, x, zero, width, 2) : part(e, x, zero, half);
  const ValueId b = attributes.interleaved ? part(e, x, one_int(e, 1), width, 2) : part(e, x, half, width);
  const ValueId real = e.sub(e.mul(a, cos), e.mul(b, sin));
  const ValueId imaginary = e.add(e.mul(a, sin), e.mul(b, cos));
  const ValueId outer = concatenated(e, {extent(e, x, 0), extent(e, x, 1), extent(e, x, 2)});
  ValueId y = kNoValue;
  if (attributes.interleaved) {
    const ValueId column = concatenated(e, {outer, half, one_int(e, 1)});
    y = concatenated(e, {e.reshape(real, column), e.reshape(imaginary, column)}, 4);
    y = e.reshape(y, concatenated(e, {outer, width}));
  } else {
    y = concatenated(e, {real, imaginary}, 3);
  }
  if (attributes.rotary_dimension != 0) y = concatenated(e, {y, part(e, x, width, end)}, 3);
  return {is_16_bit(dtype) ? e.cast(y, dtype) : y};
}

}  // namespace

RT_PAGE(RotaryEmbedding) = {.kind = OpKind::RotaryEmbedding,
                            .inputs = {3, 3},
                            .infer = infer_rotary,
                            .cost = [](const NodeView& node) { return elementwise_cost(node, 3); },
                            .composite = true,
                            .extents = ExtentRule::LikeFirst};
RT_COMPILER_PAGE(RotaryEmbedding) = {.body = body_of_rotary};

}  // namespace librt::ops
