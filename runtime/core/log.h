// Messages of a session to the application.
//
// Knows: the application's function, and up to which level it listens. Must not know: what is said.
#pragma once

#include "runtime/core/text.h"
#include "runtime/include/rt/hooks.h"

namespace librt {

struct Log {
  rt_log_callback callback = nullptr;
  void* user = nullptr;
  rt_log_level level = RT_LOG_WARNING;

  bool listens(rt_log_level to) const noexcept { return callback != nullptr && to <= level; }
  /// One line. To be called where listens() says so: what nobody hears is not put together.
  void say(rt_log_level at, const std::string& line) const {
    if (listens(at)) callback(user, at, line.c_str());
  }
};

}  // namespace librt
