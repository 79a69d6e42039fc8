// A recorded command buffer: dispatches and copies with the barriers their operands need.
//
// Knows: slots, hazards, descriptor sets, timestamps. Must not know: what a dispatch computes.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "backends/vulkan/device/device.h"

namespace librt::vulkan {

/// An operand of a dispatch: a storage buffer or a texel buffer of vec4 at `binding`.
struct BoundRange {
  uint32_t binding = 0;
  bool texel = false;
  bool pairs = false;  ///< a texel is two words, not four
  bool write = false;
  BufferRef range;
};

struct Dispatch {
  Shader shader{};
  const std::vector<uint32_t>& constants;
  std::span<const uint32_t> push;
  std::span<const BoundRange> operands;
  uint64_t groups = 0;  ///< folded over x and y; shaders recover the index (common.glsl)
};

/// Reads and writes since the last barrier; reports when the next access needs one.
class HazardTracker {
 public:
  struct Access {
    uint64_t buffer = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    bool write = false;
  };
  /// True if an access overlaps an earlier one and either writes. Adds the accesses; after a barrier only
  /// these count.
  bool add(std::span<const Access> accesses);
  void clear() { pending_.clear(); }

 private:
  std::vector<Access> pending_;
};

class VulkanCommands final : public CommandList {
 public:
  static Result<std::unique_ptr<VulkanCommands>> create(VulkanDevice& device, const RecordOptions& options);
  ~VulkanCommands() override;

  Status mark(uint32_t span) noexcept override;
  Status copy(const BufferRef& destination, const BufferRef& source) noexcept override;
  Status finish() noexcept override;
  Status bind_host(uint32_t slot, void* address, size_t bytes) noexcept override;
  Status submit() noexcept override;
  Status wait() noexcept override;
  Status timings(std::span<uint64_t> nanoseconds) noexcept override;

  Status dispatch(const Dispatch& work);
  /// Sets bytes (a multiple of four) to a repeated 32-bit word.
  Status fill(const BufferRef& destination, uint32_t word);
  VulkanDevice& device() noexcept { return device_; }

 private:
  struct Submission {
    VkFence done = VK_NULL_HANDLE;
    uint64_t number = 0;  ///< 0: already waited for
  };
  explicit VulkanCommands(VulkanDevice& device) : device_(device), api_(device.api()) {}
  Status start(const RecordOptions& options);
  Result<VkBuffer> buffer_of(const BufferRef& ref) const;
  /// From the newest pool, or a new one.
  Result<VkDescriptorSet> allocate_set(VkDescriptorSetLayout layout);
  /// As texels of four words, or of two if `pairs`.
  Result<VkBufferView> texel_view(const VkDescriptorBufferInfo& range, bool pairs);
  /// A set of these operands. Storage bindings of the shader that they leave out get the device's
  /// placeholder.
  Result<VkDescriptorSet> descriptor_set(const Pipeline& pipeline, std::span<const BoundRange> operands);
  void order(std::span<const HazardTracker::Access> accesses);
  /// Ends the label of the span before, and begins one with this name; null begins none.
  void label(const char* name) noexcept;
  void barrier();
  VkResult wait_for(Submission& submission) noexcept;
  Status failed(const char* what, VkResult result) const;

  VulkanDevice& device_;
  const DeviceApi& api_;
  std::vector<Slab*> slots_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  std::array<Submission, 2> submissions_;  ///< the last two, which may be in flight at once
  size_t next_submission_ = 0;
  std::vector<VkDescriptorPool> descriptor_pools_;
  uint32_t sets_left_ = 0;
  std::vector<VkBufferView> views_;
  HazardTracker hazards_;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  uint32_t query_capacity_ = 0;
  std::vector<uint32_t> marks_;  ///< the span of each timestamp written
  std::vector<const char*> span_names_;
  bool label_open_ = false;
  bool profile_ = false;
  bool finished_ = false;
};

}  // namespace librt::vulkan
