// The settings of a training loop, and the data it reads.
//
// Knows: values only. Must not know: the command line, sessions.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/data/schedule.h"
#include "tools/rttrain/metrics.h"
#include "tools/rttrain/shares.h"
#include "tools/rttrain/transform.h"

namespace rt::train {

/// Training ends when the metric reaches this value.
struct Target {
  std::string metric;
  double value = 0;
};

struct LoopOptions {
  uint64_t epochs = 1;
  uint64_t steps = 0;  ///< maximum number of steps, 0: no limit
  size_t batch = 32;
  float learning_rate = 0;
  librt::tools::Schedule schedule = {};  ///< factor of the learning rate at each step
  size_t micro_batch = 0;                ///< samples per micro-batch, accumulated to a step; 0: the batch
  /// Micro-batches are summed in the order of the samples, and validation is not divided: the results do not
  /// depend on the number of ranks.
  bool ordered_sums = false;
  ShareOption share;  ///< how ranks divide a batch
  uint64_t seed = 1;
  bool shuffle = true;
  bool drop_last = false;  ///< leave out the last, smaller batch of an epoch
  unsigned workers = 2;    ///< threads that prepare batches
  size_t prefetch = 4;     ///< batches prepared in advance

  Scoring scoring;
  size_t classes = 0;  ///< of the model; 0: unknown
  std::optional<Target> target;
  uint64_t patience = 0;  ///< epochs without improvement after which to stop, 0: never
  std::string monitor;    ///< metric for patience and `best`; empty: the target's, or the first
  std::string best;       ///< checkpoint of the epoch with the best value; empty: none

  std::string checkpoint;         ///< empty: none; else written after every epoch, at the end and on a signal
  uint64_t checkpoint_every = 0;  ///< also after every so many steps
  bool resume = false;            ///< start from `checkpoint`
  bool overwrite = false;         ///< replace checkpoints of an earlier run
  /// Further settings that must match for a resumed run to see the same batches; stored in the checkpoint and
  /// compared.
  std::string data_text;
  /// Each rank has a shard of the optimizer state: a checkpoint is the first rank's file plus one per other
  /// rank.
  bool sharded = false;
  /// Additional key-value pairs for the checkpoint.
  std::vector<std::pair<std::string, std::string>> notes;

  /// If false, NaN or infinities in the loss or in states to be saved end the training.
  bool allow_nonfinite = false;
  std::vector<std::string> float_states;  ///< names of the model's float states
  std::vector<std::string> gradients;     ///< with ordered_sums: the states with accumulated gradients

  bool json = false;        ///< one JSON object per epoch on stdout
  bool progress = false;    ///< a live line on stderr
  uint64_t log_every = 10;  ///< steps per log record
};

/// Data for the loop.
struct Samples {
  const Source& source;
  const Transform& transform;
};

/// Set by SIGINT, SIGTERM and SIGHUP: the loop finishes its step, saves and returns.
extern volatile std::sig_atomic_t g_stop;

}  // namespace rt::train
