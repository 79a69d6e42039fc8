// One warp that multiplies small matrices with the instructions of kernels/ptx.cuh, for tests on the emulator
// and on a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace librt::cuda::test {

/// d[16][8] += a[16][16] b, of f16 or bf16; b is [8][16] (transposed) or, with `b_by_rows`, [16][8].
cudaError_t mma_16(bool bfloat, bool b_by_rows, const uint16_t* a, const uint16_t* b, float* d,
                   cudaStream_t stream);
/// d[16][8] += a[16][8] b[8][8], of f32 rounded to tf32.
cudaError_t mma_tf32(const float* a, const float* b, float* d, cudaStream_t stream);
/// d[16][8] += a[16][32] b, b transposed: [8][32].
cudaError_t mma_s8(const int8_t* a, const int8_t* b, int* d, cudaStream_t stream);
/// Lane i copies 4 (i % 5) of its 16 bytes in one group and all of its next 16 in a second; out holds the 512
/// bytes after the wait for the first group, then the 512 after the second.
cudaError_t copies(const uint32_t* in, uint32_t* out, cudaStream_t stream);
/// Warp operations on 32 values; 12 results per lane.
cudaError_t warp_operations(const uint32_t* in, uint32_t* out, cudaStream_t stream);

}  // namespace librt::cuda::test
