// Winograd's convolution F(4x4, 3x3) with constant weights: patches and weights are transformed to 36 points,
// whose values are multiplied by one batched matmul (Lavin & Gray 2016, arXiv:1509.09308).
//
// Knows: ConvSides, the shaders winograd_*.comp, and matmuls as steps. Must not know: attributes, operators.
#pragma once

#include "backends/vulkan/steps/conv.h"

namespace librt::vulkan {

/// Ok if it computes this convolution of f32, and pays on this device.
Status winograd_supports(const VulkanDevice& device, const ConvSides& sides);

/// operands.constant_weight: not null, all finite. Declines if a pipeline is in quarantine.
void add_winograd_conv(Program& program, const VulkanDevice& device, const ConvSides& sides,
                       const ConvOperands& operands, const EpiloguePlan& epilogue);

}  // namespace librt::vulkan
