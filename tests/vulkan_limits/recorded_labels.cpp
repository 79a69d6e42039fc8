// A Vulkan layer that stands for RenderDoc or Nsight: appends a line for each debug label that is recorded to
// the file RT_TEST_LABELS, "begin NAME" or "end".
#include <cstdio>
#include <cstdlib>

#include "tests/vulkan_limits/layer.h"

namespace {

void write_line(const char* word, const char* name) {
  const char* path = std::getenv("RT_TEST_LABELS");
  std::FILE* file = path != nullptr ? std::fopen(path, "a") : nullptr;
  if (file == nullptr) return;
  std::fprintf(file, "%s%s%s\n", word, name[0] != '\0' ? " " : "", name);
  std::fclose(file);
}

VKAPI_ATTR void VKAPI_CALL begin_label(VkCommandBuffer commands, const VkDebugUtilsLabelEXT* label) {
  write_line("begin", label->pLabelName);
  if (const auto next =
          layer::next_of_device<PFN_vkCmdBeginDebugUtilsLabelEXT>("vkCmdBeginDebugUtilsLabelEXT"))
    next(commands, label);
}

VKAPI_ATTR void VKAPI_CALL end_label(VkCommandBuffer commands) {
  write_line("end", "");
  if (const auto next = layer::next_of_device<PFN_vkCmdEndDebugUtilsLabelEXT>("vkCmdEndDebugUtilsLabelEXT"))
    next(commands);
}

}  // namespace

// Functions of an extension of the instance: loaders ask for them there.
std::span<const layer::Entry> layer::instance_entries() {
  static const Entry entries[] = {{"vkCmdBeginDebugUtilsLabelEXT", plain(begin_label)},
                                  {"vkCmdEndDebugUtilsLabelEXT", plain(end_label)}};
  return entries;
}

std::span<const layer::Entry> layer::device_entries() {
  return instance_entries();
}
