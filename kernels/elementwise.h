// Chains of element-wise functions in one pass over memory, with broadcasting.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/index_space.h"

namespace librt::cuda {

inline constexpr int kMostChainInputs = 6, kMostChainSteps = 8, kChainSaved = 3;

/// One function of f32, whose result is rounded to the element type. Operands: k < kMostChainInputs: input k;
/// kChainPrevious: the result of the step before; kChainPrevious + 1 + i: what was saved in i.
struct ChainStep {
  enum class Form : uint8_t { Unary, Binary, Compare, Select };
  Form form;
  uint8_t function;  ///< the value of Function, BinaryFunction or CompareFunction
  uint8_t operands[3];
  uint8_t save;  ///< where the result is saved; kChainSaved: nowhere
  float alpha, beta;
};
inline constexpr uint8_t kChainPrevious = kMostChainInputs;

/// Operands of the space: the inputs; the result is dense. width: see BroadcastArguments.
struct ElementwiseArguments {
  IndexSpace<kMostChainInputs> space;
  ElementType type;  ///< F32, F16 or BF16: of the result, and of the inputs that are not booleans
  int width;
  int64_t count;
  int inputs, steps;
  bool is_bool[kMostChainInputs];
  ChainStep step[kMostChainSteps];
  const void* x[kMostChainInputs];
  void* y;
};
cudaError_t elementwise(const ElementwiseArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
