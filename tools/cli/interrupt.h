// Ctrl-C while something runs that can be cancelled.
//
// Knows: SIGINT. Must not know: librt.
#pragma once

#include <csignal>

namespace librt::tools {

/// While it lives, the first SIGINT calls cancel(target), from the signal handler; a second one ends the
/// program at once. One at a time.
class Interrupt {
 public:
  Interrupt(void (*cancel)(void*), void* target);
  /// Restores the earlier handling of SIGINT. A signal that nothing has answered is then raised again.
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  /// The cancelled work has ended and its end is reported.
  void answer() noexcept;

 private:
  struct sigaction before_ {};
  bool installed_ = false;
};

}  // namespace librt::tools
