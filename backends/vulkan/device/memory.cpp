#include "backends/vulkan/device/memory.h"

#include "backends/vulkan/device/device.h"

namespace librt::vulkan {

Result<std::unique_ptr<VulkanSlab>> VulkanSlab::create(const VulkanDevice& device, size_t size,
                                                       uint32_t memory_type, bool map, bool exchange) {
  const DeviceApi& api = device.api();
  // A tail, so that an empty tensor at the end of the slab, or a vec4 across a tensor's end, is in bounds.
  constexpr uint64_t kTail = 256;
  VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  create.size = ((size + 255) & ~uint64_t{255}) + kTail;
  create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT |
                 VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  const uint64_t most = device.facts().max_allocation;
  if (most != 0 && create.size > most)
    return Status::make(Code::OutOfMemory, "device '", device.info().name, "' allocates at most ",
                        bytes_text(most), " at once, ", bytes_text(size), " were requested");

  std::unique_ptr<VulkanSlab> slab(new VulkanSlab(api, device.handle(), size, exchange));
  if (const VkResult result = api.vkCreateBuffer(device.handle(), &create, nullptr, &slab->buffer_);
      result != VK_SUCCESS)
    return Status::make(device.note(result, Code::OutOfMemory), "device '", device.info().name,
                        "' cannot make a buffer of ", bytes_text(size), ": ", result_name(result));
  VkMemoryRequirements needs;
  api.vkGetBufferMemoryRequirements(device.handle(), slab->buffer_, &needs);
  if ((needs.memoryTypeBits & (1u << memory_type)) == 0)
    return Status::make(Code::Device, "device '", device.info().name,
                        "' does not allow buffers in memory type ", memory_type);
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = memory_type;
  if (const VkResult result = api.vkAllocateMemory(device.handle(), &allocate, nullptr, &slab->memory_);
      result != VK_SUCCESS)
    return Status::make(device.note(result, Code::OutOfMemory), "device '", device.info().name, "' has no ",
                        bytes_text(size), " left: ", result_name(result));
  VkResult result = api.vkBindBufferMemory(device.handle(), slab->buffer_, slab->memory_, 0);
  if (result == VK_SUCCESS && map)
    result = api.vkMapMemory(device.handle(), slab->memory_, 0, VK_WHOLE_SIZE, 0, &slab->host_);
  if (result != VK_SUCCESS)
    return Status::make(device.note(result), "device '", device.info().name, "' cannot ",
                        map ? "map" : "bind", " ", bytes_text(size), ": ", result_name(result));
  return slab;
}

VulkanSlab::~VulkanSlab() {
  if (buffer_ != VK_NULL_HANDLE) api_.vkDestroyBuffer(device_, buffer_, nullptr);
  if (memory_ != VK_NULL_HANDLE) api_.vkFreeMemory(device_, memory_, nullptr);
}

}  // namespace librt::vulkan
