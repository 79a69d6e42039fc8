// optimizer steps, gradient checks of a training step, ctc.
#include <limits>

#include "tests/cases/case.h"

namespace librt::test {
namespace {

using Inputs = std::vector<std::optional<CaseInput>>;

CaseInput state(Shape shape) {
  return in_range(f32(std::move(shape)), 0.01, 1);
}

CaseInput scalar(double value) {
  return with_values(f32({}), {value});
}

CaseInput truth(bool value) {
  return with_values(tensor(DType::Bool, {}), {value ? 1.0 : 0.0});
}

template <class Attributes>
void add(std::vector<Case>& cases, std::string name, Attributes attributes, Inputs inputs, size_t outputs) {
  cases.push_back(
      no_gradient(with_outputs(make_case(std::move(name), attributes, std::move(inputs)), outputs)));
}

/// The step as it is, with a gradient scale, not skipped, and skipped. `inputs` end before the scale,
/// `operands` is the number of operands before it.
template <class Attributes>
void add_forms(std::vector<Case>& cases, const std::string& name, Attributes attributes, Inputs inputs,
               size_t operands, size_t outputs) {
  add(cases, name, attributes, inputs, outputs);
  inputs.resize(operands);
  inputs.push_back(scalar(0.25));
  add(cases, name + "_scaled", attributes, inputs, outputs);
  inputs.push_back(truth(false));
  add(cases, name + "_not_skipped", attributes, inputs, outputs);
  inputs.back() = truth(true);
  add(cases, name + "_skipped", attributes, inputs, outputs);
}

void add_steps(std::vector<Case>& cases) {
  const Shape shape{7, 9};
  const CaseInput p = f32(shape), s = state(shape), rate = scalar(0.05);
  const CaseInput third = with_values(tensor(DType::I32, {}), {3}),
                  first = with_values(tensor(DType::I32, {}), {1});

  op::SgdStepAttributes sgd;
  sgd.momentum = 0.8f;
  sgd.weight_decay = 0.02f;
  sgd.dampening = 0.2f;
  add_forms(cases, "sgd_step_dampening", sgd, {p, p, p, rate, third}, 5, 2);
  add(cases, "sgd_step_dampening_first", sgd, {p, p, p, rate, first}, 2);

  op::AdamStepAttributes adam;
  adam.weight_decay = 0.1f;
  add_forms(cases, "adam_step_largest", adam, {p, p, p, s, third, rate, s}, 7, 4);
  // Exceeds the buffer binding limit of small devices.
  const CaseInput many = f32({521, 509}), many_states = state({521, 509});
  add(cases, "adam_step_many", adam, {many, many, many, many_states, third, rate, many_states}, 4);
  adam.decoupled = true;
  add_forms(cases, "adam_step_forms", adam, {p, p, p, s, first, rate}, 7, 3);

  op::RmsPropStepAttributes rms;
  rms.alpha = 0.9f;
  add_forms(cases, "rms_prop_step", rms, {p, p, s, rate}, 6, 2);
  rms.weight_decay = 0.01f;
  const CaseInput large = in_range(f32(shape), 4.5, 6), small = in_range(f32(shape), -0.5, 0.5);
  add(cases, "rms_prop_step_centered", rms, {p, p, large, rate, small}, 3);
  rms.momentum = 0.9f;
  add(cases, "rms_prop_step_momentum", rms, {p, p, s, rate, std::nullopt, p}, 3);
  add(cases, "rms_prop_step_centered_momentum", rms, {p, p, large, rate, small, p}, 4);

  op::AdagradStepAttributes adagrad;
  adagrad.weight_decay = 0.01f;
  add_forms(cases, "adagrad_step", adagrad, {p, p, s, rate}, 4, 2);
  op::AdadeltaStepAttributes adadelta;
  adadelta.weight_decay = 0.01f;
  add_forms(cases, "adadelta_step", adadelta, {p, p, s, s, rate}, 5, 3);
  op::LambStepAttributes lamb;
  add_forms(cases, "lamb_step", lamb, {p, p, p, s, third, rate}, 6, 3);
  lamb.weight_decay = 0.1f;
  add(cases, "lamb_step_decay", lamb, {p, p, p, s, first, rate}, 3);
  const CaseInput nothing = with_values(f32({4}), {0, 0, 0, 0});
  add(cases, "lamb_step_zero_parameter", lamb, {nothing, f32({4}), f32({4}), state({4}), third, rate}, 3);
  op::LionStepAttributes lion;
  lion.weight_decay = 0.1f;
  add_forms(cases, "lion_step", lion, {p, p, p, rate}, 4, 2);
  add(cases, "lion_step_zero", lion, {f32({4}), nothing, nothing, rate}, 2);
}

/// Ascending from -1, or from 0, to 1.
CaseInput levels(int count, bool negative) {
  std::vector<double> numbers;
  for (int i = 0; i < count; ++i) {
    const double place = static_cast<double>(i) / (count - 1);
    numbers.push_back(negative ? 2 * place - 1 : place * place);
  }
  CaseInput input = with_values(f32({count}), numbers);
  input.constant = true;
  return input;
}

/// Quantized values in [7,19] as quantization produces them: in each block of 32 one value has the largest
/// magnitude.
CaseInput quantized_states(int most) {
  std::vector<double> quantized;
  for (int i = 0; i < 7 * 19; ++i) quantized.push_back(i % 32 == 0 ? most : 1 + i * 37 % (most - 1));
  return with_values(tensor(DType::U8, {7, 19}), quantized);
}

/// Adam and Lamb with element and block counts around the sizes by which kernels divide their work.
void add_blockwise_shapes(std::vector<Case>& cases) {
  const CaseInput real = levels(255, true), squares = levels(256, false), rate = scalar(0.05);
  const CaseInput third = with_values(tensor(DType::I32, {}), {3});
  const auto add_shape = [&](const char* name, op::StepRule rule, DType dtype, int64_t count, int64_t block,
                             Inputs more = {}) {
    op::BlockwiseStepAttributes step;
    step.step = rule;
    step.block_size = block;
    step.beta1 = 0.9f;
    step.beta2 = 0.99f;
    step.epsilon = 1e-3f;
    const CaseInput p = tensor(dtype, {count}), scales = in_range(f32({(count + block - 1) / block}), 0.1, 1);
    const CaseInput quantized = in_range(tensor(DType::U8, {count}), 1, 254.9);
    Inputs inputs{p, p, real, squares, scales, scales, std::nullopt, quantized, quantized, third, rate};
    inputs.insert(inputs.end(), more.begin(), more.end());
    add(cases, text("blockwise_step_", name), step, std::move(inputs), 5);
  };
  using enum op::StepRule;
  add_shape("one_element", Adam, DType::F32, 1, 256);
  add_shape("one_over", Adam, DType::F32, 1025, 256);
  add_shape("many", Adam, DType::F32, 40003, 256);
  add_shape("blocks_of_12", Adam, DType::F32, 100, 12);
  add_shape("blocks_of_7", Adam, DType::F32, 100, 7);
  add_shape("large_blocks", Adam, DType::F32, 2500, 1024);
  add_shape("larger_blocks", Adam, DType::F32, 2500, 2048);
  add_shape("f16", Adam, DType::F16, 700, 256);
  add_shape("lamb_many", Lamb, DType::F32, 5000, 256);
  add_shape("lamb_f16", Lamb, DType::F16, 700, 256);
  add_shape("lamb_not_skipped", Lamb, DType::F32, 300, 256, {scalar(0.25), truth(false)});
}

/// Steps whose states are quantized in blocks of 32 elements.
void add_blockwise_steps(std::vector<Case>& cases) {
  const CaseInput p = f32({7, 19}), scales = in_range(f32({5}), 0.1, 1), rate = scalar(0.05);
  const CaseInput quantized = in_range(tensor(DType::U8, {7, 19}), 1, 254.9);
  const CaseInput third = with_values(tensor(DType::I32, {}), {3});
  const CaseInput real = levels(255, true), squares = levels(256, false);
  const auto add_step = [&](const char* name, op::BlockwiseStepAttributes step, Inputs inputs, size_t outputs,
                            int64_t block = 32) {
    step.block_size = block;
    step.epsilon = 1e-3f;
    add(cases, text("blockwise_step_", name), step, std::move(inputs), outputs);
  };
  op::BlockwiseStepAttributes step;
  step.momentum = 0.8f;
  step.weight_decay = 0.02f;
  add_step("sgd", step, {p, p, real, std::nullopt, scales, std::nullopt, std::nullopt, quantized, rate}, 3);
  step = {};
  step.step = op::StepRule::Adam;
  step.beta1 = 0.9f;
  step.beta2 = 0.99f;
  Inputs adam{p, p, real, squares, scales, scales, std::nullopt, quantized, quantized, third, rate};
  add_step("adam", step, adam, 5);
  add_step("adam_one_block", step,
           {p, p, real, squares, in_range(f32({1}), 0.1, 1), in_range(f32({1}), 0.1, 1), std::nullopt,
            quantized, quantized, third, rate},
           5, 1024);
  adam.insert(adam.end(), {std::nullopt, scalar(0.25), truth(true)});
  adam[7] = quantized_states(254),
  adam[8] = quantized_states(255);  // a kernel may keep them or requantize them
  add_step("adam_skipped", step, adam, 5);
  adam[7] = adam[8] = quantized;
  adam.back() = truth(false);
  adam[6] = scales, adam[11] = quantized;
  step.decoupled = true;
  add_step("adam_largest", step, adam, 7);
  step = {};
  step.step = op::StepRule::RmsProp;
  step.beta1 = 0.9f;
  step.momentum = 0.5f;
  add_step("rms_prop", step,
           {p, p, real, squares, scales, std::nullopt, scales, quantized, rate, std::nullopt, quantized}, 5);
  step = {};
  step.step = op::StepRule::Adagrad;
  add_step("adagrad", step,
           {p, p, std::nullopt, squares, scales, std::nullopt, std::nullopt, quantized, rate}, 3);
  step.step = op::StepRule::Adadelta;
  step.beta1 = 0.9f;
  add_step("adadelta", step,
           {p, p, std::nullopt, squares, scales, scales, std::nullopt, quantized, quantized, rate}, 5);
  step.step = op::StepRule::Lamb;
  step.beta2 = 0.99f;
  add_step("lamb", step,
           {p, p, real, squares, scales, scales, std::nullopt, quantized, quantized, third, rate}, 5);
  step.step = op::StepRule::Lion;
  add_step("lion", step, {p, p, real, std::nullopt, scales, std::nullopt, std::nullopt, quantized, rate}, 3);
  add_blockwise_shapes(cases);
}

void add_gradient_checks(std::vector<Case>& cases) {
  const double infinity = std::numeric_limits<double>::infinity();
  cases.push_back(make_case("global_norm", op::GlobalNormAttributes{}, {f32({3, 5}), f32({7}), f32({})}));
  cases.push_back(make_case("global_norm_one", op::GlobalNormAttributes{}, {f32({300})}));
  add(cases, "all_finite", op::AllFiniteAttributes{}, {f32({3, 5}), f32({40})}, 1);
  add(cases, "all_finite_infinity", op::AllFiniteAttributes{},
      {f32({3, 5}), with_values(f32({3}), {1, -infinity, 2})}, 1);
  add(cases, "all_finite_nan", op::AllFiniteAttributes{},
      {with_values(f32({2}), {std::numeric_limits<double>::quiet_NaN(), 1}), f32({3, 5})}, 1);
  op::LossScaleUpdateAttributes update;
  update.interval = 3;
  const auto scale = [&](const char* name, double value, double steps, bool finite) {
    add(cases, name, update, {scalar(value), with_values(tensor(DType::I32, {}), {steps}), truth(finite)}, 2);
  };
  scale("loss_scale_good", 1024, 1, true);
  scale("loss_scale_grows", 1024, 2, true);
  scale("loss_scale_overflow", 1024, 2, false);
  scale("loss_scale_least", 1, 2, false);
}

void add_ctc(std::vector<Case>& cases) {
  const CaseInput labels = with_values(tensor(DType::I64, {3, 4}), {1, 2, 2, 3, 4, 4, 0, 0, 3, 1, 2, 4});
  const auto lengths = [](DType dtype, std::vector<double> values) {
    return with_values(tensor(dtype, {3}), std::move(values));
  };
  op::CtcLossAttributes ctc;
  const CaseInput x = in_range(f32({9, 3, 5}), -3, -0.2);
  cases.push_back(with_outputs(
      make_case("ctc_loss", ctc, {x, labels, lengths(DType::I64, {9, 7, 9}), lengths(DType::I64, {4, 2, 3})}),
      2));
  ctc.blank = 4;
  const CaseInput without_blank =
      with_values(tensor(DType::I32, {3, 4}), {1, 2, 2, 3, 0, 0, 3, 3, 3, 1, 2, 0});
  cases.push_back(with_outputs(
      make_case("ctc_loss_last_blank", ctc,
                {x, without_blank, lengths(DType::I32, {9, 5, 1}), lengths(DType::I32, {4, 2, 0})}),
      2));
  ctc.blank = 0;
  ctc.zero_infinity = true;  // the second label sequence is too long for its input
  cases.push_back(
      with_outputs(make_case("ctc_loss_too_short", ctc,
                             {x, labels, lengths(DType::I64, {9, 2, 8}), lengths(DType::I64, {4, 2, 4})}),
                   2));
}

void add_roi_align_grad(std::vector<Case>& cases) {
  const auto roi = [&](const char* name, int64_t ratio, bool maximum) {
    op::RoiAlignGradAttributes attributes;
    attributes.height = 3;
    attributes.width = 2;
    attributes.sampling_ratio = ratio;
    attributes.spatial_scale = 0.5f;
    attributes.maximum = maximum;
    const CaseInput rois =
        with_values(f32({3, 4}), {0.3, 1.2, 9.1, 7.7, 2.2, 3.1, 13.4, 17.9, -5.5, -3.2, 4.4, 2.1});
    cases.push_back(no_gradient(make_case(
        name, attributes,
        {f32({2, 8, 7, 5}), rois, with_values(tensor(DType::I64, {3}), {0, 1, 0}), f32({3, 3, 2, 5})})));
  };
  roi("roi_align_grad", 2, false);
  roi("roi_align_grad_adaptive", 0, false);
  roi("roi_align_grad_max", 2, true);
}

/// With a single rank.
void add_collectives(std::vector<Case>& cases) {
  const auto one = [&](const char* name, auto attributes, const CaseInput& x) {
    cases.push_back(no_gradient(make_case(name, attributes, {x})));
  };
  one("all_reduce", op::AllReduceAttributes{}, f32({5, 7}));
  one("all_reduce_f64", op::AllReduceAttributes{}, tensor(DType::F64, {3}));
  one("all_gather", op::AllGatherAttributes{}, f32({9}));
  one("collective_wait", op::CollectiveWaitAttributes{}, f32({4, 3}));
  one("rank_shard", op::RankShardAttributes{}, f32({5, 7}));
}

}  // namespace

std::vector<Case> cases_training() {
  std::vector<Case> cases;
  add_steps(cases);
  add_blockwise_steps(cases);
  add_gradient_checks(cases);
  add_ctc(cases);
  add_roi_align_grad(cases);
  add_collectives(cases);
  return cases;
}

}  // namespace librt::test
