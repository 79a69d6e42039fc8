// Kernels that call oneDNN: matmuls, and convolutions with their gradients.
//
// Knows: how to describe these operations to oneDNN 2.6 to 3.x, and to run the primitives without allocating.
// Only the files of onednn/ see oneDNN's types and exceptions; a build without it (RT_ONEDNN=OFF) has
// absent.cpp in their place. Must not know: graphs, attributes of operators.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/device/device.h"
#include "backends/cpu/support/epilogue.h"
#include "backends/cpu/support/requantize.h"
#include "runtime/geometry/windows.h"
#include "runtime/graph/op.h"

namespace librt::cpu::onednn {

#if defined(RT_HAS_ONEDNN)
inline constexpr bool kBuilt = true;
#else
inline constexpr bool kBuilt = false;  ///< absent.cpp stands in for the other files
#endif
/// Unsupported, with the reason, in a build without oneDNN, and where a process may not generate code.
Status usable();
/// Also for a convolution of which a window may lie in the padding altogether: oneDNN 3.7 reads out of bounds
/// there (brgemm on AVX2; a kernel of 1, a stride of 2, one position of padding).
Status usable_for(const ConvGeometry& geometry);
/// The same for the gradient of the weights. With a kernel of 1, a stride and fewer channels than a register
/// has lanes, oneDNN 2.6 copies the points that the stride reaches a register at a time, past the end of its
/// scratchpad (AVX2, channels last): other threads' copies and the barrier are overwritten, results are
/// wrong, and threads wait for ever.
Status usable_for_weight_gradient(const ConvGeometry& geometry);

/// Version of the loaded library: "oneDNN 2.6.3"; where it is not usable "own kernels".
std::string version();

/// oneDNN removed its Winograd convolutions in 3.2.
bool has_winograd();

/// y = activation(y + bias + residual) after a matmul or convolution; the residual has the result's shape.
struct Epilogue {
  op::Activation activation = op::Activation::None;
  float alpha = 0, beta = 0;
  int bias_input = -1;  ///< which of the node's inputs; -1: none
  int residual_input = -1;
};

/// One operand of a matmul, as stored in memory.
struct Matrix {
  std::vector<int64_t>
      batch;  ///< batch dimensions, 1 where broadcast; of one rank for both operands and the result
  bool transposed = false;
  const void* constant = nullptr;  ///< its bytes, when known
};

/// An epilogue that oneDNN cannot fuse, run over the f32 result afterwards.
struct LateEpilogue {
  Finish finish;
  EpilogueInputs inputs;
};

/// Whether the CPU has bf16 dot product instructions; oneDNN would emulate them at a third of f32's speed.
bool has_bf16() noexcept;

/// Input 0 [batch, M, K] times input 1 [batch, K, N], all f32 or all bf16. The bias of `epilogue` is [N].
struct MatMul {
  DType dtype = DType::F32;
  int64_t m = 0, k = 0, n = 0;
  Matrix a, b;
  std::vector<int64_t> batch;
  Epilogue epilogue;
  std::optional<LateEpilogue> finish;
};
Result<KernelPtr> make_matmul(const CpuDevice& device, const MatMul& matmul);

/// Winograd (Lavin & Gray 2016), by output tile; 2x2 takes constant weights only.
enum class Algorithm : uint8_t { Direct, Winograd2x2, Winograd4x4 };

/// Input 0 x [N,S..,C], input 1 weight [O,K..,C/groups], result [N,S'..,O]; x and result in `layout`. All
/// f32, or all bf16 in the dense layout.
struct Convolution {
  DType dtype = DType::F32;
  ConvGeometry geometry;
  Algorithm algorithm = Algorithm::Direct;
  LayoutId layout = kDense;
  const void* constant_weight = nullptr;
  Epilogue epilogue;
  bool late_activation = false;  ///< by our own loop over the result, not by the primitive
};
Result<KernelPtr> make_convolution(const CpuDevice& device, const Convolution& convolution);
/// Input 0 grad_output [N,S'..,O], input 1 weight, result [N,S..,C] plus, in f32, an optional bias [C].
Result<KernelPtr> make_convolution_data_gradient(const CpuDevice& device, const Convolution& convolution);
/// Input 0 x, input 1 grad_output, result [O,K..,C/groups], which is always dense.
Result<KernelPtr> make_convolution_weight_gradient(const CpuDevice& device, const Convolution& convolution);

// --- 8-bit integers, exact i32 accumulators

/// Whether oneDNN's 8-bit matmuls and convolutions are exact on this CPU: without VNNI, intermediate sums
/// saturate in 16 bits.
bool exact_integer_matmuls() noexcept;

/// Runs over an integer result. places: the result, `scratch` bytes, the window sums (of a convolution that
/// has them), then the node's inputs.
struct IntegerFinish {
  size_t scratch = 0;
  std::function<void(std::byte* const* buffers)> function;
};

/// Input 0 [batch, M, K] times input 1 [batch, K, N]; an unsigned input 1 is taken minus 128.
struct IntegerMatMul {
  int64_t m = 0, k = 0, n = 0;
  Matrix a, b;
  std::vector<int64_t> batch;
  bool a_signed = false, b_signed = true;
  size_t inputs = 2;
  IntegerFinish finish;
};
Result<KernelPtr> make_matmul_integer(const CpuDevice& device, const IntegerMatMul& matmul);

/// Input 0 x [N,S..,C] with input 1 weight [O,K..,C/groups]; an unsigned weight is taken minus 128.
struct IntegerConvolution {
  ConvGeometry geometry;
  bool x_signed = false, weight_signed = true;
  const void* constant_weight = nullptr;
  bool pad_with_zero_point = false;  ///< pad with input 2, not 0
  bool window_sums = false;          ///< also compute the sums of x over the windows, i32 [N,S'..,groups]
  size_t inputs = 2;
  IntegerFinish finish;
};
Result<KernelPtr> make_convolution_integer(const CpuDevice& device, const IntegerConvolution& convolution);

/// The operations above with constant signed weights and fused requantization. The zero point of input 0 must
/// already be folded into the bias; only a convolution's padding uses it (input 3).
Result<KernelPtr> make_quantized_matmul(const IntegerMatMul& matmul, const Requantization& last);
Result<KernelPtr> make_quantized_convolution(const IntegerConvolution& convolution,
                                             const Requantization& last);

}  // namespace librt::cpu::onednn
