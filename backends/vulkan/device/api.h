// The Vulkan functions this backend calls, as tables filled at run time: nothing here links libvulkan.
//
// Knows: names of entry points. Must not know: what they are used for.
#pragma once

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include "runtime/core/status.h"

// Headers older than 1.3.255 lack this extension; names and values are those of the specification.
#ifndef VK_KHR_cooperative_matrix
#define VK_KHR_cooperative_matrix 1
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME "VK_KHR_cooperative_matrix"
inline constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR =
    static_cast<VkStructureType>(1000506000);
inline constexpr auto VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR =
    static_cast<VkStructureType>(1000506001);
enum VkComponentTypeKHR : int32_t {
  VK_COMPONENT_TYPE_FLOAT16_KHR = 0,
  VK_COMPONENT_TYPE_FLOAT32_KHR = 1,
  VK_COMPONENT_TYPE_SINT8_KHR = 3,
  VK_COMPONENT_TYPE_SINT32_KHR = 5
};
enum VkScopeKHR : int32_t { VK_SCOPE_SUBGROUP_KHR = 3 };
struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix;
  VkBool32 cooperativeMatrixRobustBufferAccess;
};
struct VkCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void* pNext;
  uint32_t MSize, NSize, KSize;
  VkComponentTypeKHR AType, BType, CType, ResultType;
  VkBool32 saturatingAccumulation;
  VkScopeKHR scope;
};
using PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR = VkResult(VKAPI_PTR*)(
    VkPhysicalDevice device, uint32_t* count, VkCooperativeMatrixPropertiesKHR* properties);
#endif

#define RT_VK_GLOBAL_FUNCTIONS(X) \
  X(vkCreateInstance)             \
  X(vkEnumerateInstanceVersion)   \
  X(vkEnumerateInstanceLayerProperties)

#define RT_VK_INSTANCE_FUNCTIONS(X)           \
  X(vkDestroyInstance)                        \
  X(vkEnumeratePhysicalDevices)               \
  X(vkGetPhysicalDeviceProperties2)           \
  X(vkGetPhysicalDeviceFeatures2)             \
  X(vkGetPhysicalDeviceMemoryProperties)      \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkEnumerateDeviceExtensionProperties)     \
  X(vkCreateDevice)                           \
  X(vkGetDeviceProcAddr)

/// Of extensions: null where they are missing.
#define RT_VK_OPTIONAL_DEVICE_FUNCTIONS(X) \
  X(vkCmdBeginDebugUtilsLabelEXT)          \
  X(vkCmdEndDebugUtilsLabelEXT)            \
  X(vkGetMemoryFdKHR)                      \
  X(vkGetMemoryHostPointerPropertiesEXT)

#define RT_VK_DEVICE_FUNCTIONS(X)   \
  X(vkDestroyDevice)                \
  X(vkGetDeviceQueue)               \
  X(vkAllocateMemory)               \
  X(vkFreeMemory)                   \
  X(vkMapMemory)                    \
  X(vkInvalidateMappedMemoryRanges) \
  X(vkCreateBuffer)                 \
  X(vkDestroyBuffer)                \
  X(vkGetBufferMemoryRequirements)  \
  X(vkBindBufferMemory)             \
  X(vkCreateBufferView)             \
  X(vkDestroyBufferView)            \
  X(vkCreateShaderModule)           \
  X(vkDestroyShaderModule)          \
  X(vkCreatePipelineLayout)         \
  X(vkDestroyPipelineLayout)        \
  X(vkCreateComputePipelines)       \
  X(vkDestroyPipeline)              \
  X(vkCreatePipelineCache)          \
  X(vkDestroyPipelineCache)         \
  X(vkGetPipelineCacheData)         \
  X(vkCreateDescriptorSetLayout)    \
  X(vkDestroyDescriptorSetLayout)   \
  X(vkCreateDescriptorPool)         \
  X(vkDestroyDescriptorPool)        \
  X(vkAllocateDescriptorSets)       \
  X(vkUpdateDescriptorSets)         \
  X(vkCreateCommandPool)            \
  X(vkDestroyCommandPool)           \
  X(vkAllocateCommandBuffers)       \
  X(vkBeginCommandBuffer)           \
  X(vkEndCommandBuffer)             \
  X(vkCmdBindPipeline)              \
  X(vkCmdBindDescriptorSets)        \
  X(vkCmdPushConstants)             \
  X(vkCmdDispatch)                  \
  X(vkCmdDispatchBase)              \
  X(vkCmdPipelineBarrier)           \
  X(vkCmdCopyBuffer)                \
  X(vkCmdFillBuffer)                \
  X(vkCmdUpdateBuffer)              \
  X(vkCmdResetQueryPool)            \
  X(vkCmdWriteTimestamp)            \
  X(vkCreateQueryPool)              \
  X(vkDestroyQueryPool)             \
  X(vkGetQueryPoolResults)          \
  X(vkCreateFence)                  \
  X(vkDestroyFence)                 \
  X(vkResetFences)                  \
  X(vkWaitForFences)                \
  X(vkQueueSubmit)                  \
  X(vkDeviceWaitIdle)

namespace librt::vulkan {

#define RT_VK_MEMBER(name) PFN_##name name = nullptr;
struct GlobalApi {
  RT_VK_GLOBAL_FUNCTIONS(RT_VK_MEMBER)
};
struct InstanceApi {
  RT_VK_INSTANCE_FUNCTIONS(RT_VK_MEMBER)
  /// Null if no driver supports VK_KHR_cooperative_matrix.
  PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR =
      nullptr;
};
struct DeviceApi {
  RT_VK_DEVICE_FUNCTIONS(RT_VK_MEMBER)
  RT_VK_OPTIONAL_DEVICE_FUNCTIONS(RT_VK_MEMBER)
};
#undef RT_VK_MEMBER

/// "VK_ERROR_OUT_OF_DEVICE_MEMORY", or the value of a result without a name here.
const char* result_name(VkResult result) noexcept;
/// The code of a failed call: Code::OutOfMemory where memory ran out, Code::DeviceLost where the device was
/// lost or does not answer (VK_TIMEOUT), else `otherwise`.
Code code_of(VkResult result, Code otherwise = Code::Device) noexcept;

}  // namespace librt::vulkan
