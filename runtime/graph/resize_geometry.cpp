#include "runtime/graph/resize_geometry.h"

#include <algorithm>
#include <cmath>

namespace rt {

Result<ResizeGeometry> resize_geometry(const Shape& x, const op::ResizeAttributes& attributes,
                                       std::span<const int64_t> sizes, std::span<const float> scales) {
  if (attributes.mode < op::ResizeMode::MIN || attributes.mode > op::ResizeMode::MAX ||
      attributes.coordinates < op::ResizeCoordinates::MIN ||
      attributes.coordinates > op::ResizeCoordinates::MAX || attributes.nearest < op::ResizeNearest::MIN ||
      attributes.nearest > op::ResizeNearest::MAX)
    return invalid_argument("expected known modes, found numbers ", static_cast<int>(attributes.mode), ", ",
                            static_cast<int>(attributes.coordinates), " and ",
                            static_cast<int>(attributes.nearest));
  if (x.rank() < 3)
    return invalid_argument("expected x of rank 3 or more (batch, spatial axes, channels), found ", x);
  ResizeGeometry geometry;
  geometry.rank = x.rank() - 2;
  geometry.result = x;
  const auto count = static_cast<size_t>(geometry.rank);
  if (sizes.empty() == scales.empty() || sizes.size() + scales.size() != count)
    return invalid_argument("expected either ", count, " sizes or ", count,
                            " scales, one per spatial axis, found ", sizes.size(), " and ", scales.size());
  for (size_t i = 0; i < count; ++i) {
    ResizeAxis& axis = geometry.axes[i];
    axis.input = x[static_cast<int>(i) + 1];
    if (!sizes.empty()) {
      axis.output = sizes[i];
      axis.scale = static_cast<double>(axis.output) / static_cast<double>(std::max<int64_t>(axis.input, 1));
    } else {
      axis.scale = static_cast<double>(scales[i]);
      const double extent = std::floor(static_cast<double>(axis.input) * axis.scale);
      if (!(axis.scale > 0) || !(extent < 0x1p31))
        return invalid_argument("expected scales above 0 and results below 2^31, found scale ", axis.scale,
                                " of extent ", axis.input);
      axis.output = static_cast<int64_t>(extent);
    }
    if (axis.output < 0 || axis.output >= int64_t{1} << 31 || (axis.input == 0 && axis.output != 0))
      return invalid_argument("expected sizes in [0, 2^31) and something to resize, found ", axis.output,
                              " from extent ", axis.input);
    geometry.result[static_cast<int>(i) + 1] = axis.output;
  }
  return geometry;
}

double resize_coordinate(const ResizeAxis& axis, op::ResizeCoordinates coordinates, int64_t i) noexcept {
  const double x = static_cast<double>(i);
  const double input = static_cast<double>(axis.input);
  const double length = axis.scale * input;  // not rounded: what ONNX's definition scales by
  switch (coordinates) {
    case op::ResizeCoordinates::HalfPixel: return (x + 0.5) / axis.scale - 0.5;
    case op::ResizeCoordinates::PytorchHalfPixel: return axis.output > 1 ? (x + 0.5) / axis.scale - 0.5 : 0;
    case op::ResizeCoordinates::AlignCorners:
      return axis.output == 1 || length == 1 ? 0 : x * (input - 1) / (length - 1);
    case op::ResizeCoordinates::Asymmetric: return x / axis.scale;
    case op::ResizeCoordinates::TfHalfPixelForNn: return (x + 0.5) / axis.scale;
    case op::ResizeCoordinates::TfCropAndResize: return x;
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

/// Keys' cubic convolution (1981) at distances 1 + r, r, 1 - r, 2 - r.
std::array<double, 4> cubic_weights(double r, double a) noexcept {
  const auto outer = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  const auto inner = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  return {outer(1 + r), inner(r), inner(1 - r), outer(2 - r)};
}

}  // namespace

ResizeTable resize_table(const ResizeAxis& axis, const op::ResizeAttributes& attributes) {
  ResizeTable table;
  table.taps = attributes.mode == op::ResizeMode::Nearest  ? 1
               : attributes.mode == op::ResizeMode::Linear ? 2
                                                           : 4;
  const auto taps = static_cast<size_t>(table.taps);
  table.index.resize(static_cast<size_t>(axis.output) * taps);
  table.weight.assign(table.index.size(), 1);
  const double last = static_cast<double>(axis.input - 1);
  for (int64_t i = 0; i < axis.output; ++i) {
    const double x = resize_coordinate(axis, attributes.coordinates, i);
    int64_t* index = table.index.data() + static_cast<size_t>(i) * taps;
    double* weight = table.weight.data() + static_cast<size_t>(i) * taps;
    if (taps == 1) {
      index[0] = static_cast<int64_t>(std::clamp(nearest_of(x, attributes.nearest), 0.0, last));
      continue;
    }
    const double floor = std::floor(x);
    const double r = x - floor;
    const std::array<double, 4> weights = taps == 2
                                              ? std::array<double, 4>{1 - r, r}
                                              : cubic_weights(r, static_cast<double>(attributes.cubic_a));
    double sum = 0;
    for (size_t t = 0; t < taps; ++t) {
      const double at = floor + static_cast<double>(t) - (taps == 4 ? 1 : 0);
      index[t] = static_cast<int64_t>(std::clamp(at, 0.0, last));
      weight[t] = attributes.exclude_outside && (at < 0 || at > last) ? 0 : weights[t];
      sum += weight[t];
    }
    if (attributes.exclude_outside && sum != 0)
      for (size_t t = 0; t < taps; ++t) weight[t] /= sum;
  }
  return table;
}

}  // namespace rt
