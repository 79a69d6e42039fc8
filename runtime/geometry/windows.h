// Geometry of windowed operators: extents of convolutions, transposed convolutions and pools.
//
// Knows: attributes and shapes, and how to check them against each other without overflow. Must not know:
// values, kernels. Pages and backends share it, so that they agree on every extent and every default.
//
// Everything is channels-last: [N, S1..Sk, C] with 1 <= k <= 3. Along one axis, window `o` reads the input
// positions o * stride - pad_begin + t * dilation for 0 <= t < kernel; positions outside [0, input) are
// padding.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "runtime/core/shape.h"
#include "runtime/core/status.h"
#include "runtime/graph/op.h"

namespace librt {

inline constexpr int kMaxSpatialRank = 3;

/// One spatial axis. All values are below 2^31 except `input` or `output` where they follow from the others.
struct WindowAxis {
  int64_t input = 1;   ///< extent of the side that windows slide over
  int64_t output = 1;  ///< number of windows
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  /// As given; with ceil_mode or an output size the last window may end before or after it.
  int64_t pad_end = 0;

  /// Extent of the dilated window.
  constexpr int64_t reach() const noexcept { return (kernel - 1) * dilation + 1; }
  /// Input position of tap `tap` of window `window`; may lie outside [0, input).
  constexpr int64_t position(int64_t window, int64_t tap) const noexcept {
    return window * stride - pad_begin + tap * dilation;
  }
  /// How far the last window reaches past the input, counted as padding at the end (negative: it ends
  /// before).
  constexpr int64_t effective_pad_end() const noexcept {
    return (output - 1) * stride + reach() - pad_begin - input;
  }
  /// Whether a window, or with dilation each of its taps, may lie in the padding altogether.
  constexpr bool may_miss() const noexcept {
    return pad_begin >= reach() || effective_pad_end() >= reach() || (kernel > 1 && dilation > input);
  }
};

/// A convolution x [N,S..,C] * weight [O,K..,C/groups] -> y [N,S'..,O]. The two gradients and ConvTranspose
/// are described by the convolution that they are gradients of: for ConvTranspose, y is its input and x its
/// output.
struct ConvGeometry {
  int rank = 0;  ///< spatial axes
  int64_t batch = 0;
  int64_t groups = 1;
  int64_t input_channels = 0;   ///< C
  int64_t output_channels = 0;  ///< O
  std::array<WindowAxis, kMaxSpatialRank> axes{};

  int64_t input_channels_per_group() const noexcept { return input_channels / groups; }
  int64_t output_channels_per_group() const noexcept { return output_channels / groups; }
  Shape input_shape() const noexcept;   ///< [N,S..,C]
  Shape weight_shape() const noexcept;  ///< [O,K..,C/groups]
  Shape output_shape() const noexcept;  ///< [N,S'..,O]
  /// Multiply-adds: output elements x taps x channels of a group.
  double multiply_adds() const noexcept;
  /// Whether windows reach outside the input.
  bool is_padded() const noexcept;
};

/// Copies strides, pads, dilations and groups between the attributes of two convolution operators.
template <class To, class From>
To same_window(const From& from) {
  To to;
  to.strides = from.strides;
  to.pads = from.pads;
  to.dilations = from.dilations;
  to.groups = from.groups;
  return to;
}

/// A pool x [N,S..,C] -> y [N,S'..,C].
struct PoolGeometry {
  int rank = 0;
  int64_t batch = 0;
  int64_t channels = 0;
  std::array<WindowAxis, kMaxSpatialRank> axes{};

  Shape input_shape() const noexcept;
  Shape output_shape() const noexcept;
  int64_t taps() const noexcept;  ///< product of the kernel's extents
};

Result<ConvGeometry> conv_geometry(const Shape& x, const Shape& weight, const op::ConvAttributes& attributes);

/// Geometry of ConvTranspose: x [N,S..,C], weight [C,K..,O/groups]. output_size holds k extents or is absent;
/// each must lie in [natural, natural + max(stride, dilation)) with natural = (S-1) stride + reach - pads.
Result<ConvGeometry> conv_transpose_geometry(const Shape& x, const Shape& weight,
                                             const op::ConvTransposeAttributes& attributes,
                                             std::optional<std::span<const int64_t>> output_size);

Result<ConvGeometry> conv_weight_grad_geometry(const Shape& x, const Shape& grad_output,
                                               const op::ConvWeightGradAttributes& attributes);

/// The attributes common to all pools.
struct PoolWindows {
  std::span<const int64_t> kernel, strides, pads, dilations;
  bool ceil_mode = false;
};
template <class PoolAttributes>
PoolWindows windows_of(const PoolAttributes& attributes) noexcept {
  return {attributes.kernel, attributes.strides, attributes.pads, attributes.dilations, attributes.ceil_mode};
}

/// With ceil_mode the number of windows is rounded up, without a window that starts in the padding at the end
/// (ONNX).
Result<PoolGeometry> pool_geometry(const Shape& x, const PoolWindows& windows);
template <class PoolAttributes>
Result<PoolGeometry> pool_geometry(const Shape& x, const PoolAttributes& attributes) {
  return pool_geometry(x, windows_of(attributes));
}

/// How many elements an average divides by along one axis for one window: those inside the input, or with
/// count_include_pad those inside the input and its padding (not what ceil_mode reaches beyond them). An
/// average over several axes divides by the product.
int64_t average_count(const WindowAxis& axis, int64_t window, bool count_include_pad) noexcept;

}  // namespace librt
