// Uniform and normal random numbers. Element i of a tensor depends on seed, counter and i alone: the same on
// every device. f64 uses 53 random bits an element; all other types 24, rounded.
#include <cmath>
#include <numbers>

#include "runtime/core/philox.h"
#include "runtime/ops/page_support.h"
#include "runtime/ops/values.h"

namespace librt::ops {
namespace {

template <class Attributes>
Status infer_random(const NodeView& node, std::vector<TensorInfo>& outputs) {
  const auto dtype = static_cast<DType>(node.as<Attributes>().to);
  if (!valid(dtype) || !is_float(dtype))
    return invalid_argument("expected one of ", kFloats, ", found dtype ", static_cast<int>(dtype));
  RT_ASSIGN(const Shape shape, shape_value(node, 0, "shape"));
  if (node.has(1)) RT_TRY(expect_dtype_and_shape(node, 1, "counter", DTypeSet{DType::I64}, {}));
  return add_output(outputs, dtype, shape);
}

/// The stream of one node in one run.
struct Stream {
  uint64_t seed, counter;
  PhiloxBlock block(int64_t i) const { return philox(seed, counter, static_cast<uint64_t>(i)); }
};

Stream stream_of(int64_t seed, std::span<const ConstTensorView> inputs) {
  const bool counted = inputs.size() > 1 && inputs[1].data != nullptr;
  return {static_cast<uint64_t>(seed), counted ? static_cast<uint64_t>(*inputs[1].as<int64_t>()) : 0};
}

/// low + (high - low) u, rounded to f32 after each step, as devices compute it.
Status eval_uniform(const NodeView& node, std::span<const ConstTensorView> inputs,
                    std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::RandomUniformAttributes>();
  const Stream stream = stream_of(attributes.seed, inputs);
  const float range = attributes.high - attributes.low;
  const int64_t count = outputs[0].info.elements();
  for (int64_t i = 0; i < count; ++i) {
    double value;
    if (outputs[0].info.dtype == DType::F64) {
      const PhiloxBlock block = stream.block(i / 2);
      const auto at = static_cast<size_t>(i % 2 * 2);
      value = static_cast<double>(attributes.low) +
              static_cast<double>(range) * uniform53(block[at], block[at + 1]);
    } else {
      const float scaled = range * uniform24(stream.block(i / 4)[static_cast<size_t>(i % 4)]);
      value = static_cast<double>(attributes.low + scaled);
    }
    store(outputs[0], i, value);
  }
  return {};
}

/// Box-Muller transform: uniform u in (0, 1] and v in [0, 1) give two normal values,
/// sqrt(-2 ln u) cos(2 pi v) and sqrt(-2 ln u) sin(2 pi v).
double normal(double u, double v, bool second) {
  const double angle = 2 * std::numbers::pi * v;
  return std::sqrt(-2 * std::log(u)) * (second ? std::sin(angle) : std::cos(angle));
}

Status eval_normal(const NodeView& node, std::span<const ConstTensorView> inputs,
                   std::span<const TensorView> outputs) {
  const auto& attributes = node.as<op::RandomNormalAttributes>();
  const Stream stream = stream_of(attributes.seed, inputs);
  const int64_t count = outputs[0].info.elements();
  for (int64_t i = 0; i < count; ++i) {
    double u, v;
    if (outputs[0].info.dtype == DType::F64) {
      const PhiloxBlock block = stream.block(i / 2);
      u = 1 - uniform53(block[0], block[1]);
      v = uniform53(block[2], block[3]);
    } else {
      const PhiloxBlock block = stream.block(i / 4);
      const auto at = static_cast<size_t>(i % 4 / 2 * 2);
      u = 1 - static_cast<double>(uniform24(block[at]));
      v = static_cast<double>(uniform24(block[at + 1]));
    }
    store(outputs[0], i,
          static_cast<double>(attributes.mean) +
              static_cast<double>(attributes.scale) * normal(u, v, i % 2 != 0));
  }
  return {};
}

template <class Attributes>
constexpr Page random_page(OpKind kind) {
  return {.kind = kind,
          .inputs = {1, 2},
          .shape_operands = 1u << 0,
          .infer = infer_random<Attributes>,
          .cost = [](const NodeView& node) { return elementwise_cost(node, 20); },
          .impure = true,
          .extents = ExtentRule::Own};
}

}  // namespace

RT_PAGE(RandomUniform) = precision_sensitive(random_page<op::RandomUniformAttributes>(OpKind::RandomUniform));
RT_COMPILER_PAGE(RandomUniform) = {.eval = eval_uniform, .gradient = zero_gradient, .tolerance = {0, 0}};
RT_PAGE(RandomNormal) = precision_sensitive(random_page<op::RandomNormalAttributes>(OpKind::RandomNormal));
RT_COMPILER_PAGE(RandomNormal) = {.eval = eval_normal, .gradient = zero_gradient, .tolerance = {1e-5, 1e-5}};

}  // namespace librt::ops
