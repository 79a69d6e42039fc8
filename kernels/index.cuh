// Resolves indices, and moves rows in units of bytes.
//
// Knows: indices, units. Must not know: operators.
#pragma once

#include "kernels/common.cuh"

namespace librt::cuda {

/// The position that an index selects: runtime/geometry/indexing.h. extent > 0.
RT_DEVICE int64_t selected(int64_t index, int64_t extent) {
  const int64_t from_start = index < 0 ? index + extent : index;
  return from_start < 0 ? 0 : from_start < extent ? from_start : extent - 1;
}

/// Indices of 32 or 64 bits. The branch is free compared with the dependent access.
struct Indices {
  const void* data;
  bool wide;

  RT_DEVICE int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
  /// The position that entry i selects.
  RT_DEVICE int64_t resolve(int64_t i, int64_t extent) const { return selected((*this)[i], extent); }
};

/// f(TypeTag<T>{}) with an opaque T of 1, 2, 4, 8 or 16 bytes, for data movement.
template <class F>
cudaError_t with_unit(int bytes, F&& f) {
  switch (bytes) {
    case 1: return f(TypeTag<uint8_t>{});
    case 2: return f(TypeTag<uint16_t>{});
    case 8: return f(TypeTag<uint2>{});
    case 16: return f(TypeTag<uint4>{});
    default: return f(TypeTag<uint32_t>{});
  }
}

}  // namespace librt::cuda
