#include "runtime/geometry/windows.h"

#include <algorithm>

namespace librt {
namespace {

/// Attributes and extents below this keep every sum and product here inside int64.
constexpr int64_t kLimit = (int64_t{1} << 31) - 1;

Status check_entries(std::string_view name, std::span<const int64_t> entries, int count, int64_t least) {
  if (entries.empty()) return {};
  if (entries.size() != static_cast<size_t>(count))
    return invalid_argument("expected ", count, " entries in ", name, " or none, found ", entries.size());
  for (int64_t entry : entries)
    if (entry < least || entry > kLimit)
      return invalid_argument("expected ", name, " in [", least, ", ", kLimit, "], found ", entry);
  return {};
}

/// Fills kernel, stride, dilation and pads of the axes; absent lists mean 1, 1 and 0.
Status read_windows(int rank, std::span<const int64_t> kernel, std::span<const int64_t> strides,
                    std::span<const int64_t> pads, std::span<const int64_t> dilations,
                    std::array<WindowAxis, kMaxSpatialRank>& axes) {
  if (kernel.size() != static_cast<size_t>(rank))
    return invalid_argument("expected ", rank, " entries in kernel, found ", kernel.size());
  RT_TRY(check_entries("kernel", kernel, rank, 1));
  RT_TRY(check_entries("strides", strides, rank, 1));
  RT_TRY(check_entries("pads", pads, 2 * rank, 0));
  RT_TRY(check_entries("dilations", dilations, rank, 1));
  for (int i = 0; i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    WindowAxis& axis = axes[at];
    axis.kernel = kernel[at];
    if (!strides.empty()) axis.stride = strides[at];
    if (!dilations.empty()) axis.dilation = dilations[at];
    if (!pads.empty()) {
      axis.pad_begin = pads[at];
      axis.pad_end = pads[at + static_cast<size_t>(rank)];
    }
  }
  return {};
}

Result<int> spatial_rank(const char* what, const Shape& shape) {
  if (shape.rank() < 3 || shape.rank() > kMaxSpatialRank + 2)
    return invalid_argument("expected ", what, " of rank 3 to ", kMaxSpatialRank + 2,
                            " (batch, 1 to 3 spatial axes, channels), found ", shape);
  for (int i = 1; i + 1 < shape.rank(); ++i)
    if (shape[i] > kLimit) return invalid_argument("expected extents of at most ", kLimit, ", found ", shape);
  return shape.rank() - 2;
}

/// Number of windows of `axis` over its input, rounded down or as ONNX's ceil_mode.
Status count_windows(WindowAxis& axis, int index, bool ceil_mode) {
  const int64_t last_start = axis.input + axis.pad_begin + axis.pad_end - axis.reach();
  if (last_start < 0)
    return invalid_argument("expected a window of at most the padded extent ",
                            axis.input + axis.pad_begin + axis.pad_end, " on spatial axis ", index,
                            ", found kernel ", axis.kernel, " with dilation ", axis.dilation);
  axis.output = last_start / axis.stride + 1;
  if (ceil_mode && last_start % axis.stride != 0 && axis.output * axis.stride < axis.input + axis.pad_begin)
    ++axis.output;
  return {};
}

Status check_groups(int64_t groups, int64_t input_channels, int64_t output_channels) {
  if (groups < 1 || input_channels % groups != 0 || output_channels % groups != 0)
    return invalid_argument("expected groups to divide ", input_channels, " input and ", output_channels,
                            " output channels, found ", groups);
  return {};
}

Shape spatial_shape(int64_t batch, const std::array<WindowAxis, kMaxSpatialRank>& axes, int rank,
                    int64_t WindowAxis::*extent, int64_t channels) noexcept {
  Shape shape{batch};
  for (int i = 0; i < rank; ++i) shape.push_back(axes[static_cast<size_t>(i)].*extent);
  shape.push_back(channels);
  return shape;
}

}  // namespace

Shape ConvGeometry::input_shape() const noexcept {
  return spatial_shape(batch, axes, rank, &WindowAxis::input, input_channels);
}
Shape ConvGeometry::weight_shape() const noexcept {
  return spatial_shape(output_channels, axes, rank, &WindowAxis::kernel, input_channels_per_group());
}
Shape ConvGeometry::output_shape() const noexcept {
  return spatial_shape(batch, axes, rank, &WindowAxis::output, output_channels);
}
bool ConvGeometry::is_padded() const noexcept {
  bool padded = false;
  for (int i = 0; i < rank; ++i) {
    const WindowAxis& axis = axes[static_cast<size_t>(i)];
    padded = padded || axis.pad_begin > 0 || axis.effective_pad_end() > 0;
  }
  return padded;
}

double ConvGeometry::multiply_adds() const noexcept {
  double product = static_cast<double>(batch) * static_cast<double>(output_channels) *
                   static_cast<double>(input_channels_per_group());
  for (int i = 0; i < rank; ++i) {
    const WindowAxis& axis = axes[static_cast<size_t>(i)];
    product *= static_cast<double>(axis.output) * static_cast<double>(axis.kernel);
  }
  return product;
}

Shape PoolGeometry::input_shape() const noexcept {
  return spatial_shape(batch, axes, rank, &WindowAxis::input, channels);
}
Shape PoolGeometry::output_shape() const noexcept {
  return spatial_shape(batch, axes, rank, &WindowAxis::output, channels);
}
int64_t PoolGeometry::taps() const noexcept {
  int64_t product = 1;
  for (int i = 0; i < rank; ++i) product *= axes[static_cast<size_t>(i)].kernel;
  return product;
}

Result<ConvGeometry> conv_geometry(const Shape& x, const Shape& weight,
                                   const op::ConvAttributes& attributes) {
  ConvGeometry geometry;
  RT_ASSIGN(geometry.rank, spatial_rank("x", x));
  if (weight.rank() != x.rank())
    return invalid_argument("expected a weight [O,K..,C/groups] of rank ", x.rank(), ", found ", weight);
  RT_TRY(read_windows(geometry.rank, weight.dims().subspan(1, static_cast<size_t>(geometry.rank)),
                      attributes.strides, attributes.pads, attributes.dilations, geometry.axes));
  geometry.batch = x[0];
  geometry.input_channels = x.back();
  geometry.output_channels = weight[0];
  geometry.groups = attributes.groups;
  RT_TRY(check_groups(geometry.groups, geometry.input_channels, geometry.output_channels));
  if (weight.back() != geometry.input_channels_per_group())
    return invalid_argument("expected a weight with ", geometry.input_channels_per_group(),
                            " input channels (", geometry.input_channels, " of x over ", geometry.groups,
                            " groups), found ", weight);
  for (int i = 0; i < geometry.rank; ++i) {
    WindowAxis& axis = geometry.axes[static_cast<size_t>(i)];
    axis.input = x[i + 1];
    RT_TRY(count_windows(axis, i, false));
  }
  return geometry;
}

Result<ConvGeometry> conv_transpose_geometry(const Shape& x, const Shape& weight,
                                             const op::ConvTransposeAttributes& attributes,
                                             std::optional<std::span<const int64_t>> output_size) {
  ConvGeometry geometry;
  RT_ASSIGN(geometry.rank, spatial_rank("x", x));
  const int rank = geometry.rank;
  if (weight.rank() != x.rank())
    return invalid_argument("expected a weight [C,K..,O/groups] of rank ", x.rank(), ", found ", weight);
  RT_TRY(read_windows(rank, weight.dims().subspan(1, static_cast<size_t>(rank)), attributes.strides,
                      attributes.pads, attributes.dilations, geometry.axes));
  RT_TRY(check_entries("output_padding", attributes.output_padding, rank, 0));
  if (output_size && output_size->size() != static_cast<size_t>(rank))
    return invalid_argument("expected ", rank, " extents in output_size, found ", output_size->size());
  geometry.batch = x[0];
  geometry.output_channels = x.back();
  geometry.groups = attributes.groups;
  if (weight[0] != x.back())
    return invalid_argument("expected a weight with ", x.back(), " leading channels, as x has, found ",
                            weight);
  if (geometry.groups < 1 || geometry.groups > std::max<int64_t>(geometry.output_channels, 1))
    return invalid_argument("expected groups to divide ", geometry.output_channels, " channels, found ",
                            geometry.groups);
  geometry.input_channels = weight.back() <= kLimit ? weight.back() * geometry.groups : -1;
  if (geometry.input_channels < 0) return invalid_argument("expected fewer output channels, found ", weight);
  RT_TRY(check_groups(geometry.groups, geometry.input_channels, geometry.output_channels));
  for (int i = 0; i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    WindowAxis& axis = geometry.axes[at];
    axis.output = x[i + 1];
    if (axis.output == 0) return invalid_argument("expected spatial extents of at least 1, found ", x);
    const int64_t natural = (axis.output - 1) * axis.stride + axis.reach() - axis.pad_begin - axis.pad_end;
    if (output_size) {
      axis.input = (*output_size)[at];
      if (axis.input < natural || axis.input - natural >= std::max(axis.stride, axis.dilation) ||
          axis.input < 0)
        return invalid_argument("expected output_size of spatial axis ", i, " in [", natural, ", ",
                                natural + std::max(axis.stride, axis.dilation), "), found ", axis.input);
    } else {
      const int64_t more = attributes.output_padding.empty() ? 0 : attributes.output_padding[at];
      if (more >= std::max(axis.stride, axis.dilation))
        return invalid_argument("expected output_padding below the stride or the dilation of spatial axis ",
                                i, ", ", std::max(axis.stride, axis.dilation), ", found ", more);
      axis.input = natural + more;
    }
    if (axis.input < 1)
      return invalid_argument("expected an output extent of at least 1 on spatial axis ", i, ", found ",
                              axis.input, " (pads ", axis.pad_begin, " and ", axis.pad_end,
                              " are too large)");
  }
  return geometry;
}

Result<ConvGeometry> conv_weight_grad_geometry(const Shape& x, const Shape& grad_output,
                                               const op::ConvWeightGradAttributes& attributes) {
  ConvGeometry geometry;
  RT_ASSIGN(geometry.rank, spatial_rank("x", x));
  if (grad_output.rank() != x.rank() || grad_output[0] != x[0])
    return invalid_argument("expected grad_output [N,S..,O] of rank ", x.rank(), " with batch ", x[0],
                            ", found ", grad_output);
  RT_TRY(read_windows(geometry.rank, attributes.kernel, attributes.strides, attributes.pads,
                      attributes.dilations, geometry.axes));
  geometry.batch = x[0];
  geometry.input_channels = x.back();
  geometry.output_channels = grad_output.back();
  geometry.groups = attributes.groups;
  RT_TRY(check_groups(geometry.groups, geometry.input_channels, geometry.output_channels));
  for (int i = 0; i < geometry.rank; ++i) {
    WindowAxis& axis = geometry.axes[static_cast<size_t>(i)];
    axis.input = x[i + 1];
    RT_TRY(count_windows(axis, i, false));
    if (axis.output != grad_output[i + 1])
      return invalid_argument("expected grad_output with extent ", axis.output, " on spatial axis ", i,
                              ", found ", grad_output);
  }
  return geometry;
}

Result<PoolGeometry> pool_geometry(const Shape& x, const PoolWindows& windows) {
  PoolGeometry geometry;
  RT_ASSIGN(geometry.rank, spatial_rank("x", x));
  RT_TRY(read_windows(geometry.rank, windows.kernel, windows.strides, windows.pads, windows.dilations,
                      geometry.axes));
  geometry.batch = x[0];
  geometry.channels = x.back();
  for (int i = 0; i < geometry.rank; ++i) {
    WindowAxis& axis = geometry.axes[static_cast<size_t>(i)];
    axis.input = x[i + 1];
    RT_TRY(count_windows(axis, i, windows.ceil_mode));
  }
  return geometry;
}

int64_t average_count(const WindowAxis& axis, int64_t window, bool count_include_pad) noexcept {
  const int64_t low = count_include_pad ? -axis.pad_begin : 0;
  const int64_t high =
      axis.input + (count_include_pad ? axis.pad_end : 0);  // one past the last counted position
  const int64_t start = axis.position(window, 0);
  // Taps t with low <= start + t dilation < high.
  const int64_t first = start >= low ? 0 : (low - start + axis.dilation - 1) / axis.dilation;
  const int64_t last = start >= high ? 0 : (high - start + axis.dilation - 1) / axis.dilation;
  return std::max<int64_t>(0, std::min(last, axis.kernel) - first);
}

}  // namespace librt
