// Which point of an image meets which under a tap of a convolution's window.
//
// Knows: windows. Must not know: channels, values.
#pragma once

#include <array>
#include <vector>

#include "runtime/geometry/windows.h"

namespace librt::cpu {

/// The points of one side, batch included, and what each finds on the other side: the output's points find
/// the inputs that their windows read; with `back`, the input's find the outputs that read them.
class ConvPoints {
 public:
  /// Walks over the points in order.
  struct Point {
    int64_t sample = 0;
    std::array<int64_t, kMaxSpatialRank> at{};
  };

  ConvPoints(const ConvGeometry& g, bool back) : back_(back), rank_(static_cast<size_t>(g.rank)) {
    int64_t taps = 1;
    for (size_t i = 0; i < rank_; ++i) {
      axes_[i] = g.axes[i];
      taps *= axes_[i].kernel;
      count_ *= side(i);
    }
    count_ *= g.batch;
    offsets_.resize(static_cast<size_t>(taps));
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t rest = tap;
      for (size_t i = rank_; i-- > 0;) {
        offsets_[static_cast<size_t>(tap)][i] = rest % axes_[i].kernel * axes_[i].dilation;
        rest /= axes_[i].kernel;
      }
    }
  }

  int64_t count() const noexcept { return count_; }
  int64_t taps() const noexcept { return static_cast<int64_t>(offsets_.size()); }

  /// Whether each point finds the one of the same index: windows of one element, next to each other.
  bool same() const noexcept {
    bool all = true;
    for (size_t i = 0; i < rank_; ++i)
      all = all && axes_[i].kernel == 1 && axes_[i].stride == 1 && axes_[i].pad_begin == 0 &&
            axes_[i].input == axes_[i].output;
    return all;
  }

  Point point(int64_t index) const noexcept {
    Point point;
    for (size_t i = rank_; i-- > 0;) {
      point.at[i] = index % side(i);
      index /= side(i);
    }
    point.sample = index;
    return point;
  }
  void next(Point& point) const noexcept {
    for (size_t i = rank_; i-- > 0;) {
      if (++point.at[i] < side(i)) return;
      point.at[i] = 0;
    }
    ++point.sample;
  }
  /// Of the output's points: the input's first point along the last axis that the taps of one line of the
  /// window may read, `tap` the first of them; or -1 where the line is outside of the input. The taps read
  /// positions from start() on.
  int64_t line(const Point& point, int64_t tap) const noexcept {
    const auto& offset = offsets_[static_cast<size_t>(tap)];
    int64_t index = point.sample;
    for (size_t i = 0; i + 1 < rank_; ++i) {
      const int64_t position = point.at[i] * axes_[i].stride - axes_[i].pad_begin + offset[i];
      if (position < 0 || position >= axes_[i].input) return -1;
      index = index * axes_[i].input + position;
    }
    return index * last().input;
  }
  int64_t start(const Point& point) const noexcept {
    return point.at[rank_ - 1] * last().stride - last().pad_begin;
  }
  /// Whether it is the first along the last axis.
  bool begins_row(const Point& point) const noexcept { return point.at[rank_ - 1] == 0; }
  const WindowAxis& last() const noexcept { return axes_[rank_ - 1]; }

  /// The other side's point under a tap, or -1 where there is none.
  int64_t other(const Point& point, int64_t tap) const noexcept {
    const auto& offset = offsets_[static_cast<size_t>(tap)];
    int64_t index = point.sample;
    for (size_t i = 0; i < rank_; ++i) {
      const WindowAxis& axis = axes_[i];
      int64_t position = 0, extent = axis.input;
      if (back_) {
        position = point.at[i] + axis.pad_begin - offset[i];
        extent = axis.output;
        if (position < 0 || (axis.stride > 1 && position % axis.stride != 0)) return -1;
        if (axis.stride > 1) position /= axis.stride;
      } else {
        position = point.at[i] * axis.stride - axis.pad_begin + offset[i];
        if (position < 0) return -1;
      }
      if (position >= extent) return -1;
      index = index * extent + position;
    }
    return index;
  }

 private:
  int64_t side(size_t i) const noexcept { return back_ ? axes_[i].input : axes_[i].output; }

  bool back_;
  size_t rank_;
  std::array<WindowAxis, kMaxSpatialRank> axes_{};
  int64_t count_ = 1;
  std::vector<std::array<int64_t, kMaxSpatialRank>> offsets_;
};

}  // namespace librt::cpu
