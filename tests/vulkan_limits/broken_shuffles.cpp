// A Vulkan layer that simulates a driver whose compiler gets one instruction wrong: OpGroupNonUniformShuffle
// becomes OpGroupNonUniformShuffleXor. With RT_BROKEN_SHUFFLES=abort the driver aborts the process instead.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/vulkan_limits/layer.h"

namespace {

VKAPI_ATTR VkResult VKAPI_CALL create_module(VkDevice device, const VkShaderModuleCreateInfo* create,
                                             const VkAllocationCallbacks* allocator, VkShaderModule* module) {
  constexpr uint32_t kHeader = 5, kShuffle = 345, kShuffleXor = 346;
  std::vector<uint32_t> words(create->pCode, create->pCode + create->codeSize / sizeof(uint32_t));
  for (size_t at = kHeader; at < words.size() && words[at] >> 16 != 0; at += words[at] >> 16)
    if ((words[at] & 0xffffu) == kShuffle) {
      const char* how = std::getenv("RT_BROKEN_SHUFFLES");
      if (how != nullptr && std::strcmp(how, "abort") == 0) std::abort();
      words[at] += kShuffleXor - kShuffle;
    }
  VkShaderModuleCreateInfo changed = *create;
  changed.pCode = words.data();
  return layer::next_of_device<PFN_vkCreateShaderModule>("vkCreateShaderModule")(device, &changed, allocator,
                                                                                 module);
}

}  // namespace

std::span<const layer::Entry> layer::instance_entries() {
  return {};
}

std::span<const layer::Entry> layer::device_entries() {
  static const Entry entries[] = {{"vkCreateShaderModule", plain(create_module)}};
  return entries;
}
