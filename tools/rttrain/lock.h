// One training at a time writes a checkpoint.
//
// Knows: the lock file beside a checkpoint, FILE.lock, which holds the process id of the training. Must not
// know: what a checkpoint holds.
#pragma once

#include <string>
#include <vector>

#include "rt/rt.hpp"
#include "tools/data/file.h"
#include "tools/rttrain/loop_options.h"

namespace rt::train {

/// Holds the locks until it is destroyed. The lock is one of the system (flock): it ends with the process,
/// also with a killed one, whose file the next training takes over.
class CheckpointLocks {
 public:
  CheckpointLocks() = default;
  CheckpointLocks(CheckpointLocks&&) = default;
  CheckpointLocks(const CheckpointLocks&) = delete;
  CheckpointLocks& operator=(const CheckpointLocks&) = delete;
  ~CheckpointLocks();

  /// Of options.checkpoint and options.best; an error that names the process if another one holds one of
  /// them.
  static rt::Result<CheckpointLocks> take(const LoopOptions& options);

 private:
  rt::Status add(const std::string& checkpoint);

  struct Lock {
    std::string path;
    librt::tools::Descriptor file;
  };
  std::vector<Lock> locks_;
};

}  // namespace rt::train
