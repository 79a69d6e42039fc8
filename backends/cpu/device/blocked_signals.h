// Signal handlers and the threads that compute.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace librt::cpu {

/// From now on signals do not interrupt the calling thread: they wait, or go to other threads of the process.
/// Not those that tell a thread of its own fault, whose handlers print where it was. Returns the mask before.
inline sigset_t block_signals() noexcept {
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
    sigdelset(&blocked, fault);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  return before;
}

/// The same, while it lives.
class BlockedSignals {
 public:
  BlockedSignals() noexcept = default;
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  const sigset_t before_ = block_signals();
};

}  // namespace librt::cpu
