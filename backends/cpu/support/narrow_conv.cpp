#include "backends/cpu/support/narrow_conv.h"

#include <algorithm>

#include "backends/cpu/support/narrow_rows.h"

namespace librt::cpu {
namespace {

struct NarrowConv : NarrowRows {
  /// `points` points of one row of the result, from `begin` on.
  void run_row(const float* image, const float* weight, int64_t row, int64_t begin, int64_t points,
               float* y) const noexcept {
    const WindowAxis& axis = last();
    const int64_t channels = g.input_channels, stride = lines() * axis.kernel * channels,
                  end = begin + points;
    NarrowLine whole[kMostLines], part[kMostLines];
    const int64_t count = lines_of(
        row, &WindowAxis::output, &WindowAxis::input, image, axis.input * channels, weight,
        axis.kernel * channels,
        [](const WindowAxis& along, int64_t point, int64_t tap) { return along.position(point, tap); },
        whole);
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

Status supports_lines(const NarrowConvLoops& loops, const ConvGeometry& g, int64_t outputs, int64_t lines,
                      int64_t length, bool beats_all) {
  if (g.groups != 1 || outputs > loops.most_outputs)
    return unsupported("not for ", outputs, " output channels in ", g.groups, " groups");
  const WindowAxis& axis = g.axes[static_cast<size_t>(g.rank - 1)];
  if (axis.dilation != 1 && axis.kernel != 1) return unsupported("no dilation along the last axis");
  if (points_of(g, &WindowAxis::kernel, g.rank - 1) > kMostLines)
    return unsupported("windows of more than ", kMostLines, " lines");
  const int64_t lanes = loops.lanes;
  if (length < lanes && lanes < 16) return unsupported("lines of less than a vector");  // loaded one by one
  // Multiply-adds of vectors for a point: of lines, whose last vector may be mostly empty, and what the sum
  // of the lanes costs, against those of vectors along the channels of the result. From 1.4 times as many on,
  // it was faster than oneDNN, by up to 8 (one thread, 28 shapes; AVX-512).
  constexpr int64_t kSumOfLanes = 8;  // multiply-adds that take as long as the sum and its store
  const int64_t along_windows = outputs * (lines * ((length + lanes - 1) / lanes) + kSumOfLanes),
                along_channels = lines * length * ((outputs + lanes - 1) / lanes);
  if (!beats_all && 5 * along_channels < 7 * along_windows)
    return unsupported("not faster for windows of ", lines, " lines of ", length, " to ", outputs,
                       " output channels");
  return {};
}

Status supports_narrow_conv(const CpuDevice& device, const ConvGeometry& g) {
  const int64_t length = g.axes[static_cast<size_t>(g.rank - 1)].kernel * g.input_channels;
  // oneDNN has no fast loop for long windows of one channel along one axis.
  const bool is_filter = g.rank == 1 && g.input_channels == 1 && length >= 32;
  return supports_lines(device.simd().loops<NarrowConvLoops>(), g, g.output_channels,
                        points_of(g, &WindowAxis::kernel, g.rank - 1), length, is_filter);
}

KernelPtr make_narrow_conv(const CpuDevice& device, const ConvGeometry& geometry, const Finish& finish,
                           const EpilogueInputs& inputs) {
  const NarrowConv conv{{&device.simd().loops<NarrowConvLoops>(), geometry, finish, inputs}};
  return make_kernel([=](const Call& call) noexcept { conv.run(call); });
}

}  // namespace librt::cpu
