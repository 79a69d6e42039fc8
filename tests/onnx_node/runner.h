// The ways a converted case can be run.
//
// Knows: tensors as the tools exchange them. Must not know: cases, comparisons.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/common/array.h"

namespace rt {
struct ModelGraph;
}

namespace rt::test {

/// The graph's reference value; nullopt with a message. Inputs in graph order.
std::optional<std::vector<tools::Array>> run_reference(ModelGraph& model,
                                                       std::span<const tools::Array> inputs,
                                                       std::string& error);

/// Optimizes, writes and reads the model; nullopt with a message.
std::optional<std::vector<std::byte>> compile(ModelGraph& model, std::string& error);
/// compile(), then the reference value of what was read back.
std::optional<std::vector<tools::Array>> run_compiled_reference(ModelGraph& model,
                                                                std::span<const tools::Array> inputs,
                                                                std::string& error);

}  // namespace rt::test
