// How much work a device is given at once: watchdogs of drivers reset a device whose submission runs for too
// long, and a desktop does not move meanwhile.
//
// Knows: estimated and measured seconds of submissions. Must not know: Vulkan, what is submitted.
#pragma once

#include <cstdint>
#include <limits>

namespace librt::vulkan {

/// Corrects estimates by what earlier submissions took. A device starts as much slower than estimated as
/// devices without a measured profile may be.
class Pace {
 public:
  /// limit: seconds that one submission may take; 0: any.
  explicit Pace(double limit = 0) noexcept : limit_(limit) {}
  bool is_limited() const noexcept { return limit_ > 0; }
  double limit() const noexcept { return limit_; }
  /// Measured seconds for each estimated one: the slowest of late.
  double factor() const noexcept { return factor_; }
  /// Estimated seconds that fit in one submission.
  double budget() const noexcept {
    return is_limited() ? limit_ / factor_ : std::numeric_limits<double>::infinity();
  }
  /// exact: else the submission took at most as long.
  void learn(double estimated, double measured, bool exact) noexcept;

 private:
  double limit_;
  double factor_ = 8;
};

/// The limit for the GPUs of a vendor (its PCI or Khronos id), in seconds. Drivers end a submission after
/// half a second (Panfrost, V3D), 2 (Windows), 2.5 (i915) or 10 (amdgpu).
double submission_limit(uint32_t vendor_id) noexcept;

}  // namespace librt::vulkan
