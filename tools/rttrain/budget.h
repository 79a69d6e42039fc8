// A memory budget in bytes for all sessions of a training run together.
//
// Knows: the memory use of each session, and how to plan one before it runs. Must not know: data, the loop.
#pragma once

#include <string>
#include <vector>

#include "rt/rt.hpp"
#include "tools/rttrain/source.h"

namespace rt::train {

class Budget {
 public:
  /// bytes 0: no limit, and nothing is planned in advance. The trainer was created with the same options.
  Budget(const rt::Model& model, rt::Trainer& trainer, rt::SessionOptions options, uint64_t bytes)
      : model_(model), trainer_(trainer), options_(std::move(options)), bytes_(bytes) {}

  bool is_set() const noexcept { return bytes_ > 0; }
  /// A session on another entry that shares the trainer's states. It may use the remaining budget.
  rt::Result<rt::Session> open(const std::string& entry);
  /// Plans and allocates for batches of `samples` samples; code OutOfMemory when the budget is exceeded. Runs
  /// nothing.
  rt::Status prepare(const std::string& entry, rt::Session& session, const std::vector<Column>& columns,
                     size_t samples);
  /// Bytes of the states and of all sessions prepared so far.
  uint64_t used() const noexcept;
  /// "211076096 bytes, 201.3 MiB of 256.0 MiB: states 9.1 MiB, train_step 192.2 MiB"
  std::string text() const;

 private:
  const rt::Model& model_;
  rt::Trainer& trainer_;
  rt::SessionOptions options_;
  uint64_t bytes_;
  std::vector<std::pair<std::string, uint64_t>> taken_;  ///< by entry, without the states
};

}  // namespace rt::train
