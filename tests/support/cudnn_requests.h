// Convolutions of known nets and rarer ones, with epilogues: for the tests with cuDNN and with the fake
// library.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/libraries/cudnn.h"

namespace librt::cuda {

struct CudnnShape {
  const char* name;
  ConvWindows windows;
};

inline ConvWindows conv_windows_of(int batch, int in, int out, int extent, int kernel, int stride, int pad,
                                   int dilation = 1, int groups = 1) {
  ConvWindows w{.batch = batch, .groups = groups, .input_channels = in, .output_channels = out};
  for (int axis = 0; axis < 2; ++axis) {
    w.input[axis] = extent;
    w.kernel[axis] = kernel;
    w.stride[axis] = stride;
    w.pad[axis] = pad;
    w.dilation[axis] = dilation;
    w.output[axis] = (extent + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
  }
  return w;
}

inline std::vector<CudnnShape> cudnn_shapes() {
  ConvWindows video = conv_windows_of(2, 32, 64, 28, 3, 1, 1);
  video.input[2] = video.output[2] = 28;
  video.kernel[2] = 3;
  video.pad[2] = 1;
  ConvWindows sound = conv_windows_of(4, 64, 96, 1, 1, 1, 0);
  sound.input[0] = 400;
  sound.kernel[0] = 5;
  sound.stride[0] = 2;
  sound.output[0] = 198;
  ConvWindows lopsided = conv_windows_of(8, 32, 64, 57, 3, 2, 0);
  lopsided.output[0] = lopsided.output[1] = 29;  // one more padded pixel at the end than at the start
  return {{"ResNet-50, first", conv_windows_of(8, 3, 64, 224, 7, 2, 3)},
          {"ResNet-50, 3 x 3", conv_windows_of(64, 64, 64, 56, 3, 1, 1)},
          {"ResNet-50, 1 x 1", conv_windows_of(8, 256, 64, 56, 1, 1, 0)},
          {"ResNet-50, with stride", conv_windows_of(8, 128, 128, 56, 3, 2, 1)},
          {"ResNeXt, grouped", conv_windows_of(8, 128, 128, 56, 3, 1, 1, 1, 32)},
          {"MobileNet, depthwise", conv_windows_of(8, 96, 96, 112, 3, 2, 1, 1, 96)},
          {"dilated", conv_windows_of(2, 256, 256, 64, 3, 1, 2, 2)},
          {"padded on one side", lopsided},
          {"three axes", video},
          {"one axis", sound}};
}

/// A convolution with an epilogue. built: by a precompiled engine of the library; the others are compiled at
/// run time, which requires a driver.
struct CudnnChain {
  const char* name;
  ConvForm form = ConvForm::Forward;
  bool bias = false, residual = false;
  FunctionCall activation;
  bool built = false;
};
inline const CudnnChain kCudnnChains[] = {
    {.name = "forward", .built = true},
    {.name = "data", .form = ConvForm::Data, .built = true},
    {.name = "weight", .form = ConvForm::Weight, .built = true},
    {.name = "data + bias", .form = ConvForm::Data, .bias = true},
    {.name = "forward + bias", .bias = true},
    {.name = "forward + residual + bias", .bias = true, .residual = true},
    {.name = "Relu(forward)", .activation = {Function::Relu}},
    {.name = "Relu(forward + bias)", .bias = true, .activation = {Function::Relu}},
    {.name = "Relu(forward + residual + bias)",
     .bias = true,
     .residual = true,
     .activation = {Function::Relu},
     .built = true},
    {.name = "Clip(forward + bias)", .bias = true, .activation = {Function::Clip, 0, 6}},
    {.name = "LeakyRelu(forward + bias)", .bias = true, .activation = {Function::LeakyRelu, 0.1f}},
    {.name = "Sigmoid(forward + bias)", .bias = true, .activation = {Function::Sigmoid}},
    {.name = "Tanh(forward + bias)", .bias = true, .activation = {Function::Tanh}},
    {.name = "Silu(forward + residual + bias)",
     .bias = true,
     .residual = true,
     .activation = {Function::Silu}},
    {.name = "Gelu(forward + bias)", .bias = true, .activation = {Function::Gelu}},
    {.name = "GeluTanh(forward + bias)", .bias = true, .activation = {Function::GeluTanh}},
};

/// Calls f(name, request) for every graph, or only those that are built.
template <class F>
void each_cudnn_request(ElementType type, bool tf32, bool all, F&& f) {
  const char* type_name = type == ElementType::F16 ? "f16" : type == ElementType::BF16 ? "bf16" : "f32";
  for (const CudnnShape& shape : cudnn_shapes())
    for (const CudnnChain& chain : kCudnnChains) {
      if (!all && !chain.built) continue;
      ConvArguments arguments{.type = type, .form = chain.form, .windows = shape.windows};
      arguments.gemm.epilogue.activation = chain.activation;
      f(text(shape.name, ", ", tf32 ? "tf32" : type_name, ", ", chain.name),
        CudnnRequest{arguments, chain.bias, chain.residual, tf32});
    }
}

}  // namespace librt::cuda
