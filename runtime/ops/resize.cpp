// Resize: nearest, linear and cubic interpolation of the spatial axes, one axis after the other.
#include "runtime/geometry/resize.h"
#include "runtime/core/byte_count.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/sample_gradients.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

/// An f32 vector among the shape operands; none for an absent one.
Result<std::span<const float>> numbers(const NodeView& node, size_t i, Label what) {
  if (!node.has(i)) return std::span<const float>();
  if (node.dtype(i) != DType::F32 || node.shape(i).rank() != 1)
    return invalid_argument("expected ", what, " as an f32 vector, found ", node.input(i));
  const auto count = static_cast<size_t>(node.input(i).elements());
  if (count != 0 && node.inputs[i].value == nullptr)
    return invalid_argument("shape operand must be known: ", what, " (input ", i, ") depends on data");
  return std::span(static_cast<const float*>(node.inputs[i].value), count);
}

Status infer_resize(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto& attributes = node.as<op::ResizeAttributes>();
  if (attributes.mode != op::ResizeMode::Nearest) RT_TRY(expect_dtype(node, 0, "x", kFloats));
  std::span<const int64_t> sizes;
  if (node.has(1)) {
    RT_ASSIGN(sizes, shape_operand(node, 1, "sizes"));
  }
  RT_ASSIGN(const auto scales, numbers(node, 2, "scales"));
  RT_ASSIGN(const auto roi, numbers(node, 3, "roi"));
  RT_ASSIGN(const ResizeGeometry geometry, resize_geometry(node.shape(0), attributes, sizes, scales, roi));
  return add_output(outputs, node.dtype(0), geometry.result);
}

/// Replaces axis `axis` of the row-major values by its interpolation.
std::vector<double> interpolate(const std::vector<double>& x, const Shape& shape, int axis, int64_t extent,
                                const ResizeTable& table, int taps, double extrapolation) {
  const int64_t outer = shape.elements(0, axis), inner = shape.elements(axis + 1, shape.rank());
  std::vector<double> y(container_size(static_cast<uint64_t>(outer * extent * inner)));
  double* to = y.data();
  for (int64_t o = 0; o < outer; ++o) {
    const double* block = x.data() + o * shape[axis] * inner;
    for (int64_t i = 0; i < extent; ++i, to += inner)
      for (int t = 0; t < taps; ++t) {
        const auto tap = static_cast<size_t>(i * taps + t);
        if (table.index[tap] < 0) {
          std::fill_n(to, inner, extrapolation);
          break;
        }
        const double* from = block + table.index[tap] * inner;
        const double weight = table.weight[tap];
        if (weight == 0) continue;  // 0 times NaN
        for (int64_t j = 0; j < inner; ++j) to[j] += weight * from[j];
      }
  }
  return y;
}

Status eval_resize(const NodeView& node, std::span<const ConstTensorView> inputs,
                   std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::ResizeAttributes>();
  const Shape& result = outputs[0].info.shape;
  Shape shape = inputs[0].info.shape;
  const auto floats = [&](size_t i) {
    return node.has(i) ? std::span(inputs[i].as<float>(), static_cast<size_t>(inputs[i].info.elements()))
                       : std::span<const float>();
  };
  const auto sizes = node.has(1) ? ints_of(inputs[1]) : std::span<const int64_t>();
  RT_ASSIGN(const ResizeGeometry geometry, resize_geometry(shape, attributes, sizes, floats(2), floats(3)));
  if (outputs[0].info.elements() == 0) return {};
  if (attributes.mode == op::ResizeMode::Nearest) {
    const auto strides = strides_of(shape);
    std::vector<std::vector<int64_t>> offsets(static_cast<size_t>(shape.rank()));
    for (size_t axis = 0; axis < offsets.size(); ++axis) {
      const bool spatial = axis > 0 && axis + 1 < offsets.size();
      ResizeTable table;
      if (spatial) table = resize_table(geometry.axes[axis - 1], attributes, 1);
      for (int64_t i = 0; i < result[static_cast<int>(axis)]; ++i) {
        const int64_t from = spatial ? table.index[static_cast<size_t>(i)] : i;
        offsets[axis].push_back(from < 0 ? kFill : from * strides[axis]);
      }
    }
    uint64_t fill = 0;
    store_element(&fill, outputs[0].info.dtype, 0, static_cast<double>(attributes.extrapolation));
    copy_mapped(outputs[0], inputs[0].data, offsets, &fill);
    return {};
  }
  std::vector<double> values = load_all<double>(inputs[0]);
  for (int i = 0; i < geometry.rank; ++i) {
    const ResizeAxis& axis = geometry.axes[static_cast<size_t>(i)];
    values = interpolate(values, shape, i + 1, axis.output, resize_table(axis, attributes, geometry.taps),
                         geometry.taps, static_cast<double>(attributes.extrapolation));
    shape[i + 1] = axis.output;
  }
  store_all<double>(outputs[0], values);
  return {};
}

/// A position and a weight for each output position and tap of an axis, as computed and as a kernel keeps
/// them; along the last axis also for each of few channels.
double table_bytes(const NodeView& node) {
  const auto floats = [&](size_t i) {
    const auto values = numbers(node, i, "an operand");
    return values.ok() ? *values : std::span<const float>();
  };
  std::span<const int64_t> sizes;
  if (node.has(1)) {
    if (node.inputs[1].value == nullptr) return 0;
    sizes = node.ints(1);
  }
  const auto geometry =
      resize_geometry(node.shape(0), node.as<op::ResizeAttributes>(), sizes, floats(2), floats(3));
  if (!geometry.ok()) return 0;
  double entries = 0, last = 0;
  for (int i = 0; i < geometry->rank; ++i) {
    last = static_cast<double>(geometry->axes[static_cast<size_t>(i)].output) * geometry->taps;
    entries += last;
  }
  constexpr int64_t kFewChannels = 16;
  const int64_t channels = node.shape(0).back();
  return 32 * entries + 8 * last * static_cast<double>(channels < kFewChannels ? channels : 1);
}

Cost cost_resize(const NodeView& node) {
  const auto mode = node.as<op::ResizeAttributes>().mode;
  const double taps = mode == op::ResizeMode::Nearest ? 0 : mode == op::ResizeMode::Linear ? 2 : 4;
  Cost cost{.bytes = bytes_of(node.input(0))};
  if (node.outputs.empty()) return cost;
  cost.bytes += bytes_of(node.output(0));
  cost.flops = 2 * taps * (node.shape(0).rank() - 2) * static_cast<double>(node.output(0).elements());
  cost.tables = table_bytes(node);
  return cost;
}

}  // namespace

RT_PAGE(Resize) = {.kind = OpKind::Resize,
                   .inputs = {1, 4},
                   .shape_operands = 1u << 1 | 1u << 2 | 1u << 3,
                   .infer = infer_resize,
                   .cost = cost_resize,
                   .extents = ExtentRule::Own};

RT_COMPILER_PAGE(Resize) = {.eval = eval_resize, .gradient = resize_gradient};

}  // namespace librt::ops
