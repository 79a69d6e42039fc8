// LSTM, GRU and RNN, whose operands are as in ONNX.
#include "tools/onnx/export/node_writer.h"

namespace librt::onnx {
namespace {

struct CellFunction {
  const char* name;
  bool alpha, beta;
};
/// In the order of op::RecurrentActivation, from Relu on.
constexpr CellFunction kCellFunctions[] = {
    {"Relu", false, false},     {"Tanh", false, false},      {"Sigmoid", false, false},
    {"Affine", true, true},     {"LeakyRelu", true, false},  {"ThresholdedRelu", true, false},
    {"ScaledTanh", true, true}, {"HardSigmoid", true, true}, {"Elu", true, false},
    {"Softsign", false, false}, {"Softplus", false, false},
};

/// Functions without a name are the operator's own, one for each slot of a direction.
template <class A>
Attributes functions_of(const A& cell, std::span<const char* const> defaults) {
  Names names;
  std::vector<float> alphas, betas;
  for (size_t i = 0; i < cell.activations.size(); ++i) {
    if (cell.activations[i] == op::RecurrentActivation::Default) {
      names.emplace_back(defaults[i % defaults.size()]);
      continue;
    }
    const CellFunction& function = kCellFunctions[static_cast<size_t>(cell.activations[i]) - 1];
    names.emplace_back(function.name);
    if (function.alpha) alphas.push_back(i < cell.alphas.size() ? cell.alphas[i] : 0);
    if (function.beta) betas.push_back(i < cell.betas.size() ? cell.betas[i] : 0);
  }
  return {{"activations", names}, {"activation_alpha", alphas}, {"activation_beta", betas}};
}

template <class A>
Result<bool> write_cell(NodeWriter& n, std::span<const char* const> defaults, Attributes more) {
  constexpr const char* kDirections[] = {"forward", "reverse", "bidirectional"};
  const auto& cell = n.as<A>();
  Attributes attributes = functions_of(cell, defaults);
  attributes.push_back({"hidden_size", cell.hidden});
  attributes.push_back({"direction", std::string(kDirections[static_cast<size_t>(cell.direction)])});
  if (cell.clip > 0) attributes.push_back({"clip", cell.clip});
  attributes.insert(attributes.end(), more.begin(), more.end());
  n.add(n.name(), n.ins(), n.outs(), attributes);
  return true;
}

Result<bool> write_lstm(NodeWriter& n) {
  constexpr const char* kDefaults[] = {"Sigmoid", "Tanh", "Tanh"};
  const auto& cell = n.as<op::LSTMAttributes>();
  return write_cell<op::LSTMAttributes>(n, kDefaults,
                                        {{"input_forget", static_cast<int64_t>(cell.input_forget)}});
}

Result<bool> write_gru(NodeWriter& n) {
  constexpr const char* kDefaults[] = {"Sigmoid", "Tanh"};
  const auto& cell = n.as<op::GRUAttributes>();
  return write_cell<op::GRUAttributes>(
      n, kDefaults, {{"linear_before_reset", static_cast<int64_t>(cell.linear_before_reset)}});
}

Result<bool> write_rnn(NodeWriter& n) {
  constexpr const char* kDefaults[] = {"Tanh"};
  return write_cell<op::RNNAttributes>(n, kDefaults, {});
}

constexpr ExportRow kRecurrent[] = {
    {OpKind::LSTM, write_lstm},
    {OpKind::GRU, write_gru},
    {OpKind::RNN, write_rnn},
};

}  // namespace

std::span<const ExportRow> export_rows_recurrent() {
  return kRecurrent;
}

}  // namespace librt::onnx
