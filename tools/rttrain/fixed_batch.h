// Models whose inputs fix the number of samples: steps and validation take exactly so many at once.
//
// Pure functions. Must not know: data, sessions.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/rttrain/loop_options.h"

namespace rt::train {

/// The first extent that all inputs fix; 0 if one is dynamic, or if they differ.
size_t fixed_batch(const std::vector<rt::TensorSpec>& inputs);

struct BatchChoice {
  size_t fixed = 0;          ///< of fixed_batch(); 0: any batch is fine
  size_t ranks = 1;          ///< each takes an equal part
  bool accumulates = false;  ///< the model has the entry `accumulate`, for larger batches
  bool is_given = false;     ///< options.batch is not the default
};
/// Sets batch and micro_batch where they are not given; an error says which batches the model takes.
rt::Status fit_batch(const BatchChoice& choice, LoopOptions& options);

/// An error where the last batch of the training or of the validation would be smaller. Numbers of samples;
/// validation: 0 without one.
rt::Status check_last_batch(const BatchChoice& choice, const LoopOptions& options, size_t training,
                            size_t validation);

}  // namespace rt::train
