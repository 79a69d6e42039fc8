// What a physical device says about itself, as plain facts.
//
// Knows: Vulkan's queries, and which of them need which version or extension. Must not know: what the facts
// are used for (device_plan.h).
#pragma once

#include "backends/vulkan/device/api.h"
#include "backends/vulkan/device/device_plan.h"

namespace librt::vulkan {

/// Cooperative matrices are listed if `matrices`.
DeviceFacts read_device_facts(const InstanceApi& api, VkPhysicalDevice device, bool matrices);

}  // namespace librt::vulkan
