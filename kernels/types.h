// Element types in kernels. Plain C++: host code of the backend includes this too.
//
// The values are those of librt::DType (checked in backends/cuda/kernel.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace librt::cuda {

enum class ElementType : uint8_t { F32, F16, BF16, F64, I8, U8, I16, U16, I32, U32, I64, U64, Bool };

/// Axes of an index space after adjacent axes have been merged; tensors have no more.
inline constexpr int kMaxAxes = 8;

/// Storage of a bool: one byte, 0 or 1.
struct Boolean {
  uint8_t value;
};

}  // namespace librt::cuda
