// The position of a run in its training data.
//
// Knows: its exact text form in a checkpoint. Must not know: when a checkpoint is written.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "rt/rt.hpp"

namespace rt::train {

/// Together with the model's states all that is needed to resume a run bit for bit.
struct Position {
  uint64_t epoch = 0;  ///< epochs finished
  uint64_t batch = 0;  ///< batches done of the epoch in progress
  uint64_t step = 0;   ///< steps since the beginning
  double loss_sum = 0;
  uint64_t seen = 0;     ///< samples of the epoch in progress that loss_sum covers
  uint64_t waiting = 0;  ///< epochs since the best one
  double best = std::numeric_limits<double>::quiet_NaN();  ///< value of the monitored metric

  /// The best epoch, from 1; only if `best` is a number.
  uint64_t best_epoch() const noexcept { return epoch - waiting; }
};

/// Key-value pairs for a checkpoint.
std::vector<std::pair<std::string, std::string>> pairs_of(const Position& position);
/// Reads them from the checkpoint that the session has loaded; false with the key that is missing or damaged.
bool read_position(const rt::Session& session, Position& position, std::string& key);

/// What a training whose epochs have so many batches cannot have reached, for example a batch after the last
/// of an epoch; empty: nothing. `most`: steps that no training exceeds.
std::string impossible_in(const Position& position, uint64_t batches, size_t batch_size, uint64_t most);

}  // namespace rt::train
