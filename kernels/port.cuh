// Portability: the same kernel source is compiled by nvcc, or by a host C++20 compiler with RT_CUDA_EMULATED,
// where tests/cuda_emulator runs it on the CPU.
//
// Rules for kernels: launch() and never <<<>>>; kernels in anonymous namespaces; PTX only in ptx.cuh; dynamic
// shared memory only through dynamic_shared(); exact masks in *_sync operations; no return before a barrier;
// __syncwarp() between a write and a read of shared memory inside a warp; no waiting for other blocks; 64-bit
// index products.
#pragma once

#if defined(RT_CUDA_EMULATED)
#include "cuda_emulator/device.h"
#define RT_DEVICE inline
#define RT_UNROLL
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define RT_DEVICE __device__ __forceinline__
#define RT_UNROLL _Pragma("unroll")
#endif

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace librt::cuda {

// One symbol of dynamic shared memory for every kernel and type.
#if defined(RT_CUDA_EMULATED)
template <class T>
inline T* dynamic_shared() {
  return static_cast<T*>(cuda_emulator::dynamic_shared());
}
#else
extern __shared__ __align__(128) unsigned char dynamic_shared_bytes[];
template <class T>
RT_DEVICE T* dynamic_shared() {
  return reinterpret_cast<T*>(dynamic_shared_bytes);
}
#endif

struct LaunchConfig {
  dim3 grid, block;
  unsigned shared_bytes = 0;  ///< dynamic shared memory
  cudaStream_t stream = nullptr;
};

/// Starts a kernel. The arguments are converted to the kernel's parameter types. Opts in to more than 48 KiB
/// of dynamic shared memory; an empty grid is a no-op.
template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), const LaunchConfig& config, Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                "as many arguments as the kernel has parameters");
  if (config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0) return cudaSuccess;
  const void* symbol = reinterpret_cast<const void*>(kernel);
  if (config.shared_bytes > 48u * 1024u) {
    const cudaError_t error = cudaFuncSetAttribute(symbol, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   static_cast<int>(config.shared_bytes));
    if (error != cudaSuccess) return error;
  }
  std::tuple<std::remove_cv_t<Parameters>...> values(
      static_cast<Parameters>(std::forward<Arguments>(arguments))...);
#if defined(RT_CUDA_EMULATED)
  return cuda_emulator::launch([kernel, values]() mutable { std::apply(kernel, values); }, symbol,
                               config.grid, config.block, config.shared_bytes, config.stream);
#else
  return std::apply(
      [&](auto&... value) {
        void* pointers[sizeof...(Parameters) + 1] = {static_cast<void*>(&value)..., nullptr};
        return cudaLaunchKernel(symbol, config.grid, config.block, pointers, config.shared_bytes,
                                config.stream);
      },
      values);
#endif
}

}  // namespace librt::cuda
