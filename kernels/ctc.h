// CtcLoss: connectionist temporal classification (Graves et al. 2006), loss and gradient at once.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/types.h"

namespace librt::cuda {

struct CtcArguments {
  const void* log_probabilities = nullptr;  ///< [steps, batch, classes], f32, f16 or bf16
  const void* labels = nullptr;             ///< [batch, max_labels]
  const void *input_lengths = nullptr, *label_lengths = nullptr;  ///< [batch]
  void* loss = nullptr;                                           ///< [batch]
  void* gradient = nullptr;                                       ///< [steps, batch, classes]
  void* scratch = nullptr;                                        ///< ctc_scratch_bytes()
  ElementType type = ElementType::F32;
  bool wide_labels = true, wide_input_lengths = true, wide_label_lengths = true;  ///< i64, else i32
  bool zero_infinity = false;
  int64_t blank = 0;
  int64_t steps = 0, batch = 0, classes = 1, max_labels = 0;
};

size_t ctc_scratch_bytes(const CtcArguments& arguments);
cudaError_t ctc_loss(const CtcArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
