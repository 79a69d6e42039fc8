#include "runtime/geometry/sample.h"

#include <algorithm>
#include <cmath>

#include "runtime/geometry/resize.h"

namespace librt {
namespace {

double reflected(double x, double low, double high) noexcept {
  const double range = high - low;
  if (range <= 0) return low;
  const double distance = std::fmod(std::fabs(x - low), 2 * range);
  return low + (distance > range ? 2 * range - distance : distance);
}

/// Where a position outside [0, extent) is read; -1 where it counts as zero.
int64_t padded(double x, double last, op::GridSamplePadding padding, double low, double high) noexcept {
  if (x >= 0 && x <= last) return static_cast<int64_t>(x);
  switch (padding) {
    case op::GridSamplePadding::Zeros: return -1;
    case op::GridSamplePadding::Border: return static_cast<int64_t>(std::clamp(x, 0.0, last));
    case op::GridSamplePadding::Reflection: break;
  }
  return static_cast<int64_t>(std::clamp(reflected(x, low, high), 0.0, last));
}

/// The first of `count` numbers that `accepts` takes, as it does all after it; count if there is none.
template <class Accepts>
int64_t first_that(int64_t count, const Accepts& accepts) noexcept {
  int64_t low = 0;
  for (int64_t high = count; low < high;) {
    const int64_t middle = low + (high - low) / 2;
    if (accepts(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

}  // namespace

SampleTaps grid_taps(double coordinate, int64_t extent, const op::GridSampleAttributes& attributes) noexcept {
  const double size = static_cast<double>(extent), last = size - 1;
  const double low = attributes.align_corners ? 0 : -0.5, high = attributes.align_corners ? last : last + 0.5;
  double x = attributes.align_corners ? (coordinate + 1) / 2 * last : ((coordinate + 1) * size - 1) / 2;
  SampleTaps taps;
  if (!(std::fabs(x) < 0x1p30)) x = attributes.padding == op::GridSamplePadding::Border && x > 0 ? last : -9;
  if (attributes.mode == op::ResizeMode::Nearest) x = std::nearbyint(x);
  if (x < low || x > high) {
    // The cubic filter reads the border's values around the position outside, as PyTorch and ONNX Runtime do.
    if (attributes.padding == op::GridSamplePadding::Border && attributes.mode != op::ResizeMode::Cubic)
      x = std::clamp(x, 0.0, last);
    if (attributes.padding == op::GridSamplePadding::Reflection) x = reflected(x, low, high);
  }
  double first = std::floor(x);
  const double r = x - first;
  switch (attributes.mode) {
    case op::ResizeMode::Nearest:
      taps.count = 1;
      taps.weight[0] = 1;
      first = x;
      break;
    case op::ResizeMode::Linear:
      taps.count = 2;
      taps.weight = {1 - r, r};
      break;
    case op::ResizeMode::Cubic:
      taps.count = 4;
      taps.weight = cubic_weights(r, -0.75);
      first -= 1;
      break;
  }
  for (int t = 0; t < taps.count; ++t)
    taps.index[static_cast<size_t>(t)] = padded(first + t, last, attributes.padding, low, high);
  return taps;
}

RoiAxis roi_axis(float begin, float end, int64_t bins, const op::RoiAlignAttributes& attributes) noexcept {
  const float offset = attributes.half_pixel ? 0.5f : 0.0f;
  RoiAxis axis;
  axis.start = begin * attributes.spatial_scale - offset;
  float length = end * attributes.spatial_scale - offset - axis.start;
  if (!attributes.half_pixel) length = std::max(length, 1.0f);
  axis.bin = length / static_cast<float>(bins);
  axis.samples = attributes.sampling_ratio;
  // A limit for regions far larger than any image, which rounding errors and hostile files make.
  if (axis.samples <= 0)
    axis.samples = axis.bin > 0 && std::isfinite(axis.bin)
                       ? static_cast<int64_t>(std::ceil(std::min(axis.bin, 0x1p20f)))
                       : 0;
  return axis;
}

RoiPoints roi_points(const RoiAxis& axis, int64_t b, int64_t extent) noexcept {
  const auto low = -1.0f, high = static_cast<float>(extent);
  const auto at = [&](int64_t i) { return axis.position(b, i); };
  RoiPoints inside;
  if (axis.bin < 0) {  // positions descend
    inside.begin = first_that(axis.samples, [&](int64_t i) { return at(i) <= high; });
    inside.end = first_that(axis.samples, [&](int64_t i) { return !(at(i) >= low); });
  } else {
    inside.begin = first_that(axis.samples, [&](int64_t i) { return at(i) >= low; });
    inside.end = first_that(axis.samples, [&](int64_t i) { return !(at(i) <= high); });
  }
  return {std::max<int64_t>(inside.begin - 1, 0),
          std::min(std::max(inside.begin, inside.end) + 1, axis.samples)};
}

SampleTaps roi_taps(float position, int64_t extent) noexcept {
  SampleTaps taps;
  if (!(position >= -1.0f && position <= static_cast<float>(extent))) return taps;
  const double x = std::clamp(static_cast<double>(position), 0.0, static_cast<double>(extent - 1));
  const auto low = static_cast<int64_t>(x);
  const double r = x - static_cast<double>(low);
  taps.count = 2;
  taps.index = {low, std::min(low + 1, extent - 1)};
  taps.weight = {1 - r, r};
  return taps;
}

}  // namespace librt
