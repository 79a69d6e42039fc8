// rtrun --generate: a language model, one token after another.
//
// Knows: how tokens, positions and logits go in and out of a session, with and without a key/value cache.
// Must not know: how a cache was added to the model, how sessions work.
#pragma once

#include <string>
#include <vector>

#include "rt/rt.hpp"
#include "tools/rtrun/sampler.h"

namespace rt::run {

struct GenerateOptions {
  int64_t count = 0;  ///< new tokens; 0: do not generate
  std::string prompt;
  std::vector<int64_t> prompt_tokens;
  std::string tokenizer;                                        ///< file; empty: ids only
  std::string token_input, position_input, mask_input, logits;  ///< names; empty: the usual names
  std::vector<int64_t> stop_tokens;
  SamplerOptions sampler;
  bool json = false;
  bool quiet = false;
};

/// Generates, prints the text (or the ids) as they come, or JSON; returns the exit code.
int generate(const rt::Model& model, rt::Session& session, const GenerateOptions& options);

}  // namespace rt::run
