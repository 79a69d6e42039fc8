// What a function of one element costs.
//
// Knows: functions. Must not know: operators, loops.
#pragma once

#include <cstdint>

#include "runtime/core/function.h"

namespace librt::cpu {

/// Rough cost of one element in elementary operations, to decide whether threads pay.
inline int64_t work_of(Function function) noexcept {
  switch (function) {
    case Function::Abs:
    case Function::Neg:
    case Function::Relu:
    case Function::Clip:
    case Function::LeakyRelu: return 1;
    default: return 8;
  }
}

}  // namespace librt::cpu
