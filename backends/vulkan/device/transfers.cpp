#include "backends/vulkan/device/transfers.h"

#include <algorithm>
#include <cstring>

#include "backends/vulkan/device/device.h"

namespace librt::vulkan {

Transfers::~Transfers() {
  drain();
  if (device_.is_hung()) return;
  for (const Part& part : parts_)
    if (part.done != VK_NULL_HANDLE) device_.api().vkDestroyFence(device_.handle(), part.done, nullptr);
  if (pool_ != VK_NULL_HANDLE) device_.api().vkDestroyCommandPool(device_.handle(), pool_, nullptr);
}

Status Transfers::failed(VkResult result) const {
  return Status::make(device_.note(result), "a transfer on '", device_.info().name,
                      "' failed: ", result_name(result));
}

/// What an earlier attempt has made is kept.
Status Transfers::open() {
  const DeviceApi& api = device_.api();
  VkResult result = VK_SUCCESS;
  if (pool_ == VK_NULL_HANDLE) {
    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    pool.queueFamilyIndex = device_.plan().queue_family;
    result = api.vkCreateCommandPool(device_.handle(), &pool, nullptr, &pool_);
  }
  VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocate.commandPool = pool_;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  const VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  for (Part& part : parts_) {
    if (result == VK_SUCCESS && part.commands == VK_NULL_HANDLE)
      result = api.vkAllocateCommandBuffers(device_.handle(), &allocate, &part.commands);
    if (result == VK_SUCCESS && part.done == VK_NULL_HANDLE)
      result = api.vkCreateFence(device_.handle(), &fence, nullptr, &part.done);
  }
  return result == VK_SUCCESS ? Status() : failed(result);
}

Result<VulkanSlab*> Transfers::ring(uint32_t memory_type) {
  RT_TRY(open());
  auto& slab = rings_[memory_type == device_.plan().staging_memory ? 0 : 1];
  if (slab == nullptr) {
    RT_ASSIGN(slab, VulkanSlab::create(device_, kParts * kPartBytes, memory_type, Mapping::ReadWrite));
  }
  return slab.get();
}

Status Transfers::start(Part& part, VkBuffer source, VkBuffer destination, const VkBufferCopy& region) {
  const DeviceApi& api = device_.api();
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  VkResult result = api.vkBeginCommandBuffer(part.commands, &begin);
  if (result == VK_SUCCESS) {
    const VkMemoryBarrier before{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_MEMORY_WRITE_BIT,
                                 VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
    api.vkCmdPipelineBarrier(part.commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                             VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &before, 0, nullptr, 0, nullptr);
    api.vkCmdCopyBuffer(part.commands, source, destination, 1, &region);
    const VkMemoryBarrier after{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_TRANSFER_WRITE_BIT,
                                VK_ACCESS_HOST_READ_BIT | VK_ACCESS_MEMORY_READ_BIT};
    api.vkCmdPipelineBarrier(part.commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                             VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1, &after, 0,
                             nullptr, 0, nullptr);
    result = api.vkEndCommandBuffer(part.commands);
  }
  VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &part.commands;
  if (result == VK_SUCCESS) result = api.vkQueueSubmit(device_.queue(), 1, &submit, part.done);
  if (result != VK_SUCCESS) return failed(result);
  part.in_flight = true;
  return {};
}

Status Transfers::finish(Part& part) {
  if (!part.in_flight) return {};
  part.in_flight = false;
  VkResult result = device_.wait_for(part.done);
  if (result == VK_SUCCESS) result = device_.api().vkResetFences(device_.handle(), 1, &part.done);
  return result == VK_SUCCESS ? Status() : failed(result);
}

void Transfers::drain() noexcept {
  for (Part& part : parts_)
    if (part.in_flight && device_.wait_for(part.done) == VK_SUCCESS) {
      device_.api().vkResetFences(device_.handle(), 1, &part.done);
      part.in_flight = false;
    }
}

Status Transfers::upload(VkBuffer destination, uint64_t offset, std::span<const std::byte> bytes) {
  RT_ASSIGN(VulkanSlab* const staging, ring(device_.plan().staging_memory));
  const auto run = [&]() -> Status {
    for (size_t done = 0, i = 0; done < bytes.size(); done += kPartBytes, i = (i + 1) % kParts) {
      RT_TRY(finish(parts_[i]));
      const size_t count = std::min(bytes.size() - done, kPartBytes);
      std::memcpy(static_cast<std::byte*>(staging->host()) + i * kPartBytes, bytes.data() + done, count);
      RT_TRY(start(parts_[i], staging->buffer(), destination, {i * kPartBytes, offset + done, count}));
    }
    for (Part& part : parts_) RT_TRY(finish(part));
    return device_.instance().validation_errors();
  };
  Status status = run();
  if (!status.ok()) drain();
  return status;
}

Status Transfers::download(VkBuffer source, uint64_t offset, std::span<std::byte> bytes) {
  RT_ASSIGN(VulkanSlab* const staging, ring(device_.plan().reading_memory));
  const size_t count = (bytes.size() + kPartBytes - 1) / kPartBytes;
  const auto size_of_part = [&](size_t i) { return std::min(bytes.size() - i * kPartBytes, kPartBytes); };
  const auto run = [&]() -> Status {
    for (size_t next = 0, i = 0; i < count; ++i) {
      for (; next < count && next < i + kParts; ++next)
        RT_TRY(start(parts_[next % kParts], source, staging->buffer(),
                     {offset + next * kPartBytes, next % kParts * kPartBytes, size_of_part(next)}));
      RT_TRY(finish(parts_[i % kParts]));
      const size_t at = i % kParts * kPartBytes;
      RT_TRY(staging->invalidate(at, kPartBytes));
      std::memcpy(bytes.data() + i * kPartBytes, static_cast<const std::byte*>(staging->host()) + at,
                  size_of_part(i));
    }
    return device_.instance().validation_errors();
  };
  Status status = run();
  if (!status.ok()) drain();
  return status;
}

}  // namespace librt::vulkan
