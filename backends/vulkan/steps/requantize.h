// How i32 accumulators of integer GEMM become results, as shaders/requantize.glsl takes it.
#pragma once

#include "backends/vulkan/kernel.h"
#include "runtime/geometry/function.h"

namespace librt::vulkan {

/// By default the accumulators themselves are stored, as i32.
struct RequantizePlan {
  uint32_t result = 0;  ///< 0: accumulators, 1: floats, 2: quantized
  int32_t low = 0;      ///< the least quantized value
  FunctionCall activation;
  bool has_bias = false, has_zero = false, per_channel = false;
  size_t scale = 0, bias = 0, y_scale = 0, y_zero = 0;  ///< input indices

  /// Constants 1 to 5 of the shader.
  void specialize(Step& step) const {
    step.spec(result)
        .spec(static_cast<uint64_t>(low))
        .spec(static_cast<uint32_t>(activation.function))
        .spec(has_bias)
        .spec(has_zero);
  }
  /// Before a shader stores single elements: their bytes are added to words.
  void clear(Program& program, const Ref& to) const {
    if (result == 2) program.fill(to, 0);
  }
  /// scale_step, alpha, beta.
  void push(Step& step) const { step.push(per_channel ? 1 : 0).push(activation.alpha).push(activation.beta); }
  /// Bindings 2 to 6; absent operands are not bound.
  void bind(Step& step, const Ref& to) const {
    step.write(2, to);
    if (result == 0) return;
    step.read(3, in(scale));
    if (has_bias) step.read(4, in(bias));
    if (result == 2) step.read(5, in(y_scale));
    if (has_zero) step.read(6, in(y_zero));
  }
};

/// For a Requantize, QuantizedConv or QuantizedMatMul, whose scale, bias, y_scale and y_zero_point are these
/// inputs.
template <class Attributes>
RequantizePlan plan_requantize(const NodeView& node, size_t scale, size_t bias, size_t y_scale,
                               size_t y_zero) {
  RequantizePlan plan{.scale = scale, .bias = bias, .y_scale = y_scale, .y_zero = y_zero};
  const DType to = node.output(0).dtype;
  plan.result = to == DType::F32 ? 1 : 2;
  plan.low = to == DType::I8 ? -128 : 0;
  plan.activation = function_call(node.as<Attributes>().epilogue.get());
  plan.has_bias = node.has(bias);
  plan.has_zero = node.has(y_zero);
  plan.per_channel = node.input(scale).elements() != 1;
  return plan;
}

}  // namespace librt::vulkan
