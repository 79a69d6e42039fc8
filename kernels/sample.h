// GridSample and RoiAlign: samples between the points of x [batch, spatial axes, channels], f32.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace librt::cuda {

inline constexpr int kMaxSampleAxes = 6;

enum class SampleMode : uint8_t { Nearest, Linear, Cubic };
enum class SamplePadding : uint8_t { Zeros, Border, Reflection };

struct GridSampleArguments {
  const float* data = nullptr;
  const float* grid = nullptr;  ///< [batch, samples, rank], the last axis first
  float* result = nullptr;      ///< [batch, samples, channels]
  SampleMode mode = SampleMode::Linear;
  SamplePadding padding = SamplePadding::Zeros;
  bool align_corners = false;
  int rank = 2;
  int64_t batch = 1, samples = 1, channels = 1;
  int64_t extents[kMaxSampleAxes] = {};
};
cudaError_t grid_sample(const GridSampleArguments& arguments, cudaStream_t stream);

struct RoiAlignArguments {
  const float* data = nullptr;     ///< [images, height, width, channels]
  const float* corners = nullptr;  ///< [regions, x1 y1 x2 y2]
  const void* batch = nullptr;     ///< [regions]: which image
  bool wide_batch = true;          ///< i64, else i32
  float* result = nullptr;         ///< [regions, rows, columns, channels]
  bool maximum = false, half_pixel = true;
  int64_t sampling_ratio = 0;
  float spatial_scale = 1;
  int64_t images = 1, height = 1, width = 1, channels = 1;
  int64_t regions = 0, rows = 1, columns = 1;
};
cudaError_t roi_align(const RoiAlignArguments& arguments, cudaStream_t stream);
/// The gradient of data; grad_output has the shape of the result. Sums are made in the order of the regions.
cudaError_t roi_align_grad(const RoiAlignArguments& arguments, const float* grad_output, float* grad_data,
                           cudaStream_t stream);

}  // namespace librt::cuda
