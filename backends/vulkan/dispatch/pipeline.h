// Compute pipelines, created on first use and kept per shader variant and specialization, with layouts that
// have a shader's own bindings; the driver's pipeline cache, kept in a file between processes.
//
// Knows: SPIR-V by shader id, pipeline objects. Must not know: tensors, operators.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "backends/vulkan/device/api.h"
#include "backends/vulkan/device/device_plan.h"
#include "backends/vulkan/dispatch/shaders.h"
#include "runtime/core/status.h"

namespace librt::vulkan {

/// The layouts of all shaders with the same bindings: a device limits how many storage buffers a layout has,
/// whether a shader reads them or not.
struct Layout {
  VkDescriptorSetLayout set = VK_NULL_HANDLE;
  VkPipelineLayout pipeline = VK_NULL_HANDLE;
};

struct Pipeline {
  VkPipeline handle = VK_NULL_HANDLE;
  Layout layout;
  uint32_t bindings = 0;  ///< as in ShaderCode
};

class PipelineStore {
 public:
  /// `facts` outlive the store.
  PipelineStore(const DeviceApi& api, VkDevice device, const DeviceFacts& facts)
      : api_(api), device_(device), facts_(facts) {}
  ~PipelineStore();
  PipelineStore(const PipelineStore&) = delete;
  PipelineStore& operator=(const PipelineStore&) = delete;

  /// cache_file: path of the driver's cache, empty for none. `key` identifies device, driver and build: a
  /// file with another key, or a damaged one, counts as absent.
  Status open(std::string cache_file, std::string key);
  /// Why the cache file is not used; ok if it is, or if there is none.
  const Status& cache_problem() const noexcept { return cache_problem_; }
  /// Writes the cache file if anything is new: on another thread while a plan that was recorded runs, so that
  /// a process that is ended has lost no compilation. A cache that cannot be written costs time, not results.
  void save_later() noexcept;
  /// Waits for that thread, and writes what is still new.
  void save() noexcept;

  /// constants[i] specializes constant_id i. Unsupported where the device lacks what the shader needs.
  Result<Pipeline> get(Shader shader, const std::vector<uint32_t>& constants, bool in_parts = false);

 private:
  /// Whether there is nothing left to write.
  bool write() noexcept;
  Result<Layout> layout_of(uint32_t bindings);

  const DeviceApi& api_;
  VkDevice device_;
  const DeviceFacts& facts_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::map<uint32_t, Layout> layouts_;  ///< by bindings
  std::map<std::tuple<Shader, std::vector<uint32_t>, bool>, Pipeline> pipelines_;
  std::string cache_file_;
  std::string key_;
  Status cache_problem_;
  bool dirty_ = false;
  std::thread saver_;
  std::atomic<bool> saving_{false}, unsaved_{false};  ///< unsaved_: the other thread could not write
};

}  // namespace librt::vulkan
