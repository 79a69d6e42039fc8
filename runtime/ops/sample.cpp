// GridSample, RoiAlign and its gradient: each output point is a weighted sum of a few input points.
#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/geometry/sample.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/sample_gradients.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

// --- GridSample

constexpr int kMostAxes = kMaxRank - 2;

Status infer_grid_sample(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& attributes = node.as<op::GridSampleAttributes>();
  if (attributes.mode < op::ResizeMode::MIN || attributes.mode > op::ResizeMode::MAX ||
      attributes.padding < op::GridSamplePadding::MIN || attributes.padding > op::GridSamplePadding::MAX)
    return invalid_argument("expected a known mode and padding, found values ",
                            static_cast<int>(attributes.mode), " and ", static_cast<int>(attributes.padding));
  RT_TRY(expect_dtype_and_rank(node, 0, "x", kFloats, 3));
  RT_TRY(expect_dtype(node, 1, "grid", kFloats));
  const Shape& x = node.shape(0);
  const Shape& grid = node.shape(1);
  if (grid.rank() != x.rank() || grid[0] != x[0] || grid.back() != x.rank() - 2)
    return invalid_argument("expected a grid of rank ", x.rank(), " with ", x[0], " images and ",
                            x.rank() - 2, " coordinates, found ", grid);
  Shape result = grid;
  result[grid.rank() - 1] = x.back();
  if (x.elements() == 0 && result.elements() != 0)
    return invalid_argument("expected a non-empty input, found ", x);
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
    if (position >= 0 && weight != 0) body(position, weight);  // not 0 times NaN
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

Status infer_roi(const NodeView& node, const op::RoiAlignAttributes& attributes, Shape& result) {
  RT_TRY(expect_dtype_and_rank(node, 0, "x", kFloats, 4, 4));
  RT_TRY(expect_same_dtype(node, 1, "rois", 0, "x"));
  RT_TRY(expect_dtype_and_rank(node, 2, "batch_indices", kIndexTypes, 1, 1));
  RT_TRY(expect_shape(node, 1, "rois", {node.shape(2)[0], 4}));
  // Ratios of models are 1 to 4. A result is the mean of ratio^2 samples, which no time limit interrupts.
  constexpr int64_t kMost = int64_t{1} << 31, kMostRatio = 64;
  if (attributes.height < 1 || attributes.width < 1 || attributes.height >= kMost ||
      attributes.width >= kMost || attributes.sampling_ratio < 0 || attributes.sampling_ratio > kMostRatio)
    return invalid_argument(
        "expected a height and width in [1, 2^31) and a sampling ratio from 0 to 64, found ",
        attributes.height, ", ", attributes.width, " and ", attributes.sampling_ratio);
  const Shape& x = node.shape(0);
  result = {node.shape(2)[0], attributes.height, attributes.width, x[3]};
  if (x.elements() == 0 && x[3] != 0 && result[0] != 0)
    return invalid_argument("expected a non-empty input, found ", x);
  return {};
}

Status infer_roi_align(const NodeView& node, std::vector<TensorInfo>& outputs) {
  Shape result;
  RT_TRY(infer_roi(node, node.as<op::RoiAlignAttributes>(), result));
  return add_output(outputs, node.dtype(0), result);
}

Status infer_roi_align_grad(const NodeView& node, std::vector<TensorInfo>& outputs) {
  Shape result;
  RT_TRY(
      infer_roi(node, same_regions<op::RoiAlignAttributes>(node.as<op::RoiAlignGradAttributes>()), result));
  RT_TRY(expect_like(node, 3, "grad_output", 0, "x", result));
  return infer_like_first(node, outputs);
}

/// A neighbour of a sampling point: its offset in the image's channel, and its weight.
struct RoiPart {
  int64_t offset = 0;
  double weight = 0;

  /// 0 for weight 0, whatever the image holds there.
  double of(const double* image) const { return weight == 0 ? 0 : weight * image[offset]; }
};

/// Calls body(element, image, parts) for every element of the result, with the parts of all its sampling
/// points. RoiAlign is the mean of the points' weighted sums, or the largest weighted value, as ONNX defines
/// it.
template <class Body>
Status for_each_roi_element(const op::RoiAlignAttributes& attributes, std::span<const ConstTensorView> inputs,
                            const Body& body) {
  const Shape& shape = inputs[0].info.shape;
  const int64_t regions = inputs[2].info.shape[0];
  std::vector<RoiPart> parts;
  for (int64_t r = 0; r < regions && shape[3] != 0; ++r) {
    const int64_t batch = load_integer(inputs[2].data, inputs[2].info.dtype, r);
    if (batch < 0 || batch >= shape[0])
      return invalid_argument("expected batch indices in [0, ", shape[0], "), found ", batch);
    const auto corner = [&](int64_t i) { return static_cast<float>(load(inputs[1], r * 4 + i)); };
    const RoiAxis rows = roi_axis(corner(1), corner(3), attributes.height, attributes);
    const RoiAxis columns = roi_axis(corner(0), corner(2), attributes.width, attributes);
    const double count = static_cast<double>(std::max<int64_t>(rows.samples * columns.samples, 1));
    for (int64_t bin = 0; bin < attributes.height * attributes.width; ++bin) {
      const RoiPoints down = roi_points(rows, bin / attributes.width, shape[1]);
      const RoiPoints across = roi_points(columns, bin % attributes.width, shape[2]);
      parts.clear();
      for (int64_t i = down.begin; i < down.end; ++i)
        for (int64_t j = across.begin; j < across.end; ++j) {
          const SampleTaps v = roi_taps(rows.position(bin / attributes.width, i), shape[1]);
          const SampleTaps u = roi_taps(columns.position(bin % attributes.width, j), shape[2]);
          if (v.count == 0 || u.count == 0) {
            parts.push_back({});  // a sample outside is 0
            continue;
          }
          for (size_t k = 0; k < 4; ++k)
            parts.push_back({(v.index[k / 2] * shape[2] + u.index[k % 2]) * shape[3],
                             v.weight[k / 2] * u.weight[k % 2] / (attributes.maximum ? 1 : count)});
        }
      const int64_t result = (r * attributes.height * attributes.width + bin) * shape[3];
      for (int64_t c = 0; c < shape[3]; ++c) body(result + c, batch * shape.elements(1, 4) + c, parts);
    }
  }
  return {};
}

/// The first of the parts with the largest weighted value, NaN being the largest; null when there are none.
const RoiPart* largest_part(const double* image, const std::vector<RoiPart>& parts) {
  const RoiPart* best = nullptr;
  for (const RoiPart& part : parts)
    if (best == nullptr || part.of(image) > best->of(image) ||
        (std::isnan(part.of(image)) && !std::isnan(best->of(image))))
      best = &part;
  return best;
}

Status eval_roi_align(const NodeView& node, std::span<const ConstTensorView> inputs,
                      std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::RoiAlignAttributes>();
  const std::vector<double> x = load_all<double>(inputs[0]);
  std::vector<double> y(static_cast<size_t>(outputs[0].info.elements()));
  RT_TRY(for_each_roi_element(attributes, inputs, [&](int64_t at, int64_t first, const auto& parts) {
    const double* image = x.data() + first;
    double& value = y[static_cast<size_t>(at)];
    if (!attributes.maximum) {
      for (const RoiPart& part : parts) value += part.of(image);
    } else if (const RoiPart* best = largest_part(image, parts)) {
      value = best->of(image);
    }
  }));
  store_all<double>(outputs[0], y);
  return {};
}

Status eval_roi_align_grad(const NodeView& node, std::span<const ConstTensorView> inputs,
                           std::span<const TensorView> outputs) {
  const op::RoiAlignAttributes attributes =
      same_regions<op::RoiAlignAttributes>(node.as<op::RoiAlignGradAttributes>());
  const std::vector<double> x = load_all<double>(inputs[0]), grad = load_all<double>(inputs[3]);
  std::vector<double> grad_x(x.size());
  RT_TRY(for_each_roi_element(attributes, inputs, [&](int64_t at, int64_t first, const auto& parts) {
    const double g = grad[static_cast<size_t>(at)];
    if (!attributes.maximum) {
      for (const RoiPart& part : parts) grad_x[static_cast<size_t>(first + part.offset)] += part.weight * g;
    } else if (const RoiPart* best = largest_part(x.data() + first, parts)) {
      grad_x[static_cast<size_t>(first + best->offset)] += best->weight * g;
    }
  }));
  store_all<double>(outputs[0], grad_x);
  return {};
}

/// Regions are treated as constants.
void gradient_of_roi_align(GradContext& context) {
  if (!context.needs(0)) return;
  auto backward = same_regions<op::RoiAlignGradAttributes>(context.node.as<op::RoiAlignAttributes>());
  context.set(0, context.emit.emit(std::move(backward),
                                   {context.input(0), context.input(1), context.input(2), context.grad()}));
}

template <class Attributes>
Cost cost_roi_align(const NodeView& node) {
  const auto ratio = node.as<Attributes>().sampling_ratio;
  const double samples = ratio > 0 ? static_cast<double>(ratio * ratio) : 4;
  return elementwise_cost(node, 8 * samples);
}

}  // namespace

