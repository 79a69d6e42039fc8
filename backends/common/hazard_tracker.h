// Which accesses to memory depend on earlier ones.
//
// Knows: ranges of bytes. Must not know: devices, barriers, kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace librt {

/// Accesses that are independent of each other, since one that was not. Each new one is compared with all.
class HazardTracker {
 public:
  struct Access {
    uint64_t buffer = 0;
    uint64_t begin = 0;  ///< bytes [begin, end)
    uint64_t end = 0;
    bool write = false;
  };
  /// most: accesses to keep.
  explicit HazardTracker(size_t most = std::numeric_limits<size_t>::max()) noexcept : most_(most) {}

  /// True if one overlaps an earlier one and either writes, or if there would be too many: then only these
  /// are kept. They are not compared with each other.
  bool add(std::span<const Access> accesses) {
    const bool restarts = pending_.size() + accesses.size() > most_ || depends_on_pending(accesses);
    if (restarts) pending_.clear();
    keep(accesses);
    return restarts;
  }
  /// Accesses that count for later ones only.
  void keep(std::span<const Access> accesses) {
    pending_.insert(pending_.end(), accesses.begin(), accesses.end());
  }
  void clear() noexcept { pending_.clear(); }

 private:
  bool depends_on_pending(std::span<const Access> accesses) const noexcept {
    for (const Access& access : accesses)
      for (const Access& earlier : pending_)
        if ((access.write || earlier.write) && access.buffer == earlier.buffer &&
            access.begin < earlier.end && earlier.begin < access.end)
          return true;
    return false;
  }

  std::vector<Access> pending_;
  size_t most_;
};

/// Of the work that later work may join.
inline constexpr size_t kMostJoinableAccesses = 4096;

}  // namespace librt
