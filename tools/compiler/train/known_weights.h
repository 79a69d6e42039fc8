// What a model's file says about its constants: which are weights.
//
// Knows: names. Must not know: graphs, file formats.
#pragma once

#include <set>
#include <string>

namespace librt::compiler {

/// Names of constants. Those that are in no set are weights by their type, size and use.
struct KnownWeights {
  std::set<std::string> parameters;  ///< weights, of whatever size
  std::set<std::string> buffers;     ///< not trained: tables, scales of frozen normalizations
  std::set<std::string> single;      ///< of one element: a weight, or a constant of a formula
};

}  // namespace librt::compiler
