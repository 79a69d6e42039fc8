#include "backends/vulkan/device/interop.h"

#include "backends/vulkan/device/device.h"
#include "runtime/core/exception.h"

namespace librt::vulkan {

Result<SlabPtr> VulkanInterop::make(const MemoryRequest& request) noexcept {
  RT_ATTEMPT {
    RT_TRY(device_.usable());
    const DeviceFacts& facts = device_.facts();
    const bool of_fd = request.kind == MemoryKind::VulkanFd || request.kind == MemoryKind::Device;
    if (request.kind == MemoryKind::Cuda)
      return unsupported("the session runs on Vulkan: expected memory of Vulkan, found a CUDA pointer");
    if (of_fd && !facts.memory_fd)
      return unsupported("device '", facts.name,
                         "' has no VK_KHR_external_memory_fd, so it shares no memory by file descriptor");
    if (request.kind == MemoryKind::Host && !facts.memory_host)
      return unsupported("device '", facts.name,
                         "' has no VK_EXT_external_memory_host: bind host memory as rt_tensor.data, which is "
                         "copied");
    // Kernels read and write whole vectors.
    if (request.bytes % 16 != 0)
      return invalid_argument("memory for Vulkan: expected a multiple of 16 bytes, found ", request.bytes);
    auto slab = request.kind == MemoryKind::VulkanBuffer ? VulkanSlab::adopt(device_, request)
                                                         : VulkanSlab::create_shared(device_, request);
    if (!slab.ok()) return std::move(slab).status();
    RT_TRY(device_.instance().validation_errors());
    return SlabPtr(std::move(slab).value());
  }
  RT_CAUGHT {
    return caught_exception("sharing memory");
  }
}

Result<SlabPtr> VulkanInterop::share(Slab&, const Device&) noexcept {
  return invalid_argument(
      "expected memory of this session's Vulkan device, found memory of another session's; create the "
      "session "
      "with share_device_with, or export the memory and import it here");
}

void* VulkanInterop::address(Slab& slab) const noexcept {
  return slab.host();
}

Result<ExportedMemory> VulkanInterop::export_fd(Slab& slab) noexcept {
  return static_cast<VulkanSlab&>(slab).export_fd();
}

Status VulkanInterop::use_stream(void*) noexcept {
  return unsupported("cuda_stream: the session runs on Vulkan; leave it NULL");
}

Status VulkanInterop::submit(const SyncPoint& point, bool wait) noexcept {
  if (point.kind != SyncKind::VulkanTimeline)
    return unsupported(
        "the session runs on Vulkan: expected a timeline semaphore of its device, found a CUDA event");
  if (point.handle == 0) return invalid_argument("timeline semaphore: it is null");
  if (!device_.facts().features.timeline)
    return unsupported("device '", device_.info().name, "' has no timeline semaphores");
  RT_TRY(device_.usable());
  const auto semaphore = reinterpret_cast<VkSemaphore>(static_cast<uintptr_t>(point.handle));
  constexpr VkPipelineStageFlags kStages = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &values};
  if (wait) {
    values.waitSemaphoreValueCount = info.waitSemaphoreCount = 1;
    values.pWaitSemaphoreValues = &point.value;
    info.pWaitSemaphores = &semaphore;
    info.pWaitDstStageMask = &kStages;
  } else {
    values.signalSemaphoreValueCount = info.signalSemaphoreCount = 1;
    values.pSignalSemaphoreValues = &point.value;
    info.pSignalSemaphores = &semaphore;
  }
  const VkResult result = device_.api().vkQueueSubmit(device_.queue(), 1, &info, VK_NULL_HANDLE);
  if (result != VK_SUCCESS)
    return Status::make(device_.note(result), "device '", device_.info().name, "' cannot ",
                        wait ? "wait for" : "signal", " a semaphore: ", result_name(result));
  return device_.instance().validation_errors();
}

Status VulkanInterop::wait_for(const SyncPoint& point) noexcept {
  return submit(point, true);
}
Status VulkanInterop::signal(const SyncPoint& point) noexcept {
  return submit(point, false);
}

NativeHandles VulkanInterop::handles() const noexcept {
  NativeHandles handles;
  handles.vk_instance = device_.instance().handle();
  handles.vk_physical_device = device_.physical();
  handles.vk_device = device_.handle();
  handles.vk_queue = device_.queue();
  handles.vk_queue_family = device_.plan().queue_family;
  return handles;
}

}  // namespace librt::vulkan
