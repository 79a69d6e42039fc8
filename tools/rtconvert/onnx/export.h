// Trained weights back into the ONNX file that they came from, for other runtimes.
//
// Knows: where an ONNX file keeps its weights, and how to find out what the importer did to each. Must not
// know: training, passes.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace rt::onnx {

/// Puts weights into a copy of `source`: for each state that is a parameter or a statistic the
/// initializer (or Constant node) of its name, in ONNX's layout and the initializer's type (f32, f16 or bf16;
/// f32 states are rounded to nearest); all else stays as it is, but external data of these weights moves into
/// the file. Parameters that the exporter of `source` merged get initializers of their own again where the
/// states have one each; tie: as it was for the training (untie.h). `target` is there completely or not at
/// all. Returns how many weights were written; errors list every state that has no place.
Result<size_t> export_weights(const std::string& source, const std::vector<State>& states,
                              const std::string& target, const std::vector<std::string>& tie = {});

}  // namespace rt::onnx
