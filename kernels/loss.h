// SoftmaxCrossEntropy: the mean over rows of -log softmax(logits)[label]; CrossEntropy and CrossEntropyGrad:
// the losses of rows, and the gradient of logits.
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

/// logits f32 [outer,classes,inner]; every other operand is by row, [outer,inner].
struct ClassLossArguments {
  const float* logits = nullptr;
  const void* labels = nullptr;    ///< one outside [0, classes), or ignore_index, does not count
  const float* weights = nullptr;  ///< [classes]; null: 1 each
  bool wide_labels = true;         ///< i64, else i32
  int64_t outer = 0, classes = 1, inner = 1, ignore_index = -1;
  float of_label = 1;  ///< the label's share in a loss
  float of_class = 0;  ///< the share of every class
};
/// Zeros where the label does not count.
struct RowLossResults {
  float *loss = nullptr, *weight = nullptr, *maximum = nullptr, *log_sum = nullptr;
};
cudaError_t cross_entropy_by_row(const ClassLossArguments& arguments, const RowLossResults& results,
                                 cudaStream_t stream);

struct RowLossSaved {
  const float *maximum = nullptr, *log_sum = nullptr, *grad_loss = nullptr;
};
/// grad_logits may be the logits.
cudaError_t cross_entropy_grad(const ClassLossArguments& arguments, const RowLossSaved& saved,
                               float* grad_logits, cudaStream_t stream);

}  // namespace librt::cuda
