// Optimizer steps, one pass over a parameter. Results may take their operands' places; moments are f32.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/types.h"

namespace rt::cuda {

/// What every step has: g = gradient_scale grad + weight_decay parameter. Pointers are on the device, so that
/// recorded work never changes.
struct StepOperands {
  ElementType type = ElementType::F32;  ///< of parameter and gradient: f32, f16, bf16
  const void *parameter = nullptr, *grad = nullptr;
  void* new_parameter = nullptr;
  const float* learning_rate = nullptr;
  const int32_t* step = nullptr;          ///< counts from 1
  const float* gradient_scale = nullptr;  ///< null: 1
  const bool* skip = nullptr;             ///< null: false; true: everything stays as it is
  float weight_decay = 0;
  int64_t count = 0;
};

/// v' = momentum v + (1 - dampening) g, without dampening at step 1; p' = p - lr v', Nesterov:
/// p - lr (g + momentum v').
struct SgdArguments {
  StepOperands operands;
  const float* velocity = nullptr;  ///< null: p' = p - lr g
  float* new_velocity = nullptr;
  float momentum = 0, dampening = 0;
  bool nesterov = false;
};
cudaError_t sgd_step(const SgdArguments& arguments, cudaStream_t stream);

/// Adam (Kingma, Ba 2015); decoupled: AdamW (Loshchilov, Hutter 2019); with the largest second moment:
/// AMSGrad (Reddi, Kale, Kumar 2018).
struct AdamArguments {
  StepOperands operands;
  const float *first = nullptr, *second = nullptr;
  const float* largest = nullptr;  ///< may be null
  float *new_first = nullptr, *new_second = nullptr, *new_largest = nullptr;
  float beta1 = 0, beta2 = 0;
  float rest1 = 1, rest2 = 1;          ///< 1 - beta, rounded once
  float log_beta1 = 0, log_beta2 = 0;  ///< their logarithms
  float epsilon = 0;
  bool decoupled = false;
};
cudaError_t adam_step(const AdamArguments& arguments, cudaStream_t stream);

}  // namespace rt::cuda
