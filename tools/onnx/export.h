// Writes trained weights back into the ONNX file that they came from, for other runtimes.
//
// Knows: where an ONNX file stores its weights, and how to recover the importer's changes to each. Must not
// know: training, passes.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt::onnx {

struct ExportedWeights {
  size_t count = 0;
  size_t ranges = 0;  ///< tensors with a range of quantization-aware training, which was left out
  std::string file;   ///< the second file, with the weights; empty: there is none
};

/// Writes weights into a copy of `source`: each state that is a parameter or a statistic replaces the
/// initializer (or Constant node) of its name, in ONNX's layout and the initializer's type (f32, f16 or bf16;
/// f32 states are rounded to nearest). The rest is unchanged, but external data of these weights moves into
/// the file, or into a second one beside it (model_file.h, also about `external`). Parameters that the
/// exporter of `source` merged get separate initializers again where the states have one each; tie: as in
/// training (untie.h). `target` is written completely or not at all. Errors list every state that cannot be
/// written; ranges of a quantization-aware training are left out and counted.
Result<ExportedWeights> export_weights(const std::string& source, const std::vector<State>& states,
                                       const std::string& target, const std::vector<std::string>& tie = {},
                                       bool external = false);
/// The float weights of `source`, in ONNX's layout, as a safetensors file: with the states' values where
/// there are any, else as they are.
Result<ExportedWeights> export_safetensors(const std::string& source, const std::vector<State>& states,
                                           const std::string& target,
                                           const std::vector<std::string>& tie = {});

}  // namespace librt::onnx
