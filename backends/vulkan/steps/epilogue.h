// The epilogue of MatMul and Conv as shaders/epilogue.glsl takes it.
#pragma once

#include "backends/vulkan/kernel.h"
#include "runtime/geometry/function.h"

namespace librt::vulkan {

struct EpiloguePlan {
  FunctionCall activation;
  bool has_bias = false;
  bool has_residual = false;
  size_t bias = 0;      ///< input index
  size_t residual = 0;  ///< input index

  /// Constants 5 to 7 of the shader.
  void specialize(Step& step) const {
    step.spec(static_cast<uint32_t>(activation.function)).spec(has_bias).spec(has_residual);
  }
  /// Bindings 3 and 4; absent operands are not bound.
  void bind(Step& step) const {
    if (has_bias) step.read(3, in(bias));
    if (has_residual) step.read(4, in(residual));
  }
};

/// `first`: the input after the operands A and B.
inline EpiloguePlan plan_epilogue(const op::EpilogueAttributes* attributes, const NodeView& node,
                                  size_t first) {
  EpiloguePlan plan;
  if (attributes == nullptr) return plan;
  plan.activation = function_call(attributes);
  plan.has_bias = attributes->has_bias;
  plan.has_residual = attributes->has_residual;
  plan.bias = first;
  plan.residual = node.input_count() - 1;
  return plan;
}

}  // namespace librt::vulkan
