// Partial sort of rows: the first `kept` entries.
//
// Rows are along any axis: element j of row r is at (r / inner * length + j) * inner + r % inner. The sort is
// stable, -0 equals 0, and NaN is the largest value.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/types.h"

namespace librt::cuda {

struct SortRows {
  ElementType type = ElementType::U32;
  int64_t rows = 1, length = 0, inner = 1;
  int64_t kept = 0;      ///< entries kept per row, at most length
  bool largest = false;  ///< the largest come first

  /// Bytes of one of the two buffers; length must be below 2^32.
  size_t buffer_bytes() const noexcept;
};

/// Result of sort_rows: `stride` entries per row. Entry p of row r has the position of its p-th element.
struct SortedRows {
  const void* entries = nullptr;
  int64_t stride = 0;
  bool wide = false;  ///< entries with keys of 64 bits
};

/// `buffers`: two of buffer_bytes() each; `sorted` refers to the one with the result.
cudaError_t sort_rows(const SortRows& rows, const void* data, void* const (&buffers)[2], SortedRows& sorted,
                      cudaStream_t stream);

}  // namespace librt::cuda
