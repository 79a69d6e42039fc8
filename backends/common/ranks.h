// Data parallel ranks, as backends see them through the application's communicator.
//
// Must not know: who implements it.
#pragma once

#include "runtime/core/status.h"
#include "runtime/include/rt/communicator.h"

namespace librt {

/// 1 without a communicator.
inline int64_t rank_count(const rt_communicator* communicator) noexcept {
  return communicator != nullptr ? communicator->ranks : 1;
}
inline size_t own_rank(const rt_communicator* communicator) noexcept {
  return communicator != nullptr ? static_cast<size_t>(communicator->rank) : 0;
}

/// The Status of a communicator call, given the problem that it returned; null is success.
inline Status said(const char* problem) {
  return problem == nullptr ? Status() : Status(Code::Device, problem);
}

/// An error unless there are as many ranks as the model was compiled for.
inline Status expect_ranks(const rt_communicator* communicator, int64_t compiled) {
  if (compiled == rank_count(communicator)) return {};
  return unsupported("the model was compiled for ", compiled, " ranks (--shard-optimizer), this run has ",
                     rank_count(communicator));
}

}  // namespace librt
