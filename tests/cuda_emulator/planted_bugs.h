// Kernels with one bug each, to check that the emulator detects it.
#pragma once

#include <cuda_runtime_api.h>

namespace librt::cuda::test {

enum class Bug {
  None,
  MissingBarrier,
  DivergentBarrier,
  DifferentBarriers,
  ExitBeforeBarrier,
  ExitedLane,
  LaneOutsideMask,
  CallerOutsideMask,
  MissingCopyWait,
  WarpWithoutSync,
  MisalignedMatrix,
  MatrixInGlobal,
  UninitializedShared,
  SharedBeyondLimit,
  BlockBeyondLimit,
};
/// 64 threads write y[64] from x[128]; without a bug y[i] = x[63 - i].
cudaError_t run_planted(Bug bug, const float* x, float* y, cudaStream_t stream);
/// y[i] = value.
cudaError_t fill(float* y, float value, cudaStream_t stream);

}  // namespace librt::cuda::test
