// The checkpoints of a run.
//
// Knows: what a checkpoint holds besides the states, one file for each rank where states are sharded. Must
// not know: when one is written.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "tools/rttrain/loop_options.h"
#include "tools/rttrain/position.h"
#include "tools/rttrain/source.h"

namespace rt::train {

/// Before hours of training instead of after them: the folders can be written to, and no file of an earlier
/// run would be replaced without --overwrite.
rt::Status check_checkpoint_files(const LoopOptions& options);

class Checkpoints {
 public:
  /// samples: of the training data. monitor: the metric that Position::best holds.
  Checkpoints(rt::Trainer& trainer, const Ranks& ranks, const LoopOptions& options, size_t samples,
              std::string monitor);

  /// Restores states and position from options.checkpoint.
  rt::Status load(Position& position);
  /// A collective call where states are sharded.
  rt::Status save(const std::string& path, const Position& position);
  /// The position has changed since the last checkpoint.
  void note_progress() noexcept { is_behind_ = true; }
  /// At the end of a run: saves what is not saved yet.
  rt::Status finish(const Position& position);
  /// The step that options.checkpoint holds, if it was read or written.
  std::optional<uint64_t> saved_step() const noexcept { return saved_step_; }
  /// For error messages: "; net.ckpt holds step 40".
  std::string text() const;

 private:
  std::vector<std::pair<std::string, std::string>> must_be_equal() const;
  std::string file_beside(const std::string& path, const Position& position) const;
  void remove_old_parts(const std::string& path, const std::string& kept);
  rt::Status check_states(const Position& position);
  rt::Status save_states(const std::string& path, const std::string& file, const Position& position);
  rt::Status load(const std::string& file, Position& position);

  rt::Trainer& trainer_;
  const Ranks& ranks_;
  const LoopOptions& options_;
  const size_t samples_;
  const std::string monitor_;
  std::map<std::string, std::string> parts_;  ///< by checkpoint: this rank's separate file
  std::set<std::string> cleaned_;             ///< checkpoints without parts of earlier runs
  bool is_behind_ = false;
  std::optional<uint64_t> saved_step_;
};

}  // namespace rt::train
