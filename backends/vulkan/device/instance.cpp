#include "backends/vulkan/device/instance.h"

#include <algorithm>
#include <cstring>

#include "backends/vulkan/device/device_facts.h"
#include "runtime/core/exception.h"

namespace librt::vulkan {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

/// The version of the installed validation layer.
Result<uint32_t> validation_layer_version(const GlobalApi& api) {
  uint32_t count = 0;
  api.vkEnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  api.vkEnumerateInstanceLayerProperties(&count, layers.data());
  const auto layer = std::ranges::find_if(
      layers, [](const auto& listed) { return std::strcmp(listed.layerName, kValidationLayer) == 0; });
  if (layer == layers.end())
    return Status::make(Code::NotFound, "validation was requested, but the layer ", kValidationLayer,
                        " is not installed");
  return layer->specVersion;
}

/// The newest version that both the loader and this backend know.
uint32_t api_version(const GlobalApi& api) {
  uint32_t version = VK_API_VERSION_1_1;
  api.vkEnumerateInstanceVersion(&version);
  return std::clamp(version, VK_API_VERSION_1_1, VK_API_VERSION_1_3);
}

}  // namespace

Result<std::shared_ptr<Instance>> Instance::open(bool validation) {
  RT_ASSIGN(const Loader loader, Loader::open());
  std::shared_ptr<Instance> self(new Instance);
  self->validation_ = validation;
  if (validation) {
    RT_ASSIGN(const uint32_t version, validation_layer_version(loader.api));
    // Older layers report the extension's structures and SPIR-V as errors.
    self->matrices_ = version >= VK_MAKE_API_VERSION(0, 1, 3, 255);
  }
  RT_TRY(self->create(loader));
  if (validation) RT_TRY(self->create_messenger(loader));
  return self;
}

VkDebugUtilsMessengerCreateInfoEXT Instance::messenger_info() {
  VkDebugUtilsMessengerCreateInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = on_message;
  info.pUserData = this;
  return info;
}

Status Instance::create(const Loader& loader) {
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "librt";
  application.pEngineName = "librt";
  application.apiVersion = api_version(loader.api);

  // The messenger in the chain reports errors of vkCreateInstance itself.
  const VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info();
  const VkValidationFeatureEnableEXT enable[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT features{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT, &messenger};
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = enable;
  const char* layers[] = {kValidationLayer};
  const char* extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};

  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  if (validation_) {
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = layers;
  }
  info.enabledExtensionCount = 1;
  info.ppEnabledExtensionNames = extensions;
  VkResult result = loader.api.vkCreateInstance(&info, nullptr, &instance_);
  if (result == VK_ERROR_EXTENSION_NOT_PRESENT && !validation_) {
    info.enabledExtensionCount = 0;  // labels are for tools that watch: without it there are none
    result = loader.api.vkCreateInstance(&info, nullptr, &instance_);
  }
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
    return Status::make(Code::NotFound, "the Vulkan loader finds no driver (no ICD file that works)");
  if (result != VK_SUCCESS)
    return Status::make(code_of(result, Code::NotFound), "vkCreateInstance failed with ",
                        result_name(result));
  api_ = loader.instance_api(instance_);
  return {};
}

Status Instance::create_messenger(const Loader& loader) {
  const auto create =
      loader.function<PFN_vkCreateDebugUtilsMessengerEXT>(instance_, "vkCreateDebugUtilsMessengerEXT");
  destroy_messenger_ =
      loader.function<PFN_vkDestroyDebugUtilsMessengerEXT>(instance_, "vkDestroyDebugUtilsMessengerEXT");
  const VkDebugUtilsMessengerCreateInfoEXT info = messenger_info();
  if (create == nullptr || create(instance_, &info, nullptr, &messenger_) != VK_SUCCESS)
    return Status::make(Code::Device, "the validation layer does not accept a debug messenger");
  return {};
}

Instance::~Instance() {
  if (messenger_ != VK_NULL_HANDLE) destroy_messenger_(instance_, messenger_, nullptr);
  if (instance_ != VK_NULL_HANDLE && api_.vkDestroyInstance != nullptr)
    api_.vkDestroyInstance(instance_, nullptr);
}

Status Instance::list(std::vector<DeviceFacts>& facts, std::vector<VkPhysicalDevice>& handles) const {
  uint32_t count = 0;
  VkResult result = api_.vkEnumeratePhysicalDevices(instance_, &count, nullptr);
  handles.resize(count);
  if (result == VK_SUCCESS && count > 0)
    result = api_.vkEnumeratePhysicalDevices(instance_, &count, handles.data());
  if (result != VK_SUCCESS && result != VK_INCOMPLETE)
    return Status::make(code_of(result),
                        "the Vulkan drivers cannot list their devices: ", result_name(result));
  handles.resize(count);
  for (VkPhysicalDevice handle : handles) facts.push_back(read_device_facts(api_, handle, matrices_));
  return {};
}

VkBool32 Instance::on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* self) {
  auto* instance = static_cast<Instance*>(self);
  const std::lock_guard lock(instance->mutex_);
  constexpr uint32_t kMaxReported = 3;  // the first errors explain the others
  if (instance->error_count_.fetch_add(1) >= kMaxReported || data->pMessage == nullptr) return VK_FALSE;
  RT_ATTEMPT {
    append(instance->errors_, instance->errors_.empty() ? "" : "\n", data->pMessage);
  }
  RT_CAUGHT {  // the driver cannot pass an exception on; the error is counted
  }
  return VK_FALSE;
}

Status Instance::validation_errors() {
  if (error_count_.load() == 0) return {};
  const std::lock_guard lock(mutex_);
  Status status =
      Status::make(Code::Device, "Vulkan validation reports ", error_count_.load(), " errors: ", errors_);
  error_count_ = 0;
  errors_.clear();
  return status;
}

}  // namespace librt::vulkan
