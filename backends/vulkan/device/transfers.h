// Transfers to and from memory that the host does not map, or must not read: through a ring of host memory,
// the copies of whose parts overlap with those of the device.
//
// Knows: staging memory, command buffers and fences of copies. Must not know: who transfers what.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "backends/vulkan/device/memory.h"

namespace librt::vulkan {

class Transfers {
 public:
  explicit Transfers(VulkanDevice& device) noexcept : device_(device) {}
  ~Transfers();
  /// Both are ordered with submitted work, and complete when they return.
  Status upload(VkBuffer destination, uint64_t offset, std::span<const std::byte> bytes);
  Status download(VkBuffer source, uint64_t offset, std::span<std::byte> bytes);

 private:
  static constexpr size_t kParts = 4;
  static constexpr size_t kPartBytes = size_t{2} << 20;
  struct Part {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence done = VK_NULL_HANDLE;
    bool in_flight = false;
  };
  Status open();
  Result<VulkanSlab*> ring(uint32_t memory_type);
  Status start(Part& part, VkBuffer source, VkBuffer destination, const VkBufferCopy& region);
  Status finish(Part& part);
  /// After an error: nothing may use the ring any more.
  void drain() noexcept;
  Status failed(VkResult result) const;

  VulkanDevice& device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::array<Part, kParts> parts_;
  /// Of uploads and downloads; one where they use the same memory type.
  std::array<std::unique_ptr<VulkanSlab>, 2> rings_;
};

}  // namespace librt::vulkan
