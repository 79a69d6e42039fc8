#include "tools/rtbench/experiments/cpu_against_gpu.h"

#include "tools/rtbench/words.h"

namespace librt::bench {

void CpuAgainstGpu::add(const WorkDevice& device, const Cell& seconds) {
  std::optional<Best>& best = device.is_gpu() ? gpu_ : cpu_;
  if (seconds.number && (!best || *seconds.number < *best->seconds.number)) best = {&device, seconds};
}

std::string CpuAgainstGpu::text() const {
  const double ratio = speedup();
  const Best &fast = ratio >= 1 ? *gpu_ : *cpu_, &slow = ratio >= 1 ? *cpu_ : *gpu_;
  return words::format("%s trains %.2f times as fast as %s.", fast.device->id.c_str(),
                       ratio >= 1 ? ratio : 1 / ratio, slow.device->id.c_str());
}

}  // namespace librt::bench
