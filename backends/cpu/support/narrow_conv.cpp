#include "backends/cpu/support/narrow_conv.h"

#include <algorithm>

#include "backends/cpu/support/narrow_rows.h"

namespace librt::cpu {
namespace {

struct NarrowConv : NarrowRows {
  /// The lines of the windows of a row of the result that lie inside of the image: x at position 0 of the
  /// last axis, and the weights of its first tap. Returns their number.
  int64_t lines_of(int64_t row, const float* image, const float* weight, NarrowLine* lines) const noexcept {
    const int64_t channels = g.input_channels, taps = last().kernel, all = this->lines();
    int64_t found = 0;
    for (int64_t line = 0; line < all; ++line) {
      int64_t place = row, tap = line, index = 0, stride = 1;
      bool inside = true;
      for (int i = g.rank - 1; i-- > 0;) {
        const WindowAxis& axis = g.axes[static_cast<size_t>(i)];
        const int64_t at = axis.position(place % axis.output, tap % axis.kernel);
        inside = inside && at >= 0 && at < axis.input;
        index += at * stride;
        stride *= axis.input;
        place /= axis.output;
        tap /= axis.kernel;
      }
      if (inside)
        lines[found++] = {image + (place * stride + index) * last().input * channels,
                          weight + line * taps * channels};
    }
    return found;
  }

  /// `points` points of one row of the result, from `begin` on.
  void run_row(const float* image, const float* weight, int64_t row, int64_t begin, int64_t points,
               float* y) const noexcept {
    const WindowAxis& axis = last();
    const int64_t channels = g.input_channels, stride = lines() * axis.kernel * channels,
                  end = begin + points;
    NarrowLine whole[kMostLines], part[kMostLines];
    const int64_t count = lines_of(row, image, weight, whole);
    // The points whose windows lie inside along the last axis.
    const int64_t first = std::clamp((axis.pad_begin + axis.stride - 1) / axis.stride, begin, end);
    const int64_t reach = axis.input + axis.pad_begin - axis.kernel;
    const int64_t after = std::clamp(reach < 0 ? 0 : reach / axis.stride + 1, first, end);
    const auto run = [&](int64_t point, int64_t some) noexcept {
      const int64_t start = axis.position(point, 0), from = std::max(-start, int64_t{0}),
                    to = std::max(from, std::min(axis.input - start, axis.kernel));
      for (int64_t i = 0; i < count; ++i)
        part[i] = {whole[i].x + (start + from) * channels, whole[i].weight + from * channels};
      loops->convolve(part, count, (to - from) * channels, axis.stride * channels, some, g.output_channels,
                      stride, y + (point - begin) * g.output_channels);
    };
    for (int64_t point = begin; point < first; ++point) run(point, 1);
    if (after > first) run(first, after - first);
    for (int64_t point = after; point < end; ++point) run(point, 1);
  }

  void run(const Call& call) const noexcept {
    const float *const image = call.in<float>(0), *const weight = call.in<float>(1);
    run_stretches(call, rows(&WindowAxis::output), last().output, g.output_channels,
                  lines() * last().kernel * g.input_channels * g.output_channels,
                  [&](int64_t row, int64_t begin, int64_t points, float* y) noexcept {
                    run_row(image, weight, row, begin, points, y);
                  });
  }
};

}  // namespace

Status supports_narrow_conv(const CpuDevice& device, const ConvGeometry& g) {
  const auto& loops = device.simd().loops<NarrowConvLoops>();
  if (g.groups != 1 || g.output_channels > loops.most_outputs)
    return unsupported("not for ", g.output_channels, " output channels in ", g.groups, " groups");
  const WindowAxis& axis = g.axes[static_cast<size_t>(g.rank - 1)];
  if (axis.dilation != 1 && axis.kernel != 1) return unsupported("no dilation along the last axis");
  const int64_t lines = points_of(g, &WindowAxis::kernel, g.rank - 1);
  if (lines > kMostLines) return unsupported("windows of more than ", kMostLines, " lines");
  const int64_t lanes = loops.lanes, length = axis.kernel * g.input_channels;
  if (length < lanes && lanes < 16) return unsupported("lines of less than a vector");  // loaded one by one
  // oneDNN has no fast loop for long windows of one channel along one axis.
  const bool is_filter = g.rank == 1 && g.input_channels == 1 && length >= 32;
  if (!is_filter && !is_faster_along_windows(lanes, lines, length, g.output_channels))
    return unsupported("not faster for windows of ", lines, " lines of ", length, " to ", g.output_channels,
                       " output channels");
  return {};
}

KernelPtr make_narrow_conv(const CpuDevice& device, const ConvGeometry& geometry, const Finish& finish,
                           const EpilogueInputs& inputs) {
  const NarrowConv conv{{&device.simd().loops<NarrowConvLoops>(), geometry, finish, inputs}};
  return make_kernel([=](const Call& call) noexcept { conv.run(call); });
}

}  // namespace librt::cpu
