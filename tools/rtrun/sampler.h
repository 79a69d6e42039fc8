// Which token comes next, given the logits.
//
// Knows: greedy choice and sampling with temperature, top-k and top-p. Must not know: models, text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rt::run {

struct SamplerOptions {
  double temperature = 0;  ///< 0: always the most probable token
  int64_t top_k = 0;       ///< only the k most probable; 0: all
  double top_p = 1;        ///< only the most probable ones that together reach this probability
  uint64_t seed = 1;
};

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options) : options_(options), random_(options.seed) {}
  /// Index of the chosen logit; the first of equal ones when greedy. logits must not be empty.
  int64_t choose(std::span<const float> logits);

 private:
  struct Candidate {
    double weight;
    int64_t token;
  };
  SamplerOptions options_;
  uint64_t random_;
  std::vector<Candidate> candidates_;
};

}  // namespace rt::run
