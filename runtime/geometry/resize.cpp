#include "runtime/geometry/resize.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/byte_count.h"

namespace librt {
namespace {

constexpr double kMostTaps = 1 << 16;

/// Antialiasing widens the filter when downsampling.
double filter_scale(const ResizeAxis& axis, const op::ResizeAttributes& attributes) noexcept {
  return attributes.antialias ? std::min(axis.scale, 1.0) : 1.0;
}

double taps_of(const ResizeAxis& axis, const op::ResizeAttributes& attributes) noexcept {
  if (attributes.mode == op::ResizeMode::Nearest) return 1;
  const double radius = attributes.mode == op::ResizeMode::Linear ? 1 : 2;
  return axis.output == 0 ? 2 * radius : 2 * std::ceil(radius / filter_scale(axis, attributes));
}

}  // namespace

Result<ResizeGeometry> resize_geometry(const Shape& x, const op::ResizeAttributes& attributes,
                                       std::span<const int64_t> sizes, std::span<const float> scales,
                                       std::span<const float> roi) {
  if (attributes.mode < op::ResizeMode::MIN || attributes.mode > op::ResizeMode::MAX ||
      attributes.coordinates < op::ResizeCoordinates::MIN ||
      attributes.coordinates > op::ResizeCoordinates::MAX || attributes.nearest < op::ResizeNearest::MIN ||
      attributes.nearest > op::ResizeNearest::MAX)
    return invalid_argument("expected known modes, found values ", static_cast<int>(attributes.mode), ", ",
                            static_cast<int>(attributes.coordinates), " and ",
                            static_cast<int>(attributes.nearest));
  if (x.rank() < 3)
    return invalid_argument("expected x of rank 3 or more (batch, spatial axes, channels), found ", x);
  ResizeGeometry geometry;
  geometry.rank = x.rank() - 2;
  geometry.result = x;
  const auto count = static_cast<size_t>(geometry.rank);
  const auto [fewer, more] = std::minmax({sizes.size(), scales.size()});
  if (more != count || fewer % count != 0)
    return invalid_argument("expected ", count, " sizes or scales, one per spatial axis, found ",
                            sizes.size(), " and ", scales.size());
  if (!roi.empty() && roi.size() != 2 * count)
    return invalid_argument("expected a roi of ", count, " starts and ", count, " ends, found ", roi.size(),
                            " values");
  for (size_t i = 0; i < count; ++i) {
    ResizeAxis& axis = geometry.axes[i];
    if (!roi.empty()) {
      axis.roi_start = static_cast<double>(roi[i]);
      axis.roi_end = static_cast<double>(roi[i + count]);
    }
    axis.input = x[static_cast<int>(i) + 1];
    if (scales.empty()) {
      axis.scale = static_cast<double>(sizes[i]) / static_cast<double>(std::max<int64_t>(axis.input, 1));
    } else {
      axis.scale = static_cast<double>(scales[i]);
      // In f32, as exporters compute it: 10 times 0.7f, which is a bit less than 0.7, is 7.
      const float extent = static_cast<float>(axis.input) * scales[i];
      if (!(axis.scale > 0) || !(extent < 0x1p31f))
        return invalid_argument("expected scales above 0 and results below 2^31, found scale ", axis.scale,
                                " of extent ", axis.input);
      axis.output = static_cast<int64_t>(extent);
    }
    if (!sizes.empty()) axis.output = sizes[i];
    if (axis.output < 0 || axis.output >= int64_t{1} << 31 || (axis.input == 0 && axis.output != 0))
      return invalid_argument("expected sizes in [0, 2^31) and a non-empty input, found ", axis.output,
                              " from extent ", axis.input);
    geometry.result[static_cast<int>(i) + 1] = axis.output;
    const double taps = taps_of(axis, attributes);
    if (taps > kMostTaps)
      return invalid_argument("expected antialiasing over at most ", kMostTaps, " elements, found scale ",
                              axis.scale);
    geometry.taps = std::max(geometry.taps, static_cast<int>(taps));
  }
  return geometry;
}

double resize_coordinate(const ResizeAxis& axis, op::ResizeCoordinates coordinates, int64_t i) noexcept {
  const double x = static_cast<double>(i);
  const double input = static_cast<double>(axis.input);
  const double length = axis.scale * input;  // not rounded, as in ONNX's definition
  switch (coordinates) {
    case op::ResizeCoordinates::HalfPixel: return (x + 0.5) / axis.scale - 0.5;
    case op::ResizeCoordinates::PytorchHalfPixel: return axis.output > 1 ? (x + 0.5) / axis.scale - 0.5 : 0;
    case op::ResizeCoordinates::AlignCorners:
      return axis.output == 1 || length == 1 ? 0 : x * (input - 1) / (length - 1);
    case op::ResizeCoordinates::Asymmetric: return x / axis.scale;
    case op::ResizeCoordinates::TfHalfPixelForNn: return (x + 0.5) / axis.scale;
    case op::ResizeCoordinates::TfCropAndResize: {
      const double taken = (axis.roi_end - axis.roi_start) * (input - 1);
      const double inside = length > 1 ? x * taken / (length - 1) : taken / 2;
      return axis.roi_start * (input - 1) + inside;
    }
    case op::ResizeCoordinates::HalfPixelSymmetric: {
      const double adjustment = static_cast<double>(axis.output) / length;
      return input / 2 * (1 - adjustment) + (x + 0.5) / axis.scale - 0.5;
    }
  }
  return x;
}

namespace {

double nearest_of(double x, op::ResizeNearest mode) noexcept {
  // In f32, where quotients such as 1 / (1/3) are whole again.
  x = static_cast<double>(static_cast<float>(x));
  switch (mode) {
    case op::ResizeNearest::RoundPreferFloor: return std::ceil(x - 0.5);
    case op::ResizeNearest::RoundPreferCeil: return std::floor(x + 0.5);
    case op::ResizeNearest::Floor: return std::floor(x);
    case op::ResizeNearest::Ceil: return std::ceil(x);
  }
  return x;
}

/// The filter's value at a distance from its center.
double filter(double distance, const op::ResizeAttributes& attributes) noexcept {
  const double d = std::fabs(distance), a = static_cast<double>(attributes.cubic_a);
  if (attributes.mode == op::ResizeMode::Linear) return std::max(1 - d, 0.0);
  if (d >= 2) return 0;
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

}  // namespace

std::array<double, 4> cubic_weights(double r, double a) noexcept {
  op::ResizeAttributes cubic;
  cubic.mode = op::ResizeMode::Cubic;
  cubic.cubic_a = static_cast<float>(a);
  return {filter(1 + r, cubic), filter(r, cubic), filter(1 - r, cubic), filter(2 - r, cubic)};
}

ResizeTable resize_table(const ResizeAxis& axis, const op::ResizeAttributes& attributes, int taps) {
  const auto width = static_cast<size_t>(taps);
  const auto used = static_cast<size_t>(taps_of(axis, attributes));
  const double scale = filter_scale(axis, attributes);
  const double last = static_cast<double>(axis.input - 1);
  const bool crops = attributes.coordinates == op::ResizeCoordinates::TfCropAndResize;
  const bool normalizes = attributes.exclude_outside || scale < 1;
  ResizeTable table;
  table.index.assign(container_size(static_cast<uint64_t>(axis.output) * width), 0);
  table.weight.assign(table.index.size(), 0);
  for (int64_t i = 0; i < axis.output; ++i) {
    const double x = resize_coordinate(axis, attributes.coordinates, i);
    int64_t* index = table.index.data() + static_cast<size_t>(i) * width;
    double* weight = table.weight.data() + static_cast<size_t>(i) * width;
    if (crops && !(x >= 0 && x <= last)) {
      std::fill_n(index, width, -1);
      continue;
    }
    if (attributes.mode == op::ResizeMode::Nearest) {
      index[0] = static_cast<int64_t>(std::clamp(nearest_of(x, attributes.nearest), 0.0, last));
      weight[0] = 1;
      continue;
    }
    const size_t half = used / 2;
    const double first = std::floor(x) + 1 - static_cast<double>(half);
    double sum = 0;
    for (size_t t = 0; t < used; ++t) {
      const double at = first + static_cast<double>(t);
      index[t] = static_cast<int64_t>(std::clamp(at, 0.0, last));
      weight[t] =
          attributes.exclude_outside && (at < 0 || at > last) ? 0 : filter((at - x) * scale, attributes);
      sum += weight[t];
    }
    if (normalizes && sum != 0)
      for (size_t t = 0; t < used; ++t) weight[t] /= sum;
  }
  return table;
}

}  // namespace librt
