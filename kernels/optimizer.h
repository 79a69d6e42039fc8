// Optimizer steps, one pass over a parameter. Results may alias their operands.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/types.h"

namespace librt::cuda {

enum class StepRule : uint8_t { Sgd, Adam, RmsProp, Adagrad, Adadelta, Lamb, Lion };

inline constexpr int kMaxStates = 3;
/// The largest grid of a step; Lamb has two sums per thread block.
inline constexpr unsigned kMaxStepBlocks = 2048;

/// Arguments common to all rules. Scalars are passed as device pointers, so that recorded work never changes.
/// Formulas: schema/ops.fbs.
struct StepArguments {
  StepRule rule = StepRule::Sgd;
  bool variant = false;                 ///< Sgd: Nesterov; Adam: decoupled weight decay
  ElementType type = ElementType::F32;  ///< of parameter and gradient: f32, f16, bf16
  int64_t count = 0;
  const void *parameter = nullptr, *grad = nullptr;
  void* new_parameter = nullptr;
  const float* learning_rate = nullptr;
  const int32_t* step = nullptr;          ///< counts from 1
  const float* gradient_scale = nullptr;  ///< null: 1
  const bool* skip = nullptr;             ///< null: false; true: everything stays as it is
  float beta1 = 0, beta2 = 0;  ///< beta1, beta2: momentum or the decay rate of the first state; of the second
  float one_minus_beta1 = 1, one_minus_beta2 = 1;  ///< 1 - beta, rounded once
  float log_beta1 = 0, log_beta2 = 0;
  float share = 1;     ///< Sgd: factor of the gradient in the new velocity, after step 1
  float momentum = 0;  ///< RmsProp
  float epsilon = 0, weight_decay = 0;
  bool has[kMaxStates] = {};   ///< which states are present
  float* direction = nullptr;  ///< Lamb: memory for `count` values
  float* squares = nullptr;    ///< Lamb: memory for 2 kMaxStepBlocks values
};

/// States [count] in f32; null where absent.
struct StepStates {
  const float* now[kMaxStates] = {};
  float* next[kMaxStates] = {};
};

/// Quantized states in blocks of `size` elements, a multiple of 4 of at most kLargestStateBlock, the last one
/// shorter: each value is codebook[code] times its block's scale.
struct BlockStates {
  const uint8_t* quantized[kMaxStates] = {};
  const float* scales[kMaxStates] = {};
  uint8_t* next_quantized[kMaxStates] = {};
  float* next_scales[kMaxStates] = {};
  bool negative[kMaxStates] = {};  ///< signed: codebook 0; else codebook 1, and values above 0 stay above 0
  const float* codebooks[2] = {};  ///< ascending
  int levels[2] = {};              ///< 2 to 256 values
  int size = 256;
};
inline constexpr int64_t kLargestStateBlock = 1024;

cudaError_t optimizer_step(const StepArguments& arguments, const StepStates& states, cudaStream_t stream);
cudaError_t blockwise_step(const StepArguments& arguments, const BlockStates& states, cudaStream_t stream);

}  // namespace librt::cuda
