// The epilogue of MatMul and Conv: y = activation(accumulator + bias + residual).
//
// Knows: which inputs carry it, how to check and apply it. Must not know: the matmul or convolution.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/ops/page.h"

namespace librt::ops {

/// Where the epilogue's operands are among a node's inputs: bias is input 2, residual the last one.
struct EpilogueInputs {
  bool has_bias = false;
  bool has_residual = false;
  size_t bias = 2;
  size_t residual = 3;
};
EpilogueInputs epilogue_inputs(const op::EpilogueAttributes* epilogue, size_t input_count) noexcept;

/// An error for an activation that is unknown, or that the build does not have.
Status check_activation(op::Activation activation);

/// activation(x) in double.
double activate(const op::EpilogueAttributes& epilogue, double x) noexcept;

/// Checks the presence, types and shapes of bias (broadcastable to the result; with channels_only exactly the
/// result's last axis) and residual (the result's shape). `dtype` is the result's.
Status check_epilogue(const NodeView& node, const op::EpilogueAttributes* epilogue, DType dtype,
                      const Shape& result, bool channels_only);

/// Adds bias and residual to `values` (row-major, of the output's shape), applies the activation and stores
/// the output.
template <class T>
void finish(const NodeView& node, const op::EpilogueAttributes* epilogue,
            std::span<const ConstTensorView> inputs, std::vector<T> values, const TensorView& output);

/// Flops of an epilogue on `elements` elements.
double epilogue_flops(const op::EpilogueAttributes* epilogue, double elements) noexcept;

/// Gradients of bias and residual for a rule whose forward node has no activation. Returns the gradient of
/// the matmul's or convolution's result, or kNoValue after failing the emitter.
ValueId epilogue_gradient(GradContext& context, const op::EpilogueAttributes* epilogue);

}  // namespace librt::ops
