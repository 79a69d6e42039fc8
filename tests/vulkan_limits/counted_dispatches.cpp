// A Vulkan layer that counts the dispatches that are recorded, for tests that load it by its path.
#include <atomic>
#include <cstdint>

#include "tests/vulkan_limits/layer.h"

namespace {

std::atomic<uint64_t> dispatches{0};

VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
  ++dispatches;
  static const auto next = layer::next_of_device<PFN_vkCmdDispatch>("vkCmdDispatch");
  next(commands, x, y, z);
}

VKAPI_ATTR void VKAPI_CALL dispatch_base(VkCommandBuffer commands, uint32_t first_x, uint32_t first_y,
                                         uint32_t first_z, uint32_t x, uint32_t y, uint32_t z) {
  ++dispatches;
  static const auto next = layer::next_of_device<PFN_vkCmdDispatchBase>("vkCmdDispatchBase");
  next(commands, first_x, first_y, first_z, x, y, z);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) uint64_t recorded_dispatches();
uint64_t recorded_dispatches() {
  return dispatches;
}

std::span<const layer::Entry> layer::instance_entries() {
  return {};
}
std::span<const layer::Entry> layer::device_entries() {
  static const Entry entries[] = {{"vkCmdDispatch", plain(dispatch)},
                                  {"vkCmdDispatchBase", plain(dispatch_base)}};
  return entries;
}
