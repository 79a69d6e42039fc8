// The states of a model on a device: one slab, used by all sessions that share the states.
//
// Knows: the location of each state, how to read, write and reset it. Must not know: plans, checkpoints'
// format.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/session/device/device_set.h"
#include "runtime/session/memory/memory.h"

namespace librt {

class StateStore {
 public:
  /// Allocates and sets the initial values. memory_limit: 0 for none.
  static Result<std::shared_ptr<StateStore>> create(std::shared_ptr<DeviceSet> devices,
                                                    std::shared_ptr<const ModelGraph> model,
                                                    uint64_t memory_limit);

  size_t count() const noexcept { return model_->states.size(); }
  const State& state(size_t index) const noexcept { return model_->states[index]; }
  /// Index by name; the error lists similar names.
  Result<size_t> find(std::string_view name) const;
  Status read(size_t index, std::span<std::byte> bytes) const;
  Status write(size_t index, std::span<const std::byte> bytes);
  Status reset();

  Block* block() noexcept { return block_.get(); }
  uint64_t offset(size_t index) const noexcept { return offsets_[index]; }
  uint64_t bytes() const noexcept { return bytes_; }
  const std::shared_ptr<DeviceSet>& devices() const noexcept { return devices_; }
  const std::shared_ptr<const ModelGraph>& model() const noexcept { return model_; }

 private:
  std::shared_ptr<DeviceSet> devices_;  // outlives the block
  std::shared_ptr<const ModelGraph> model_;
  BlockPtr block_;
  std::vector<uint64_t> offsets_;
  uint64_t bytes_ = 0;
};

}  // namespace librt
