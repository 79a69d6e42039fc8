// Batch and layer normalization: launcher arguments. Channels are the last axis.
//
// Types: x f32, f16 or bf16; parameters and statistics have x's type or f32.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/types.h"

namespace librt::cuda {

struct NormTypes {
  ElementType x = ElementType::F32;
  ElementType parameters = ElementType::F32;
};

/// y = (x - mean) scale / sqrt(variance + epsilon) + bias; y may be x.
struct BatchNormArguments {
  NormTypes types;
  const void *x = nullptr, *scale = nullptr, *bias = nullptr, *mean = nullptr, *variance = nullptr;
  void* y = nullptr;
  int64_t samples = 0, channels = 0;
  float epsilon = 0;
};
cudaError_t batch_norm(const BatchNormArguments& arguments, cudaStream_t stream);

/// For the training forms: partial sums and per-channel coefficients.
size_t batch_norm_scratch_bytes(const NormTypes& types, int64_t samples, int64_t channels);

struct BatchNormTrainArguments {
  NormTypes types;
  const void *x = nullptr, *scale = nullptr, *bias = nullptr, *running_mean = nullptr,
             *running_variance = nullptr;
  void *y = nullptr, *new_mean = nullptr, *new_variance = nullptr, *batch_mean = nullptr,
       *batch_inverse = nullptr;
  float* scratch = nullptr;
  int64_t samples = 0, channels = 0;
  float epsilon = 0, momentum = 0;
  bool unbiased = false;
};
cudaError_t batch_norm_train(const BatchNormTrainArguments& arguments, cudaStream_t stream);

/// With xh = (x - mean) inverse: grad_bias = sum g, grad_scale = sum g xh,
/// grad_x = scale inverse (g - grad_bias / n - xh grad_scale / n).
struct BatchNormGradArguments {
  NormTypes types;
  const void *x = nullptr, *grad_y = nullptr, *scale = nullptr, *mean = nullptr, *inverse = nullptr;
  void *grad_x = nullptr, *grad_scale = nullptr, *grad_bias = nullptr;
  float* scratch = nullptr;
  int64_t samples = 0, channels = 0;
};
cudaError_t batch_norm_grad(const BatchNormGradArguments& arguments, cudaStream_t stream);

/// x, y [rows,columns]: (x - mean) / sqrt(variance + epsilon) scale + bias with the row's statistics; not
/// centered: with a mean of 0. Scale and bias may be null, per column, or a scalar (stride 0). y may be x.
struct LayerNormArguments {
  NormTypes types;
  const void *x = nullptr, *scale = nullptr, *bias = nullptr;
  void* y = nullptr;
  int64_t rows = 0, columns = 0;
  int64_t scale_stride = 1, bias_stride = 1;
  float epsilon = 0;
  bool centered = true;
};
cudaError_t layer_norm(const LayerNormArguments& arguments, cudaStream_t stream);

/// Its gradients, from those of y: grad_x in norm.y, and sums over the rows in grad_scale and grad_bias, of
/// the parameters' type; norm.bias is not read. scratch: layer_norm_grad_scratch_bytes().
struct LayerNormGradArguments {
  LayerNormArguments norm;
  const void* grad_y = nullptr;
  void *grad_scale = nullptr, *grad_bias = nullptr;
  float* scratch = nullptr;
};
size_t layer_norm_grad_scratch_bytes(const NormTypes& types, int64_t rows, int64_t columns);
cudaError_t layer_norm_grad(const LayerNormGradArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
