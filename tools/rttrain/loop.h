// The training loop: epochs of shuffled batches, validation, early stopping, checkpoints.
//
// Knows: Trainer and Session, when to measure, save and stop. Must not know: the command line, where data
// comes from.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/common/schedule.h"
#include "tools/rttrain/budget.h"
#include "tools/rttrain/loader.h"
#include "tools/rttrain/log.h"
#include "tools/rttrain/metrics.h"

namespace rt::train {

/// A value of a metric that ends the training when it is reached.
struct Target {
  std::string metric;
  double value = 0;
};

struct LoopOptions {
  uint64_t epochs = 1;
  uint64_t steps = 0;  ///< stop after so many, 0: no limit
  size_t batch = 32;
  float learning_rate = 0.01f;
  tools::Schedule schedule = {};  ///< factor of the learning rate at each step
  size_t micro_batch = 0;  ///< samples that are computed at once and accumulated to a step; 0: the batch
  uint64_t seed = 1;
  bool shuffle = true;
  bool drop_last = false;  ///< leave out the last, smaller batch of an epoch
  unsigned workers = 2;    ///< threads that prepare batches
  size_t prefetch = 4;     ///< batches they may be ahead

  Scoring scoring;
  std::optional<Target> target;
  uint64_t patience = 0;  ///< epochs without a better value after which to stop, 0: never
  std::string monitor;    ///< metric that patience and `best` look at; empty: the target's, or "loss"
  std::string best;       ///< checkpoint of the epoch with the best value; empty: none

  std::string checkpoint;         ///< empty: none; else written after every epoch, at the end and on a signal
  uint64_t checkpoint_every = 0;  ///< also after so many steps
  bool resume = false;            ///< start from `checkpoint`
  /// What else must be equal for a resumed run to see the same batches; part of the checkpoint, compared.
  std::string data_text;
  /// Every rank has a part of the optimizer's state: its checkpoint is the first rank's file and one of each
  /// other.
  bool sharded = false;
  /// Further pairs for the checkpoint.
  std::vector<std::pair<std::string, std::string>> notes;

  /// Losses, and states to save, that are NaN or infinite end the training, unless they are allowed.
  bool allow_nonfinite = false;
  std::vector<std::string> float_states;  ///< names of the model's

  bool json = false;        ///< one JSON object an epoch on stdout
  bool progress = false;    ///< a live line on stderr
  uint64_t log_every = 10;  ///< steps of a record in the log
};

/// Set by SIGINT and SIGTERM: the loop finishes its step, saves and returns.
extern volatile std::sig_atomic_t g_stop;

enum class Outcome : uint8_t {
  Finished,  ///< all epochs or steps, or no better for `patience` epochs; the target, if any, not reached
  Reached,   ///< the target
  Stopped,   ///< by a signal
};

/// Data as the loop takes it.
struct Samples {
  const Source& source;
  const Transform& transform;
};

/// Trains; results on stdout. An error leaves the last checkpoint as it was; so does a loss that is not
/// finite. validation: may be null. With a budget all sessions are planned, and what they take is printed on
/// stderr, before anything runs. Of several ranks the first one prints and writes.
rt::Result<Outcome> run_training(rt::Trainer& trainer, Budget& budget, const Samples& training,
                                 const Samples* validation, RunLog& log, const Ranks& ranks,
                                 const LoopOptions& options);

}  // namespace rt::train
