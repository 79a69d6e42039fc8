#include "backends/vulkan/device/loader.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

namespace librt::vulkan {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

std::string hex(const uint8_t* bytes, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    out.push_back("0123456789abcdef"[bytes[i] >> 4]);
    out.push_back("0123456789abcdef"[bytes[i] & 15]);
  }
  return out;
}

DeviceType type_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return DeviceType::DiscreteGpu;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return DeviceType::IntegratedGpu;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return DeviceType::SoftwareGpu;
    default: return DeviceType::VirtualGpu;
  }
}

Component component_of(VkComponentTypeKHR type) {
  switch (type) {
    case VK_COMPONENT_TYPE_FLOAT16_KHR: return Component::F16;
    case VK_COMPONENT_TYPE_FLOAT32_KHR: return Component::F32;
    case VK_COMPONENT_TYPE_SINT8_KHR: return Component::S8;
    case VK_COMPONENT_TYPE_SINT32_KHR: return Component::S32;
    default: return Component::Other;
  }
}

/// For a device that lists VK_KHR_cooperative_matrix: its matrices of subgroup scope. The shaders use the
/// Vulkan memory model, because the extension requires it.
std::vector<MatrixFacts> matrices_of(const InstanceApi& api, VkPhysicalDevice device) {
  VkPhysicalDeviceVulkanMemoryModelFeatures memory_model{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR, &memory_model, VK_FALSE, VK_FALSE};
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &matrices};
  api.vkGetPhysicalDeviceFeatures2(device, &features);
  if (matrices.cooperativeMatrix != VK_TRUE || memory_model.vulkanMemoryModel != VK_TRUE) return {};
  uint32_t count = 0;
  if (api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(device, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<VkCooperativeMatrixPropertiesKHR> rows(count);
  for (auto& row : rows) row.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
  if (api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(device, &count, rows.data()) != VK_SUCCESS)
    return {};
  std::vector<MatrixFacts> facts;
  for (const auto& row : rows)
    if (row.scope == VK_SCOPE_SUBGROUP_KHR && row.saturatingAccumulation == VK_FALSE &&
        row.AType == row.BType && row.CType == row.ResultType)
      facts.push_back({row.MSize, row.NSize, row.KSize, component_of(row.AType), component_of(row.CType)});
  return facts;
}

DeviceFacts facts_of(const InstanceApi& api, VkPhysicalDevice device, bool matrices) {
  DeviceFacts facts;
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  api.vkGetPhysicalDeviceProperties2(device, &properties);
  const auto& p = properties.properties;
  const auto& limits = p.limits;
  facts.name = p.deviceName;
  facts.vendor_id = p.vendorID;
  facts.driver_version = p.driverVersion;
  facts.api_version = VK_API_VERSION_MAJOR(p.apiVersion) * 100 + VK_API_VERSION_MINOR(p.apiVersion);
  facts.type = type_of(p.deviceType);
  facts.max_storage_range = limits.maxStorageBufferRange;
  facts.max_texel_elements = limits.maxTexelBufferElements;
  facts.storage_alignment = limits.minStorageBufferOffsetAlignment;
  facts.texel_alignment = limits.minTexelBufferOffsetAlignment;
  facts.max_groups = std::min(limits.maxComputeWorkGroupCount[0], limits.maxComputeWorkGroupCount[1]);
  facts.max_invocations = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  facts.max_shared_bytes = limits.maxComputeSharedMemorySize;
  facts.max_push_bytes = limits.maxPushConstantsSize;
  facts.max_storage_buffers = limits.maxPerStageDescriptorStorageBuffers;
  facts.timestamp_period = static_cast<double>(limits.timestampPeriod);
  facts.driver = text(VK_API_VERSION_MAJOR(p.driverVersion), ".", VK_API_VERSION_MINOR(p.driverVersion), ".",
                      VK_API_VERSION_PATCH(p.driverVersion));
  if (facts.api_version < 101) return facts;

  uint32_t extension_count = 0;
  api.vkEnumerateDeviceExtensionProperties(device, nullptr, &extension_count, nullptr);
  std::vector<VkExtensionProperties> extensions(extension_count);
  api.vkEnumerateDeviceExtensionProperties(device, nullptr, &extension_count, extensions.data());
  const auto has = [&](const char* name) {
    return std::any_of(extensions.begin(), extensions.end(), [&](const auto& extension) {
      return std::strcmp(extension.extensionName, name) == 0;
    });
  };

  VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceIDProperties id{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES, &subgroup};
  VkPhysicalDeviceMaintenance3Properties maintenance{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, &id};
  VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES, &maintenance};
  const bool has_driver = facts.api_version >= 102 || has("VK_KHR_driver_properties");
  properties.pNext = has_driver ? static_cast<void*>(&driver) : static_cast<void*>(&maintenance);
  const bool has_dot = facts.api_version >= 103 || has(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  VkPhysicalDeviceShaderIntegerDotProductProperties dot_properties{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES, properties.pNext};
  if (has_dot) properties.pNext = &dot_properties;
  api.vkGetPhysicalDeviceProperties2(device, &properties);
  facts.subgroup_size = subgroup.subgroupSize;
  constexpr VkSubgroupFeatureFlags kShuffle =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  facts.subgroup_shuffle = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                           (subgroup.supportedOperations & kShuffle) == kShuffle;
  facts.uuid = hex(id.deviceUUID, VK_UUID_SIZE);
  facts.max_allocation = maintenance.maxMemoryAllocationSize;
  if (has_driver) facts.driver = text(driver.driverName, " ", driver.driverInfo);

  VkPhysicalDevice16BitStorageFeatures storage16{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
  VkPhysicalDevice8BitStorageFeatures storage8{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
                                               &storage16};
  VkPhysicalDeviceShaderFloat16Int8Features small{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, &storage8};
  // Both structures are core since 1.2; before, they must not be passed to a driver without the extension.
  const bool has_small =
      facts.api_version >= 102 || (has("VK_KHR_8bit_storage") && has("VK_KHR_shader_float16_int8"));
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  features.pNext = has_small ? static_cast<void*>(&small) : static_cast<void*>(&storage16);
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, features.pNext};
  if (has_dot) features.pNext = &dot;
  api.vkGetPhysicalDeviceFeatures2(device, &features);
  facts.features.storage_16bit = storage16.storageBuffer16BitAccess == VK_TRUE;
  facts.features.storage_8bit = storage8.storageBuffer8BitAccess == VK_TRUE;
  facts.features.float16 = small.shaderFloat16 == VK_TRUE;
  facts.features.int8 = small.shaderInt8 == VK_TRUE;
  facts.features.integer_dot =
      dot.shaderIntegerDotProduct == VK_TRUE &&
      dot_properties.integerDotProduct4x8BitPackedMixedSignednessAccelerated == VK_TRUE;
  facts.features.int16 = features.features.shaderInt16 == VK_TRUE;
  facts.features.int64 = features.features.shaderInt64 == VK_TRUE;

  if (matrices && facts.api_version >= 102 && has(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME) &&
      api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR != nullptr)
    facts.matrices = matrices_of(api, device);

  uint32_t queue_count = 0;
  api.vkGetPhysicalDeviceQueueFamilyProperties(device, &queue_count, nullptr);
  std::vector<VkQueueFamilyProperties> queues(queue_count);
  api.vkGetPhysicalDeviceQueueFamilyProperties(device, &queue_count, queues.data());
  for (const auto& queue : queues)
    facts.queues.push_back({.graphics = (queue.queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0,
                            .compute = (queue.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0,
                            .count = queue.queueCount,
                            .timestamp_bits = queue.timestampValidBits});

  VkPhysicalDeviceMemoryProperties memory;
  api.vkGetPhysicalDeviceMemoryProperties(device, &memory);
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const auto flags = memory.memoryTypes[i].propertyFlags;
    facts.memory.push_back({.device_local = (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0,
                            .host_visible = (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0,
                            .host_coherent = (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0,
                            .host_cached = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0,
                            .heap_bytes = memory.memoryHeaps[memory.memoryTypes[i].heapIndex].size});
  }
  return facts;
}

}  // namespace

const char* result_name(VkResult result) noexcept {
  switch (result) {
    case VK_SUCCESS: return "VK_SUCCESS";
    case VK_TIMEOUT: return "VK_TIMEOUT";
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED: return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT: return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS: return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_ERROR_OUT_OF_POOL_MEMORY: return "VK_ERROR_OUT_OF_POOL_MEMORY";
    default: return "an unnamed VkResult";
  }
}

Result<std::shared_ptr<Instance>> Instance::open(bool validation) {
  // Drivers leave threads and thread-local destructors behind, so the library is never unloaded.
  void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr)
    return Status::make(Code::NotFound, "the Vulkan loader libvulkan.so.1 is not installed (", dlerror(),
                        ")");
  const auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (get == nullptr) return Status::make(Code::NotFound, "libvulkan.so.1 has no vkGetInstanceProcAddr");

  GlobalApi global;
#define RT_VK_LOAD(name) global.name = reinterpret_cast<PFN_##name>(get(VK_NULL_HANDLE, #name));
  RT_VK_GLOBAL_FUNCTIONS(RT_VK_LOAD)
#undef RT_VK_LOAD
  if (global.vkEnumerateInstanceVersion == nullptr || global.vkCreateInstance == nullptr)
    return Status::make(Code::NotFound, "libvulkan.so.1 is a Vulkan 1.0 loader, 1.1 is needed");

  std::shared_ptr<Instance> self(new Instance);
  self->validation_ = validation;
  if (validation) {
    uint32_t count = 0;
    global.vkEnumerateInstanceLayerProperties(&count, nullptr);
    std::vector<VkLayerProperties> layers(count);
    global.vkEnumerateInstanceLayerProperties(&count, layers.data());
    const auto layer = std::ranges::find_if(
        layers, [](const auto& listed) { return std::strcmp(listed.layerName, kValidationLayer) == 0; });
    if (layer == layers.end())
      return Status::make(Code::NotFound, "validation was requested, but the layer ", kValidationLayer,
                          " is not installed");
    // Older layers report the extension's structures and SPIR-V as errors.
    self->matrices_ = layer->specVersion >= VK_MAKE_API_VERSION(0, 1, 3, 255);
  }

  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "librt";
  application.pEngineName = "librt";
  uint32_t version = VK_API_VERSION_1_1;
  global.vkEnumerateInstanceVersion(&version);
  application.apiVersion = std::clamp(version, VK_API_VERSION_1_1, VK_API_VERSION_1_3);

  VkDebugUtilsMessengerCreateInfoEXT messenger{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  messenger.pfnUserCallback = on_message;
  messenger.pUserData = self.get();
  const VkValidationFeatureEnableEXT enable[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT features{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT, &messenger};
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = enable;
  const char* layers[] = {kValidationLayer};
  const char* extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};

  VkInstanceCreateInfo create{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  create.pApplicationInfo = &application;
  if (validation) {
    create.pNext = &features;
    create.enabledLayerCount = 1;
    create.ppEnabledLayerNames = layers;
    create.enabledExtensionCount = 1;
    create.ppEnabledExtensionNames = extensions;
  }
  if (const VkResult result = global.vkCreateInstance(&create, nullptr, &self->instance_);
      result != VK_SUCCESS)
    return Status::make(Code::NotFound, result == VK_ERROR_INCOMPATIBLE_DRIVER
                                            ? "the Vulkan loader finds no driver (no ICD file that works)"
                                            : text("vkCreateInstance failed with ", result_name(result)));
#define RT_VK_LOAD(name) self->api_.name = reinterpret_cast<PFN_##name>(get(self->instance_, #name));
  RT_VK_INSTANCE_FUNCTIONS(RT_VK_LOAD)
#undef RT_VK_LOAD
  self->api_.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR =
      reinterpret_cast<PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR>(
          get(self->instance_, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  if (validation) {
    const auto create_messenger = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
        get(self->instance_, "vkCreateDebugUtilsMessengerEXT"));
    self->destroy_messenger_ = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        get(self->instance_, "vkDestroyDebugUtilsMessengerEXT"));
    if (create_messenger == nullptr ||
        create_messenger(self->instance_, &messenger, nullptr, &self->messenger_) != VK_SUCCESS)
      return Status::make(Code::Device, "the validation layer does not accept a debug messenger");
  }
  return self;
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
    return Status::make(Code::Device, "the Vulkan drivers cannot list their devices: ", result_name(result));
  handles.resize(count);
  for (VkPhysicalDevice handle : handles) facts.push_back(facts_of(api_, handle, matrices_));
  return {};
}

VkBool32 Instance::on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* self) {
  auto* instance = static_cast<Instance*>(self);
  const std::lock_guard lock(instance->mutex_);
  constexpr uint32_t kMaxReported = 3;  // the first errors explain the others
  if (instance->error_count_.fetch_add(1) < kMaxReported && data->pMessage != nullptr)
    append(instance->errors_, text(instance->errors_.empty() ? "" : "\n", data->pMessage));
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
