#include "backends/vulkan/dispatch/pipeline.h"

#include "backends/vulkan/dispatch/capabilities.h"
#include "backends/vulkan/dispatch/pipeline_cache_file.h"
#include "runtime/core/exception.h"

namespace librt::vulkan {

PipelineStore::~PipelineStore() {
  save();
  for (const auto& [key, pipeline] : pipelines_) api_.vkDestroyPipeline(device_, pipeline.handle, nullptr);
  if (cache_ != VK_NULL_HANDLE) api_.vkDestroyPipelineCache(device_, cache_, nullptr);
  for (const auto& [bindings, layout] : layouts_) {
    if (layout.pipeline != VK_NULL_HANDLE) api_.vkDestroyPipelineLayout(device_, layout.pipeline, nullptr);
    if (layout.set != VK_NULL_HANDLE) api_.vkDestroyDescriptorSetLayout(device_, layout.set, nullptr);
  }
}

Status PipelineStore::open(std::string cache_file, std::string key) {
  cache_file_ = std::move(cache_file);
  key_ = std::move(key);
  std::vector<uint8_t> bytes;
  if (!cache_file_.empty()) {
    auto read = read_pipelines(cache_file_, key_);
    cache_problem_ = read.status();
    if (read.ok()) bytes = std::move(read).value();
  }
  VkPipelineCacheCreateInfo cache{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  cache.initialDataSize = bytes.size();
  cache.pInitialData = bytes.data();
  const VkResult result = api_.vkCreatePipelineCache(device_, &cache, nullptr, &cache_);
  if (result != VK_SUCCESS)
    return Status::make(code_of(result), "cannot create a pipeline cache: ", result_name(result));
  return {};
}

bool PipelineStore::write() noexcept {
  size_t size = 0;
  if (api_.vkGetPipelineCacheData(device_, cache_, &size, nullptr) != VK_SUCCESS) return false;
  constexpr size_t kHeaderOnly = 32;  // drivers without a cache return the header alone
  if (size <= kHeaderOnly) return true;
  RT_ATTEMPT {
    std::vector<uint8_t> bytes(size);
    // Another pipeline may be added meanwhile, and the data then be incomplete, but usable.
    const VkResult result = api_.vkGetPipelineCacheData(device_, cache_, &size, bytes.data());
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) return false;
    bytes.resize(size);
    return write_pipelines(cache_file_, key_, bytes).ok();
  }
  RT_CAUGHT {  // without memory the next process compiles again
    return false;
  }
}

void PipelineStore::save() noexcept {
  if (saver_.joinable()) saver_.join();
  if (cache_file_.empty() || cache_ == VK_NULL_HANDLE || (!dirty_ && !unsaved_)) return;
  dirty_ = !write();
}

void PipelineStore::save_later() noexcept {
  if (!dirty_ || cache_file_.empty() || saving_) return;
  RT_ATTEMPT {
    if (saver_.joinable()) saver_.join();
    saving_ = true;
    dirty_ = false;
    saver_ = std::thread([this] {
      unsaved_ = !write();
      saving_ = false;
    });
  }
  RT_CAUGHT {  // no thread: written at the end
    saving_ = false;
    dirty_ = true;
  }
}

Result<Layout> PipelineStore::layout_of(uint32_t bindings) {
  Layout& layout = layouts_[bindings];
  if (layout.pipeline != VK_NULL_HANDLE) return layout;
  std::vector<VkDescriptorSetLayoutBinding> each;
  for (uint32_t i = 0; i < kStorageBindings + kTexelBindings; ++i) {
    if (((bindings >> i) & 1) == 0) continue;
    VkDescriptorSetLayoutBinding& binding = each.emplace_back();
    binding.binding = i;
    binding.descriptorType =
        i < kStorageBindings ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER : VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER;
    binding.descriptorCount = 1;
    binding.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set.bindingCount = static_cast<uint32_t>(each.size());
  set.pBindings = each.data();
  VkResult result = VK_SUCCESS;
  if (layout.set == VK_NULL_HANDLE)
    result = api_.vkCreateDescriptorSetLayout(device_, &set, nullptr, &layout.set);
  if (result == VK_SUCCESS) {
    const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
    VkPipelineLayoutCreateInfo create{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    create.setLayoutCount = 1;
    create.pSetLayouts = &layout.set;
    create.pushConstantRangeCount = 1;
    create.pPushConstantRanges = &range;
    result = api_.vkCreatePipelineLayout(device_, &create, nullptr, &layout.pipeline);
  }
  if (result != VK_SUCCESS)
    return Status::make(code_of(result), "cannot create a pipeline layout: ", result_name(result));
  return layout;
}

Result<Pipeline> PipelineStore::get(Shader shader, const std::vector<uint32_t>& constants, bool in_parts) {
  const auto key = std::make_tuple(shader, constants, in_parts);
  if (const auto found = pipelines_.find(key); found != pipelines_.end()) return found->second;

  const ShaderCode& code = shader_code(shader);
  RT_TRY(runs(facts_, code));
  RT_ASSIGN(const std::span<const uint32_t> words, shader_words(code));
  Pipeline made{.bindings = code.bindings};
  RT_ASSIGN(made.layout, layout_of(code.bindings));
  std::vector<VkSpecializationMapEntry> entries;
  for (uint32_t i = 0; i < constants.size(); ++i) entries.push_back({i, i * 4, 4});
  const auto place = pipelines_.emplace(key, Pipeline{}).first;
  VkShaderModuleCreateInfo create_module{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  create_module.codeSize = words.size_bytes();
  create_module.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  VkResult result = api_.vkCreateShaderModule(device_, &create_module, nullptr, &module);
  if (result == VK_SUCCESS) {
    VkSpecializationInfo specialization{};
    specialization.mapEntryCount = static_cast<uint32_t>(entries.size());
    specialization.pMapEntries = entries.data();
    specialization.dataSize = constants.size() * 4;
    specialization.pData = constants.data();
    VkComputePipelineCreateInfo create{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    create.flags = in_parts ? VK_PIPELINE_CREATE_DISPATCH_BASE_BIT : 0;
    create.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
    create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    create.stage.module = module;
    create.stage.pName = "main";
    create.stage.pSpecializationInfo = &specialization;
    create.layout = made.layout.pipeline;
    result = api_.vkCreateComputePipelines(device_, cache_, 1, &create, nullptr, &made.handle);
    api_.vkDestroyShaderModule(device_, module, nullptr);
  }
  if (result != VK_SUCCESS) {
    pipelines_.erase(place);
    return Status::make(code_of(result), "the driver cannot compile shader ", code.name, ": ",
                        result_name(result));
  }
  dirty_ = true;
  place->second = made;
  return made;
}

}  // namespace librt::vulkan
