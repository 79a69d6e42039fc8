// Vulkan memory and timeline semaphores of the application.
//
// Knows: import and export of memory, waits and signals on the queue. Must not know: what is computed.
#pragma once

#include "runtime/backend/interop.h"

namespace librt::vulkan {

class VulkanDevice;

class VulkanInterop final : public Interop {
 public:
  explicit VulkanInterop(VulkanDevice& device) : device_(device) {}
  Result<SlabPtr> make(const MemoryRequest& request) noexcept override;
  Result<SlabPtr> share(Slab& slab, const Device& owner) noexcept override;
  void* address(Slab& slab) const noexcept override;
  Result<ExportedMemory> export_fd(Slab& slab) noexcept override;
  Status use_stream(void* stream) noexcept override;
  Status wait_for(const SyncPoint& point) noexcept override;
  Status signal(const SyncPoint& point) noexcept override;
  NativeHandles handles() const noexcept override;

 private:
  /// An empty submission that waits for or signals the point: the queue orders all others with it.
  Status submit(const SyncPoint& point, bool wait) noexcept;

  VulkanDevice& device_;
};

}  // namespace librt::vulkan
