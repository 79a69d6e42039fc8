// The devices of one session: the chosen one, then the fallback devices for nodes it does not support.
//
// Knows: how to open them and which of them share memory. Must not know: graphs, plans.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/backend/interop.h"
#include "runtime/session/device/device_profile.h"

namespace librt {

/// Devices in one memory space share values without a copy. Space 0 is the chosen device's.
enum class SpaceKind : uint8_t { Host, Device };

class DeviceSet {
 public:
  struct Entry {
    DevicePtr device;
    std::string backend;
    uint8_t space = 0;
    DeviceProfile profile = {};  ///< if the device wants_estimates
  };
  static constexpr size_t kChosen = 0;

  /// Without a device: see open().
  explicit DeviceSet(const DeviceOptions& options) : options_(options) {}
  /// Unsupported if TF32 is requested and the device does not support it.
  static Result<std::shared_ptr<DeviceSet>> open(const std::string& backend, const DeviceOptions& options);
  /// For tests: an already open device.
  static Result<std::shared_ptr<DeviceSet>> adopt(DevicePtr device, const DeviceOptions& options = {});

  const DeviceOptions& options() const noexcept { return options_; }
  Device& device(size_t i) noexcept { return *entries_[i].device; }
  const Entry& entry(size_t i) const noexcept { return entries_[i]; }
  size_t size() const noexcept { return entries_.size(); }
  Device& chosen() noexcept { return *entries_[kChosen].device; }
  /// Of the chosen device; null if it shares nothing but host addresses.
  Interop* interop() const noexcept { return interop_; }

  /// Opens the cpu and reference backends after the chosen device, once. A backend that cannot be opened is
  /// left out, with its reason in `notes()`.
  void open_fallbacks();
  const std::string& notes() const noexcept { return notes_; }

  SpaceKind kind(size_t space) const noexcept { return spaces_[space]; }
  size_t space_count() const noexcept { return spaces_.size(); }
  /// The first device of a space, which allocates for it.
  Device& owner(size_t space) noexcept;
  size_t alignment() const noexcept { return alignment_; }

 private:
  Status add(DevicePtr device);

  DeviceOptions options_;
  std::vector<Entry> entries_;
  Interop* interop_ = nullptr;
  std::vector<SpaceKind> spaces_;
  bool unified_ = false;  ///< the chosen device's memory has host addresses
  bool fallbacks_opened_ = false;
  size_t alignment_ = 64;
  std::string notes_;
};

}  // namespace librt
