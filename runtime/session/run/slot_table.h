// Slots of one recording.
#pragma once

#include <map>
#include <utility>

#include "runtime/session/run/plan.h"

namespace librt {

/// Assigns slots to the blocks and host ranges that one command list refers to.
class Plan::SlotTable {
 public:
  SlotTable(Device& device, Recording& recording) : device_(device), recording_(recording) {}

  Result<uint32_t> slot(Block& block) {
    uint32_t& number = known(&block, 0);
    if (number == kNone) {
      RT_ASSIGN(Slab * slab, block.on(device_));
      number = add(slab);
    }
    return number;
  }
  uint32_t slot(bool output, uint32_t index) {
    uint32_t& number = known(nullptr, 2 * uint64_t{index} + output);
    if (number == kNone) {
      number = add(nullptr);
      recording_.bindings.push_back({.slot = number, .output = output, .index = index});
    }
    return number;
  }

 private:
  /// kNone: it has no slot yet.
  [[gnu::noinline]] uint32_t& known(const void* block, uint64_t binding) {
    return slots_.try_emplace({block, binding}, kNone).first->second;
  }
  uint32_t add(Slab* slab) {
    recording_.slots.push_back(slab);
    return static_cast<uint32_t>(recording_.slots.size() - 1);
  }

  Device& device_;
  Recording& recording_;
  std::map<std::pair<const void*, uint64_t>, uint32_t> slots_;  ///< by block, or by number of a binding
};

}  // namespace librt
