#include "backends/vulkan/dispatch/submissions.h"

namespace librt::vulkan {

Submissions::~Submissions() {
  static_cast<void>(wait());
  if (device_.is_hung()) return;
  for (const Slot& slot : slots_)
    if (slot.done != VK_NULL_HANDLE) device_.api().vkDestroyFence(device_.handle(), slot.done, nullptr);
}

VkResult Submissions::open() noexcept {
  const VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  VkResult result = VK_SUCCESS;
  for (Slot& slot : slots_)
    if (result == VK_SUCCESS)
      result = device_.api().vkCreateFence(device_.handle(), &fence, nullptr, &slot.done);
  return result;
}

VkResult Submissions::submit(std::span<const VkCommandBuffer> commands, double seconds) noexcept {
  Slot& slot = slots_[next_];
  VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  submit.commandBufferCount = static_cast<uint32_t>(commands.size());
  submit.pCommandBuffers = commands.data();
  if (const VkResult result = device_.api().vkQueueSubmit(device_.queue(), 1, &submit, slot.done);
      result != VK_SUCCESS)
    return result;
  slot.alone = device_.is_idle();
  slot.number = device_.count_submission();
  slot.seconds = device_.pace().is_limited() ? seconds : 0;
  if (slot.seconds > 0) slot.began = Clock::now();
  next_ = 1 - next_;
  return VK_SUCCESS;
}

VkResult Submissions::wait_for(Slot& slot) noexcept {
  if (slot.number == 0) return VK_SUCCESS;
  const uint64_t number = slot.number;
  slot.number = 0;
  const bool timed = slot.seconds > 0;
  const bool ended_before =
      timed && device_.api().vkWaitForFences(device_.handle(), 1, &slot.done, VK_TRUE, 0) == VK_SUCCESS;
  VkResult result = ended_before ? VK_SUCCESS : device_.wait_for(slot.done);
  if (result == VK_SUCCESS) result = device_.api().vkResetFences(device_.handle(), 1, &slot.done);
  if (result != VK_SUCCESS) return result;
  device_.note_completed(number);
  if (!timed) return result;
  const Clock::time_point now = Clock::now();
  const bool follows = observed_ + 1 == number;
  const Clock::time_point began = follows ? std::max(observed_at_, slot.began) : slot.began;
  device_.pace().learn(slot.seconds, std::chrono::duration<double>(now - began).count(),
                       !ended_before && (slot.alone || follows));
  if (!ended_before) {
    observed_ = number;
    observed_at_ = now;
  }
  return result;
}

VkResult Submissions::wait() noexcept {
  // The older one first.
  for (const size_t index : {next_, 1 - next_})
    if (const VkResult result = wait_for(slots_[index]); result != VK_SUCCESS) return result;
  return VK_SUCCESS;
}

}  // namespace librt::vulkan
