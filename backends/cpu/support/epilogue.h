// The epilogue of a matmul or convolution, y = activation(y + bias + residual), as a separate pass over y:
// for kernels whose library cannot fuse it, and for biases with unusual broadcasting.
#pragma once

#include "backends/cpu/device/device.h"
#include "backends/cpu/device/parallel.h"
#include "backends/cpu/simd/binary.h"
#include "backends/cpu/simd/unary.h"
#include "runtime/geometry/broadcast.h"
#include "runtime/graph/node_view.h"

namespace librt::cpu {

/// Input indices of the epilogue's operands, or -1.
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

/// The vector loop of an activation; null for None.
UnaryLoops::Unary activation_of(const Simd& simd, op::Activation activation) noexcept;

/// Whether an activation uses max or min: those of libraries lose NaN.
bool bounds_values(op::Activation activation) noexcept;
/// activation_of() in place over n elements of f32 or bf16.
void activate(const Simd& simd, DType dtype, op::Activation activation, float alpha, float beta, std::byte* y,
              int64_t n) noexcept;
/// Of f32 or bf16. Floor: x is read once.
bool all_finite(DType dtype, const std::byte* x, int64_t n) noexcept;

class Finish {
 public:
  Finish() = default;
  /// bias is the shape that broadcasts to the result; ignored where the epilogue has no bias.
  Finish(const Simd& simd, const Shape& result, const op::EpilogueAttributes* epilogue, const Shape& bias);
  /// bias and residual are null where there is none.
  void run(float* y, const float* bias, const float* residual) const noexcept;
  /// The same for the elements [begin, end) only, on the calling thread: while a kernel has them in a cache.
  void run_part(float* y, const float* bias, const float* residual, int64_t begin,
                int64_t end) const noexcept;
  /// For rows and columns [.., ..) of a matrix of `stride` columns whose first element is element `at` of y.
  void run_block(float* y, const float* bias, const float* residual, int64_t at, Range rows, Range columns,
                 int64_t stride) const noexcept {
    if (columns.begin == 0 && columns.end == stride)
      return run_part(y, bias, residual, at + rows.begin * stride, at + rows.end * stride);
    for (int64_t row = rows.begin; row < rows.end; ++row)
      run_part(y, bias, residual, at + row * stride + columns.begin, at + row * stride + columns.end);
  }

 private:
  int64_t elements_ = 0;
  BroadcastPlan<2> plan_;
  BinaryLoops::Binary add_ = nullptr, add_bias_ = nullptr;
  UnaryLoops::Unary activation_ = nullptr;
  float alpha_ = 0, beta_ = 0;
};

}  // namespace librt::cpu
