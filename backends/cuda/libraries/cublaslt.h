// Matmuls by cuBLASLt, if installed: with bias, residual and activation in the same kernel.
//
// Knows: the library's descriptors, which matmuls it supports. Must not know: nodes, plans.
#pragma once

#include <memory>
#include <string>

#include "kernels/matmul.h"
#include "runtime/core/status.h"

namespace librt::cuda {

/// One matmul with the algorithm that the library's heuristic proposes for it.
class CublasLtMatmul {
 public:
  virtual ~CublasLtMatmul() = default;
  /// Device memory for each run.
  virtual size_t workspace_bytes() const noexcept = 0;
  /// Enqueues the matmul; arguments as given to plan(), now with addresses. Gemm::partial is the
  /// workspace.
  virtual cudaError_t run(const MatMulArguments& arguments, cudaStream_t stream) const = 0;
};

class CublasLt {
 public:
  virtual ~CublasLt() = default;
  /// The library of the toolkit's major version, with a handle for the calling thread's device. Fails with a
  /// message: not found, another version, functions missing, initialization failed.
  static Result<std::shared_ptr<CublasLt>> open();
  /// Version, "13.1.0", or why there is none; without a handle, unloaded again.
  static Result<std::string> installed_version();

  /// Whether the library applies the activation within the GEMM's kernel.
  static bool has_activation(Function function) noexcept;

  /// Unsupported, with the reason, for what the library does not compute: other types than f32, f16, bf16 and
  /// i8, batches with more than one stride, biases that differ from row to row, other activations. i8 matmuls
  /// have i32 results and no epilogue, their B is transposed, and n and k are multiples of 4. tf32: f32
  /// matmuls may round their operands.
  virtual Result<std::shared_ptr<const CublasLtMatmul>> plan(const MatMulArguments& arguments, bool tf32,
                                                             bool has_bias, bool has_residual) = 0;
};

}  // namespace librt::cuda
