// The subset of NCCL used by the backend, between processes of one machine and in stream order.
#pragma once

namespace cuda_emulator {

/// Null for a function that does not exist.
void* fake_nccl_function(const char* name) noexcept;

}  // namespace cuda_emulator
