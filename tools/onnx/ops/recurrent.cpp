// LSTM, GRU and RNN.
#include <algorithm>
#include <array>

#include "tools/onnx/node.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/opened_batch.h"
#include "tools/onnx/shapes.h"

namespace librt::onnx {
namespace {

using CellActivation = op::RecurrentActivation;

struct ActivationName {
  std::string_view name;
  CellActivation function;
  bool has_alpha, has_beta;
  float alpha, beta;  ///< defaults where the lists have none
};
constexpr ActivationName kActivations[] = {
    {"relu", CellActivation::Relu, false, false, 0, 0},
    {"tanh", CellActivation::Tanh, false, false, 0, 0},
    {"sigmoid", CellActivation::Sigmoid, false, false, 0, 0},
    {"affine", CellActivation::Affine, true, true, 1, 0},
    {"leakyrelu", CellActivation::LeakyRelu, true, false, 0.01f, 0},
    {"thresholdedrelu", CellActivation::ThresholdedRelu, true, false, 1, 0},
    {"scaledtanh", CellActivation::ScaledTanh, true, true, 1, 1},
    {"hardsigmoid", CellActivation::HardSigmoid, true, true, 0.2f, 0.5f},
    {"elu", CellActivation::Elu, true, false, 1, 0},
    {"softsign", CellActivation::Softsign, false, false, 0, 0},
    {"softplus", CellActivation::Softplus, false, false, 0, 0},
};

Result<const ActivationName*> activation_named(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  for (const ActivationName& row : kActivations)
    if (row.name == name) return &row;
  return invalid_model("activations: there is no function ", name);
}

/// Functions that take an alpha or beta consume the next value of its list.
template <class Attributes>
Status read_activations(NodeContext& c, size_t count, Attributes& attributes) {
  const rt_onnx::AttributeProto* names = c.attribute("activations");
  const std::vector<float> alphas = c.reals("activation_alpha"), betas = c.reals("activation_beta");
  if (names == nullptr || names->strings_size() == 0) {
    if (!alphas.empty() || !betas.empty())
      return invalid_model("activation_alpha and activation_beta are given without activations");
    return {};
  }
  if (static_cast<size_t>(names->strings_size()) != count)
    return invalid_model("expected ", count, " activations, found ", names->strings_size());
  size_t alphas_used = 0, betas_used = 0;
  const auto next = [](const std::vector<float>& list, size_t& used, float otherwise) {
    return used < list.size() ? list[used++] : otherwise;
  };
  for (const std::string& name : names->strings()) {
    RT_ASSIGN(const ActivationName* row, activation_named(name));
    attributes.activations.push_back(row->function);
    attributes.alphas.push_back(row->has_alpha ? next(alphas, alphas_used, row->alpha) : 0);
    attributes.betas.push_back(row->has_beta ? next(betas, betas_used, row->beta) : 0);
  }
  return {};
}

Result<op::Direction> read_direction(NodeContext& c) {
  const std::string direction = c.string("direction", "forward");
  if (direction == "forward") return op::Direction::Forward;
  if (direction == "reverse") return op::Direction::Reverse;
  if (direction == "bidirectional") return op::Direction::Bidirectional;
  return invalid_model("direction: expected forward, reverse or bidirectional, found ", direction);
}

/// Absent if every sequence has all steps.
ValueId lengths_of(const NodeContext& c, int64_t steps) {
  if (!c.has(4) || steps < 0) return c.input(4);
  const auto known = c.known_integers(4, "sequence_lens");
  const bool whole = known.ok() && std::all_of(known->begin(), known->end(),
                                               [&](int64_t length) { return length == steps; });
  return whole ? kNoValue : c.input(4);
}

/// kSlots: activations per direction; kInputs: maximum number of inputs; kOutputs: outputs. inputs: the
/// node's, or replacements for them.
template <class Attributes, size_t kSlots, size_t kInputs, size_t kOutputs>
Status recurrent_of(NodeContext& c, std::vector<ValueId> inputs) {
  Attributes attributes;
  RT_ASSIGN(attributes.direction, read_direction(c));
  const size_t directions = attributes.direction == op::Direction::Bidirectional ? 2 : 1;
  RT_TRY(read_activations(c, directions * kSlots, attributes));
  attributes.clip = c.real("clip", 0);
  c.ignore({"output_sequence"});  // version 1; implied by the outputs themselves
  if constexpr (requires { attributes.input_forget; })
    attributes.input_forget = c.integer("input_forget", 0) != 0;
  if constexpr (requires { attributes.linear_before_reset; })
    attributes.linear_before_reset = c.integer("linear_before_reset", 0) != 0;
  const Value& recurrence = c.value(inputs[2]);
  if (c.rank(0) != 3 || recurrence.rank() != 3)
    return invalid_model("expected X and R of rank 3, found ", c.rank(0), " and ", recurrence.rank());
  attributes.hidden = c.integer("hidden_size", recurrence.dims[2].extent);
  if (attributes.hidden < 0) return cannot("the hidden size is unknown; hidden_size must be given");
  const bool batch_first = c.integer("layout", 0) != 0;
  const auto permuted = [&](ValueId id, std::vector<int64_t> permutation) {
    return id == kNoValue || !batch_first ? id : c.emit.transpose(id, std::move(permutation));
  };

  inputs.resize(kInputs, kNoValue);
  inputs[0] = permuted(inputs[0], {1, 0, 2});
  inputs[4] = lengths_of(c, c.extent(0, batch_first ? 1 : 0));
  inputs[5] = permuted(inputs[5], {1, 0, 2});
  if constexpr (kInputs == 8) inputs[6] = permuted(inputs[6], {1, 0, 2});
  if (c.options.open_batch) {
    const Extent batch = Extent::dim(c.emit, inputs[0], 1);
    inputs[5] = with_batch(c, inputs[5], 1, batch);
    if constexpr (kInputs == 8) inputs[6] = with_batch(c, inputs[6], 1, batch);
  }
  const std::vector<ValueId> results = c.emit.emit_many(make_op(std::move(attributes)), inputs, kOutputs);
  c.outputs.assign(c.output_count(), kNoValue);
  for (size_t i = 0; i < std::min(c.outputs.size(), results.size()); ++i)
    if (c.wants(i))
      c.outputs[i] = i == 0 ? permuted(results[i], {2, 0, 1, 3}) : permuted(results[i], {1, 0, 2});
  return {};
}

template <class Attributes, size_t kSlots, size_t kInputs, size_t kOutputs>
Status recurrent(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, kInputs));
  return recurrent_of<Attributes, kSlots, kInputs, kOutputs>(c, c.inputs);
}

