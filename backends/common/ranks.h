// The ranks of a data parallel training, as backends see them through the application's communicator.
//
// Must not know: who implements it.
#pragma once

#include "runtime/core/status.h"
#include "runtime/include/rt/communicator.h"

namespace rt {

/// 1 without a communicator.
inline int64_t rank_count(const rt_communicator* communicator) noexcept {
  return communicator != nullptr ? communicator->ranks : 1;
}
inline size_t own_rank(const rt_communicator* communicator) noexcept {
  return communicator != nullptr ? static_cast<size_t>(communicator->rank) : 0;
}

/// What a function of the communicator returned.
inline Status said(const char* problem) {
  return problem == nullptr ? Status() : Status(Code::Device, problem);
}

/// How many ranks the model was compiled for must be how many there are.
inline Status expect_ranks(const rt_communicator* communicator, int64_t compiled) {
  if (compiled == rank_count(communicator)) return {};
  return unsupported("the model was compiled for ", compiled, " ranks (--shard-optimizer), this run has ",
                     rank_count(communicator));
}

}  // namespace rt
