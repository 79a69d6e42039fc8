// Matmuls by the own GEMM (gemm.h), for builds without oneDNN, and where it has no implementation.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/support/epilogue.h"
#include "runtime/geometry/matmul.h"

namespace librt::cpu {

/// f32: input 0 times input 1 with at least one element of k and of the result, and the epilogue as a pass
/// over the result. constant_b: the bytes of input 1 when they are known.
KernelPtr make_matmul_gemm(const CpuDevice& device, MatMulGeometry geometry, const void* constant_b,
                           const Finish& finish, const EpilogueInputs& inputs);

}  // namespace librt::cpu
