#include "backends/vulkan/device/device.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "backends/vulkan/dispatch/capabilities.h"
#include "backends/vulkan/dispatch/commands.h"
#include "backends/vulkan/dispatch/pipeline_cache_file.h"
#include "backends/vulkan/kernel_families.h"
#include "backends/vulkan/self_tests/self_test.h"
#include "runtime/core/cache_folder.h"
#include "runtime/core/environment.h"
#include "runtime/core/exception.h"

namespace librt::vulkan {
namespace {

bool software_allowed() {
  const char* value = environment("RT_VULKAN_ALLOW_SOFTWARE");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

/// RT_VULKAN_MATRICES: 0 disables matmul by cooperative matrices, 1 enables it on software devices too.
Status request_matrices(DevicePlan& plan) {
  const char* value = environment("RT_VULKAN_MATRICES");
  if (value == nullptr) return {};
  if (std::strcmp(value, "0") != 0 && std::strcmp(value, "1") != 0)
    return invalid_argument("RT_VULKAN_MATRICES is '", value, "'; expected 0 or 1");
  plan.use_matrices = *value == '1';
  return {};
}

/// RT_VULKAN_TIMEOUT: seconds to wait for a submission, 0 for ever.
Status request_timeout(DevicePlan& plan) {
  const char* value = environment("RT_VULKAN_TIMEOUT");
  if (value == nullptr) return {};
  const char* end = value + std::strlen(value);
  if (const auto [stop, error] = std::from_chars(value, end, plan.wait_seconds);
      error != std::errc() || stop != end)
    return invalid_argument("RT_VULKAN_TIMEOUT is '", value, "'; expected seconds, or 0 to wait for ever");
  return {};
}

Status create_device(const Instance& instance, VkPhysicalDevice physical, const DeviceFacts& facts,
                     const DevicePlan& plan, VkDevice* device) {
  VkPhysicalDevice16BitStorageFeatures storage16{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
  storage16.storageBuffer16BitAccess = facts.features.storage_16bit;
  VkPhysicalDevice8BitStorageFeatures storage8{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
                                               &storage16};
  storage8.storageBuffer8BitAccess = facts.features.storage_8bit;
  VkPhysicalDeviceShaderFloat16Int8Features small{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, &storage8};
  small.shaderFloat16 = facts.features.float16;
  small.shaderInt8 = facts.features.int8;
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  const bool any_small = facts.features.storage_8bit || facts.features.int8 || facts.features.float16;
  features.pNext = any_small ? static_cast<void*>(&small) : static_cast<void*>(&storage16);
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, features.pNext};
  dot.shaderIntegerDotProduct = VK_TRUE;
  if (facts.features.integer_dot) features.pNext = &dot;
  VkPhysicalDeviceVulkanMemoryModelFeatures memory_model{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES, features.pNext};
  memory_model.vulkanMemoryModel = VK_TRUE;
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR, &memory_model, VK_TRUE, VK_FALSE};
  if (!facts.matrices.empty()) features.pNext = &matrices;
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, features.pNext, VK_TRUE};
  if (facts.features.timeline) features.pNext = &timeline;
  features.features.shaderInt16 = facts.features.int16;
  features.features.shaderInt64 = facts.features.int64;

