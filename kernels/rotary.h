// RotaryEmbedding of x [batch, heads, queries, width], f32.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace librt::cuda {

/// Pairs (i, i + pairs), or (2i, 2i + 1) if interleaved, are rotated; elements after them are copied.
struct RotaryArguments {
  const float* data = nullptr;
  const float *cosines = nullptr, *sines = nullptr;  ///< [batch or 1, queries, pairs]
  float* result = nullptr;                           ///< may be data
  bool interleaved = false, table_per_batch = false;
  int64_t rows = 0;  ///< batch * heads * queries
  int64_t heads = 1, queries = 1, width = 0, pairs = 0;
};
cudaError_t rotary(const RotaryArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
