// The epilogue of a product, y = activation(y + bias + residual), as a pass over y: for products whose own
// library cannot do it, and for biases that broadcast in an unusual way.
#pragma once

#include "backends/common/broadcast.h"
#include "backends/cpu/device.h"
#include "backends/cpu/parallel.h"
#include "runtime/graph/node_view.h"

namespace rt::cpu {

/// Where the epilogue's operands are among a node's inputs, or -1.
struct EpilogueInputs {
  int bias = -1, residual = -1;
};
template <class Attributes>
EpilogueInputs epilogue_inputs(const NodeView& node) {
  EpilogueInputs inputs;
  if (const auto& epilogue = node.as<Attributes>().epilogue) {
    if (epilogue->has_bias) inputs.bias = 2;
    if (epilogue->has_residual) inputs.residual = static_cast<int>(node.input_count()) - 1;
  }
  return inputs;
}

/// The loop of an activation; null for None.
Simd::Unary activation_of(const Simd& simd, op::Activation activation) noexcept;

/// Whether an activation is made of a maximum or a minimum: libraries' lose NaN.
bool bounds_values(op::Activation activation) noexcept;
/// activation_of() over n numbers of f32 or bf16.
void activate(const Simd& simd, DType dtype, op::Activation activation, float alpha, float beta, std::byte* y,
              int64_t n) noexcept;
/// Of f32 or bf16. Floor: x is read once.
bool all_finite(DType dtype, const std::byte* x, int64_t n) noexcept;

class Finish {
 public:
  Finish() = default;
  /// bias is the shape that broadcasts to the result; only looked at when there is a bias.
  Finish(const Simd& simd, const Shape& result, const op::EpilogueAttributes* epilogue, const Shape& bias);
  /// bias and residual are null where there is none.
  void run(float* y, const float* bias, const float* residual) const noexcept;

 private:
  int64_t elements_ = 0;
  BroadcastPlan<2> plan_;
  Simd::Binary add_ = nullptr, add_bias_ = nullptr;
  Simd::Unary activation_ = nullptr;
  float alpha_ = 0, beta_ = 0;
};

}  // namespace rt::cpu
