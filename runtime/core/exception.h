// From an exception to a Status, for functions that let none out.
//
// Knows: std::bad_alloc and std::exception. Must not know: who throws.
#pragma once

#include "runtime/core/status.h"

namespace librt {

/// In a catch block only: what was thrown, as Code::OutOfMemory or Code::Internal. `doing`: "creating a
/// kernel".
Status caught_exception(const char* doing) noexcept;

}  // namespace librt
