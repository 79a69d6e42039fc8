// Resize of the spatial axes. Every output point is a weighted sum of a few input points; channels are
// contiguous, so that a point is a run. Nearest copies runs of any dtype; linear and cubic (f32) interpolate
// across rows first, then along a row.
#include "runtime/geometry/resize.h"

#include <cstring>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/resize.h"
#include "backends/cpu/simd/rows.h"
#include "backends/cpu/support/element_types.h"
#include "runtime/core/element.h"

namespace librt::cpu {
namespace {

constexpr int kMaxAxes = kMaxRank - 2;
constexpr int64_t kFewChannels = 16;
constexpr size_t kMostTaps = 16;  ///< summed in one pass: enough for cubic in 2-D

/// Input positions and weights of each output position, per axis; index is already multiplied by the axis'
/// stride in points. A negative index means the extrapolation value.
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
  if (tables.rank == 0) {  // one axis of one point
    tables.rank = 1;
    tables.extent[0] = 1;
    tables.index[0].assign(static_cast<size_t>(tables.taps), 0);
    tables.weight[0].assign(static_cast<size_t>(tables.taps), 0.0f);
    tables.weight[0][0] = 1;
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

/// Row by row of the last spatial axis. T: an element's storage.
template <class T>
KernelPtr make_nearest(Tables tables, T fill) {
  const auto last = static_cast<size_t>(tables.rank - 1);
  const int64_t points = tables.extent[last], channels = tables.channels;
  const int64_t rows = points == 0 ? 0 : tables.batch * tables.out_points / points;
  return make_kernel([=, tables = std::move(tables)](const Call& call) noexcept {
    const T* x = call.in<T>(0);
    T* y = call.out<T>();
    const int64_t rows_of_image = tables.out_points / std::max<int64_t>(points, 1);
    parallel_for(rows, points * channels, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t row = begin; row < end; ++row) {
        int64_t first = row / rows_of_image * tables.in_points, rest = row % rows_of_image;
        bool inside = true;
        for (int axis = tables.rank - 2; axis >= 0; --axis) {
          const auto k = static_cast<size_t>(axis);
          const int64_t at = tables.index[k][static_cast<size_t>(rest % tables.extent[k] * tables.taps)];
          inside = inside && at >= 0;
          first += at;
          rest /= tables.extent[k];
        }
        T* to = y + row * points * channels;
        for (int64_t i = 0; i < points; ++i, to += channels) {
          const int64_t at = tables.index[last][static_cast<size_t>(i * tables.taps)];
          const T* from = x + (first + at) * channels;
          if (!inside || at < 0)
            std::fill(to, to + channels, fill);
          else if (channels < kFewChannels)
            for (int64_t c = 0; c < channels; ++c) to[c] = from[c];
          else
            std::memcpy(to, from, static_cast<size_t>(channels) * sizeof(T));
        }
      }
    });
  });
}

/// The last spatial axis, along a row of points. With few channels the tables have an entry per element of
/// the row, [taps, points, channels]; else per point.
struct RowTables {
  std::vector<int32_t> index;
  std::vector<float> weight;
  std::vector<int64_t> outside;  ///< points that are extrapolated
};

RowTables row_tables(const Tables& tables) {
  RowTables row;
  const auto last = static_cast<size_t>(tables.rank - 1);
  const int64_t each = tables.channels < kFewChannels ? tables.channels : 1;
  for (int t = 0; t < tables.taps; ++t)
    for (int64_t i = 0; i < tables.extent[last]; ++i) {
      const auto at = static_cast<size_t>(i * tables.taps + t);
      const int64_t index = tables.index[last][at];
      if (index < 0 && t == 0) row.outside.push_back(i);
      for (int64_t c = 0; c < each; ++c) {
        row.index.push_back(static_cast<int32_t>(std::max<int64_t>(index, 0) * each + c));
        row.weight.push_back(index < 0 ? 0.0f : tables.weight[last][at]);
      }
    }
  return row;
}

/// The terms of a weighted sum: addresses and weights, without those of weight 0.
struct Terms {
  const float* from[kMostTaps];
  float weight[kMostTaps];
  int64_t count = 0;
  bool first = true;

  void add(const Simd& simd, const float* x, float w, float* y, int64_t n) noexcept {
    if (w == 0) return;
    if (count == static_cast<int64_t>(kMostTaps)) flush(simd, y, n);
    from[count] = x;
    weight[count++] = w;
  }
  void flush(const Simd& simd, float* y, int64_t n) noexcept {
    if (first && count == 0) std::fill(y, y + n, 0.0f);
    if (first && count > 0) simd.loops<RowLoops>().weighted_sum(from, weight, count, y, n);
    for (int64_t t = 0; !first && t < count; ++t) simd.loops<RowLoops>().axpy(y, from[t], weight[t], n);
    first = false;
    count = 0;
  }
};

/// Axis by axis: input rows are combined into one, then points along it.
class Interpolation {
 public:
  Interpolation(const Simd& simd, Tables tables, float extrapolation)
      : simd_(&simd), tables_(std::move(tables)), row_(row_tables(tables_)), extrapolation_(extrapolation) {
    const auto last = static_cast<size_t>(tables_.rank - 1);
    points_ = tables_.extent[last];
    for (int i = 0; i + 1 < tables_.rank; ++i) combinations_ *= tables_.taps;
  }
  int64_t rows() const noexcept { return points_ == 0 ? 0 : tables_.batch * tables_.out_points / points_; }
  int64_t row_elements() const noexcept { return points_ * tables_.channels; }
  int64_t work() const noexcept { return row_elements() * (combinations_ + tables_.taps); }

