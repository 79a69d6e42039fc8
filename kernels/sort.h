// Sorting rows of numbers, as far as the first entries are wanted.
//
// Rows lie along any axis: element j of row r is at (r / inner * length + j) * inner + r % inner. Of equal
// numbers the first comes first, -0 equals 0, and NaN is above all.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/types.h"

namespace rt::cuda {

struct SortRows {
  ElementType type = ElementType::U32;
  int64_t rows = 1, length = 0, inner = 1;
  int64_t kept = 0;      ///< entries wanted of each row, at most length
  bool largest = false;  ///< first

  /// Bytes of one of the two buffers; length must be below 2^32.
  size_t buffer_bytes() const noexcept;
};

/// What sort_rows leaves: `stride` entries a row. Entry p of row r is the position of its p-th number.
struct SortedRows {
  const void* entries = nullptr;
  int64_t stride = 0;
  bool wide = false;  ///< entries with keys of 64 bits
};

/// `buffers` are two of buffer_bytes(); `sorted` tells in which the result lies.
cudaError_t sort_rows(const SortRows& rows, const void* data, void* const (&buffers)[2], SortedRows& sorted,
                      cudaStream_t stream);

}  // namespace rt::cuda
