// VulkanDevice: one physical device opened for compute, implementing the backend contract.
//
// Knows: VkDevice, queue, slabs, transfers. Must not know: what kernels compute.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "backends/vulkan/device/device_plan.h"
#include "backends/vulkan/device/instance.h"
#include "backends/vulkan/device/interop.h"
#include "backends/vulkan/device/memory.h"
#include "backends/vulkan/device/pace.h"
#include "backends/vulkan/device/transfers.h"
#include "backends/vulkan/dispatch/pipeline.h"
#include "runtime/backend/kernel_table.h"

namespace librt::vulkan {

class SelfTests;

class VulkanDevice final : public Device {
 public:
  static Result<DevicePtr> open(const DeviceOptions& options);
  ~VulkanDevice() override;

  const DeviceInfo& info() const noexcept override { return info_; }
  const KernelTable& kernels() const noexcept override { return *kernels_; }
  Result<SlabPtr> allocate(size_t bytes) noexcept override;
  Result<SlabPtr> allocate_exchange(size_t bytes) noexcept override;
  Result<SlabPtr> wrap(void* bytes, size_t size) noexcept override;
  Status upload(Slab& destination, size_t offset, std::span<const std::byte> bytes) noexcept override;
  Status download(const Slab& source, size_t offset, std::span<std::byte> bytes) noexcept override;
  Result<CommandListPtr> begin(const RecordOptions& options) noexcept override;

  const DeviceApi& api() const noexcept { return api_; }
  VkDevice handle() const noexcept { return device_; }
  VkPhysicalDevice physical() const noexcept { return physical_; }
  VkQueue queue() const noexcept { return queue_; }
  const DeviceFacts& facts() const noexcept { return facts_; }
  const DevicePlan& plan() const noexcept { return plan_; }
  /// Whether predicates need not ask about each shader (dispatch/capabilities.h).
  bool runs_basic_shaders() const noexcept { return runs_basic_shaders_; }
  PipelineStore& pipelines() noexcept { return *pipelines_; }
  /// code_of(), for the result of a call on this device. A device that is lost stays lost: usable().
  Code note(VkResult result, Code otherwise = Code::Device) const noexcept;
  /// Code::DeviceLost once a call has reported it. Drivers do not promise that later calls do, nor anything
  /// about memory that is still mapped.
  Status usable() const noexcept;
  /// Lists among the device's features what is not used of it, and why.
  void note_quarantine(const std::string& what) { info_.features.push_back("quarantine: " + what); }
  /// The same for work that may run for too long, once.
  void note_long_work(const std::string& what);
  /// The same for a file of the cache folder; nothing if the status is ok.
  void note_cache(const Status& status) {
    if (!status.ok()) info_.features.push_back("cache: " + status.message());
  }
  /// Also for predicates of kernels, which see a const device: a pipeline is tested when it is first
  /// requested.
  SelfTests& self_tests() const noexcept { return *self_tests_; }
  Instance& instance() noexcept { return *instance_; }
  VulkanInterop& interop() noexcept { return interop_; }
  /// Command lists report each submission, in order, and each completed wait: all earlier submissions are
  /// then complete, too.
  uint64_t count_submission() noexcept { return ++submissions_; }
  uint64_t submissions() const noexcept { return submissions_; }
  void note_completed(uint64_t submission) noexcept { completed_ = std::max(completed_, submission); }
  bool is_idle() const noexcept { return completed_ == submissions_; }
  Pace& pace() noexcept { return pace_; }
  /// Waits for a fence, at most DevicePlan::wait_seconds: VK_TIMEOUT then, and the device counts as lost.
  VkResult wait_for(VkFence fence) noexcept;
  /// A submission has not ended in time, and may never: nothing that it may use is freed any more.
  bool is_hung() const noexcept { return hung_; }
  /// Bound to a shader's unused storage bindings: drivers require each one that the code names to be valid.
  VkBuffer placeholder() const noexcept { return placeholder_->buffer(); }

 private:
  VulkanDevice() = default;
  /// Waits for all submitted work.
  Status settle();

  std::shared_ptr<Instance> instance_;
  DeviceFacts facts_;
  DevicePlan plan_;
  DeviceInfo info_;
  DeviceApi api_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::unique_ptr<PipelineStore> pipelines_;
  std::unique_ptr<KernelTable> kernels_;
  std::unique_ptr<SelfTests> self_tests_;
  std::unique_ptr<VulkanSlab> placeholder_;
  uint64_t submissions_ = 0, completed_ = 0;
  mutable bool lost_ = false;
  bool hung_ = false;
  Pace pace_;
  bool runs_basic_shaders_ = true;
  std::unique_ptr<Transfers> transfers_;  ///< made by the first
  VkFence settled_ = VK_NULL_HANDLE;
  VulkanInterop interop_{*this};
};

/// The device passed to a kernel's factory or predicate is always ours.
inline VulkanDevice& cast(Device& device) noexcept {
  return static_cast<VulkanDevice&>(device);
}
inline const VulkanDevice& cast(const Device& device) noexcept {
  return static_cast<const VulkanDevice&>(device);
}

}  // namespace librt::vulkan
