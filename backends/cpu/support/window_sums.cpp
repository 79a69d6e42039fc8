#include "backends/cpu/support/window_sums.h"

#include "backends/cpu/device/parallel.h"
#include "backends/cpu/simd/quantize.h"

namespace librt::cpu {
namespace {

const WindowAxis& axis_of(const ConvGeometry& g, int i) noexcept {
  return g.axes[static_cast<size_t>(i)];
}

/// Multiples of `step` k for which from + k step lies in [0, extent), k < count.
Range inside(int64_t from, int64_t step, int64_t extent, int64_t count) noexcept {
  const auto first_at_least = [&](int64_t bound) {
    return bound <= from ? 0 : std::min((bound - from + step - 1) / step, count);
  };
  return {first_at_least(0), first_at_least(extent)};
}

}  // namespace

size_t WindowSums::buffer_bytes() const noexcept {
  int64_t count = geometry_.batch * geometry_.groups, most = 0;
  for (int i = 0; i < geometry_.rank; ++i) count *= axis_of(geometry_, i).input;
  most = count;
  for (int i = geometry_.rank - 1; i >= 0; --i) {
    const WindowAxis& axis = axis_of(geometry_, i);
    count = axis.input == 0 ? 0 : count / axis.input * axis.output;
    most = std::max(most, count);
  }
  return static_cast<size_t>(most) * sizeof(int32_t);
}

void WindowSums::along(const WindowAxis& axis, int64_t outer, int64_t inner, const int32_t* x,
                       int32_t* y) const noexcept {
  const auto& loops = simd_->loops<QuantizeLoops>();
  const auto add = [&](int32_t* to, const int32_t* from, int64_t n) {
    loops.combine_integers(to, from, 1, from, 0, n);
  };
  // Windows one position apart are added up together, a tap at a time.
  const bool together = axis.stride == 1;
  const int64_t rows = together ? 1 : axis.output, windows = together ? axis.output : 1;
  parallel_for(outer * rows, windows * inner * axis.kernel, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t i = begin; i < end; ++i) {
      const int32_t* from = x + i / rows * axis.input * inner;
      int32_t* to = y + i * windows * inner;
      std::fill(to, to + windows * inner, 0);
      if (together) {
        for (int64_t tap = 0; tap < axis.kernel; ++tap) {
          const int64_t first = axis.position(0, tap);
          const Range range = inside(first, 1, axis.input, windows);
          add(to + range.begin * inner, from + (first + range.begin) * inner,
              (range.end - range.begin) * inner);
        }
        continue;
      }
      const int64_t first = axis.position(i % rows, 0);
      const Range taps = inside(first, axis.dilation, axis.input, axis.kernel);
      for (int64_t tap = taps.begin; tap < taps.end; ++tap)
        add(to, from + (first + tap * axis.dilation) * inner, inner);
    }
  });
}

void WindowSums::run(const std::byte* x, int32_t* const (&buffers)[2]) const noexcept {
  const auto sum_runs = simd_->loops<QuantizeLoops>().sum_runs[is_signed_ ? 0 : 1];
  const int64_t width = geometry_.input_channels_per_group();
  int64_t outer = geometry_.batch, inner = geometry_.groups;
  for (int i = 0; i < geometry_.rank; ++i) outer *= axis_of(geometry_, i).input;
  parallel_for(outer * inner, width, 16, [&](int64_t begin, int64_t end) noexcept {
    sum_runs(x + begin * width, buffers[0] + begin, end - begin, width);
  });
  int source = 0;
  for (int i = geometry_.rank - 1; i >= 0; --i) {
    const WindowAxis& axis = axis_of(geometry_, i);
    outer /= std::max<int64_t>(axis.input, 1);
    along(axis, outer, inner, buffers[source], buffers[1 - source]);
    inner *= axis.output;
    source = 1 - source;
  }
}

}  // namespace librt::cpu
