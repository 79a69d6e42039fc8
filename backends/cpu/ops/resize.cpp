// Resize of the spatial axes. Every output point is a weighted sum of few input points; channels are
// contiguous, so that a point is a run. Nearest copies runs of any dtype; linear and cubic add scaled runs of
// f32.
#include "runtime/graph/resize_geometry.h"

#include <cstring>

#include "backends/cpu/kernel.h"
#include "runtime/core/element.h"

namespace rt::cpu {
namespace {

constexpr int kMaxAxes = kMaxRank - 2;
constexpr size_t kMostTaps = 16;  ///< that are added in one pass: cubic ones of an image

/// Which input positions with which weights make each output position, per axis; index already times the
/// axis' stride in points. A negative index asks for the extrapolation value.
struct Tables {
  int rank = 0, taps = 1;
  std::array<int64_t, kMaxAxes> extent{};
  std::array<std::vector<int64_t>, kMaxAxes> index;
  std::array<std::vector<float>, kMaxAxes> weight;
  int64_t batch = 0, channels = 0, in_points = 1, out_points = 1;
};

Result<Tables> tables_of(const NodeView& node) {
  const auto& attributes = node.as<op::ResizeAttributes>();
  std::span<const int64_t> sizes;
  if (node.has(1)) sizes = node.ints(1);
  const auto floats = [&](size_t i) {
    if (!node.has(i)) return std::span<const float>();
    return std::span(static_cast<const float*>(node.inputs[i].value),
                     static_cast<size_t>(node.input(i).elements()));
  };
  const Shape& x = node.shape(0);
  RT_ASSIGN(const ResizeGeometry geometry, resize_geometry(x, attributes, sizes, floats(2), floats(3)));
  Tables tables;
  tables.taps = geometry.taps;
  tables.rank = geometry.rank;
  tables.batch = x[0];
  tables.channels = x.back();
  for (int i = geometry.rank - 1; i >= 0; --i) {
    const auto k = static_cast<size_t>(i);
    ResizeTable table = resize_table(geometry.axes[k], attributes, geometry.taps);
    for (int64_t& index : table.index) index *= tables.in_points;
    tables.index[k] = std::move(table.index);
    tables.weight[k].assign(table.weight.begin(), table.weight.end());
    tables.extent[k] = geometry.axes[k].output;
    tables.in_points *= geometry.axes[k].input;
    tables.out_points *= geometry.axes[k].output;
  }
  return tables;
}

Status supports(const CpuDevice&, const NodeView& node) {
  for (size_t i = 1; i <= 3; ++i)
    if (node.has(i) && node.input(i).elements() > 0 && node.inputs[i].value == nullptr)
      return unsupported("sizes, scales and roi must be known when the kernel is created");
  if (node.as<op::ResizeAttributes>().mode != op::ResizeMode::Nearest && node.dtype(0) != DType::F32)
    return unsupported("interpolation of ", name_of(node.dtype(0)), "; only f32");
  return {};
}

KernelPtr make_nearest(Tables tables, size_t element_size, uint64_t fill) {
  const size_t run = static_cast<size_t>(tables.channels) * element_size;
  return make_kernel([=, tables = std::move(tables)](const Call& call) noexcept {
    const auto* x = call.in<std::byte>(0);
    auto* y = call.out<std::byte>();
    parallel_for(tables.batch * tables.out_points, tables.channels, 1,
                 [&](int64_t begin, int64_t end) noexcept {
                   for (int64_t i = begin; i < end; ++i) {
                     int64_t point = i / tables.out_points * tables.in_points, rest = i % tables.out_points;
                     bool inside = true;
                     for (int axis = tables.rank - 1; axis >= 0; --axis) {
                       const auto k = static_cast<size_t>(axis);
                       const int64_t at = tables.index[k][static_cast<size_t>(rest % tables.extent[k])];
                       inside = inside && at >= 0;
                       point += at;
                       rest /= tables.extent[k];
                     }
                     if (!inside) {
                       for (size_t c = 0; c < run; c += element_size)
                         std::memcpy(y + static_cast<size_t>(i) * run + c, &fill, element_size);
                       continue;
                     }
                     std::memcpy(y + static_cast<size_t>(i) * run, x + static_cast<size_t>(point) * run, run);
                   }
                 });
  });
}

KernelPtr make_interpolation(const Simd& simd, Tables tables, float extrapolation) {
  int64_t combinations = 1;
  for (int i = 0; i < tables.rank; ++i) combinations *= tables.taps;
  return make_kernel([=, &simd, tables = std::move(tables)](const Call& call) noexcept {
    const float* x = call.in<float>(0);
    float* y = call.out<float>();
    const int64_t channels = tables.channels;
    parallel_for(tables.batch * tables.out_points, channels * combinations, 1,
                 [&](int64_t begin, int64_t end) noexcept {
                   for (int64_t i = begin; i < end; ++i) {
                     std::array<size_t, kMaxAxes> place{};
                     int64_t rest = i % tables.out_points;
                     bool inside = true;
                     for (int axis = tables.rank - 1; axis >= 0; --axis) {
                       const auto k = static_cast<size_t>(axis);
                       place[k] = static_cast<size_t>(rest % tables.extent[k] * tables.taps);
                       inside = inside && tables.index[k][place[k]] >= 0;
                       rest /= tables.extent[k];
                     }
                     const float* image = x + i / tables.out_points * tables.in_points * channels;
                     float* out = y + i * channels;
                     if (!inside) {
                       std::fill(out, out + channels, extrapolation);
                       continue;
                     }
                     std::array<const float*, kMostTaps> from;
                     std::array<float, kMostTaps> weights;
                     size_t taps = 0;
                     bool first = true;
                     const auto add_taps = [&] {
                       if (first)
                         simd.weighted_sum(from.data(), weights.data(), static_cast<int64_t>(taps), out,
                                           channels);
                       else
                         for (size_t t = 0; t < taps; ++t) simd.axpy(out, from[t], weights[t], channels);
                       first = first && taps == 0;
                       taps = 0;
                     };
                     for (int64_t combination = 0; combination < combinations; ++combination) {
                       int64_t point = 0, tap = combination;
                       float weight = 1;
                       for (int axis = tables.rank - 1; axis >= 0; --axis) {
                         const auto k = static_cast<size_t>(axis);
                         const size_t at = place[k] + static_cast<size_t>(tap % tables.taps);
                         point += tables.index[k][at];
                         weight *= tables.weight[k][at];
                         tap /= tables.taps;
                       }
                       if (weight == 0) continue;
                       if (taps == kMostTaps) add_taps();
                       from[taps] = image + point * channels;
                       weights[taps++] = weight;
                     }
                     add_taps();
                     if (first) std::fill(out, out + channels, 0.0f);
                   }
                 });
  });
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(Tables tables, tables_of(node));
  const auto& attributes = node.as<op::ResizeAttributes>();
  if (attributes.mode != op::ResizeMode::Nearest)
    return make_interpolation(device.simd(), std::move(tables), attributes.extrapolation);
  uint64_t fill = 0;
  store_element(&fill, node.dtype(0), 0, static_cast<double>(attributes.extrapolation));
  return make_nearest(std::move(tables), size_of(node.dtype(0)), fill);
}

}  // namespace

std::span<const KernelRow> rows_resize();
std::span<const KernelRow> rows_resize() {
  static constexpr KernelRow kRows[] = {row<create, supports>(OpKind::Resize, "resize", kAnyDType)};
  return kRows;
}

}  // namespace rt::cpu
