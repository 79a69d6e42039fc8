// The part of NCCL that the backend calls, between processes of one machine and in the order of the streams.
#pragma once

namespace cuda_emulator {

/// Null for one that is not there.
void* fake_nccl_function(const char* name) noexcept;

}  // namespace cuda_emulator
