// The gradients of all micro-batches of a step, summed in the order of the samples.
//
// Knows: the states in which the entry `accumulate` leaves gradients and `update` expects their sum. Must not
// know: data, learning rates, when a step is taken.
//
// Floating-point sums depend on their order, and that of MPI and NCCL depends on the number of ranks. Here
// the ranks take turns in micro-batches of one size: after each round every rank has the gradients of all
// ranks and adds them one after the other. So the sum has the same bits for any number of ranks.
#pragma once

#include <string>
#include <vector>

#include "tools/rttrain/ranks.h"

namespace rt::train {

/// The states of the accumulated gradients: those of a parameter's name with ".gradient".
std::vector<std::string> gradient_states(const std::vector<rt::StateSpec>& states);

class GradientSums {
 public:
  /// gradients: names of states in f32, the same on all ranks.
  GradientSums(rt::Session& session, const Ranks& ranks, std::vector<std::string> gradients);

  /// Before a micro-batch: its gradients replace those in the states.
  rt::Status start();
  /// After a micro-batch on every rank, with its loss; a collective call.
  rt::Status add(float loss);
  /// After the last one: the sums are in the states, for `update`. Returns the mean loss.
  rt::Result<float> finish();

 private:
  rt::Result<std::vector<float>> of_all_ranks(std::span<const float> own);
  rt::Status set_count(size_t count);

  rt::Session& session_;
  const Ranks& ranks_;
  const std::vector<std::string> names_;
  std::vector<rt::Tensor> sums_;  ///< by gradient
  float loss_ = 0;
  size_t count_ = 0;  ///< micro-batches in the sums
};

}  // namespace rt::train
