// Turns inputs that grow by concatenation into states: the key/value cache of a language model.
//
// A decoder as it is exported takes the keys and values of earlier tokens as inputs, joins the new ones to
// them and gives the result back: every step copies the cache, has new shapes and needs a new plan.
// Afterwards the model keeps each of them in a state with room for `length` positions, TensorScatter writes
// the new entries behind the valid ones, attention is told how many there are, and the count itself is a
// state that the graph advances. Shapes no longer change, so one plan serves every step; resetting the states
// starts a new text.
//
// Knows: the order of the steps and the new graph. growth.h finds what grows, length.h what is computed from
// its length.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"

namespace rt::compiler {

struct CacheOptions {
  int64_t length = 0;  ///< positions that the cache holds
  /// (input, output) names; empty: every input that grows.
  std::vector<std::pair<std::string, std::string>> pairs;
};

struct CacheReport {
  size_t states = 0;
  uint64_t bytes = 0;
  std::vector<std::string> inputs, outputs;  ///< that are gone
};

/// Names in the model's metadata, and of the state that counts valid positions (i64[1]).
inline constexpr const char* kCacheCapacityKey = "cache.capacity";
inline constexpr const char* kCacheLengthState = "cache.length";

/// Rewrites the entry `infer`, in which attention must have been recognized; optimize the model again
/// afterwards. On an error the model is unchanged, and the message names input or node and the reason.
Status add_cache(ModelGraph& model, const CacheOptions& options, CacheReport* report);

}  // namespace rt::compiler
