// Compute pipelines, created on first use and kept per shader variant and specialization; the driver's
// pipeline cache, kept in a file between processes.
//
// Knows: SPIR-V by shader id, pipeline objects. Must not know: tensors, operators.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/vulkan/device/api.h"
#include "backends/vulkan/dispatch/shaders.h"
#include "runtime/core/status.h"

namespace librt::vulkan {

class PipelineStore {
 public:
  PipelineStore(const DeviceApi& api, VkDevice device) : api_(api), device_(device) {}
  ~PipelineStore();
  PipelineStore(const PipelineStore&) = delete;
  PipelineStore& operator=(const PipelineStore&) = delete;

  /// cache_file: path of the driver's cache, empty for none. `key` identifies device, driver and build: a
  /// file with another key, or a damaged one, counts as absent.
  Status open(std::string cache_file, std::string key);
  /// Why the cache file is not used; ok if it is, or if there is none.
  const Status& cache_problem() const noexcept { return cache_problem_; }
  /// Writes the cache file if anything is new. A cache that cannot be written costs time, not results.
  void save() noexcept;

  /// constants[i] specializes constant_id i.
  Result<VkPipeline> get(Shader shader, const std::vector<uint32_t>& constants);
  VkPipelineLayout layout() const noexcept { return layout_; }
  VkDescriptorSetLayout set_layout() const noexcept { return set_layout_; }

 private:
  const DeviceApi& api_;
  VkDevice device_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::map<std::pair<Shader, std::vector<uint32_t>>, VkPipeline> pipelines_;
  std::string cache_file_;
  std::string key_;
  Status cache_problem_;
  bool dirty_ = false;
};

}  // namespace librt::vulkan
