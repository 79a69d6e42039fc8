// Transfers of the inputs of one submitted run to the device, and of its outputs back, while the previous or
// next run computes.
//
// Knows: exchange memory, and the copies between it and a plan's working memory before and after the plan's
// work. Must not know: what is computed, who owns the host memory.
#pragma once

#include <span>
#include <vector>

#include "runtime/session/memory/memory.h"

namespace librt {

class Exchange {
 public:
  /// A byte range of a plan's working memory, or of another slab.
  struct Range {
    uint64_t offset = 0;
    size_t bytes = 0;
    Slab* slab = nullptr;
  };
  /// Bytes of exchange memory for these ranges.
  static uint64_t bytes_of(std::span<const Range> inputs, std::span<const Range> outputs, size_t alignment);

  /// Allocates, unless memory kept from an earlier call suffices, and records the copies.
  Status record(Device& device, size_t alignment, Slab& working_memory, std::span<const Range> inputs,
                std::span<const Range> outputs);
  bool is_recorded() const noexcept { return put_ != nullptr; }
  /// The working memory is about to change.
  void forget_recording() noexcept;
  size_t allocated_bytes() const noexcept { return slab_ != nullptr ? slab_->size() : 0; }

  /// One run: send() each input, get(), submit the plan's work, put(); then wait(), receive() each output.
  Status send(size_t input, const void* data) noexcept;
  Status get() noexcept { return get_->submit(); }
  Status put() noexcept { return put_->submit(); }
  Status wait() noexcept { return put_->wait(); }
  Status receive(size_t output, void* data) const noexcept;

 private:
  Device* device_ = nullptr;
  SlabPtr slab_;
  std::vector<Range> inputs_, outputs_;  ///< in exchange memory
  CommandListPtr get_, put_;             // after everything they refer to, so that they are destroyed first
};

}  // namespace librt
