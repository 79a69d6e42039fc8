// Label sequences from per-step scores, as models with the loss ctc produce them (Graves et al. 2006).
//
// Pure functions. Must not know: batches, sessions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rt::train {

/// The scores of one sequence: class c at step t is values[t * stride + c]. One class is the blank, which
/// means no label.
struct StepScores {
  std::span<const float> values;
  size_t stride = 0, steps = 0, classes = 0;
  size_t blank = 0;
  bool probabilities = false;  ///< else logits or log probabilities

  std::span<const float> at(size_t step) const { return values.subspan(step * stride, classes); }
};

/// Greedy decoding: the most probable class at every step, repeats merged, blanks removed.
std::vector<int64_t> best_path(const StepScores& scores);

/// Levenshtein distance: insertions, deletions and substitutions.
size_t edit_distance(std::span<const int64_t> a, std::span<const int64_t> b);

/// -log of the probability of the labels; infinite if there are too few steps.
double ctc_loss(const StepScores& scores, std::span<const int64_t> labels);

}  // namespace rt::train
