// What a device shares with the application: memory, streams, events and semaphores.
//
// Knows: handles of other programs' APIs as integers. Must not know: what kernels do with the memory. Apart
// from backend.h, because no kernel uses it. A backend whose memory the host addresses needs none of it.
#pragma once

#include "runtime/backend/backend.h"

namespace librt {

/// Where memory comes from: rt_memory_kind in rt/rt.h.
enum class MemoryKind : uint8_t { Device = 0, Host = 1, Cuda = 2, VulkanFd = 3, VulkanBuffer = 4 };

struct MemoryRequest {
  MemoryKind kind = MemoryKind::Device;
  size_t bytes = 0;
  void* pointer = nullptr;        ///< Host, Cuda
  uint64_t handle = 0;            ///< VulkanBuffer: a VkBuffer of this device
  int fd = -1;                    ///< VulkanFd: stays the caller's
  uint64_t offset = 0;            ///< VulkanFd: of the bytes in the allocation
  uint64_t allocation_bytes = 0;  ///< VulkanFd: of the whole allocation
  uint32_t memory_type = 0;       ///< VulkanFd: index of the allocation's type
  bool exportable = false;        ///< Device: export_fd() works
};

/// A CUDA event, or a point of a Vulkan timeline semaphore: rt_sync_kind in rt/rt.h.
enum class SyncKind : uint8_t { CudaEvent = 0, VulkanTimeline = 1 };
struct SyncPoint {
  SyncKind kind = SyncKind::CudaEvent;
  uint64_t handle = 0;
  uint64_t value = 0;  ///< VulkanTimeline
};

struct NativeHandles {
  int cuda_device = -1;
  void* cuda_stream = nullptr;
  void *vk_instance = nullptr, *vk_physical_device = nullptr, *vk_device = nullptr, *vk_queue = nullptr;
  uint32_t vk_queue_family = 0;
};

struct ExportedMemory {
  int fd = -1;  ///< belongs to the receiver
  uint64_t allocation_bytes = 0;
  uint32_t memory_type = 0;
};

/// Of one device, and used under the same rules. Requests that this device does not know are Unsupported, and
/// say what it supports.
class Interop {
 public:
  /// Memory of the kinds other than Device without `exportable`. The slab does not own memory of the caller.
  virtual Result<SlabPtr> make(const MemoryRequest& request) noexcept = 0;
  /// A slab of this device for the bytes of a slab of `owner`, another device of the same backend, which
  /// outlives it.
  virtual Result<SlabPtr> share(Slab& slab, const Device& owner) noexcept = 0;
  /// The address that the application's own kernels use; null if there is none.
  virtual void* address(Slab& slab) const noexcept = 0;
  virtual Result<ExportedMemory> export_fd(Slab& slab) noexcept = 0;
  /// Work is enqueued here from now on. Before the first command list.
  virtual Status use_stream(void* stream) noexcept = 0;
  /// Work that is submitted from now on starts when this is reached.
  virtual Status wait_for(const SyncPoint& point) noexcept = 0;
  /// Reached when all work submitted until now has completed.
  virtual Status signal(const SyncPoint& point) noexcept = 0;
  virtual NativeHandles handles() const noexcept = 0;

 protected:
  ~Interop() = default;
};

}  // namespace librt
