#include "backends/vulkan/device/pace.h"

#include <algorithm>

namespace librt::vulkan {
namespace {
constexpr double kLeastFactor = 1.0 / 16;
/// Shorter submissions show what submitting costs.
constexpr double kLeastSeconds = 0.001;
/// How much of the factor stays after a submission that was faster.
constexpr double kKept = 0.75;
}  // namespace

void Pace::learn(double estimated, double measured, bool exact) noexcept {
  if (estimated <= 0 || (measured < kLeastSeconds && estimated < kLeastSeconds)) return;
  const double ratio = std::max(measured / estimated, kLeastFactor);
  if (ratio < factor_)
    factor_ = std::max(ratio, factor_ * kKept);
  else if (exact)
    factor_ = ratio;
}

double submission_limit(uint32_t vendor_id) noexcept {
  switch (vendor_id) {
    case 0x1002:  // AMD
    case 0x10de:  // NVIDIA
      return 0.4;
    case 0x8086:  // Intel
    case 0x106b:  // Apple
      return 0.2;
    default:  // Qualcomm, ARM, Broadcom, Imagination, and others
      return 0.1;
  }
}

}  // namespace librt::vulkan
