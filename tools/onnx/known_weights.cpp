#include "tools/onnx/known_weights.h"

#include <algorithm>

#include "tools/onnx/code_constants.h"
#include "tools/onnx/weight_uses.h"

namespace librt::onnx {
namespace {

/// The exporter keeps one of several equal tensors, so that a parameter may have a buffer's name: the call
/// does not read that buffer then.
bool reads_another_parameter(const std::vector<std::string>& reads, const std::string& name,
                             const compiler::KnownWeights& known) {
  return std::find(reads.begin(), reads.end(), name) == reads.end() &&
         std::any_of(reads.begin(), reads.end(),
                     [&](const std::string& each) { return known.parameters.contains(each); });
}

}  // namespace

compiler::KnownWeights known_weights(rt_onnx::ModelProto& model, const std::string& external_folder) {
  compiler::KnownWeights known;
  if (!model.has_graph()) return known;
  rt_onnx::GraphProto& graph = *model.mutable_graph();
  const auto signature = signature_of(graph);
  for (const auto& [key, name] : signature)
    (key.starts_with("p_") ? known.parameters : known.buffers).insert(name);
  const WeightUses all(graph);
  for (const auto& tensor : graph.initializer()) {
    const std::string& name = tensor.name();
    if (known.parameters.contains(name) || (!known.buffers.contains(name) && !is_single_float(tensor)))
      continue;
    const std::vector<WeightUse> uses = all.of(name);
    if (known.buffers.contains(name)) {
      if (std::any_of(uses.begin(), uses.end(), [&](const WeightUse& use) {
            return reads_another_parameter(all.parameters_of(*use.node), name, known);
          })) {
        known.buffers.erase(name);
        known.parameters.insert(name);
      }
      continue;
    }
    const bool is_layer = std::any_of(uses.begin(), uses.end(), [](const WeightUse& use) {
      return use.role.is_layer && !use.role.is_statistic;
    });
    if (is_layer)
      known.parameters.insert(name);
    else if (!uses.empty() && signature.empty() &&
             name.find("::") == name.npos)  // not made up by an exporter
      known.single.insert(name);
  }
  for (const std::string& name : code_constants(model, external_folder))
    if (!known.parameters.contains(name)) known.buffers.insert(name);
  // The list does not say which parameters are not trained: positions by sines and cosines, as in Whisper.
  InitializerReader reader(external_folder);
  for (const FloatTensor& tensor : float_tensors(graph))
    if (known.parameters.contains(tensor.name) && looks_of(*tensor.tensor, reader) == Looks::Waves) {
      known.parameters.erase(tensor.name);
      known.buffers.insert(tensor.name);
    }
  return known;
}

}  // namespace librt::onnx
