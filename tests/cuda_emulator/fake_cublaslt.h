// The subset of cuBLASLt used by the backend, on the host and in stream order.
#pragma once

namespace cuda_emulator {

/// Null for a function that does not exist.
void* fake_cublaslt_function(const char* name) noexcept;

}  // namespace cuda_emulator
