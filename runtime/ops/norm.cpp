// Batch, layer and RMS normalization. Channels are the last axis; statistics are over all others (batch) or
// over the trailing axes (layer, RMS).
//
// Parameters and statistics have one type: x's, or f32 with 16-bit x.
#include <cmath>

#include "runtime/geometry/norm.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

constexpr bool is_16_bit(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16;
}

DTypeSet parameter_types(DType x) {
  return is_16_bit(x) ? DTypeSet(x, DType::F32) : DTypeSet(x);
}

/// Of (x, scale, bias, mean, variance) or, for a gradient, (x, grad_y, scale, mean, variance): all but x and
/// grad_y are vectors of x's channels, of one type.
Status expect_channels(const NodeView& node, bool gradient, Label mean, Label variance) {
  RT_TRY(expect_dtype_and_rank(node, 0, "x", kFloats, 2));
  if (gradient) RT_TRY(expect_like_first(node, "grad_y", "x"));
  const size_t scale = gradient ? 2 : 1;
  for (size_t i = scale; i < 5; ++i) {
    const Label what = i == scale ? "scale" : i == 4 ? variance : i == 3 ? mean : "bias";
    RT_TRY(expect_shape(node, i, what, Shape{node.shape(0).back()}));
    if (i != scale)
      RT_TRY(expect_same_dtype(node, i, what, scale, "scale"));
    else
      RT_TRY(expect_dtype(node, i, what, parameter_types(node.dtype(0))));
  }
  return {};
}

/// Accepts 0; NaN and infinity fail too.
Status expect_epsilon(float epsilon) {
  if (epsilon >= 0 && std::isfinite(epsilon)) return {};
  return invalid_argument("expected an epsilon of at least 0, found ", epsilon);
}

// --- BatchNorm, with given statistics

Status infer_batch_norm(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_channels(node, false, "mean", "variance"));
  RT_TRY(expect_epsilon(node.as<op::BatchNormAttributes>().epsilon));
  return infer_like_first(node, outputs);
}

/// 16-bit values are widened to f32, which is exact.
ValueId widened(Emitter& e, ValueId x) {
  return is_16_bit(e.value(x).dtype) ? e.cast(x, DType::F32) : x;
}
ValueId narrowed(Emitter& e, ValueId y, DType dtype) {
  return is_16_bit(dtype) ? e.cast(y, dtype) : y;
}

/// y = (x - mean) (scale / sqrt(variance + epsilon)) + bias
std::vector<ValueId> body_of_batch_norm(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const DType dtype = e.value(inputs[0]).dtype;
  const double epsilon = static_cast<double>(node.as<op::BatchNormAttributes>().epsilon);
  const ValueId x = widened(e, inputs[0]);
  const ValueId scale = widened(e, inputs[1]);
  const ValueId variance = widened(e, inputs[4]);
  const ValueId stddev = e.emit(op::SqrtAttributes{}, {e.add(variance, e.scalar_like(epsilon, variance))});
  const ValueId centered = e.sub(x, widened(e, inputs[3]));
  const ValueId y = e.add(e.mul(centered, e.div(scale, stddev)), widened(e, inputs[2]));
  return {narrowed(e, y, dtype)};
}

// --- BatchNormTrain, with the batch's own statistics

Status infer_batch_norm_train(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_channels(node, false, "running_mean", "running_variance"));
  const auto& attributes = node.as<op::BatchNormTrainAttributes>();
  RT_TRY(expect_epsilon(attributes.epsilon));
  const int64_t least = attributes.unbiased ? 2 : 1;
  const int64_t samples = node.shape(0).elements(0, node.shape(0).rank() - 1);
  if (samples < least)
    return invalid_argument("expected at least ", least, " values per channel for ",
                            attributes.unbiased ? "an unbiased" : "a", " variance, found ", node.input(0));
  RT_TRY(add_output(outputs, node.input(0)));
  for (int i = 0; i < 4; ++i) RT_TRY(add_output(outputs, node.input(1)));
  return {};
}

