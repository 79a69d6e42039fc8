// A recorded command list: dispatches and copies with the barriers their operands need, in as many command
// buffers as it takes for a submission not to run for too long.
//
// Knows: slots, hazards, descriptor sets, timestamps, estimates. Must not know: what a dispatch computes.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "backends/common/hazard_tracker.h"
#include "backends/vulkan/device/device.h"
#include "backends/vulkan/dispatch/submissions.h"

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
  double share = 1;     ///< of the time that the kernel takes
};

class VulkanCommands;

/// Work that is recorded once nothing more can join it.
class Joint {
 public:
  virtual ~Joint() = default;
  /// Takes over the work of a later joint that is independent of this one; false: it cannot, and `later` is
  /// unchanged.
  virtual bool join(Joint& later) = 0;
  virtual Status record(VulkanCommands& commands) = 0;
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
  /// Sets bytes to these words, at most 64 KiB.
  Status update(const BufferRef& destination, std::span<const uint32_t> words);
  /// Records the joint before other work, joined with others of its kind that have come since then. Operands:
  /// what it accesses, without scratch.
  Status add_joining(std::unique_ptr<Joint> joint, std::span<const BoundRange> operands);
  VulkanDevice& device() noexcept { return device_; }

 private:
  /// Submitted as a whole.
  struct Part {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    double seconds = 0;       ///< estimated
    uint32_t first_step = 0;  ///< the run can be stopped before it if this step can be left out
  };
  explicit VulkanCommands(VulkanDevice& device) : device_(device), api_(device.api()), submissions_(device) {}
  Status start(const RecordOptions& options);
  Status begin_part(uint32_t first_step);
  /// Begins another part if the current one would take too long with work of these seconds.
  Status make_room(double seconds, uint32_t first_step);
  Status dispatch_in_parts(const Dispatch& work, uint64_t limit, double seconds);
  Status record_groups(const Dispatch& work, uint32_t x, uint32_t y, uint32_t rows, double seconds);
  Result<VkBuffer> buffer_of(const BufferRef& ref) const;
  /// From the newest pool, or a new one.
  Result<VkDescriptorSet> allocate_set(VkDescriptorSetLayout layout);
  /// As texels of four words, or of two if `pairs`.
  Result<VkBufferView> texel_view(const VkDescriptorBufferInfo& range, bool pairs);
  /// A set of these operands. Storage bindings of the shader that they leave out get the device's
  /// placeholder.
  Result<VkDescriptorSet> descriptor_set(const Pipeline& pipeline, std::span<const BoundRange> operands);
  void order(std::span<const HazardTracker::Access> accesses);
  Status record_joints();
  /// Ends the label of the span before, and begins one with this name; null begins none.
  void label(const char* name) noexcept;
  void barrier();
  Status failed(const char* what, VkResult result) const;

  VulkanDevice& device_;
  const DeviceApi& api_;
  std::vector<Slab*> slots_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;  ///< of the part that is recorded
  std::vector<Part> parts_;
  std::vector<VkCommandBuffer> buffers_;  ///< of the parts
  Submissions submissions_;
  std::vector<float> estimates_;  ///< seconds of each span; empty: unknown
  double budget_ = 0;             ///< estimated seconds for one submission when this was recorded
  double span_seconds_ = 0;
  uint32_t span_ = 0;
  const StopSignal* stop_ = nullptr;
  uint32_t stoppable_ = 0;
  std::vector<VkDescriptorPool> descriptor_pools_;
  uint32_t sets_left_ = 0;
  std::vector<VkBufferView> views_;
  HazardTracker hazards_;                       ///< since the last barrier
  std::vector<std::unique_ptr<Joint>> joints_;  ///< not recorded yet, independent of each other
  HazardTracker joint_hazards_{kMostJoinableAccesses};
  double joint_seconds_ = 0;  ///< estimated, of all joints
  VkQueryPool queries_ = VK_NULL_HANDLE;
  uint32_t query_capacity_ = 0;
  std::vector<uint32_t> marks_;  ///< the span of each timestamp written
  std::vector<const char*> span_names_;
  bool label_open_ = false;
  bool profile_ = false;
  bool finished_ = false;
};

}  // namespace librt::vulkan
