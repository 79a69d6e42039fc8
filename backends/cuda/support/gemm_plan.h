// Arguments of the GEMM kernels (kernels/gemm.h), from nodes.
//
// Knows: geometry, epilogues, batches, limits. Must not know: single rows of the kernel table.
#pragma once

#include "backends/cuda/kernel.h"
#include "kernels/conv.h"
#include "kernels/matmul.h"
#include "kernels/quantize.h"
#include "runtime/geometry/broadcast.h"
#include "runtime/geometry/function.h"
#include "runtime/geometry/windows.h"

namespace librt::cuda {

/// Which inputs carry the epilogue's operands; kNone: absent.
struct EpilogueInputs {
  static constexpr size_t kNone = ~size_t{0};
  size_t bias = kNone, residual = kNone;
};

/// Bias is input 2, residual the last one.
EpilogueInputs epilogue_inputs(const op::EpilogueAttributes* epilogue, const NodeView& node);

/// Sets the addresses of one recorded node: bias, residual, result, partial sums at the start of the scratch.
void bind_gemm(Gemm& gemm, const EpilogueInputs& inputs, const Call& call);

/// Indices of a requantization's operands among a node's inputs.
struct RequantizeInputs {
  size_t scale, bias, y_scale, y_zero;
};
/// Without addresses.
template <class Attributes>
Requantization requantization_of(const NodeView& node, const RequantizeInputs& inputs) {
  return {.to = element_type(node.output(0).dtype),
          .activation = function_call(node.as<Attributes>().epilogue.get()),
          .one_scale = node.input(inputs.scale).elements() == 1};
}
void bind_requantization(Requantization& requantization, const RequantizeInputs& inputs, const Call& call);

/// The batch's extents, and for each of `plan`'s operands k its strides times elements[k], in the order of
/// GemmBatch::Operand.
template <int kOperands>
void fill_batch(GemmBatch& batch, const BroadcastPlan<kOperands>& plan,
                const std::array<int, kOperands>& which, const std::array<int64_t, kOperands>& elements) {
  batch.rank = plan.rank;
  for (int i = 0; i < plan.rank; ++i) {
    const auto axis = static_cast<size_t>(i);
    batch.extent[i] = plan.extent[axis];
    for (size_t k = 0; k < kOperands; ++k) batch.stride[which[k]][i] = plan.stride[k][axis] * elements[k];
  }
}

/// Ok if tensor cores may multiply this type: f32 only if the session requested TF32.
Status tensor_cores_support(const CudaDevice& device, DType dtype);

/// Ok if there is a tile for every multiprocessor.
Status tiles_occupy(const CudaDevice& device, const Gemm& gemm, const MatMulTile& tile);

/// Ok if m, n, k and the number of tiles fit the kernels' 32-bit integers.
Status gemm_fits(int64_t m, int64_t n, int64_t k, int64_t matrices);

/// The convolution of a Conv, ConvTranspose, ConvWeightGrad or ConvInteger node, as kernels take it.
Result<ConvWindows> conv_windows(const ConvGeometry& geometry);
/// gemm_fits() for one of its forms.
Status conv_fits(const ConvGeometry& geometry, ConvForm form);

}  // namespace librt::cuda
