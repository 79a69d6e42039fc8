// The submissions of a command list: at most two in flight, waited for in order.
//
// Knows: fences, the device's pace. Must not know: what the command buffers hold.
#pragma once

#include <array>
#include <chrono>
#include <span>

#include "backends/vulkan/device/device.h"

namespace librt::vulkan {

class Submissions {
 public:
  explicit Submissions(VulkanDevice& device) noexcept : device_(device) {}
  /// Waits for what is in flight, unless the device never ends it.
  ~Submissions();
  VkResult open() noexcept;
  /// Waits until one may be submitted: then at most one is in flight.
  VkResult make_room() noexcept { return wait_for(slots_[next_]); }
  /// After make_room(). seconds: estimated; 0: unknown.
  VkResult submit(std::span<const VkCommandBuffer> commands, double seconds) noexcept;
  VkResult wait() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct Slot {
    VkFence done = VK_NULL_HANDLE;
    uint64_t number = 0;  ///< 0: already waited for
    double seconds = 0;
    bool alone = false;  ///< nothing was in flight when it was submitted
    Clock::time_point began;
  };
  VkResult wait_for(Slot& slot) noexcept;

  VulkanDevice& device_;
  std::array<Slot, 2> slots_;
  size_t next_ = 0;
  // The end of a submission that was waited for as it ended: the next one began then.
  uint64_t observed_ = 0;
  Clock::time_point observed_at_;
};

}  // namespace librt::vulkan
