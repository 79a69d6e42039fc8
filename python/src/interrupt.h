// Ctrl-C while librt runs without the interpreter's lock.
//
// Knows: SIGINT, the interpreter's handler of it. Must not know: arrays, models.
#pragma once

#include <csignal>

#include "rt/rt.h"

namespace rt::python {

/// Whether this is the thread that the interpreter handles signals on.
bool is_main_thread() noexcept;

/// While it lives, SIGINT also cancels the session's run; the interpreter's own handler is called as ever.
/// For the main thread, one at a time. Without a handler of the interpreter's it does nothing.
class Interrupt {
 public:
  explicit Interrupt(rt_session* session) noexcept;
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

 private:
  rt_session* session_;
  struct sigaction before_ {};
  bool installed_ = false;
};

/// `work` with the interpreter's lock released; `guarded`: Ctrl-C cancels it. Where a signal handler of
/// Python raises, so does this, and the work was not done, or was done completely; where it returns, the work
/// is begun again. Throws the failure of the work; an operator of the application that raised is its cause.
void run_released(rt_session* session, bool guarded, rt_status* (*work)(void*), void* argument);

}  // namespace rt::python
