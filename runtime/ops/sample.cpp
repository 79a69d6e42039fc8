// GridSample and RoiAlign: weighted sums of few input points for each output point.
#include <algorithm>
#include <array>

#include "runtime/graph/sample_geometry.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/sample_gradients.h"
#include "runtime/ops/values.h"

namespace rt::ops {
namespace {

// --- GridSample

constexpr int kMostAxes = kMaxRank - 2;

Status infer_grid_sample(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& attributes = node.as<op::GridSampleAttributes>();
  if (attributes.mode < op::ResizeMode::MIN || attributes.mode > op::ResizeMode::MAX ||
      attributes.padding < op::GridSamplePadding::MIN || attributes.padding > op::GridSamplePadding::MAX)
    return invalid_argument("expected a known mode and padding, found numbers ",
                            static_cast<int>(attributes.mode), " and ", static_cast<int>(attributes.padding));
  RT_TRY(expect_dtype(node, 0, "x", kFloats));
  RT_TRY(expect_dtype(node, 1, "grid", kFloats));
  RT_TRY(expect_rank(node, 0, "x", 3));
  const Shape& x = node.shape(0);
  const Shape& grid = node.shape(1);
  if (grid.rank() != x.rank() || grid[0] != x[0] || grid.back() != x.rank() - 2)
    return invalid_argument("expected a grid of rank ", x.rank(), " with ", x[0], " images and ",
                            x.rank() - 2, " coordinates, found ", grid);
  Shape result = grid;
  result[grid.rank() - 1] = x.back();
  if (x.elements() == 0 && result.elements() != 0)
    return invalid_argument("expected something to sample, found ", x);
  return add_output(outputs, node.dtype(0), result);
}

/// Calls body(position, weight) for every combination of one tap of each axis that lies inside; position is
/// flat over the axes.
template <class Body>
void for_each_combination(std::span<const SampleTaps> taps, std::span<const int64_t> extents,
                          const Body& body) {
  std::array<int, kMostAxes> at{};
  for (;;) {
    int64_t position = 0;
    double weight = 1;
    for (size_t d = 0; d < taps.size(); ++d) {
      const auto tap = static_cast<size_t>(at[d]);
      position = position < 0 || taps[d].index[tap] < 0 ? -1 : position * extents[d] + taps[d].index[tap];
      weight *= taps[d].weight[tap];
    }
    if (position >= 0) body(position, weight);
    size_t d = taps.size();
    while (d > 0 && ++at[d - 1] == taps[d - 1].count) at[--d] = 0;
    if (d == 0) return;
  }
}

Status eval_grid_sample(const NodeView& node, std::span<const ConstTensorView> inputs,
                        std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::GridSampleAttributes>();
  const Shape& shape = inputs[0].info.shape;
  const auto axes = static_cast<size_t>(shape.rank() - 2);
  const int64_t channels = shape.back(), image = shape.elements(1, shape.rank() - 1);
  const std::vector<double> x = load_all<double>(inputs[0]), grid = load_all<double>(inputs[1]);
  std::vector<double> y(static_cast<size_t>(outputs[0].info.elements()));
  const auto points = static_cast<int64_t>(grid.size() / axes);
  const int64_t in_image = shape[0] == 0 ? 0 : points / shape[0];
  for (int64_t point = 0; point < points && !y.empty(); ++point) {
    std::array<SampleTaps, kMostAxes> taps;
    for (size_t d = 0; d < axes; ++d)
      taps[d] = grid_taps(grid[static_cast<size_t>(point) * axes + axes - 1 - d],
                          shape[static_cast<int>(d) + 1], attributes);
    const double* from = x.data() + point / in_image * image * channels;
    double* to = y.data() + point * channels;
    for_each_combination(std::span(taps).first(axes), shape.dims().subspan(1, axes),
                         [&](int64_t position, double weight) {
                           for (int64_t c = 0; c < channels; ++c)
                             to[c] += weight * from[position * channels + c];
                         });
  }
  store_all<double>(outputs[0], y);
  return {};
}

Cost cost_grid_sample(const NodeView& node) {
  const auto mode = node.as<op::GridSampleAttributes>().mode;
  double taps = 1;
  for (int d = 2; d < node.shape(0).rank(); ++d)
    taps *= mode == op::ResizeMode::Nearest ? 1 : mode == op::ResizeMode::Linear ? 2 : 4;
  return elementwise_cost(node, 2 * taps);
}

// --- RoiAlign

constexpr DTypeSet kIndexTypes{DType::I32, DType::I64};

Status infer_roi_align(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& attributes = node.as<op::RoiAlignAttributes>();
  RT_TRY(expect_dtype(node, 0, "x", kFloats));
  RT_TRY(expect_same_dtype(node, 1, "rois", 0, "x"));
  RT_TRY(expect_dtype(node, 2, "batch_indices", kIndexTypes));
  RT_TRY(expect_rank(node, 0, "x", 4, 4));
  RT_TRY(expect_rank(node, 2, "batch_indices", 1, 1));
  RT_TRY(expect_shape(node, 1, "rois", {node.shape(2)[0], 4}));
  constexpr int64_t kMost = int64_t{1} << 31;
  if (attributes.height < 1 || attributes.width < 1 || attributes.height >= kMost ||
      attributes.width >= kMost || attributes.sampling_ratio < 0 || attributes.sampling_ratio > 1 << 20)
    return invalid_argument(
        "expected a height and width in [1, 2^31) and a sampling ratio from 0 to 2^20, found ",
        attributes.height, ", ", attributes.width, " and ", attributes.sampling_ratio);
  const Shape& x = node.shape(0);
  const Shape result{node.shape(2)[0], attributes.height, attributes.width, x[3]};
  if (x.elements() == 0 && x[3] != 0 && result[0] != 0)
    return invalid_argument("expected something to sample, found ", x);
  return add_output(outputs, node.dtype(0), result);
}

/// One sampling point of one channel. The maximum is over the weighted neighbours, as ONNX's definition has
/// it.
double roi_sample(const double* image, const Shape& x, const SampleTaps& v, const SampleTaps& u, int64_t c,
                  bool maximum) {
  double value = 0;
  for (size_t i = 0; i < 2 && v.count > 0 && u.count > 0; ++i)
    for (size_t j = 0; j < 2; ++j) {
      const double part = v.weight[i] * u.weight[j] * image[(v.index[i] * x[2] + u.index[j]) * x[3] + c];
      value = !maximum ? value + part : i + j == 0 ? part : std::max(value, part);
    }
  return value;
}

Status eval_roi_align(const NodeView& node, std::span<const ConstTensorView> inputs,
                      std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::RoiAlignAttributes>();
  const Shape& shape = inputs[0].info.shape;
  const Shape& result = outputs[0].info.shape;
  const std::vector<double> x = load_all<double>(inputs[0]);
  std::vector<double> y;
  y.reserve(static_cast<size_t>(result.elements()));
  for (int64_t r = 0; r < result[0] && result.elements() != 0; ++r) {
    const int64_t batch = load_integer(inputs[2].data, inputs[2].info.dtype, r);
    if (batch < 0 || batch >= shape[0])
      return invalid_argument("expected batch indices in [0, ", shape[0], "), found ", batch);
    const auto corner = [&](int64_t i) { return static_cast<float>(load(inputs[1], r * 4 + i)); };
    const RoiAxis rows = roi_axis(corner(1), corner(3), result[1], attributes);
    const RoiAxis columns = roi_axis(corner(0), corner(2), result[2], attributes);
    const double* image = x.data() + batch * shape.elements(1, 4);
    const double count = static_cast<double>(std::max<int64_t>(rows.samples * columns.samples, 1));
    for (int64_t bin = 0; bin < result[1] * result[2]; ++bin)
      for (int64_t c = 0; c < shape[3]; ++c) {
        double total = 0;
        for (int64_t i = 0; i < rows.samples; ++i) {
          const SampleTaps v = roi_taps(rows.position(bin / result[2], i), shape[1]);
          for (int64_t j = 0; j < columns.samples; ++j) {
            const SampleTaps u = roi_taps(columns.position(bin % result[2], j), shape[2]);
            const double value = roi_sample(image, shape, v, u, c, attributes.maximum);
            total = !attributes.maximum ? total + value : i + j == 0 ? value : std::max(total, value);
          }
        }
        y.push_back(attributes.maximum ? total : total / count);
      }
  }
  store_all<double>(outputs[0], y);
  return {};
}

Cost cost_roi_align(const NodeView& node) {
  const auto ratio = node.as<op::RoiAlignAttributes>().sampling_ratio;
  const double samples = ratio > 0 ? static_cast<double>(ratio * ratio) : 4;
  return elementwise_cost(node, 8 * samples);
}

}  // namespace

RT_PAGE(GridSample) = {.kind = OpKind::GridSample,
                       .inputs = {2, 2},
                       .infer = infer_grid_sample,
                       .cost = cost_grid_sample,
                       .domain = {-1, 1}};
RT_PAGE(RoiAlign) = {
    .kind = OpKind::RoiAlign, .inputs = {3, 3}, .infer = infer_roi_align, .cost = cost_roi_align};

RT_COMPILER_PAGE(GridSample) = {.eval = eval_grid_sample, .gradient = grid_sample_gradient};
RT_COMPILER_PAGE(RoiAlign) = {.eval = eval_roi_align,
                              .no_gradient = "gradient not written yet: it scatters to the sampled points"};

}  // namespace rt::ops
