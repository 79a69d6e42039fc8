// oneDNN's threads: the functions of the OpenMP runtime that it calls, on this backend's teams.
//
// Debian's oneDNN is compiled for libgomp and looks its functions up by name; the module defines them too
// (openmp.cpp) and stands before libgomp in the order in which the dynamic linker looks. Where that is not
// so, because the application itself is linked with an OpenMP runtime, oneDNN runs on that one, which then
// gets the number of threads.
#pragma once

#include "backends/cpu/device/blocked_signals.h"

namespace librt::cpu {

/// Whether oneDNN was seen to call the functions of this module.
bool onednn_uses_teams() noexcept;

/// Until oneDNN was seen to call this module: sets the number of threads of the OpenMP runtime that it may be
/// using, for regions of the calling thread. Returns the number before, or 0 when there is nothing to set.
int set_foreign_threads(int threads) noexcept;
/// Undoes it.
void restore_foreign_threads(int before) noexcept;

/// While it lives, signals do not interrupt any of the threads that oneDNN uses for the calling one: this
/// one, the application's (rt_parallel) and a foreign OpenMP runtime's. Teams' own threads never take
/// signals.
class BlockedSignalsOfPrimitive {
 public:
  BlockedSignalsOfPrimitive() noexcept;
  ~BlockedSignalsOfPrimitive();
  BlockedSignalsOfPrimitive(const BlockedSignalsOfPrimitive&) = delete;
  BlockedSignalsOfPrimitive& operator=(const BlockedSignalsOfPrimitive&) = delete;

 private:
  const BlockedSignals own_;
};

}  // namespace librt::cpu
