// The training loop: epochs of shuffled batches, validation, checkpoints, a report.
//
// Knows: Trainer and Session, how to measure a validation set, when to save. Must not know: the command line,
// files other than the checkpoint.
#pragma once

#include <csignal>
#include <string>

#include "tools/rttrain/dataset.h"

namespace rt::train {

struct LoopOptions {
  uint64_t epochs = 1;
  size_t batch = 32;
  float learning_rate = 0.01f;
  uint64_t seed = 1;
  bool shuffle = true;
  bool drop_last = false;  ///< leave out the last, smaller batch of an epoch
  std::string checkpoint;  ///< empty: none; else written after every epoch and on a signal
  bool resume = false;     ///< start from `checkpoint`
  bool json = false;       ///< one JSON object a line on stdout
  bool progress = false;   ///< a live line on stderr
};

/// Set by SIGINT and SIGTERM: the loop finishes its step, saves and returns.
extern volatile std::sig_atomic_t g_stop;

/// Trains; results on stdout. An error leaves the last checkpoint as it was.
rt::Status run_training(rt::Trainer& trainer, const Dataset& training, const Dataset* validation,
                        const LoopOptions& options);

}  // namespace rt::train
