// Normalizations. ONNX's per-channel forms have the channels at axis 1; inside they are last.
#include <algorithm>

#include "tools/onnx/node.h"
#include "tools/onnx/norms.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

std::vector<int64_t> axes_between(int first, int last) {
  std::vector<int64_t> axes;
  for (int axis = first; axis < last; ++axis) axes.push_back(axis);
  return axes;
}

Status batch_norm(NodeContext& c) {
  RT_TRY(c.expect_inputs(5, 5));
  c.ignore({"consumed_inputs"});
  const float epsilon = c.real("epsilon", 1e-5f);
  const float momentum = c.real("momentum", 0.9f);
  if (c.integer("spatial", 1) == 0) return cannot("spatial = 0 is not supported; use one mean per channel");
  // Before opset 7 a node trained unless is_test was set; in existing models the outputs show which is meant.
  c.ignore({"is_test"});
  const bool training = c.opset >= 14 && c.integer("training_mode", 0) != 0;
  if (c.rank() < 2) return invalid_model("expected an input [N,C,S..], found rank ", c.rank());
  const ValueId x = to_channels_last(c.emit, c.input(0));
  if (!training) {
    op::BatchNormAttributes attributes;
    attributes.epsilon = epsilon;
    attributes.momentum = momentum;
    const ValueId y = c.emit.emit(attributes, {x, c.input(1), c.input(2), c.input(3), c.input(4)});
    return c.result(to_channels_first(c.emit, y));
  }
  op::BatchNormTrainAttributes attributes;
  attributes.epsilon = epsilon;
  attributes.momentum = momentum;
  const ValueId operands[] = {x, c.input(1), c.input(2), c.input(3), c.input(4)};
  const std::vector<ValueId> results = c.emit.emit_many(make_op(attributes), operands, 5);
  if (results.size() != 5) return {};
  c.outputs = {to_channels_first(c.emit, results[0]), results[1], results[2]};
  return {};
}

struct Normalized {
  ValueId y;
  ValueId mean;
  ValueId inverse_stddev;
};

// (x - mean) / sqrt(variance + epsilon) over the axes.
Normalized normalize(NodeContext& c, ValueId x, const std::vector<int64_t>& axes, float epsilon) {
  Normalized result{};
  result.mean = c.emit.reduce_mean(x, axes);
  const ValueId centered = c.emit.sub(x, result.mean);
  const ValueId variance = c.emit.reduce_mean(c.emit.mul(centered, centered), axes);
  const ValueId deviation =
      c.emit.emit(op::SqrtAttributes{}, {c.emit.add(variance, c.emit.scalar_like(epsilon, x))});
  result.inverse_stddev = c.emit.emit(op::ReciprocalAttributes{}, {deviation});
  result.y = c.emit.mul(centered, result.inverse_stddev);
  return result;
}

ValueId per_channel(NodeContext& c, ValueId vector, int rank) {
  std::vector<int64_t> extents(static_cast<size_t>(rank - 1), 1);
  extents[0] = -1;
  return c.emit.reshape(vector, c.emit.ints(extents));
}

// x [N,C,S..]: layer normalization of each sample's channel, a single kernel where a backend has one.
Status instance_norm(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 3));
  c.ignore({"consumed_inputs"});
  if (c.rank() < 3) return invalid_model("expected an input [N,C,S..], found rank ", c.rank());
  op::LayerNormAttributes attributes;
  attributes.axis = 2;
  attributes.epsilon = c.real("epsilon", 1e-5f);
  const ValueId y = c.emit.emit(std::move(attributes), {c.input(0)});
  const ValueId scaled = c.emit.mul(y, per_channel(c, c.input(1), c.rank()));
  return c.result(c.emit.add(scaled, per_channel(c, c.input(2), c.rank())));
}

// stash_type requests f32 computation for 16-bit elements.
Result<bool> widens(NodeContext& c) {
  const int64_t stash = c.integer("stash_type", 1);
  if (stash != 1 && stash != 10 && stash != 16 && stash != 11)
    return invalid_model("stash_type: found ", stash);
  return stash == 1 && (c.dtype() == DType::F16 || c.dtype() == DType::BF16);
}