  std::vector<const char*> extensions;
  if (any_small && facts.api_version < 102)
    extensions = {"VK_KHR_8bit_storage", "VK_KHR_shader_float16_int8"};
  if (facts.features.integer_dot && facts.api_version < 103)
    extensions.push_back(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  if (!facts.matrices.empty()) extensions.push_back(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  if (facts.memory_fd) extensions.push_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  if (facts.memory_host) extensions.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = plan.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo create{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features};
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  create.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  create.ppEnabledExtensionNames = extensions.data();
  const VkResult result = instance.api().vkCreateDevice(physical, &create, nullptr, device);
  if (result != VK_SUCCESS)
    return Status::make(code_of(result), "device '", facts.name, "' cannot be opened: ", result_name(result));
  return {};
}

}  // namespace

Result<DevicePtr> VulkanDevice::open(const DeviceOptions& options) {
  std::unique_ptr<VulkanDevice> self(new VulkanDevice);
  RT_ASSIGN(self->instance_, Instance::open(options.validation));
  std::vector<DeviceFacts> facts;
  std::vector<VkPhysicalDevice> handles;
  RT_TRY(self->instance_->list(facts, handles));
  RT_ASSIGN(const size_t index, choose_device(facts, options.device, software_allowed()));
  self->facts_ = facts[index];
  RT_ASSIGN(self->plan_, plan_device(self->facts_));
  RT_TRY(request_matrices(self->plan_));
  RT_TRY(request_timeout(self->plan_));
  self->pace_ = Pace(self->plan_.submission_seconds);
  self->runs_basic_shaders_ = vulkan::runs_basic_shaders(self->facts_);
  self->info_ = describe_device(self->facts_, static_cast<int>(index));
  self->physical_ = handles[index];
  RT_TRY(create_device(*self->instance_, handles[index], self->facts_, self->plan_, &self->device_));

  const auto get = self->instance_->api().vkGetDeviceProcAddr;
#define RT_VK_LOAD(symbol)                                                         \
  self->api_.symbol = reinterpret_cast<PFN_##symbol>(get(self->device_, #symbol)); \
  if (self->api_.symbol == nullptr)                                                \
    return Status::make(Code::Device, "device '", self->facts_.name, "' has no " #symbol);
  RT_VK_DEVICE_FUNCTIONS(RT_VK_LOAD)
#undef RT_VK_LOAD
#define RT_VK_LOAD(symbol) self->api_.symbol = reinterpret_cast<PFN_##symbol>(get(self->device_, #symbol));
  RT_VK_OPTIONAL_DEVICE_FUNCTIONS(RT_VK_LOAD)
#undef RT_VK_LOAD
  self->api_.vkGetDeviceQueue(self->device_, self->plan_.queue_family, 0, &self->queue_);

  const std::string folder = cache_folder(options.cache_folder);
  const std::string key = text(self->facts_.uuid, "-", self->facts_.driver, "-", self->facts_.driver_version,
                               "-", shader_build_hash());
  const auto file = [&](const char* suffix) {
    return folder.empty() ? "" : text(folder, "/vulkan-", self->facts_.uuid, suffix);
  };
  self->pipelines_ = std::make_unique<PipelineStore>(self->api_, self->device_, self->facts_);
  RT_TRY(self->pipelines_->open(file(".pipelines"), key));
  self->note_cache(self->pipelines_->cache_problem());
  RT_ASSIGN(self->self_tests_,
            SelfTests::open(*self, file(".tests"), text(key, "-", self->facts_.subgroup_size)));
  self->kernels_ = std::make_unique<KernelTable>(kernel_families());
  RT_ASSIGN(self->placeholder_, VulkanSlab::create(*self, 64, self->plan_.tensor_memory, Mapping::None));
  RT_TRY(self->instance_->validation_errors());
  return DevicePtr(std::move(self));
}

VulkanDevice::~VulkanDevice() {
  if (device_ == VK_NULL_HANDLE || api_.vkDestroyDevice == nullptr) return;
  if (hung_) {  // with all that it may still use; slabs leave theirs
    pipelines_->save();
    static_cast<void>(transfers_.release());
    static_cast<void>(pipelines_.release());
    static_cast<void>(new std::shared_ptr<Instance>(instance_));
    return;
  }
  api_.vkDeviceWaitIdle(device_);
  transfers_.reset();
  placeholder_.reset();
  pipelines_.reset();
  if (settled_ != VK_NULL_HANDLE) api_.vkDestroyFence(device_, settled_, nullptr);
  api_.vkDestroyDevice(device_, nullptr);
}

Code VulkanDevice::note(VkResult result, Code otherwise) const noexcept {
  lost_ = lost_ || result == VK_ERROR_DEVICE_LOST || result == VK_TIMEOUT;
  return code_of(result, otherwise);
}

VkResult VulkanDevice::wait_for(VkFence fence) noexcept {
  if (hung_) return VK_TIMEOUT;
  if (plan_.wait_seconds == 0) return api_.vkWaitForFences(device_, 1, &fence, VK_TRUE, UINT64_MAX);
  const VkResult result =
      api_.vkWaitForFences(device_, 1, &fence, VK_TRUE, plan_.wait_seconds * uint64_t{1'000'000'000});
  hung_ = result == VK_TIMEOUT;
  return result;
}

Status VulkanDevice::usable() const noexcept {
  if (!lost_) return {};
  return Status::make(Code::DeviceLost, "device '", info_.name,
                      "' was lost in an earlier call, with all that was in its memory; make a new session");
}

void VulkanDevice::note_long_work(const std::string& what) {
  std::string note = "long work: " + what;
  if (std::ranges::find(info_.features, note) == info_.features.end())
    info_.features.push_back(std::move(note));
}

Result<SlabPtr> VulkanDevice::allocate(size_t bytes) noexcept {
  RT_ATTEMPT {
    RT_TRY(usable());
    const Mapping mapping = plan_.mapped     ? Mapping::ReadWrite
                            : plan_.writable ? Mapping::Write
                                             : Mapping::None;
    RT_ASSIGN(auto slab, VulkanSlab::create(*this, bytes, plan_.tensor_memory, mapping));
    return SlabPtr(std::move(slab));
  }
  RT_CAUGHT {
    return caught_exception("allocating device memory");
  }
}

Result<SlabPtr> VulkanDevice::allocate_exchange(size_t bytes) noexcept {
  RT_ATTEMPT {
    RT_TRY(usable());
    const uint32_t memory = plan_.mapped ? plan_.tensor_memory : plan_.staging_memory;
    RT_ASSIGN(auto slab, VulkanSlab::create(*this, bytes, memory, Mapping::ReadWrite, true));
    return SlabPtr(std::move(slab));
  }
  RT_CAUGHT {
    return caught_exception("allocating memory for transfers");
  }
}

Status VulkanDevice::settle() {
  if (completed_ == submissions_) return {};
  // Unlike vkDeviceWaitIdle, a fence can be waited for in a limited time.
  const VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  VkResult result = VK_SUCCESS;
  if (settled_ == VK_NULL_HANDLE) result = api_.vkCreateFence(device_, &fence, nullptr, &settled_);
  if (result == VK_SUCCESS) result = api_.vkQueueSubmit(queue_, 0, nullptr, settled_);
  if (result == VK_SUCCESS) result = wait_for(settled_);
  if (result == VK_SUCCESS) result = api_.vkResetFences(device_, 1, &settled_);
  if (result != VK_SUCCESS)
    return Status::make(note(result), "waiting for '", info_.name, "' failed: ", result_name(result));
  completed_ = submissions_;
  return {};
}

Result<SlabPtr> VulkanDevice::wrap(void*, size_t) noexcept {
  return unsupported("the Vulkan backend does not adopt host memory; copy with upload()");
}

namespace {
Status check_range(const char* what, size_t slab, size_t offset, size_t bytes) {
  if (offset <= slab && bytes <= slab - offset) return {};
  return invalid_argument(what, " of ", bytes, " bytes at ", offset, " in a slab of ", slab);
}
}  // namespace

Status VulkanDevice::upload(Slab& destination, size_t offset, std::span<const std::byte> bytes) noexcept {
  RT_ATTEMPT {
    RT_TRY(usable());
    RT_TRY(check_range("upload", destination.size(), offset, bytes.size()));
    auto& slab = static_cast<VulkanSlab&>(destination);
    if (bytes.empty()) return {};
    if (slab.writable() != nullptr) {
      if (!slab.exchange()) RT_TRY(settle());
      std::memcpy(static_cast<std::byte*>(slab.writable()) + offset, bytes.data(), bytes.size());
      return {};
    }
    if (transfers_ == nullptr) transfers_ = std::make_unique<Transfers>(*this);
    return transfers_->upload(slab.buffer(), offset, bytes);
  }
  RT_CAUGHT {
    return caught_exception("uploading");
  }
}

Status VulkanDevice::download(const Slab& source, size_t offset, std::span<std::byte> bytes) noexcept {
  RT_ATTEMPT {
    RT_TRY(usable());
    RT_TRY(check_range("download", source.size(), offset, bytes.size()));
    const auto& slab = static_cast<const VulkanSlab&>(source);
    if (bytes.empty()) return {};
    if (slab.host() != nullptr) {
      if (!slab.exchange()) RT_TRY(settle());
      std::memcpy(bytes.data(), static_cast<const std::byte*>(slab.host()) + offset, bytes.size());
      return {};
    }
    if (transfers_ == nullptr) transfers_ = std::make_unique<Transfers>(*this);
    return transfers_->download(slab.buffer(), offset, bytes);
  }
  RT_CAUGHT {
    return caught_exception("downloading");
  }
}

Result<CommandListPtr> VulkanDevice::begin(const RecordOptions& options) noexcept {
  RT_ATTEMPT {
    RT_TRY(usable());
    RT_ASSIGN(auto commands, VulkanCommands::create(*this, options));
    return CommandListPtr(std::move(commands));
  }
  RT_CAUGHT {
    return caught_exception("beginning a command list");
  }
}

}  // namespace librt::vulkan
