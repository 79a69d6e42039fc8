// SoftmaxCrossEntropy: the mean over rows of -log softmax(logits)[label].
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/types.h"

namespace librt::cuda {

struct CrossEntropyArguments {
  const void* logits = nullptr;  ///< [rows, classes], f32, f16 or bf16
  const void* labels = nullptr;  ///< [rows]; one outside [0, classes) contributes 0
  void* result = nullptr;        ///< a scalar of the logits' type
  float* losses = nullptr;       ///< [rows], scratch
  ElementType type = ElementType::F32;
  bool wide_labels = true;  ///< i64, else i32
  int64_t rows = 0, classes = 1;
};

cudaError_t cross_entropy(const CrossEntropyArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