Status eval_batch_norm_train(const NodeView& node, std::span<const ConstTensorView> inputs,
                             std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::BatchNormTrainAttributes>();
  const double epsilon = static_cast<double>(attributes.epsilon);
  const double momentum = static_cast<double>(attributes.momentum);
  const Shape& shape = inputs[0].info.shape;
  const int64_t channels = shape.back();
  const int64_t samples = shape.elements(0, shape.rank() - 1);
  const double n = static_cast<double>(samples);
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (int64_t i = 0; i < samples; ++i) sum += load(inputs[0], i * channels + c);
    const double mean = sum / n;
    double squares = 0;
    for (int64_t i = 0; i < samples; ++i) {
      const double deviation = load(inputs[0], i * channels + c) - mean;
      squares += deviation * deviation;
    }
    const double inverse_stddev = 1 / std::sqrt(squares / n + epsilon);
    const double scale = load(inputs[1], c);
    const double bias = load(inputs[2], c);
    for (int64_t i = 0; i < samples; ++i)
      store(outputs[0], i * channels + c,
            (load(inputs[0], i * channels + c) - mean) * inverse_stddev * scale + bias);
    const double variance = squares / (attributes.unbiased ? n - 1 : n);
    store(outputs[1], c, momentum * load(inputs[3], c) + (1 - momentum) * mean);
    store(outputs[2], c, momentum * load(inputs[4], c) + (1 - momentum) * variance);
    store(outputs[3], c, mean);
    store(outputs[4], c, inverse_stddev);
  }
  return {};
}

/// Through y only: running statistics are not differentiated, and the batch's are used by this gradient only.
void gradient_of_batch_norm_train(GradContext& c) {
  for (size_t i = 1; i < c.grad_outputs.size(); ++i)
    if (c.grad(i) != kNoValue)
      return c.emit.fail(unsupported("BatchNormTrain: a gradient reaches output ", i,
                                     ", a statistic; only y can be differentiated"));
  const std::array<ValueId, 5> inputs{c.input(0), c.grad(0), c.input(1), c.output(3), c.output(4)};
  const std::vector<ValueId> grads = c.emit.emit_many(make_op(op::BatchNormGradAttributes{}), inputs, 3);
  for (size_t i = 0; i < 3; ++i) c.set(i, grads[i]);
}

// --- BatchNormGrad

Status infer_batch_norm_grad(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_channels(node, true, "batch_mean", "batch_inverse_stddev"));
  RT_TRY(add_output(outputs, node.input(0)));
  RT_TRY(add_output(outputs, node.input(2)));
  return add_output(outputs, node.input(2));
}

/// With n values per channel and z = (x - mean) inverse_stddev: grad_bias = sum g, grad_scale = sum g z,
/// grad_x = scale inverse_stddev (g - grad_bias / n - z grad_scale / n).
Status eval_batch_norm_grad(const NodeView&, std::span<const ConstTensorView> inputs,
                            std::span<const TensorView> outputs) {
  const Shape& shape = inputs[0].info.shape;
  const int64_t channels = shape.back();
  const int64_t samples = shape.elements(0, shape.rank() - 1);
  const double n = static_cast<double>(samples);
  for (int64_t c = 0; c < channels; ++c) {
    const double mean = load(inputs[3], c);
    const double inverse_stddev = load(inputs[4], c);
    const auto z = [&](int64_t i) { return (load(inputs[0], i) - mean) * inverse_stddev; };
    double grad_bias = 0;
    double grad_scale = 0;
    for (int64_t i = c; i < samples * channels; i += channels) {
      grad_bias += load(inputs[1], i);
      grad_scale += load(inputs[1], i) * z(i);
    }
    const double factor = load(inputs[2], c) * inverse_stddev;
    for (int64_t i = c; i < samples * channels; i += channels)
      store(outputs[0], i, factor * (load(inputs[1], i) - grad_bias / n - z(i) * grad_scale / n));
    store(outputs[1], c, grad_scale);
    store(outputs[2], c, grad_bias);
  }
  return {};
}

// --- LayerNorm, RmsNorm and their gradient

/// The normalized shape of input 0, after the checks of what the three share.
Result<Shape> check_norm(const NodeView& node) {
  const auto [first_axis, epsilon, centered, first] = norm_attributes(node.node);
  RT_TRY(expect_dtype_and_rank(node, 0, "x", kFloats, 1));
  RT_TRY(expect_epsilon(epsilon));
  const Shape& x = node.shape(0);
  RT_ASSIGN(const int axis, resolve_axis(first_axis, x.rank()));
  const Shape normalized(x.dims().subspan(static_cast<size_t>(axis)));
  for (size_t i = first; i < node.input_count(); ++i) {
    if (!node.has(i)) continue;
    const char* const name = i == first ? "scale" : "bias";
    RT_TRY(expect_dtype(node, i, name, parameter_types(node.dtype(0))));
    const auto shape = broadcast(node.shape(i), normalized);
    if (!shape || *shape != normalized)
      return invalid_argument("expected ", name, " broadcastable to the normalized axes ", normalized,
                              ", found ", node.shape(i));
  }
  return normalized;
}

