// Whether a device runs a shader: the capabilities of its SPIR-V and its number of storage buffers against
// the device's features and limits.
//
// Knows: numbers of capabilities (SPIR-V specification, section 3.31). Must not know: operators, Vulkan
// handles.
#pragma once

#include "backends/vulkan/device/device_plan.h"
#include "backends/vulkan/dispatch/shaders.h"

namespace librt::vulkan {

/// Ok, or everything that the shader needs and the device lacks.
Status runs(const DeviceFacts& facts, const ShaderCode& code);

/// Whether the device runs every shader, except those that only a DevicePlan chooses: for subgroups, packed
/// dot products and cooperative matrices.
bool runs_basic_shaders(const DeviceFacts& facts);

}  // namespace librt::vulkan
