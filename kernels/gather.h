// Gather and ScatterAdd along one axis: data as [outer, extent, inner], indices as a flat list.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/sort.h"

namespace librt::cuda {

/// Bytes are moved in units of 1, 2, 4, 8 or 16; inner counts units.
struct GatherArguments {
  const void* data = nullptr;
  const void* indices = nullptr;
  void* result = nullptr;  ///< [outer, count, inner]
  int unit = 4;
  bool wide_indices = true;  ///< i64, else i32
  int64_t outer = 1, extent = 1, inner = 1, count = 0;
};

cudaError_t gather(const GatherArguments& arguments, cudaStream_t stream);

/// positions[i] = the position in [0, extent) that index i refers to.
struct ResolveArguments {
  const void* indices = nullptr;
  uint32_t* positions = nullptr;
  bool wide_indices = true;
  int64_t extent = 1, count = 0;
};

cudaError_t resolve_indices(const ResolveArguments& arguments, cudaStream_t stream);

/// How a scatter combines an update with the existing element.
enum class ScatterFunction : uint8_t { Add, Mul, Minimum, Maximum };

/// result[o, p, i] = combination of itself and all updates[o, k, i] at position p, in the order of k.
struct ScatterReduceArguments {
  const void* updates = nullptr;  ///< [outer, count, inner]
  void* result = nullptr;         ///< [outer, extent, inner]
  ElementType type = ElementType::F32;
  ScatterFunction function = ScatterFunction::Add;
  int64_t outer = 1, extent = 1, inner = 1, count = 0;
};

/// `sorted` are the positions as u32, all of them kept.
cudaError_t scatter_reduce(const ScatterReduceArguments& arguments, const SortedRows& sorted,
                           cudaStream_t stream);

}  // namespace librt::cuda