Status infer_norm(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(check_norm(node).status());
  return infer_like_first(node, outputs);
}

Status infer_layer_norm_grad(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_ASSIGN(const Shape normalized, check_norm(node));
  RT_TRY(expect_like_first(node, "grad_y", "x"));
  RT_TRY(infer_like_first(node, outputs));
  const DType dtype = node.dtype(node.has(2) ? 2 : 0);
  RT_TRY(add_output(outputs, dtype, normalized));
  return add_output(outputs, dtype, normalized);
}

ValueId norm_parameter(std::span<const ValueId> inputs, size_t i) {
  return i < inputs.size() ? inputs[i] : kNoValue;
}

struct NormAxes {
  std::vector<int64_t> outer, normalized;
};
NormAxes norm_axes(int64_t axis, int rank) {
  NormAxes axes;
  const int64_t first = normalized_axis(axis, rank).value_or(rank);
  for (int64_t i = 0; i < rank; ++i) (i < first ? axes.outer : axes.normalized).push_back(i);
  return axes;
}

/// d = x - mean, or x unless `centered`, and sqrt(mean(d^2) + epsilon)
struct Normalized {
  ValueId deviation, root;
};
Normalized normalized(Emitter& e, ValueId x, const std::vector<int64_t>& axes, float epsilon, bool centered) {
  const ValueId deviation = centered ? e.sub(x, e.reduce_mean(x, axes)) : x;
  const ValueId variance = e.reduce_mean(e.mul(deviation, deviation), axes);
  const ValueId added = e.scalar_like(static_cast<double>(epsilon), variance);
  return {deviation, e.emit(op::SqrtAttributes{}, {e.add(variance, added)})};
}

/// y = (x - mean) / sqrt(variance + epsilon) scale + bias, or x / sqrt(mean(x^2) + epsilon) scale
std::vector<ValueId> body_of_norm(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const NormAttributes attributes = norm_attributes(node);
  const DType dtype = e.value(inputs[0]).dtype;
  const NormAxes axes = norm_axes(attributes.axis, e.value(inputs[0]).rank());
  const Normalized parts =
      normalized(e, widened(e, inputs[0]), axes.normalized, attributes.epsilon, attributes.centered);
  ValueId y = e.div(parts.deviation, parts.root);
  if (const ValueId scale = norm_parameter(inputs, 1); scale != kNoValue) y = e.mul(y, widened(e, scale));
  if (const ValueId bias = norm_parameter(inputs, 2); bias != kNoValue) y = e.add(y, widened(e, bias));
  return {narrowed(e, y, dtype)};
}

/// With z = d / root and s = g scale: grad_x = (s - mean(s) - z mean(s z)) / root, without mean(s) unless
/// centered; grad_scale = sum of g z, grad_bias = sum of g over all rows.
std::vector<ValueId> body_of_layer_norm_grad(Emitter& e, const Node& node, std::span<const ValueId> inputs) {
  const auto& attributes = node.as<op::LayerNormGradAttributes>();
  const DType dtype = e.value(inputs[0]).dtype;
  const NormAxes axes = norm_axes(attributes.axis, e.value(inputs[0]).rank());
  const ValueId g = widened(e, inputs[1]), scale = norm_parameter(inputs, 2);
  const DType parameters = scale == kNoValue ? dtype : e.value(scale).dtype;
  const Normalized parts =
      normalized(e, widened(e, inputs[0]), axes.normalized, attributes.epsilon, attributes.centered);
  const ValueId z = e.div(parts.deviation, parts.root);
  const ValueId scaled = scale == kNoValue ? g : e.mul(g, widened(e, scale));
  ValueId x = e.mul(z, e.reduce_mean(e.mul(scaled, z), axes.normalized));
  if (attributes.centered) x = e.add(x, e.reduce_mean(scaled, axes.normalized));
  const auto over_rows = [&](ValueId value) {
    if (!axes.outer.empty()) value = e.reduce_sum(value, axes.outer, false);
    return e.value(value).dtype == parameters ? value : e.cast(value, parameters);
  };
  return {narrowed(e, e.div(e.sub(scaled, x), parts.root), dtype), over_rows(e.mul(g, z)), over_rows(g)};
}

