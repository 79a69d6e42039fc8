// QuantizeLinear, DequantizeLinear, Requantize, QuantizedAdd and NarrowFloat: elementwise.
#include "kernels/quantize.h"

#include <algorithm>
#include <limits>

#include "backends/cuda/kernel.h"
#include "backends/cuda/support/gemm_plan.h"
#include "runtime/geometry/quantization.h"

namespace librt::cuda {
namespace {

constexpr DTypeSet kQuantizedTypes{DType::I8, DType::U8, DType::I16, DType::U16, DType::I32};

template <class Attributes>
Result<Scales> scales_of(const NodeView& node) {
  const auto& attributes = node.as<Attributes>();
  RT_ASSIGN(const ScaleGroups groups,
            scale_groups(node.shape(0), node.shape(1), attributes.axis, attributes.block_size));
  return Scales{.extent = groups.extent,
                .inner = groups.inner,
                .block = std::clamp<int64_t>(groups.block, 1, std::max<int64_t>(groups.extent, 1)),
                .outer_stride = groups.outer_stride,
                .block_stride = groups.block_stride,
                .inner_stride = groups.inner_stride};
}

template <class Attributes>
Status supports(const CudaDevice&, const NodeView& node) {
  return scales_of<Attributes>(node).status();
}

/// Fills in the operands of a quantize or dequantize.
template <class Arguments>
Arguments bound(Arguments arguments, const Call& call) {
  arguments.data = call.in(0);
  arguments.result = call.out();
  arguments.scales.scale = call.in(1);
  arguments.scales.zero_point = call.in(2);
  return arguments;
}

Result<KernelPtr> create_quantize(CudaDevice&, const NodeView& node) {
  RT_ASSIGN(const Scales scales, scales_of<op::QuantizeLinearAttributes>(node));
  const QuantizeArguments arguments{.from = element_type(node.dtype(0)),
                                    .to = element_type(node.output(0).dtype),
                                    .scales = scales,
                                    .count = node.output(0).elements()};
  return make_kernel([arguments](const Call& call) { return quantize(bound(arguments, call), call.stream); });
}

Result<KernelPtr> create_dequantize(CudaDevice&, const NodeView& node) {
  RT_ASSIGN(const Scales scales, scales_of<op::DequantizeLinearAttributes>(node));
  const DequantizeArguments arguments{.from = element_type(node.dtype(0)),
                                      .scale = element_type(node.dtype(1)),
                                      .to = element_type(node.output(0).dtype),
                                      .scales = scales,
                                      .count = node.output(0).elements()};
  return make_kernel(
      [arguments](const Call& call) { return dequantize(bound(arguments, call), call.stream); });
}

Result<KernelPtr> create_requantize(CudaDevice&, const NodeView& node) {
  constexpr RequantizeInputs kInputs{.scale = 1, .bias = 2, .y_scale = 3, .y_zero = 4};
  RequantizeArguments arguments{.channels = node.shape(0).back(), .count = node.output(0).elements()};
  arguments.requantization = requantization_of<op::RequantizeAttributes>(node, kInputs);
  return make_kernel([arguments, kInputs](const Call& call) {
    RequantizeArguments bound = arguments;
    bound.sums = call.in<int32_t>(0);
    bind_requantization(bound.requantization, kInputs, call);
    bound.result = call.out();
    return requantize(bound, call.stream);
  });
}

Status supports_add(const CudaDevice&, const NodeView& node) {
  const auto& epilogue = node.as<op::QuantizedAddAttributes>().epilogue;
  if (epilogue && epilogue->activation > op::Activation::Clip)
    return unsupported("no fused activation but Relu and Clip, not ",
                       op::EnumNameActivation(epilogue->activation));
  return {};
}

Result<KernelPtr> create_add(CudaDevice&, const NodeView& node) {
  QuantizedAddArguments arguments;
  arguments.a.type = element_type(node.dtype(0));
  arguments.b.type = element_type(node.dtype(1));
  arguments.y.type = element_type(node.output(0).dtype);
  arguments.activation = function_call(node.as<op::QuantizedAddAttributes>().epilogue.get());
  arguments.count = node.output(0).elements();
  return make_kernel(
      [arguments](const Call& call) {
        QuantizedAddArguments x = arguments;
        x.a.data = call.in(0);
        x.b.data = call.in(1);
        QuantizedOperand* const operands[] = {&x.a, &x.b, &x.y};
        for (size_t i = 0; i < 3; ++i) {
          operands[i]->scale = call.in<float>(2 + 2 * i);
          operands[i]->zero = call.in(3 + 2 * i);
        }
        x.result = call.out();
        return quantized_add(x, call.stream);
      },
      in_place());
}

NarrowFormat format_of(const op::NarrowFloatAttributes& attributes) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr NarrowFormat kFormats[] = {{3, -6, 448, kNan, true, true},
                                       {3, -7, 240, kNan, true, false},
                                       {2, -14, 57344, kInfinity, true, true},
                                       {2, -15, 57344, kNan, true, false},
                                       {1, 0, 6, 6, false, true}};
  NarrowFormat format = kFormats[static_cast<size_t>(attributes.format)];
  if (attributes.saturate) format.beyond = format.largest;
  return format;
}

Result<KernelPtr> create_narrow(CudaDevice&, const NodeView& node) {
  const NarrowFormat format = format_of(node.as<op::NarrowFloatAttributes>());
  return make_kernel(
      [format, count = node.output(0).elements()](const Call& call) {
        return narrow_float(call.in<float>(0), call.out<float>(), count, format, call.stream);
      },
      in_place());
}

}  // namespace

std::span<const KernelRow> rows_quantize();
std::span<const KernelRow> rows_quantize() {
  static constexpr KernelRow kRows[] = {
      row<create_quantize, supports<op::QuantizeLinearAttributes>>(
          OpKind::QuantizeLinear, "quantize", DTypeSet{DType::F32, DType::F16, DType::BF16, DType::I32}),
      row<create_dequantize, supports<op::DequantizeLinearAttributes>>(OpKind::DequantizeLinear, "dequantize",
                                                                       kQuantizedTypes),
      row<create_requantize>(OpKind::Requantize, "requantize", DTypeSet{DType::I32}),
      row<create_add, supports_add>(OpKind::QuantizedAdd, "quantized_add", DTypeSet{DType::I8, DType::U8}),
      row<create_narrow>(OpKind::NarrowFloat, "narrow_float", DTypeSet{DType::F32}),
  };
  return kRows;
}

}  // namespace librt::cuda
