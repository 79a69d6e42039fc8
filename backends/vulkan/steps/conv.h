// The dispatches that convolutions and their gradients share: geometry as push constants, tiles, padded
// channels.
//
// Knows: ConvGeometry and the shaders conv*.comp. Must not know: attributes, which operator is computed.
#pragma once

#include "backends/vulkan/steps/epilogue.h"
#include "backends/vulkan/steps/repack.h"
#include "runtime/geometry/windows.h"

namespace librt::vulkan {

/// Input and output of the convolution shaders, from the loop's view: for the gradient with respect to the
/// data the input is grad_output.
struct ConvSides {
  bool transposed = false;
  int64_t in_channels = 0, out_channels = 0;
  int64_t batch = 0, groups = 1;
  std::array<int64_t, 3> in_extent{}, out_extent{};
  std::array<WindowAxis, 3> axes{};

  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
  int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  int64_t out_pixels() const { return batch * out_extent[0] * out_extent[1] * out_extent[2]; }
  /// Each output pixel is computed from the input pixel at its position.
  bool pointwise() const;
};
ConvSides conv_sides(const ConvGeometry& geometry, bool transposed);

/// Ok if the tiled shader supports this: two spatial axes, and channels of a group that are whole vec4s or
/// can be padded.
Status tiled_conv_supports(const ConvSides& sides);
/// Ok if cooperative matrices support this as an implicit GEMM: one group, whole vec4s of channels on both
/// sides.
Status matrix_conv_supports(const VulkanDevice& device, const ConvSides& sides, DType dtype);
/// Ok if every input channel has one output channel, whole vec4s of them.
Status depthwise_supports(const ConvSides& sides);

struct ConvOperands {
  Ref x, weight, y;
  const void* constant_weight = nullptr;  ///< host bytes, where the weight is constant
  DType dtype = DType::F32;               ///< f32, f16 or bf16, of all operands; accumulation is f32
};

void add_tiled_conv(Program& program, const VulkanDevice& device, const ConvSides& given,
                    const ConvOperands& operands, const EpiloguePlan& epilogue);
/// weight: [O,K..,I] as stored. Declines if the device's matrices are in quarantine.
void add_matrix_conv(Program& program, const VulkanDevice& device, const ConvSides& sides,
                     const ConvOperands& operands, const EpiloguePlan& epilogue);
void add_depthwise_conv(Program& program, const VulkanDevice& device, const ConvSides& sides,
                        const ConvOperands& operands, const EpiloguePlan& epilogue);
/// How depthwise shaders partition the output, some `channels` per invocation.
struct DepthwiseTile {
  int64_t pixels, taps, stride;  ///< taps, stride: of a row, if neighbours share their taps, else 0
  int64_t tiles_w, count, width;

  DepthwiseTile(const ConvSides& sides, int64_t channels);
  /// The push constants of these shaders except for their epilogues.
  void push(Step& step, const ConvSides& sides) const;
};
/// Kernel, stride, padding and dilation of the first two axes as push constants.
void push_axis_pairs(Step& step, const ConvSides& sides);
/// Channels, groups, extents and windows of three axes as push constants.
void push_sides(Step& step, const ConvSides& sides);
void add_direct_conv(Program& program, const VulkanDevice& device, const ConvSides& sides,
                     const ConvOperands& operands, const EpiloguePlan& epilogue);

}  // namespace librt::vulkan
