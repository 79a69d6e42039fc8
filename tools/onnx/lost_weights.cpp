#include "tools/onnx/lost_weights.h"

#include <algorithm>
#include <set>

#include "runtime/core/status.h"
#include "tools/compiler/name_list.h"
#include "tools/onnx/code_constants.h"
#include "tools/onnx/weight_uses.h"

namespace librt::onnx {
namespace {

constexpr std::string_view kHowToExport =
    "export with torch.onnx.export(model.train(), .., dynamo=False, "
    "training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False) or with "
    "torch.onnx.export(model.train(), .., dynamo=True, optimize=False)";

constexpr size_t kMostNames = 12;

std::vector<std::string> initializers_of(const rt_onnx::GraphProto& graph) {
  std::vector<std::string> names;
  for (const auto& tensor : graph.initializer()) names.push_back(tensor.name());
  return names;
}

/// Parameters and running statistics of the network that are missing in the graph.
std::vector<std::string> missing(rt_onnx::GraphProto& graph) {
  const WeightUses uses(graph);
  const std::vector<std::string> names = initializers_of(graph);
  std::set<std::string> present(names.begin(), names.end()), read;
  for (const auto& node : graph.node())
    for (const std::string& parameter : uses.parameters_of(node)) read.insert(parameter);
  for (const std::string& name : names)
    for (const WeightUse& use : uses.of(name)) {
      if (!use.parameter.empty()) present.insert(use.parameter);
      // Weights of a recurrent layer are concatenated and reordered; all of them are present.
      if (use.role.kind == "LSTM" || use.role.kind == "GRU" || use.role.kind == "RNN")
        for (const std::string& parameter : uses.parameters_of(*use.node)) present.insert(parameter);
    }
  std::vector<std::string> lost;
  for (const auto& [key, name] : signature_of(graph)) {
    const bool trains =
        key.starts_with("p_") || name.ends_with("running_mean") || name.ends_with("running_var");
    if (trains && read.contains(name) && !present.contains(name)) lost.push_back(name);
  }
  return lost;
}

bool is_made_up(const std::string& name, const char* op) {
  return name.starts_with(text("onnx::", op, "_"));
}

/// PyTorch's older exporter names a weight that it computed after the operator that reads it:
/// "onnx::Conv_25".
void add_computed(const rt_onnx::GraphProto& graph, std::vector<std::string>& sentences) {
  std::vector<std::string> folded, computed, scales;
  for (const auto& node : graph.node()) {
    const bool both = node.op_type().starts_with("Conv") && node.input_size() == 3 &&
                      is_made_up(node.input(1), node.op_type().c_str()) &&
                      is_made_up(node.input(2), node.op_type().c_str());
    if (both) folded.push_back(node.name());
  }
  for (const std::string& name : initializers_of(graph)) {
    if (is_made_up(name, "MatMul") || is_made_up(name, "Gemm") || is_made_up(name, "Mul") ||
        is_made_up(name, "Add"))
      computed.push_back(name);
    if (name.ends_with("/batchnorm/mul:0")) scales.push_back(name);  // of Keras, by tf2onnx
  }
  if (!folded.empty())
    sentences.push_back(
        text("training: batch normalizations are folded into the weights of ", folded.size(),
             " convolutions (", compiler::listed(folded, kMostNames),
             "); their parameters and running statistics are not in the file, and neither are "
             "dropouts, as it is an export for inference; ",
             kHowToExport));
  if (!scales.empty())
    sentences.push_back(text(
        "training: ", scales.size(), " batch normalizations of Keras are folded (",
        compiler::listed(scales, kMostNames),
        "): these factors are trained in the place of gamma, and the running statistics stay as they are"));
  if (!computed.empty())
    sentences.push_back(
        text("training: ", computed.size(), " weights have lost their names (",
             compiler::listed(computed, kMostNames),
             "): the exporter computed them, as a rule a transpose; they are trained under these "
             "names. To keep the names, ",
             kHowToExport));
}

/// Weights that the newer exporter's list does not have, and that no call reads as a parameter: it computed
/// them.
std::vector<std::string> replacements(rt_onnx::ModelProto& model, const std::string& external_folder) {
  rt_onnx::GraphProto& graph = *model.mutable_graph();
  std::vector<std::string> names;
  std::set<std::string> left_out = listed_names(graph);
  if (left_out.empty()) return names;
  left_out.merge(code_constants(model, external_folder));
  const WeightUses uses(graph);
  for (const FloatTensor& tensor : float_tensors(graph)) {
    if (left_out.contains(tensor.name) || is_single_float(*tensor.tensor)) continue;
    const std::vector<WeightUse> found = uses.of(tensor.name);
    const auto reads_none = [&](const WeightUse& use) {
      if (use.node->op_type() == "Expand") return true;  // retie() added it
      const std::vector<std::string> read = uses.parameters_of(*use.node);
      return uses.has_call(*use.node) && std::none_of(read.begin(), read.end(), [&](const std::string& each) {
               return use.role.leaf.empty() || each.ends_with(use.role.leaf);
             });
    };
    if (!found.empty() && std::all_of(found.begin(), found.end(), reads_none)) names.push_back(tensor.name);
  }
  return names;
}

}  // namespace

std::vector<std::string> lost_weights(rt_onnx::ModelProto& model, const std::string& external_folder) {
  std::vector<std::string> sentences;
  if (!model.has_graph()) return sentences;
  rt_onnx::GraphProto& graph = *model.mutable_graph();
  if (const std::vector<std::string> lost = missing(graph); !lost.empty())
    sentences.push_back(
        text("training: ", lost.size(),
             " parameters or statistics of the PyTorch model are not in "
             "the file (",
             compiler::listed(lost, kMostNames),
             "): the exporter folded them into others, as it does with batch normalizations and "
             "biases of zeros; they will not be trained; ",
             kHowToExport));
  if (const std::vector<std::string> names = replacements(model, external_folder); !names.empty())
    sentences.push_back(text("training: the exporter computed ", names.size(),
                             " weights from parameters of the PyTorch model that are not in the file (",
                             compiler::listed(names, kMostNames),
                             "); they are trained in the place of these; to train the parameters, ",
                             kHowToExport));
  add_computed(graph, sentences);
  return sentences;
}

}  // namespace librt::onnx
