// The training loop: epochs of shuffled batches, each followed by validation and a checkpoint.
//
// Knows: the order of steps, validation, checkpoints and reports. Must not know: the command line, the origin
// of the data, how each of them works.
#pragma once

#include "tools/rttrain/budget.h"
#include "tools/rttrain/log.h"
#include "tools/rttrain/loop_options.h"
#include "tools/rttrain/ranks.h"

namespace rt::train {

enum class Outcome : uint8_t {
  Finished,  ///< all epochs or steps, or no improvement for `patience` epochs; target, if any, missed
  Reached,   ///< the target was reached
  Stopped,   ///< by a signal
};

/// Trains; results on stdout. An error, or a non-finite loss, leaves the last checkpoint unchanged.
/// validation: may be null. With a budget all sessions are planned, and their memory use is printed to
/// stderr, before anything runs. Only the first rank prints and writes. saved_step: set to the step that
/// options.checkpoint holds when it was read or written, also where an error is returned.
rt::Result<Outcome> run_training(rt::Trainer& trainer, Budget& budget, const Samples& training,
                                 const Samples* validation, RunLog& log, const Ranks& ranks,
                                 const LoopOptions& options, std::optional<uint64_t>& saved_step);

}  // namespace rt::train
