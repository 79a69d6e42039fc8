// Slabs: one VkBuffer over one VkDeviceMemory each, persistently mapped if host visible.
//
// Knows: buffers and memory, also imported and exported. Must not know: kernels, command lists.
#pragma once

#include "backends/vulkan/device/api.h"
#include "runtime/backend/interop.h"

namespace librt::vulkan {

class VulkanDevice;

enum class Mapping : uint8_t {
  None,
  Write,     ///< the host writes; what it reads would come uncached, or over the bus
  ReadWrite  ///< the host does both
};

class VulkanSlab final : public Slab {
 public:
  /// `size` bytes in memory of type `memory_type`. Exchange memory: the host reads and writes it while other
  /// work is in flight.
  static Result<std::unique_ptr<VulkanSlab>> create(const VulkanDevice& device, size_t size,
                                                    uint32_t memory_type, Mapping map, bool exchange = false);
  /// Imported from a file descriptor or host memory, or (MemoryKind::Device) allocated for export. Mapped
  /// where other slabs are and the memory can be.
  static Result<std::unique_ptr<VulkanSlab>> create_shared(const VulkanDevice& device,
                                                           const MemoryRequest& request);
  /// The application's buffer, which outlives the slab.
  static Result<std::unique_ptr<VulkanSlab>> adopt(const VulkanDevice& device, const MemoryRequest& request);
  ~VulkanSlab() override;
  size_t size() const noexcept override { return size_; }
  void* host() noexcept override { return map_ == Mapping::Write ? nullptr : host_; }
  const void* host() const noexcept { return map_ == Mapping::Write ? nullptr : host_; }
  /// Null if the host cannot write it.
  void* writable() noexcept { return host_; }
  /// Before the host reads what the device wrote: where memory is not coherent, caches are cleared. A range
  /// of whole atoms (Vulkan's nonCoherentAtomSize).
  Status invalidate(uint64_t offset, uint64_t bytes) const;
  VkBuffer buffer() const noexcept { return buffer_; }
  bool exchange() const noexcept { return exchange_; }
  /// Of memory allocated for export.
  Result<ExportedMemory> export_fd() const noexcept;

 private:
  VulkanSlab(const VulkanDevice& device, size_t size, bool exchange);
  Status allocate_shared(const VulkanDevice& device, const MemoryRequest& request,
                         const VkMemoryRequirements& needs);
  const VulkanDevice& owner_;
  const DeviceApi& api_;
  VkDevice device_;
  size_t size_;
  bool exchange_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  void* host_ = nullptr;
  Mapping map_ = Mapping::ReadWrite;
  bool coherent_ = true;
  bool owned_ = true;  ///< else the application's buffer
  ExportedMemory exported_;
};

}  // namespace librt::vulkan
