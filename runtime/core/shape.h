// Concrete tensor shapes.
//
// Knows: extents and counting with overflow checks. Must not know: symbolic dimensions (graph/graph.h),
// strides (tensors are dense, row-major).
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

#include "runtime/core/dtype.h"

namespace librt {

inline constexpr int kMaxRank = 8;

/// No tensor has more elements: byte counts fit in int64, and in the addresses of a 32-bit machine. For
/// messages: every tensor has less than RT_MOST_ELEMENTS, which RT_FEW_ELEMENTS adds where it may surprise.
#if SIZE_MAX > 0xffffffff
inline constexpr int64_t kMostTensorElements = int64_t{1} << 59;
#define RT_MOST_ELEMENTS "2^59"
#define RT_FEW_ELEMENTS ""
#else
inline constexpr int64_t kMostTensorElements = (int64_t{1} << 28) - 1;
#define RT_MOST_ELEMENTS "2^28"
#define RT_FEW_ELEMENTS " (on this 32-bit machine tensors have less than 2^28 elements)"
#endif

/// Up to eight extents, each >= 0, stored inline. A scalar has rank 0.
class Shape {
 public:
  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<int64_t> dims) { assign({dims.begin(), dims.size()}); }
  constexpr explicit Shape(std::span<const int64_t> dims) { assign(dims); }

  constexpr int rank() const noexcept { return rank_; }
  constexpr int64_t operator[](int axis) const noexcept { return dims_[static_cast<size_t>(axis)]; }
  constexpr int64_t& operator[](int axis) noexcept { return dims_[static_cast<size_t>(axis)]; }
  constexpr std::span<const int64_t> dims() const noexcept { return {dims_.data(), rank_}; }
  constexpr const int64_t* begin() const noexcept { return dims_.data(); }
  constexpr const int64_t* end() const noexcept { return dims_.data() + rank_; }
  constexpr int64_t back() const noexcept { return dims_[static_cast<size_t>(rank_ - 1)]; }

  /// Only while rank() < kMaxRank.
  constexpr void push_back(int64_t dim) noexcept { dims_[rank_++] = dim; }
  constexpr void insert(int axis, int64_t dim) noexcept {
    for (int i = rank_; i > axis; --i) (*this)[i] = (*this)[i - 1];
    (*this)[axis] = dim;
    ++rank_;
  }
  constexpr void erase(int axis) noexcept {
    for (int i = axis; i + 1 < rank_; ++i) (*this)[i] = (*this)[i + 1];
    --rank_;
  }

  /// The product of the extents; 1 for a scalar. Only for shapes that checked_elements() accepts: every shape
  /// that a graph, file or session hands out has been checked.
  constexpr int64_t elements() const noexcept {
    int64_t product = 1;
    for (int64_t dim : *this) product *= dim;
    return product;
  }
  /// The product of the extents of axes [first, last).
  constexpr int64_t elements(int first, int last) const noexcept {
    int64_t product = 1;
    for (int i = first; i < last; ++i) product *= (*this)[i];
    return product;
  }
  /// nullopt when an extent is negative, or the product of those that are not 0 exceeds kMostTensorElements.
  std::optional<int64_t> checked_elements() const noexcept;

  constexpr bool operator==(const Shape& other) const noexcept {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; ++i)
      if ((*this)[i] != other[i]) return false;
    return true;
  }

 private:
  constexpr void assign(std::span<const int64_t> dims) noexcept {
    rank_ = static_cast<uint8_t>(dims.size() < kMaxRank ? dims.size() : kMaxRank);
    for (int i = 0; i < rank_; ++i) (*this)[i] = dims[static_cast<size_t>(i)];
  }
  std::array<int64_t, kMaxRank> dims_{};
  uint8_t rank_ = 0;
};

/// "[1,3,224,224]"
void append(std::string& out, const Shape& shape);

/// Row-major strides in elements.
constexpr std::array<int64_t, kMaxRank> strides_of(const Shape& shape) noexcept {
  std::array<int64_t, kMaxRank> strides{};
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = step;
    step *= shape[i];
  }
  return strides;
}

/// Maps a possibly negative axis into [0, rank); nullopt when out of range.
constexpr std::optional<int> normalized_axis(int64_t axis, int rank) noexcept {
  if (axis < -rank || axis >= rank) return std::nullopt;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

/// NumPy's broadcasting of two shapes; nullopt when they do not broadcast.
std::optional<Shape> broadcast(const Shape& a, const Shape& b) noexcept;

}  // namespace librt
