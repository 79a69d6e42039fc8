// A channels-last or kBlocked16 tensor as planes of rows: all rows of a plane hold the same channels.
//
// Dense [N, S.., C]: one plane of N S rows with C channels. Blocked [N, C/16, S.., 16]: N C/16 planes of S
// rows with 16 channels. Per-channel kernels that treat all points alike are written against this and serve
// both layouts.
#pragma once

#include "backends/cpu/device/device.h"
#include "backends/cpu/device/parallel.h"

namespace librt::cpu {

struct ChannelPlanes {
  int64_t planes = 1, rows = 0, width = 0;
  int64_t blocks = 1;  ///< planes per sample; plane p starts at channel (p % blocks) width

  static ChannelPlanes of(const Shape& shape, LayoutId layout) noexcept {
    const int64_t channels = shape.back();
    if (layout == kBlocked16)
      return {shape[0] * (channels / kBlock), shape.elements(1, shape.rank() - 1), kBlock, channels / kBlock};
    return {1, shape.elements(0, shape.rank() - 1), channels, 1};
  }
  int64_t channel_of(int64_t plane) const noexcept { return plane % blocks * width; }

  /// body(plane, first_row, end_row) over all rows, on all threads.
  template <class Body>
  void for_rows(int64_t work, const Body& body) const noexcept {
    parallel_for(planes * rows, work * width, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t at = begin; at < end;) {
        const int64_t plane = at / rows, row = at % rows;
        const int64_t count = std::min(rows - row, end - at);
        body(plane, row, row + count);
        at += count;
      }
    });
  }
  int64_t offset(int64_t plane, int64_t row) const noexcept { return (plane * rows + row) * width; }
};

}  // namespace librt::cpu