void gradient_of_norm(GradContext& c) {
  const NormAttributes attributes = norm_attributes(c.node);
  op::LayerNormGradAttributes gradient;
  gradient.axis = attributes.axis;
  gradient.epsilon = attributes.epsilon;
  gradient.centered = attributes.centered;
  const std::array<ValueId, 3> inputs{c.input(0), c.grad(), c.input(1)};
  const std::vector<ValueId> grads =
      c.emit.emit_many(make_op(gradient), std::span(inputs).first(c.input(1) == kNoValue ? 2 : 3), 3);
  if (!c.emit.status().ok()) return;
  for (size_t i = 0; i < 3; ++i) {
    if (!c.needs(i)) continue;
    const DType dtype = c.emit.value(c.input(i)).dtype;
    c.set(i, c.emit.value(grads[i]).dtype == dtype ? grads[i] : c.emit.cast(grads[i], dtype));
  }
}

}  // namespace

RT_PAGE(BatchNorm) = {.kind = OpKind::BatchNorm,
                      .inputs = {5, 5},
                      .infer = infer_batch_norm,
                      .cost = [](const NodeView& node) { return elementwise_cost(node, 2); },
                      .composite = true,
                      .arithmetic = Arithmetic::PrecisionSensitive,
                      .extents = ExtentRule::LikeFirst};
RT_COMPILER_PAGE(BatchNorm) = {.body = body_of_batch_norm, .domain = {.low = 0.1, .high = 2}};

RT_PAGE(BatchNormTrain) = {.kind = OpKind::BatchNormTrain,
                           .inputs = {5, 5},
                           .outputs = {5, 5},
                           .infer = infer_batch_norm_train,
                           .cost = [](const NodeView& node) { return elementwise_cost(node, 7); },
                           .arithmetic = Arithmetic::PrecisionSensitive,
                           .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(BatchNormTrain) = {.eval = eval_batch_norm_train,
                                    .gradient = gradient_of_batch_norm_train,
                                    .domain = {.low = 0.1, .high = 2}};

RT_PAGE(BatchNormGrad) = {.kind = OpKind::BatchNormGrad,
                          .inputs = {5, 5},
                          .outputs = {3, 3},
                          .infer = infer_batch_norm_grad,
                          .cost = [](const NodeView& node) { return elementwise_cost(node, 9); },
                          .arithmetic = Arithmetic::PrecisionSensitive,
                          .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(BatchNormGrad) = {.eval = eval_batch_norm_grad,
                                   .no_gradient = "is itself a gradient; librt has no second derivatives"};

RT_PAGE(LayerNorm) = {.kind = OpKind::LayerNorm,
                      .inputs = {1, 3},
                      .infer = infer_norm,
                      .cost = [](const NodeView& node) { return elementwise_cost(node, 8); },
                      .composite = true,
                      .arithmetic = Arithmetic::PrecisionSensitive,
                      .extents = ExtentRule::LikeFirst};
RT_COMPILER_PAGE(LayerNorm) = {.gradient = gradient_of_norm, .body = body_of_norm};

RT_PAGE(RmsNorm) = {.kind = OpKind::RmsNorm,
                    .inputs = {1, 2},
                    .infer = infer_norm,
                    .cost = [](const NodeView& node) { return elementwise_cost(node, 6); },
                    .composite = true,
                    .arithmetic = Arithmetic::PrecisionSensitive,
                    .extents = ExtentRule::LikeFirst};
RT_COMPILER_PAGE(RmsNorm) = {.gradient = gradient_of_norm, .body = body_of_norm};

RT_PAGE(LayerNormGrad) = {.kind = OpKind::LayerNormGrad,
                          .inputs = {2, 3},
                          .outputs = {3, 3},
                          .infer = infer_layer_norm_grad,
                          .cost = [](const NodeView& node) { return elementwise_cost(node, 16); },
                          .composite = true,
                          .arithmetic = Arithmetic::PrecisionSensitive,
                          .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(LayerNormGrad) = {.body = body_of_layer_norm_grad};

}  // namespace librt::ops
