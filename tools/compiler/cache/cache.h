// Turns inputs that grow by concatenation into states: the key/value cache of a language model.
//
// An exported decoder takes the keys and values of earlier tokens as inputs, concatenates the new ones to
// them and returns the result: every step copies the cache, has new shapes and needs a new plan. Afterwards
// the model keeps each of them in a state with a capacity of `length` positions, TensorScatter writes the new
// entries after the valid ones, attention gets the number of valid ones, and this count is itself a state
// that the graph advances. Shapes are static, so one plan serves every step; resetting the states starts a
// new text.
//
// Knows: the order of the steps and the new graph. growth.h finds what grows, length.h what is computed from
// its length.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"

namespace librt::compiler {

struct CacheOptions {
  int64_t length = 0;  ///< positions that the cache holds
  /// (input, output) names; empty: every input that grows.
  std::vector<std::pair<std::string, std::string>> pairs;
};

struct CacheReport {
  size_t states = 0;
  uint64_t bytes = 0;
  std::vector<std::string> inputs, outputs;  ///< removed from the model
};

/// Names in the model's metadata, and of the state that counts valid positions (i64[1]).
inline constexpr const char* kCacheCapacityKey = "cache.capacity";
inline constexpr const char* kCacheLengthState = "cache.length";

/// Rewrites the entry `infer`, in which attention must have been recognized; optimize the model again
/// afterwards. On an error the model is unchanged, and the message names input or node and the reason.
Status add_cache(ModelGraph& model, const CacheOptions& options, CacheReport* report);

}  // namespace librt::compiler
