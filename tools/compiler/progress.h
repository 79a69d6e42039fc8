// What work that takes long reports while it goes on, and how it is stopped.
//
// Knows: the name of a stage, and how far it is. Must not know: who listens, what a stage does.
#pragma once

#include <cstddef>

#include "runtime/core/status.h"

namespace librt::compiler {

class Progress {
 public:
  virtual ~Progress() = default;
  /// `done` of `total` units of a stage are done (total 0: it is not known). An error, usually
  /// Code::Cancelled, ends the work, which returns it.
  virtual Status at(const char* stage, size_t done, size_t total) = 0;
};

/// Nothing where nobody listens.
inline Status report_progress(Progress* listener, const char* stage, size_t done, size_t total) {
  return listener != nullptr ? listener->at(stage, done, total) : Status();
}

}  // namespace librt::compiler
