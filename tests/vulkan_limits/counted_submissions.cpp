// A Vulkan layer that appends a line for each submission with work in it to the file RT_TEST_SUBMISSIONS: the
// number of its command buffers.
#include <cstdio>
#include <cstdlib>

#include "tests/vulkan_limits/layer.h"

namespace {

VKAPI_ATTR VkResult VKAPI_CALL queue_submit(VkQueue queue, uint32_t count, const VkSubmitInfo* submits,
                                            VkFence fence) {
  uint32_t buffers = 0;
  for (uint32_t i = 0; i < count; ++i) buffers += submits[i].commandBufferCount;
  const char* path = std::getenv("RT_TEST_SUBMISSIONS");
  if (std::FILE* file = path != nullptr && buffers > 0 ? std::fopen(path, "a") : nullptr; file != nullptr) {
    std::fprintf(file, "%u\n", buffers);
    std::fclose(file);
  }
  return layer::next_of_device<PFN_vkQueueSubmit>("vkQueueSubmit")(queue, count, submits, fence);
}

}  // namespace

std::span<const layer::Entry> layer::instance_entries() {
  return {};
}

std::span<const layer::Entry> layer::device_entries() {
  static const Entry entries[] = {{"vkQueueSubmit", plain(queue_submit)}};
  return entries;
}
