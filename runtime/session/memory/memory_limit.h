// The limits on the memory of a session: the one in its options, and what the machine has.
//
// Knows: byte counts and the messages when they are too large. Must not know: what the bytes are for.
#pragma once

#include <cstdint>

#include "runtime/core/status.h"

namespace librt {

class MemoryLimit {
 public:
  /// Values on the host that take less than this together do not count: a limit that was computed for a
  /// device's memory stays exact.
  static constexpr uint64_t kSmall = 1 << 20;

  /// limit 0: none.
  explicit MemoryLimit(uint64_t limit = 0) noexcept : limit_(limit) {}
  uint64_t bytes() const noexcept { return limit_; }
  /// What may still be taken beside `held`.
  uint64_t left(uint64_t held) const noexcept {
    return limit_ == 0 ? ~uint64_t{0} : limit_ > held ? limit_ - held : 0;
  }
  /// OutOfMemory if `more` bytes beside `held` exceed the limit.
  Status check(uint64_t held, uint64_t more) const noexcept;
  /// OutOfMemory if a device or machine with so much memory (0: not known) cannot hold `bytes`.
  static Status check_machine(uint64_t bytes, uint64_t memory) noexcept;

 private:
  uint64_t limit_;
};

/// A count of bytes that was estimated in floating point.
inline uint64_t to_bytes(double bytes) noexcept {
  return bytes < 0x1p62 ? static_cast<uint64_t>(bytes) : uint64_t{1} << 62;
}

}  // namespace librt
