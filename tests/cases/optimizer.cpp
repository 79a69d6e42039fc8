// Optimizer steps: in one kernel, made of others, with states in blocks of 8 bits.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

using Inputs = std::vector<std::optional<CaseInput>>;

CaseInput state(Shape shape) {
  return in_range(f32(std::move(shape)), 0.01, 1);
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
  inputs.push_back(number(DType::F32, 0.25));
  add(cases, name + "_scaled", attributes, inputs, outputs);
  inputs.push_back(number(DType::Bool, 0));
  add(cases, name + "_not_skipped", attributes, inputs, outputs);
  inputs.back() = number(DType::Bool, 1);
  add(cases, name + "_skipped", attributes, inputs, outputs);
}

/// The least that a step needs.
void add_first(std::vector<Case>& cases) {
  op::SgdStepAttributes sgd;
  sgd.momentum = 0.9f;
  sgd.weight_decay = 0.01f;
  const CaseInput rate = with_values(f32({}), {0.05});
  cases.push_back(with_outputs(make_case("sgd_step", sgd, {f32({7, 9}), f32({7, 9}), f32({7, 9}), rate}), 2));
  sgd.nesterov = true;
  cases.push_back(
      with_outputs(make_case("sgd_step_nesterov", sgd, {f32({63}), f32({63}), f32({63}), rate}), 2));
  cases.push_back(
      make_case("sgd_step_plain", op::SgdStepAttributes{}, {f32({5}), f32({5}), std::nullopt, rate}));
  const CaseInput step = with_values(tensor(DType::I32, {}), {3});
  op::AdamStepAttributes adam;
  cases.push_back(with_outputs(
      make_case("adam_step", adam,
                {f32({7, 9}), f32({7, 9}), f32({7, 9}), in_range(f32({7, 9}), 0.01, 1), step, rate}),
      3));
  adam.weight_decay = 0.1f;
  adam.decoupled = true;
  cases.push_back(
      with_outputs(make_case("adam_step_decoupled", adam,
                             {f32({65}), f32({65}), f32({65}), in_range(f32({65}), 0.01, 1), step, rate}),
                   3));
}

void add_steps(std::vector<Case>& cases) {
  const Shape shape{7, 9};
  const CaseInput p = f32(shape), s = state(shape), rate = number(DType::F32, 0.05);
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
  const CaseInput real = levels(255, true), squares = levels(256, false), rate = number(DType::F32, 0.05);
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
  add_shape("lamb_not_skipped", Lamb, DType::F32, 300, 256,
            {number(DType::F32, 0.25), number(DType::Bool, 0)});
}

/// Steps whose states are quantized in blocks of 32 elements.
void add_blockwise_steps(std::vector<Case>& cases) {
  const CaseInput p = f32({7, 19}), scales = in_range(f32({5}), 0.1, 1), rate = number(DType::F32, 0.05);
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
  adam.insert(adam.end(), {std::nullopt, number(DType::F32, 0.25), number(DType::Bool, 1)});
  adam[7] = quantized_states(254),
  adam[8] = quantized_states(255);  // a kernel may keep them or requantize them
  add_step("adam_skipped", step, adam, 5);
  adam[7] = adam[8] = quantized;
  adam.back() = number(DType::Bool, 0);
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

}  // namespace

std::vector<Case> cases_optimizer() {
  std::vector<Case> cases;
  add_first(cases);
  add_steps(cases);
  add_blockwise_steps(cases);
  return cases;
}

}  // namespace librt::test