// x [N,C,S..] as [N,G,C/G,S..]. Scale and bias are per group before opset 21 and per channel since.
Status group_norm(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 3));
  RT_ASSIGN(const bool wide, widens(c));
  const int64_t groups = c.integer("num_groups", 0);
  if (c.rank() < 3 || groups < 1)
    return invalid_model("expected an input [N,C,S..] and num_groups of at least 1");
  const std::vector<Extent> extents = extents_of(c.emit, c.input(0));
  const ValueId x = wide ? c.emit.cast(c.input(0), DType::F32) : c.input(0);
  ValueId y = group_normalized(c, x, groups, c.real("epsilon", 1e-5f));
  if (wide) y = c.emit.cast(y, c.dtype());
  if (c.opset >= 21) y = reshape_to(c.emit, y, extents);
  const int rank = c.value(y).rank();
  if (rank < 2) return {};
  y = c.emit.add(c.emit.mul(y, per_channel(c, c.input(1), rank)), per_channel(c, c.input(2), rank));
  return c.result(c.opset >= 21 ? y : reshape_to(c.emit, y, extents));
}

// The composite takes a scale and a bias of exactly the normalized dimensions.
bool has_dims_from(const NodeContext& c, ValueId parameter, ValueId x, int axis) {
  if (parameter == kNoValue) return true;
  const Value &of = c.value(parameter), &value = c.value(x);
  if (of.rank() != value.rank() - axis) return false;
  return of.is_static() && std::equal(of.dims.begin(), of.dims.end(), value.dims.begin() + axis);
}

Status layer_norm(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 3));
  RT_ASSIGN(const bool wide, widens(c));
  RT_ASSIGN(const int axis, c.axis(c.integer("axis", -1), c.rank()));
  const float epsilon = c.real("epsilon", 1e-5f);
  if (!c.wants(1) && !c.wants(2) && has_dims_from(c, c.input(1), c.input(0), axis) &&
      has_dims_from(c, c.input(2), c.input(0), axis)) {
    op::LayerNormAttributes attributes;
    attributes.axis = axis;
    attributes.epsilon = epsilon;
    return c.result(c.emit.emit(attributes, {c.input(0), c.input(1), c.input(2)}));
  }
  const ValueId x = wide ? c.emit.cast(c.input(0), DType::F32) : c.input(0);
  const Normalized result = normalize(c, x, axes_between(axis, c.rank()), epsilon);
  ValueId y = wide ? c.emit.cast(result.y, c.dtype()) : result.y;
  if (c.has(1)) y = c.emit.mul(y, c.input(1));
  if (c.has(2)) y = c.emit.add(y, c.input(2));
  c.outputs = {y, result.mean, result.inverse_stddev};
  return {};
}

// The second output is not in ONNX: an extension by ONNX Runtime in ONNX's own domain.
Status rms_norm(NodeContext& c) {
  RT_TRY(c.expect_inputs(2, 2));
  RT_ASSIGN(const bool wide, widens(c));
  RT_ASSIGN(const int axis, c.axis(c.integer("axis", -1), c.rank()));
  const RmsNormalized result =
      rms_normalized(c, c.input(0), c.input(1), axis, c.real("epsilon", 1e-5f), wide);
  c.outputs = {result.y, result.inverse_root};
  return {};
}

// x / (bias + alpha mean of squares over `size` channels)^beta; the mean is an average pool over the
// channels.
Status lrn(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const int64_t size = c.integer("size", 0);
  if (size < 1 || size > (int64_t{1} << 31) || c.rank() < 3)
    return invalid_model("expected an input [N,C,S..] and a size of at least 1");
  const ValueId x = c.input(0);
  const std::vector<Extent> extents = extents_of(c.emit, x);
  const ValueId flat =
      concat_values(c.emit, {dims_product(c.emit, x, 0, 1), dims_product(c.emit, x, 1, 2),
                             dims_product(c.emit, x, 2, c.rank()), c.emit.ints(std::array{int64_t{1}})});
  op::AveragePoolAttributes pool;
  pool.kernel = {size, 1};
  pool.strides = {1, 1};
  pool.dilations = {1, 1};
  pool.pads = {(size - 1) / 2, 0, size / 2, 0};
  pool.count_include_pad = true;
  ValueId mean = c.emit.reshape(c.emit.mul(x, x), flat);
  mean = reshape_to(c.emit, c.emit.emit(std::move(pool), {mean}), extents);
  const ValueId base = c.emit.add(c.emit.mul(mean, c.emit.scalar_like(c.real("alpha", 1e-4f), x)),
                                  c.emit.scalar_like(c.real("bias", 1), x));
  return c.result(
      c.emit.div(x, c.emit.emit(op::PowAttributes{}, {base, c.emit.scalar_like(c.real("beta", 0.75f), x)})));
}

