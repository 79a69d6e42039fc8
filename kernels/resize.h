// Resize by tap tables: every result is a weighted sum of a few points of x [batch, spatial axes, channels].
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/types.h"

namespace librt::cuda {

/// The index read along the axis, times the axis' stride in points; negative outside of x.
struct ResizeTap {
  int32_t index;
  float weight;
};

inline constexpr int kMaxResizeAxes = kMaxAxes - 2;

struct ResizeArguments {
  const void* data = nullptr;
  void* result = nullptr;
  const ResizeTap* table = nullptr;  ///< [outputs of axis 0][taps], then those of axis 1, ...
  ElementType type = ElementType::F32;
  int unit = 4;             ///< bytes of an element, for copies
  uint64_t fill = 0;        ///< their bits for taps outside of x
  float extrapolation = 0;  ///< the same for weighted sums
  int rank = 2;             ///< 2, 3 or kMaxResizeAxes; axes missing in x come first, with extent 1
  int taps = 1;
  int64_t batch = 1, channels = 1;
  int64_t points = 1, results = 1;       ///< of one image
  int64_t outputs[kMaxResizeAxes] = {};  ///< results along each axis
};

/// One tap of weight 1 per axis: elements of any type are copied.
cudaError_t resize_nearest(const ResizeArguments& arguments, cudaStream_t stream);
/// f32, f16, bf16.
cudaError_t resize_sum(const ResizeArguments& arguments, cudaStream_t stream);

}  // namespace librt::cuda