RT_PAGE(GridSample) = {.kind = OpKind::GridSample,
                       .inputs = {2, 2},
                       .infer = infer_grid_sample,
                       .cost = cost_grid_sample,
                       .arithmetic = Arithmetic::PrecisionSensitive,
                       .extents = ExtentRule::Copied};
RT_PAGE(RoiAlign) = {.kind = OpKind::RoiAlign,
                     .inputs = {3, 3},
                     .infer = infer_roi_align,
                     .cost = cost_roi_align<op::RoiAlignAttributes>,
                     .arithmetic = Arithmetic::PrecisionSensitive,
                     .extents = ExtentRule::Copied};
RT_PAGE(RoiAlignGrad) = {.kind = OpKind::RoiAlignGrad,
                         .inputs = {4, 4},
                         .infer = infer_roi_align_grad,
                         .cost = cost_roi_align<op::RoiAlignGradAttributes>,
                         .arithmetic = Arithmetic::PrecisionSensitive,
                         .extents = ExtentRule::Copied};

RT_COMPILER_PAGE(GridSample) = {
    .eval = eval_grid_sample, .gradient = grid_sample_gradient, .domain = {-1, 1}};
RT_COMPILER_PAGE(RoiAlign) = {.eval = eval_roi_align, .gradient = gradient_of_roi_align};
RT_COMPILER_PAGE(RoiAlignGrad) = {.eval = eval_roi_align_grad,
                                  .no_gradient = "is itself a gradient; librt has no second derivatives"};

}  // namespace librt::ops