// (x - mean) / (stddev + 1e-9)
Status mean_variance_norm(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  const std::vector<int64_t> axes = c.optional_integers("axes").value_or(std::vector<int64_t>{0, 2, 3});
  const ValueId x = c.input(0);
  const ValueId centered = c.emit.sub(x, c.emit.reduce_mean(x, axes));
  const ValueId variance = c.emit.reduce_mean(c.emit.mul(centered, centered), axes);
  const ValueId deviation = c.emit.emit(op::SqrtAttributes{}, {variance});
  return c.result(c.emit.div(centered, c.emit.add(deviation, c.emit.scalar_like(1e-9, x))));
}

Status lp_norm(NodeContext& c) {
  RT_TRY(c.expect_inputs(1, 1));
  RT_ASSIGN(const int axis, c.axis(c.integer("axis", -1), c.rank()));
  const int64_t p = c.integer("p", 2);
  if (p != 1 && p != 2) return invalid_model("p: expected 1 or 2, found ", p);
  const ValueId x = c.input(0);
  ValueId norm = p == 1 ? c.emit.emit(op::AbsAttributes{}, {x}) : c.emit.mul(x, x);
  norm = c.emit.reduce_sum(norm, {axis});
  if (p == 2) norm = c.emit.emit(op::SqrtAttributes{}, {norm});
  // Zero vectors stay zero.
  const ValueId zero = c.emit.emit(op::EqualAttributes{}, {norm, c.emit.scalar_like(0, x)});
  norm = c.emit.emit(op::WhereAttributes{}, {zero, c.emit.scalar_like(1, x), norm});
  return c.result(c.emit.div(x, norm));
}

constexpr ImportRow kNormRows[] = {
    {"", "BatchNormalization", 1, kNewestOpset, batch_norm},
    {"", "InstanceNormalization", 1, kNewestOpset, instance_norm},
    {"", "GroupNormalization", 18, kNewestOpset, group_norm},
    {"", "LayerNormalization", 1, kNewestOpset, layer_norm},  // before opset 17 by ONNX Runtime
    {"", "RMSNormalization", 23, kNewestOpset, rms_norm},
    {"", "SimplifiedLayerNormalization", 1, kNewestOpset, rms_norm},
    {"", "LRN", 1, kNewestOpset, lrn},
    {"", "MeanVarianceNormalization", 9, kNewestOpset, mean_variance_norm},
    {"", "LpNormalization", 1, kNewestOpset, lp_norm},
};

}  // namespace

std::span<const ImportRow> rows_norm() {
  return kNormRows;
}

ValueId group_normalized(NodeContext& c, ValueId x, int64_t groups, float epsilon) {
  if (x == kNoValue) return x;
  const Dim channels = c.value(x).dims[1];
  std::vector<Extent> grouped = extents_of(c.emit, x);
  grouped.insert(grouped.begin() + 1, Extent::of(groups));
  grouped[2] = Extent::of(channels.is_known() ? channels.extent / groups : -1);
  const int rank = static_cast<int>(grouped.size());
  return normalize(c, reshape_to(c.emit, x, grouped), axes_between(2, rank), epsilon).y;
}

RmsNormalized rms_normalized(NodeContext& c, ValueId x, ValueId scale, int axis, float epsilon, bool wide) {
  const DType dtype = c.value(x).dtype;
  const DType type = scale == kNoValue ? dtype : c.value(scale).dtype;
  if (!c.wants(1) && type == dtype && has_dims_from(c, scale, x, axis)) {
    op::RmsNormAttributes attributes;
    attributes.axis = axis;
    attributes.epsilon = epsilon;
    return {.y = scale == kNoValue ? c.emit.emit(attributes, {x}) : c.emit.emit(attributes, {x, scale})};
  }
  if (wide) x = c.emit.cast(x, DType::F32);
  const ValueId mean = c.emit.reduce_mean(c.emit.mul(x, x), axes_between(axis, c.value(x).rank()));
  const ValueId root = c.emit.emit(op::SqrtAttributes{}, {c.emit.add(mean, c.emit.scalar_like(epsilon, x))});
  RmsNormalized result;
  result.y = c.emit.div(x, root);
  if (c.value(result.y).dtype != type) result.y = c.emit.cast(result.y, type);
  if (scale != kNoValue) result.y = c.emit.mul(result.y, scale);
  result.inverse_root = c.wants(1) ? c.emit.emit(op::ReciprocalAttributes{}, {root}) : kNoValue;
  return result;
}

}  // namespace librt::onnx
