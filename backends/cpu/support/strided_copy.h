// Copying an n-dimensional box between two strided buffers: the shared loop of Transpose, Slice, Expand,
// Tile, Concat and Pad.
//
// Knows: extents and strides in elements, element sizes. Must not know: operators.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// Tile splits each axis in two.
inline constexpr int kMaxBoxRank = 16;

/// to[sum i_k to_stride_k] = from[sum i_k from_stride_k] for all indices of the box. Source strides may be 0
/// or negative.
class StridedCopy {
 public:
  /// Adds an axis, outermost first.
  void add_axis(int64_t extent, int64_t to_stride, int64_t from_stride) noexcept;
  /// Call after the last axis: merges axes where the strides allow, and chooses the loop. simd must outlive
  /// the copy.
  void prepare(size_t element_size, const Simd& simd) noexcept;
  /// from and to are the addresses of index 0. Uses all threads where it pays.
  void run(const std::byte* from, std::byte* to) const noexcept;

 private:
  struct Axis {
    int64_t extent = 1, to = 0, from = 0;
  };
  enum class Mode : uint8_t { Bytes, Fill, Transpose, Strided };

  template <class T>
  void run_as(const T* from, T* to) const noexcept;
  template <class T>
  void run_inner(const T* from, T* to) const noexcept;

  /// Whether contiguous runs of so many bytes are written with non-temporal stores.
  bool streams(int64_t bytes) const noexcept { return past_caches_ && bytes >= 256; }
  Axis axis(int i) const noexcept {
    const auto k = static_cast<size_t>(i);
    return {extents_[k], to_[k], from_[k]};
  }

  std::array<int64_t, kMaxBoxRank> extents_{}, to_{}, from_{};
  int rank_ = 0;
  int outer_ = 0;  ///< axes before the inner one or two
  Mode mode_ = Mode::Strided;
  size_t element_size_ = 4;
  const Simd* simd_ = nullptr;
  bool empty_ = false;
  bool past_caches_ = false;  ///< the result does not stay in the caches until it is read
};

}  // namespace librt::cpu
