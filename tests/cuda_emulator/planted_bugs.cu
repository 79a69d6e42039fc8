#include "cuda_emulator/planted_bugs.h"

#include "kernels/ptx.cuh"

namespace librt::cuda::test {
namespace {

__global__ void right(const float* x, float* y) {
  __shared__ float shared[64];
  shared[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = shared[63 - threadIdx.x];
}
__global__ void missing_barrier(const float* x, float* y) {
  __shared__ float shared[64];
  shared[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = shared[63 - threadIdx.x];
}
__global__ void divergent_barrier(const float*, float* y) {
  if (threadIdx.x < 40) __syncthreads();
  y[threadIdx.x] = 1;
}
__global__ void different_barriers(const float*, float* y) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
  y[threadIdx.x] = 1;
}
__global__ void exit_before_barrier(const float*, float* y) {
  if (threadIdx.x >= 50) return;
  __syncthreads();
  y[threadIdx.x] = 1;
}
__global__ void exited_lane(const float*, float* y) {
  if (threadIdx.x >= 16) return;
  y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
}
__global__ void lane_outside_mask(const float*, float* y) {
  float value = static_cast<float>(threadIdx.x);
  if (threadIdx.x < 16) value = __shfl_down_sync(0x0000ffffu, value, 16);
  y[threadIdx.x] = value;
}
__global__ void caller_outside_mask(const float*, float* y) {
  y[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, 1.0f, 1);
}
__global__ void missing_copy_wait(const float* x, float* y) {
  __shared__ __align__(16) float shared[64];
  if (threadIdx.x < 16) {
    ptx::copy_async_16(shared + threadIdx.x * 4, x + threadIdx.x * 4);
    ptx::copy_async_commit();
  }
  __syncthreads();
  y[threadIdx.x] = shared[63 - threadIdx.x];
}
__global__ void warp_without_sync(const float* x, float* y) {
  __shared__ float shared[64];
  shared[threadIdx.x ^ 31u] = x[threadIdx.x];
  y[threadIdx.x] = shared[63 - threadIdx.x];
}
__global__ void misaligned_matrix(const float*, float* y) {
  __shared__ __align__(16) uint16_t shared[512];
  uint32_t r[4];
  ptx::load_matrix_x4(r, shared + (threadIdx.x & 15u) * 12);
  y[threadIdx.x] = static_cast<float>(r[0]);
}
__global__ void matrix_in_global(const float* x, float* y) {
  uint32_t r[4];
  ptx::load_matrix_x4(r, x + (threadIdx.x & 15u) * 4);
  y[threadIdx.x] = static_cast<float>(r[0]);
}
__global__ void uninitialized_shared(const float* x, float* y) {
  __shared__ float shared[64];
  if (threadIdx.x < 32) shared[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = shared[63 - threadIdx.x];
}
__global__ void fill_kernel(float* y, float value) {
  y[threadIdx.x] = value;
}

}  // namespace

cudaError_t run_planted(Bug bug, const float* x, float* y, cudaStream_t stream) {
  LaunchConfig config{dim3(1), dim3(64), 0, stream};
  switch (bug) {
    case Bug::None: return launch(right, config, x, y);
    case Bug::MissingBarrier: return launch(missing_barrier, config, x, y);
    case Bug::DivergentBarrier: return launch(divergent_barrier, config, x, y);
    case Bug::DifferentBarriers: return launch(different_barriers, config, x, y);
    case Bug::ExitBeforeBarrier: return launch(exit_before_barrier, config, x, y);
    case Bug::ExitedLane: return launch(exited_lane, config, x, y);
    case Bug::LaneOutsideMask: return launch(lane_outside_mask, config, x, y);
    case Bug::CallerOutsideMask: return launch(caller_outside_mask, config, x, y);
    case Bug::MissingCopyWait: return launch(missing_copy_wait, config, x, y);
    case Bug::WarpWithoutSync: return launch(warp_without_sync, config, x, y);
    case Bug::MisalignedMatrix: return launch(misaligned_matrix, config, x, y);
    case Bug::MatrixInGlobal: return launch(matrix_in_global, config, x, y);
    case Bug::UninitializedShared: return launch(uninitialized_shared, config, x, y);
    case Bug::SharedBeyondLimit: config.shared_bytes = 300u << 10; return launch(right, config, x, y);
    case Bug::BlockBeyondLimit: config.block = dim3(2048); return launch(right, config, x, y);
  }
  return cudaErrorInvalidValue;
}

cudaError_t fill(float* y, float value, cudaStream_t stream) {
  return launch(fill_kernel, {dim3(1), dim3(64), 0, stream}, y, value);
}

}  // namespace librt::cuda::test
