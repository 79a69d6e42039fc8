// QuantizeLinear, DequantizeLinear, Requantize and NarrowFloat. 8-bit values are written four, a word, at a
// time.
#include "runtime/geometry/quantization.h"

#include <limits>

#include "backends/vulkan/steps/requantize.h"

namespace librt::vulkan {
namespace {

template <class Attributes>
Result<ScaleGroups> groups_of(const NodeView& node) {
  const auto& attributes = node.as<Attributes>();
  return scale_groups(node.shape(0), node.shape(1), attributes.axis, attributes.block_size);
}

void push_groups(Step& step, const ScaleGroups& groups, int64_t count) {
  step.push(count).push(groups.extent).push(groups.inner).push(groups.block);
  step.push(groups.outer_stride).push(groups.block_stride).push(groups.inner_stride);
}

/// Number of values of an integer type, and the largest of them.
struct IntegerRange {
  int64_t count, high;
  explicit IntegerRange(DType dtype)
      : count(size_of(dtype) == 4 ? 0 : int64_t{1} << (8 * size_of(dtype))),
        high((is_signed_integer(dtype) ? count / 2 : count) - 1) {}
};

int index_of_real(DType dtype) {
  return dtype == DType::F32 ? 0 : dtype == DType::F16 ? 1 : 2;
}

Status quantize_supports(const Device& device, const NodeView& node) {
  return fits(device, node);
}

Result<KernelPtr> create_quantize(Device& device, const NodeView& node, std::span<const LayoutId>) {
  RT_ASSIGN(const ScaleGroups groups, groups_of<op::QuantizeLinearAttributes>(node));
  constexpr Shader kShaders[4][2] = {{Shader::quantize_f32_1, Shader::quantize_f32_2},
                                     {Shader::quantize_f16_1, Shader::quantize_f16_2},
                                     {Shader::quantize_bf16_1, Shader::quantize_bf16_2},
                                     {Shader::quantize_i32_1, Shader::quantize_i32_2}};
  const DType from = node.dtype(0), to = node.output(0).dtype;
  const IntegerRange range(to);
  const int64_t count = node.output(0).elements();
  auto program = std::make_unique<Program>("quantize");
  Step& step = program->dispatch_each(kShaders[from == DType::I32 ? 3 : index_of_real(from)][size_of(to) - 1],
                                      size_of(to) == 1 ? ceil_div(count, 4) : count,
                                      cast(device).plan().elementwise_lanes);
  step.spec(static_cast<uint64_t>(range.high + 1 - range.count)).spec(static_cast<uint64_t>(range.high));
  step.spec(node.has(2));
  push_groups(step, groups, count);
  step.read(0, in(0)).read(1, in(1)).read(2, node.has(2) ? in(2) : in(1)).write(3, out(0));
  return finish(std::move(program));
}

Status dequantize_supports(const Device& device, const NodeView& node) {
  RT_TRY(fits(device, node));
  if (node.dtype(1) != node.output(0).dtype)
    return unsupported("a scale of type ", name_of(node.dtype(1)), " for results of type ",
                       name_of(node.output(0).dtype));
  if (node.dtype(0) == DType::I32 && node.has(2)) return unsupported("a zero point of 32 bits");
  return {};
}

Result<KernelPtr> create_dequantize(Device& device, const NodeView& node, std::span<const LayoutId>) {
  RT_ASSIGN(const ScaleGroups groups, groups_of<op::DequantizeLinearAttributes>(node));
  constexpr Shader kShaders[3][3] = {
      {Shader::dequantize_f32_1, Shader::dequantize_f32_2, Shader::dequantize_f32_4},
      {Shader::dequantize_f16_1, Shader::dequantize_f16_2, Shader::dequantize_f16_4},
      {Shader::dequantize_bf16_1, Shader::dequantize_bf16_2, Shader::dequantize_bf16_4}};
  const IntegerRange range(node.dtype(0));
  const size_t size = size_of(node.dtype(0));
  const int64_t count = node.output(0).elements();
  auto program = std::make_unique<Program>("dequantize");
  Step& step = program->dispatch_each(kShaders[index_of_real(node.dtype(1))][size == 4 ? 2 : size - 1], count,
                                      cast(device).plan().elementwise_lanes);
  step.spec(static_cast<uint64_t>(range.high)).spec(static_cast<uint64_t>(range.count)).spec(node.has(2));
  push_groups(step, groups, count);
  step.read(0, in(0)).read(1, in(1)).read(2, node.has(2) ? in(2) : in(0)).write(3, out(0));
  return finish(std::move(program));
}

Result<KernelPtr> create_requantize(Device& device, const NodeView& node, std::span<const LayoutId>) {
  const RequantizePlan plan = plan_requantize<op::RequantizeAttributes>(node, 1, 2, 3, 4);
  const int64_t count = node.output(0).elements();
  auto program = std::make_unique<Program>("requantize");
  Step& step =
      program->dispatch_each(Shader::requantize, ceil_div(count, 4), cast(device).plan().elementwise_lanes);
  plan.specialize(step);
  step.push(count).push(node.shape(0).back());
  plan.push(step);
  step.read(0, in(0));
  plan.bind(step, out(0));
  return finish(std::move(program));
}

struct Format {
  uint32_t mantissa;
  int exponent;
  float largest, beyond;
  bool nan, minus_zero;
};

Status narrow_supports(const Device& device, const NodeView& node) {
  return fits(device, node);
}

Result<KernelPtr> create_narrow(Device& device, const NodeView& node, std::span<const LayoutId>) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr Format kFormats[] = {{3, -6, 448, kNan, true, true},
                                 {3, -7, 240, kNan, true, false},
                                 {2, -14, 57344, kInfinity, true, true},
                                 {2, -15, 57344, kNan, true, false},
                                 {1, 0, 6, 6, false, true}};
  const auto& attributes = node.as<op::NarrowFloatAttributes>();
  const Format& format = kFormats[static_cast<size_t>(attributes.format)];
  const int64_t count = node.output(0).elements();
  auto program = std::make_unique<Program>("narrow_float");
  program->dispatch_each(Shader::narrow_float, count, cast(device).plan().elementwise_lanes)
      .spec(format.mantissa)
      .spec(static_cast<uint64_t>(format.exponent + 127))
      .spec(format.minus_zero)
      .push(count)
      .push(format.largest)
      .push(attributes.saturate ? format.largest : format.beyond)
      .push(format.nan ? 0 : 0x80000000u)
      .read(0, in(0))
      .write(1, out(0));
  program->in_place(0);
  return finish(std::move(program));
}

constexpr KernelRow kRows[] = {
    row<create_quantize, quantize_supports>(OpKind::QuantizeLinear, "quantize",
                                            DTypeSet{DType::F32, DType::F16, DType::BF16, DType::I32}),
    row<create_dequantize, dequantize_supports>(
        OpKind::DequantizeLinear, "dequantize",
        DTypeSet{DType::I8, DType::U8, DType::I16, DType::U16, DType::I32}),
    row<create_requantize, quantize_supports>(OpKind::Requantize, "requantize", DTypeSet{DType::I32}),
    row<create_narrow, narrow_supports>(OpKind::NarrowFloat, "narrow_float", DTypeSet{DType::F32}),
};

}  // namespace

std::span<const KernelRow> rows_quantize() {
  return rows_in_build<kRows>();
}

}  // namespace librt::vulkan
