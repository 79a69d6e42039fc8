// Operators over all gradients of a training step: global norm, finiteness check and update of the loss
// scale.
#include "runtime/ops/optimizer.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

Status expect_floats(const NodeView& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) RT_TRY(expect_dtype(node, i, "x", kFloats));
  return {};
}

Status infer_global_norm(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_floats(node));
  return add_output(outputs, node.dtype(0) == DType::F64 ? DType::F64 : DType::F32, {});
}

Status infer_all_finite(const NodeView& node, std::vector<TensorInfo>& outputs) {
  RT_TRY(expect_floats(node));
  return add_output(outputs, DType::Bool, {});
}

/// The sum over all inputs of the sum of term(x), a scalar of type `to`.
template <class Term>
ValueId sum_over_all(Emitter& e, std::span<const ValueId> inputs, DType to, Term term) {
  ValueId sum = kNoValue;
  for (ValueId x : inputs) {
    if (size_of(e.value(x).dtype) < 4) x = e.cast(x, DType::F32);
    ValueId part = e.reduce_sum(term(x), {}, false);
    if (e.value(part).dtype != to) part = e.cast(part, to);
    sum = sum == kNoValue ? part : e.add(sum, part);
  }
  return sum;
}

std::vector<ValueId> body_of_global_norm(Emitter& e, const Node&, std::span<const ValueId> inputs) {
  const DType to = e.value(inputs[0]).dtype == DType::F64 ? DType::F64 : DType::F32;
  const ValueId sum = sum_over_all(e, inputs, to, [&](ValueId x) { return e.mul(x, x); });
  return {e.emit(op::SqrtAttributes{}, {sum})};
}

/// Zero times a finite value is zero; times infinity or NaN it is NaN.
std::vector<ValueId> body_of_all_finite(Emitter& e, const Node&, std::span<const ValueId> inputs) {
  const ValueId sum =
      sum_over_all(e, inputs, DType::F32, [&](ValueId x) { return e.mul(x, e.scalar_like(0, x)); });
  return {e.emit(op::EqualAttributes{}, {sum, e.scalar(0, DType::F32)})};
}

Status infer_loss_scale_update(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& update = node.as<op::LossScaleUpdateAttributes>();
  if (!(update.growth >= 1) || !(update.backoff > 0 && update.backoff < 1) || update.interval < 1 ||
      update.interval > INT32_MAX)
    return invalid_argument("expected growth >= 1, backoff in (0, 1) and an interval from 1, found ",
                            update.growth, ", ", update.backoff, " and ", update.interval);
  RT_TRY(expect_scalar(node, 0, "scale", DType::F32));
  RT_TRY(expect_scalar(node, 1, "good_steps", DType::I32));
  RT_TRY(expect_scalar(node, 2, "finite", DType::Bool));
  RT_TRY(add_output(outputs, node.input(0)));
  return add_output(outputs, node.input(1));
}

std::vector<ValueId> body_of_loss_scale_update(Emitter& e, const Node& node,
                                               std::span<const ValueId> inputs) {
  const auto& update = node.as<op::LossScaleUpdateAttributes>();
  const auto choose = [&](ValueId condition, ValueId yes, ValueId no) {
    return e.emit(op::WhereAttributes{}, {condition, yes, no});
  };
  const auto real = [&](float number) { return e.scalar(static_cast<double>(number), DType::F32); };
  const ValueId scale = inputs[0], finite = inputs[2], zero = e.scalar(0, DType::I32);
  const ValueId steps = e.add(inputs[1], e.scalar(1, DType::I32));
  const ValueId grows = e.emit(op::GreaterOrEqualAttributes{},
                               {steps, e.scalar(static_cast<double>(update.interval), DType::I32)});
  const ValueId larger = choose(grows, e.mul(scale, real(update.growth)), scale);
  const ValueId smaller =
      e.emit(op::MaximumAttributes{}, {e.mul(scale, real(update.backoff)), real(update.minimum)});
  return {choose(finite, larger, smaller), choose(finite, choose(grows, zero, steps), zero)};
}

}  // namespace

RT_PAGE(GlobalNorm) = {.kind = OpKind::GlobalNorm,
                       .inputs = {1, kUnbounded},
                       .infer = infer_global_norm,
                       .composite = true,
                       .arithmetic = Arithmetic::PrecisionSensitive,
                       .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(GlobalNorm) = {.body = body_of_global_norm};

RT_PAGE(AllFinite) = {.kind = OpKind::AllFinite,
                      .inputs = {1, kUnbounded},
                      .infer = infer_all_finite,
                      .composite = true,
                      .arithmetic = Arithmetic::PrecisionSensitive,
                      .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(AllFinite) = {.no_gradient = "boolean output", .body = body_of_all_finite};

RT_PAGE(LossScaleUpdate) = {.kind = OpKind::LossScaleUpdate,
                            .inputs = {3, 3},
                            .outputs = {2, 2},
                            .infer = infer_loss_scale_update,
                            .composite = true,
                            .arithmetic = Arithmetic::PrecisionSensitive,
                            .extents = ExtentRule::Copied};
RT_COMPILER_PAGE(LossScaleUpdate) = {
    .no_gradient = "an update of the loss scale, which comes after all gradients",
    .body = body_of_loss_scale_update};

}  // namespace librt::ops
