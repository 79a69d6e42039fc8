// recurrent: LSTM, GRU, RNN and the gradients of their gates.
#include "runtime/core/element.h"
#include "tests/cases/case.h"

namespace librt::test {
namespace {

using Activation = op::RecurrentActivation;

struct Extents {
  int64_t steps, batch, input, hidden;
};

template <class Attributes>
constexpr int64_t kGates = 4;
template <>
constexpr int64_t kGates<op::GRUAttributes> = 3;
template <>
constexpr int64_t kGates<op::RNNAttributes> = 1;

template <class Attributes>
constexpr bool kIsLstm = kGates<Attributes> == 4;

template <class Attributes>
Attributes attributes_of(int64_t hidden, op::Direction direction) {
  Attributes attributes;
  attributes.hidden = hidden;
  attributes.direction = direction;
  return attributes;
}

CaseInput small(CaseInput input, int64_t hidden) {
  const double bound = hidden > 16 ? 0.2 : 0.6;
  return in_range(std::move(input), -bound, bound);
}

/// x, w, r; weights are variable if a gradient is checked, else constants.
template <class Attributes>
std::vector<std::optional<CaseInput>> operands(const Extents& e, const Attributes& attributes,
                                               bool constant) {
  const int64_t d = attributes.direction == op::Direction::Bidirectional ? 2 : 1;
  const auto make = [&](Shape shape) { return small(constant ? weight(shape) : f32(shape), e.hidden); };
  return {f32({e.steps, e.batch, e.input}), make({d, kGates<Attributes> * e.hidden, e.input}),
          make({d, kGates<Attributes> * e.hidden, e.hidden})};
}

CaseInput lengths(std::vector<double> values) {
  CaseInput input = tensor(DType::I32, {static_cast<int64_t>(values.size())});
  input.values = std::move(values);
  return input;
}

/// Every optional operand of the forward operators.
template <class Attributes>
void add_optional(std::vector<std::optional<CaseInput>>& inputs, const Extents& e,
                  const Attributes& attributes, std::vector<double> row_lengths) {
  const int64_t d = attributes.direction == op::Direction::Bidirectional ? 2 : 1;
  const Shape state{d, e.batch, e.hidden};
  inputs.push_back(f32({d, 2 * kGates<Attributes> * e.hidden}));
  if (row_lengths.empty())
    inputs.push_back(std::nullopt);
  else
    inputs.push_back(lengths(std::move(row_lengths)));
  inputs.push_back(f32(state));
  if (!kIsLstm<Attributes>) return;
  inputs.push_back(f32(state));
  inputs.push_back(f32({d, 3 * e.hidden}));
}

template <class Attributes>
Case cell(std::string name, const Attributes& attributes, std::vector<std::optional<CaseInput>> inputs) {
  return with_outputs(make_case(std::move(name), attributes, std::move(inputs)), kIsLstm<Attributes> ? 3 : 2);
}

/// The variants that all three operators have.
template <class Attributes>
void add_forms(std::vector<Case>& cases, const std::string& name) {
  using enum op::Direction;
  const auto add = [&](const char* variant, const Extents& e, op::Direction direction, bool optional,
                       std::vector<double> row_lengths, bool constant) {
    auto attributes = attributes_of<Attributes>(e.hidden, direction);
    auto inputs = operands(e, attributes, constant);
    if (optional) add_optional(inputs, e, attributes, std::move(row_lengths));
    cases.push_back(cell(name + "_" + variant, attributes, std::move(inputs)));
    if (constant) cases.back().gradient = false;
  };
  add("plain", {4, 3, 5, 7}, Forward, false, {}, false);
  add("reverse", {3, 2, 3, 5}, Reverse, true, {}, false);
  add("both", {3, 2, 3, 4}, Bidirectional, true, {}, false);
  add("lengths", {4, 3, 2, 3}, Forward, true, {4, 0, 2}, false);
  add("lengths_both", {4, 3, 2, 3}, Bidirectional, true, {1, 3, 4}, false);
  add("one_step", {1, 1, 6, 33}, Forward, true, {}, true);
  add("one_row", {6, 1, 9, 70}, Forward, true, {}, true);
  add("wide", {5, 9, 40, 130}, Bidirectional, true, {}, true);
  add("long", {70, 2, 3, 16}, Forward, true, {}, true);
  add("without_steps", {0, 2, 3, 4}, Forward, true, {}, true);
  add("without_rows", {2, 0, 3, 4}, Forward, false, {}, true);
}

template <class Attributes>
void add_activations(std::vector<Case>& cases, const std::string& name) {
  constexpr size_t kSlots = kIsLstm<Attributes> ? 3 : kGates<Attributes> == 3 ? 2 : 1;
  constexpr auto kCount = static_cast<size_t>(Activation::MAX);  // without Default
  const Extents e{3, 2, 3, 5};
  for (size_t i = 0; i < kCount; ++i) {
    auto attributes = attributes_of<Attributes>(e.hidden, op::Direction::Forward);
    for (size_t slot = 0; slot < kSlots; ++slot) {
      attributes.activations.push_back(static_cast<Activation>((i + slot) % kCount + 1));
      attributes.alphas.push_back(0.3f);
      attributes.betas.push_back(0.4f);
    }
    cases.push_back(cell(text(name, "_activation_", i), attributes, operands(e, attributes, false)));
  }
  auto clipped = attributes_of<Attributes>(e.hidden, op::Direction::Bidirectional);
  clipped.clip = 0.3f;
  auto inputs = operands(e, clipped, false);
  add_optional(inputs, e, clipped, {2, 3});
  cases.push_back(cell(name + "_clip", clipped, std::move(inputs)));
}

/// The reference values of a case, from its page.
std::vector<ops::HostTensor> results_of(const Case& source,
                                        const std::vector<std::optional<ops::HostTensor>>& values) {
  Node node;
  node.op = source.op;
  std::vector<Operand> operands;
  std::vector<ConstTensorView> views;
  for (const auto& value : values) {
    node.inputs.push_back(value ? static_cast<ValueId>(operands.size()) : kNoValue);
    operands.push_back(value ? Operand{true, value->info, value->bytes.data()} : Operand{});
    views.push_back(value ? value->view() : ConstTensorView{});
  }
  for (size_t i = 0; i < source.outputs; ++i) node.outputs.push_back(static_cast<ValueId>(values.size() + i));
  std::vector<TensorInfo> infos;
  if (!ops::infer_node({.node = node, .inputs = operands}, infos).ok()) return {};
  auto results = ops::evaluate_node({.node = node, .inputs = operands, .outputs = infos}, views);
  return results.ok() ? std::move(results).value() : std::vector<ops::HostTensor>{};
}

CaseInput with_data(const ops::HostTensor& tensor) {
  CaseInput input{.info = tensor.info};
  for (int64_t i = 0; i < tensor.info.elements(); ++i)
    input.values.push_back(load_element(tensor.bytes.data(), tensor.info.dtype, i));
  return input;
}

/// The gradient operator of a forward case; its input y is the case's result.
template <class GradAttributes, class Attributes>
void add_gradient(std::vector<Case>& cases, const Case& forward, const Attributes& attributes) {
  GradAttributes gradient;
  gradient.hidden = attributes.hidden;
  gradient.direction = attributes.direction;
  gradient.clip = attributes.clip;
  gradient.activations = attributes.activations;
  gradient.alphas = attributes.alphas;
  gradient.betas = attributes.betas;
  if constexpr (requires { gradient.input_forget; }) gradient.input_forget = attributes.input_forget;
  if constexpr (requires { gradient.linear_before_reset; })
    gradient.linear_before_reset = attributes.linear_before_reset;
  const auto values = case_values(forward);
  const auto results = results_of(forward, values);
  if (results.empty()) return;
  const auto operand = [&](size_t i) -> std::optional<CaseInput> {
    if (i >= values.size() || !values[i]) return std::nullopt;
    return with_data(*values[i]);
  };
  std::vector<std::optional<CaseInput>> inputs{operand(0), operand(1), operand(2), with_data(results[0]),
                                               operand(3), operand(4), operand(5)};
  inputs.push_back(CaseInput{.info = results[0].info});
  inputs.push_back(CaseInput{.info = results[1].info});
  if (kIsLstm<Attributes>) {
    inputs.push_back(operand(6));
    inputs.push_back(operand(7));
    inputs.push_back(CaseInput{.info = results[2].info});
  }
  cases.push_back(
      no_gradient(with_outputs(make_case(forward.name + "_grad", std::move(gradient), std::move(inputs)),
                               kGates<Attributes> == 1 ? 3 : 5)));
}

template <class GradAttributes, class Attributes>
void add_gradients(std::vector<Case>& cases, const std::string& name) {
  using enum op::Direction;
  const auto add = [&](const char* variant, const Extents& e, Attributes attributes, bool optional,
                       std::vector<double> row_lengths) {
    attributes.hidden = e.hidden;
    auto inputs = operands(e, attributes, false);
    if (optional) add_optional(inputs, e, attributes, std::move(row_lengths));
    add_gradient<GradAttributes>(cases, cell(name + "_" + variant, attributes, std::move(inputs)),
                                 attributes);
  };
  add("bare", {4, 3, 5, 7}, attributes_of<Attributes>(7, Forward), false, {});
  add("turned", {5, 2, 3, 18}, attributes_of<Attributes>(18, Reverse), true, {});
  add("two_ways", {4, 7, 3, 66}, attributes_of<Attributes>(66, Bidirectional), true, {});
  add("uneven", {4, 3, 2, 20}, attributes_of<Attributes>(20, Bidirectional), true, {1, 0, 4});
  auto special = attributes_of<Attributes>(9, Bidirectional);
  special.clip = 0.4f;
  if constexpr (requires { special.input_forget; }) special.input_forget = true;
  if constexpr (requires { special.linear_before_reset; }) special.linear_before_reset = true;
  add("special", {3, 2, 3, 9}, special, true, {2, 3});
}

}  // namespace

std::vector<Case> cases_recurrent() {
  std::vector<Case> cases;
  add_forms<op::LSTMAttributes>(cases, "lstm");
  add_forms<op::GRUAttributes>(cases, "gru");
  add_forms<op::RNNAttributes>(cases, "rnn");
  add_activations<op::LSTMAttributes>(cases, "lstm");
  add_activations<op::GRUAttributes>(cases, "gru");
  add_activations<op::RNNAttributes>(cases, "rnn");

  const Extents e{3, 2, 3, 5};
  auto coupled = attributes_of<op::LSTMAttributes>(e.hidden, op::Direction::Forward);
  coupled.input_forget = true;
  auto inputs = operands(e, coupled, false);
  add_optional(inputs, e, coupled, {});
  cases.push_back(cell("lstm_input_forget", coupled, inputs));

  auto linear = attributes_of<op::GRUAttributes>(e.hidden, op::Direction::Bidirectional);
  linear.linear_before_reset = true;
  inputs = operands(e, linear, false);
  add_optional(inputs, e, linear, {3, 1});
  cases.push_back(cell("gru_linear_before_reset", linear, inputs));
  const Extents wide{4, 7, 20, 66};
  linear.hidden = wide.hidden;
  inputs = operands(wide, linear, true);
  add_optional(inputs, wide, linear, {});
  cases.push_back(no_gradient(cell("gru_linear_before_reset_wide", linear, inputs)));

  add_gradients<op::LSTMGradAttributes, op::LSTMAttributes>(cases, "lstm");
  add_gradients<op::GRUGradAttributes, op::GRUAttributes>(cases, "gru");
  add_gradients<op::RNNGradAttributes, op::RNNAttributes>(cases, "rnn");
  return cases;
}

}  // namespace librt::test
