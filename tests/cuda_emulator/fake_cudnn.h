// The part of cuDNN that the backend calls, on the host and in the order of the streams.
#pragma once

namespace cuda_emulator {

/// Null for one that is not there.
void* fake_cudnn_function(const char* name) noexcept;

}  // namespace cuda_emulator