  /// buffer: in_row floats
  void run(int64_t row, int64_t in_row, const float* x, float* buffer, float* y) const noexcept {
    const int64_t rows_of_image = tables_.out_points / points_;
    std::array<size_t, kMaxAxes> position{};
    int64_t rest = row % rows_of_image;
    bool inside = true;
    for (int axis = tables_.rank - 2; axis >= 0; --axis) {
      const auto k = static_cast<size_t>(axis);
      position[k] = static_cast<size_t>(rest % tables_.extent[k] * tables_.taps);
      inside = inside && tables_.index[k][position[k]] >= 0;
      rest /= tables_.extent[k];
    }
    if (!inside) return std::fill(y, y + row_elements(), extrapolation_);
    const float* image = x + row / rows_of_image * tables_.in_points * tables_.channels;
    Terms rows;
    for (int64_t combination = 0; combination < combinations_; ++combination) {
      int64_t point = 0, tap = combination;
      float weight = 1;
      for (int axis = tables_.rank - 2; axis >= 0; --axis) {
        const auto k = static_cast<size_t>(axis);
        const size_t at = position[k] + static_cast<size_t>(tap % tables_.taps);
        point += tables_.index[k][at];
        weight *= tables_.weight[k][at];
        tap /= tables_.taps;
      }
      rows.add(*simd_, image + point * tables_.channels, weight, buffer, in_row);
    }
    const bool as_it_is = rows.first && rows.count == 1 && rows.weight[0] == 1;
    if (!as_it_is) rows.flush(*simd_, buffer, in_row);
    along(as_it_is ? rows.from[0] : buffer, y);
  }

 private:
  void along(const float* x, float* y) const noexcept {
    const int64_t channels = tables_.channels;
    const auto& loops = simd_->loops<ResizeLoops>();
    const int32_t* index = row_.index.data();
    const float* weight = row_.weight.data();
    if (channels < kFewChannels)
      loops.resize_row(x, index, weight, tables_.taps, y, row_elements());
    else
      loops.resize_points(x, index, weight, tables_.taps, points_, channels, y);
    for (const int64_t point : row_.outside)
      std::fill(y + point * channels, y + (point + 1) * channels, extrapolation_);
  }

  const Simd* simd_;
  Tables tables_;
  RowTables row_;
  float extrapolation_;
  int64_t points_ = 0, combinations_ = 1;
};

KernelPtr make_interpolation(const Simd& simd, Tables tables, int64_t in_row, float extrapolation) {
  Requirements requirements;
  requirements.scratch = static_cast<size_t>(max_threads() * in_row) * sizeof(float);
  return make_kernel(
      [in_row,
       interpolation = Interpolation(simd, std::move(tables), extrapolation)](const Call& call) noexcept {
        parallel_for(interpolation.rows(), interpolation.work(), 1, [&](int64_t begin, int64_t end) noexcept {
          float* buffer = call.scratch<float>() + thread_index() * in_row;
          for (int64_t row = begin; row < end; ++row)
            interpolation.run(row, in_row, call.in<float>(0), buffer,
                              call.out<float>() + row * interpolation.row_elements());
        });
      },
      requirements);
}

Result<KernelPtr> create(CpuDevice& device, const NodeView& node, Producers) {
  RT_ASSIGN(Tables tables, tables_of(node));
  const auto& attributes = node.as<op::ResizeAttributes>();
  if (attributes.mode != op::ResizeMode::Nearest)
    return make_interpolation(device.simd(), std::move(tables),
                              node.shape(0).elements(node.shape(0).rank() - 2, node.shape(0).rank()),
                              attributes.extrapolation);
  uint64_t fill = 0;
  store_element(&fill, node.dtype(0), 0, static_cast<double>(attributes.extrapolation));
  return with_size(size_of(node.dtype(0)), [&](auto tag) -> KernelPtr {
    using T = typename decltype(tag)::type;
    T value;
    std::memcpy(&value, &fill, sizeof value);
    return make_nearest<T>(std::move(tables), value);
  });
}

}  // namespace

std::span<const KernelRow> rows_resize();
std::span<const KernelRow> rows_resize() {
  static constexpr KernelRow kRows[] = {row<create, supports>(OpKind::Resize, "resize", kAnyDType)};
  return rows_in_build<kRows>();
}

}  // namespace librt::cpu
