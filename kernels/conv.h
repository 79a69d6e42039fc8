// Convolutions and their two gradients: launcher arguments. Data [N,S1,S2,S3,C], weight
// [O,K1,K2,K3,C/groups].
//
// All three are described by the forward convolution x * weight -> y:
//   Forward    (x, weight) -> y
//   Data       (y, weight) -> x    the data gradient, which is ConvTranspose
//   Weight     (x, y)      -> weight
#pragma once

#include "kernels/gemm.h"

namespace librt::cuda {

enum class ConvForm : uint8_t { Forward, Data, Weight };

enum class ConvAlgorithm : uint8_t {
  Plain,     ///< implicit GEMM with FMAs on CUDA cores, f32
  Tensor64,  ///< tensor cores: f16, bf16 and f32 rounded to TF32 (the latter two need sm_80)
  Tensor128,
  Direct,  ///< one thread per result: few channels per group, as in depthwise convolutions; f32, f16 and bf16
};

/// Missing spatial axes have extent, kernel and stride 1. Every tensor has fewer than 2^31 pixels, and the
/// GEMM's k is below 2^31.
struct ConvWindows {
  int batch = 0, groups = 1;
  int input_channels = 0, output_channels = 0;
  int input[3] = {1, 1, 1}, output[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1};
  int pad[3] = {}, dilation[3] = {1, 1, 1};

  int group_in() const { return input_channels / groups; }
  int group_out() const { return output_channels / groups; }
  int64_t taps() const { return int64_t{1} * kernel[0] * kernel[1] * kernel[2]; }
  int64_t input_pixels() const { return int64_t{1} * batch * input[0] * input[1] * input[2]; }
  int64_t output_pixels() const { return int64_t{1} * batch * output[0] * output[1] * output[2]; }
};

/// The GEMM of a form: extents, groups as matrices, strides.
Gemm conv_gemm(const ConvWindows& windows, ConvForm form);

/// `gemm` as returned by conv_gemm(), with result, epilogue (Forward and Data), splits and partial
/// filled in.
struct ConvArguments {
  ElementType type = ElementType::F32;
  ConvForm form = ConvForm::Forward;
  ConvAlgorithm algorithm = ConvAlgorithm::Plain;
  const void *first = nullptr, *second = nullptr;  ///< the operands in the order above
  ConvWindows windows;
  Gemm gemm;
};
cudaError_t conv(const ConvArguments& arguments, cudaStream_t stream);

/// Number of splits (of the pixels) for the direct form of Weight.
int conv_direct_splits(const ConvWindows& windows, int multiprocessors);

}  // namespace librt::cuda
