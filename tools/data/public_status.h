// Errors of files and arrays for callers of the public API.
#pragma once

#include "rt/rt.hpp"
#include "runtime/core/status.h"

namespace librt {

/// With the same code and message. In this namespace, where calls find it by their argument.
inline rt::Status as_public(const Status& status) {
  return {static_cast<rt::Code>(status.code()), status.message()};
}

}  // namespace librt