/// Quantized weights [d,I,4H] as [d,4H,I] in f32; scale and zero point [d] or [d,4H].
Result<ValueId> real_weights(NodeContext& c, size_t i, size_t scale) {
  Emitter& e = c.emit;
  if (c.rank(i) != 3) return invalid_model("expected weights of rank 3, found ", c.rank(i));
  const auto along_columns = [&](size_t k) {
    const int inner[] = {1};
    const int both[] = {1, 2};
    return c.rank(k) == 1 ? unsqueeze(e, c.input(k), both) : unsqueeze(e, c.input(k), inner);
  };
  if (!c.has(scale) || !c.has(scale + 1) || c.rank(scale) < 1 || c.rank(scale) > 2 ||
      c.rank(scale) != c.rank(scale + 1))
    return invalid_model(
        "inputs ", scale, " and ", scale + 1,
        ": expected a scale and a zero point of one shape, [directions] or [directions, 4 hidden]");
  const ValueId centered =
      e.sub(e.cast(c.input(i), DType::F32), e.cast(along_columns(scale + 1), DType::F32));
  return e.transpose(e.mul(centered, along_columns(scale)), {0, 2, 1});
}

/// An LSTM with quantized weights (ONNX Runtime's). ONNX Runtime also quantizes the activations of every
/// step, for 8-bit matmuls; here the weights are dequantized.
Status quantized_lstm(NodeContext& c) {
  RT_TRY(c.expect_inputs(3, 12));
  std::vector<ValueId> inputs(
      c.inputs.begin(), c.inputs.begin() + static_cast<ptrdiff_t>(std::min<size_t>(8, c.inputs.size())));
  RT_ASSIGN(inputs[1], real_weights(c, 1, 8));
  RT_ASSIGN(inputs[2], real_weights(c, 2, 10));
  if (!c.emit.status().ok()) return {};
  return recurrent_of<op::LSTMAttributes, 3, 8, 3>(c, std::move(inputs));
}

constexpr ImportRow kRecurrentRows[] = {
    {"", "LSTM", 1, kNewestOpset, recurrent<op::LSTMAttributes, 3, 8, 3>},
    {"com.microsoft", "DynamicQuantizeLSTM", 1, kNewestOpset, quantized_lstm},
    {"", "GRU", 1, kNewestOpset, recurrent<op::GRUAttributes, 2, 6, 2>},
    {"", "RNN", 1, kNewestOpset, recurrent<op::RNNAttributes, 1, 6, 2>},
};

}  // namespace

std::span<const ImportRow> rows_recurrent() {
  return kRecurrentRows;
}

}  // namespace librt::onnx
