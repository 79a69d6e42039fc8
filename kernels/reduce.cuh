// Reductions over the lanes of a warp and the threads of a block. Every thread of the block takes part, and
// every thread gets the result. The order of the operations depends only on the block size, so results are
// reproducible.
#pragma once

#include "kernels/port.cuh"

namespace librt::cuda {

inline constexpr unsigned kFullMask = 0xffffffffu;
inline constexpr int kWarpSize = 32;

struct Sum {
  template <class T>
  RT_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
/// NaN propagates.
struct Maximum {
  template <class T>
  RT_DEVICE T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Minimum {
  template <class T>
  RT_DEVICE T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

/// All 32 lanes; T has at most 8 bytes.
template <class Operation, class T>
RT_DEVICE T warp_reduce(T value, Operation operation) {
  RT_UNROLL
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2)
    value = operation(value, __shfl_xor_sync(kFullMask, value, distance));
  return value;
}
template <class T>
RT_DEVICE T warp_sum(T value) {
  return warp_reduce(value, Sum{});
}

/// Blocks of whole warps, at most 1024 threads. `storage` is shared memory for 32 values, reusable after the
/// call.
template <class Operation, class T>
RT_DEVICE T block_reduce(T value, Operation operation, T* storage) {
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const int lane = static_cast<int>(thread % kWarpSize), warp = static_cast<int>(thread / kWarpSize);
  const int warps = static_cast<int>(blockDim.x * blockDim.y * blockDim.z / kWarpSize);
  value = warp_reduce(value, operation);
  if (lane == 0) storage[warp] = value;
  __syncthreads();
  T total = storage[0];
  for (int i = 1; i < warps; ++i) total = operation(total, storage[i]);
  __syncthreads();
  return total;
}
template <class T>
RT_DEVICE T block_sum(T value, T* storage) {
  return block_reduce(value, Sum{}, storage);
}

}  // namespace librt::cuda
