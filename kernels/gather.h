// Gather and ScatterAdd along one axis: data as [outer, extent, inner], indices as a flat list.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/sort.h"

namespace rt::cuda {

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

/// places[i] = the position in [0, extent) that index i refers to.
struct PlacesArguments {
  const void* indices = nullptr;
  uint32_t* places = nullptr;
  bool wide_indices = true;
  int64_t extent = 1, count = 0;
};

cudaError_t gather_places(const PlacesArguments& arguments, cudaStream_t stream);

/// How a scatter combines an update with the existing element.
enum class JoinFunction : uint8_t { Add, Mul, Minimum, Maximum };

/// result[o, p, i] = combination of itself and all updates[o, k, i] at position p, in the order of k.
struct JoinArguments {
  const void* updates = nullptr;  ///< [outer, count, inner]
  void* result = nullptr;         ///< [outer, extent, inner]
  ElementType type = ElementType::F32;
  JoinFunction function = JoinFunction::Add;
  int64_t outer = 1, extent = 1, inner = 1, count = 0;
};

/// `sorted` are the positions as u32, all of them kept.
cudaError_t join_places(const JoinArguments& arguments, const SortedRows& sorted, cudaStream_t stream);

}  // namespace rt::cuda
