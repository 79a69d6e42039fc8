// The sums of 8-bit integers over the windows of a convolution, one for each group of channels.
//
// Knows: windows. Must not know: weights, zero points.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/simd/simd.h"
#include "runtime/geometry/windows.h"

namespace librt::cpu {

/// Channels are added first, then one axis after the other: a window of 5x5 takes 10 additions.
class WindowSums {
 public:
  /// simd must outlive the sums.
  WindowSums(const Simd& simd, const ConvGeometry& geometry, bool is_signed)
      : simd_(&simd), geometry_(geometry), is_signed_(is_signed) {}

  /// Of each of the two buffers.
  size_t buffer_bytes() const noexcept;
  /// Which buffer holds the result, i32 [N,S'..,groups].
  int result() const noexcept { return geometry_.rank % 2; }
  /// x [N,S..,C]; positions outside of it count as 0, and sums wrap. Uses all threads where it pays.
  void run(const std::byte* x, int32_t* const (&buffers)[2]) const noexcept;

 private:
  void along(const WindowAxis& axis, int64_t outer, int64_t inner, const int32_t* x,
             int32_t* y) const noexcept;

  const Simd* simd_;
  ConvGeometry geometry_;
  bool is_signed_;
};

}  // namespace librt::cpu
