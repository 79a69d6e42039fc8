// The ways to run a converted case.
//
// Knows: the tools' tensor type. Must not know: cases, comparisons.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/data/array.h"

namespace librt {
struct ModelGraph;
}

namespace librt::test {

/// The graph's reference results; nullopt with a message. Inputs in graph order.
std::optional<std::vector<tools::Array>> run_reference(ModelGraph& model,
                                                       std::span<const tools::Array> inputs,
                                                       std::string& error);

/// Optimizes, writes and reads the model; nullopt with a message.
std::optional<std::vector<std::byte>> compile(ModelGraph& model, std::string& error);
/// compile(), then the reference results of the model read back.
std::optional<std::vector<tools::Array>> run_compiled_reference(ModelGraph& model,
                                                                std::span<const tools::Array> inputs,
                                                                std::string& error);

}  // namespace librt::test
