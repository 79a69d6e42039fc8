// A run that Ctrl-C cancels.
#pragma once

#include "rt/rt.hpp"
#include "tools/cli/interrupt.h"

namespace rt::run {

/// The status of function(), which runs the session.
template <class Function>
rt::Status interruptible(rt::Session& session, Function function) {
  librt::tools::Interrupt interrupt([](void* handle) { rt_session_cancel(static_cast<rt_session*>(handle)); },
                                    session.handle());
  rt::Status status = function();
  if (status.code() == rt::Code::Cancelled) interrupt.answer();
  return status;
}

}  // namespace rt::run
