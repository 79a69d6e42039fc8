// The fastest training on the CPU and the fastest on a GPU, which articles compare.
//
// Knows: devices, seconds. Must not know: what was trained.
#pragma once

#include <optional>
#include <string>

#include "tools/rtbench/experiments/workplace.h"

namespace librt::bench {

class CpuAgainstGpu {
 public:
  struct Best {
    const WorkDevice* device;
    Cell seconds;  ///< has a number
  };
  /// seconds: of a training; nothing is ignored. The device outlives this object.
  void add(const WorkDevice& device, const Cell& seconds);
  const std::optional<Best>& cpu() const noexcept { return cpu_; }
  const std::optional<Best>& gpu() const noexcept { return gpu_; }
  bool has_both() const noexcept { return cpu_ && gpu_; }
  /// How many times as fast the GPU is; has_both() only, as text().
  double speedup() const { return *cpu_->seconds.number / *gpu_->seconds.number; }
  /// "cuda:0 trains 3.10 times as fast as cpu:0.", the faster one first.
  std::string text() const;

 private:
  std::optional<Best> cpu_, gpu_;
};

}  // namespace librt::bench
