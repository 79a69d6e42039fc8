#include <algorithm>

#include "backends/cpu/support/conv_gemm.h"

namespace librt::cpu {
namespace {

struct Point {
  std::array<int64_t, kMaxSpatialRank> at{};
};
Point point_of(int64_t index, const std::array<int64_t, kMaxSpatialRank>& extents, int rank) noexcept {
  Point point;
  for (int i = rank - 1; i >= 0; --i) {
    const auto k = static_cast<size_t>(i);
    point.at[k] = index % extents[k];
    index /= extents[k];
  }
  return point;
}

/// Calls body(x element, weight element, y element) for every multiply-add of the convolution.
template <class Body>
void for_each_multiply(const ConvGeometry& g, const Body& body) {
  std::array<int64_t, kMaxSpatialRank> outputs{}, kernels{};
  int64_t out_points = 1, taps = 1, in_points = 1;
  for (int i = 0; i < g.rank; ++i) {
    const auto k = static_cast<size_t>(i);
    outputs[k] = g.axes[k].output;
    kernels[k] = g.axes[k].kernel;
    out_points *= outputs[k];
    taps *= kernels[k];
    in_points *= g.axes[k].input;
  }
  const int64_t in_group = g.input_channels_per_group(), out_group = g.output_channels_per_group();
  for (int64_t sample = 0; sample < g.batch; ++sample)
    for (int64_t out = 0; out < out_points; ++out)
      for (int64_t tap = 0; tap < taps; ++tap) {
        const Point o = point_of(out, outputs, g.rank), t = point_of(tap, kernels, g.rank);
        int64_t in = 0;
        bool inside = true;
        for (int i = 0; i < g.rank; ++i) {
          const auto k = static_cast<size_t>(i);
          const int64_t position = g.axes[k].position(o.at[k], t.at[k]);
          inside = inside && position >= 0 && position < g.axes[k].input;
          in = in * g.axes[k].input + position;
        }
        if (!inside) continue;
        for (int64_t oc = 0; oc < g.output_channels; ++oc)
          for (int64_t ic = 0; ic < in_group; ++ic)
            body((sample * in_points + in) * g.input_channels + oc / out_group * in_group + ic,
                 (oc * taps + tap) * in_group + ic, (sample * out_points + out) * g.output_channels + oc);
      }
}

}  // namespace

void convolve_plainly(OpKind kind, const ConvGeometry& g, const float* first, const float* second,
                      float* result) noexcept {
  const int64_t n = kind == OpKind::Conv            ? g.output_shape().elements()
                    : kind == OpKind::ConvTranspose ? g.input_shape().elements()
                                                    : g.weight_shape().elements();
  std::fill(result, result + n, 0.0f);
  for_each_multiply(g, [&](int64_t x, int64_t weight, int64_t y) noexcept {
    if (kind == OpKind::Conv)
      result[y] += first[x] * second[weight];
    else if (kind == OpKind::ConvTranspose)
      result[x] += first[y] * second[weight];
    else
      result[weight] += first[x] * second[y];
  });
}

}  // namespace librt::cpu
