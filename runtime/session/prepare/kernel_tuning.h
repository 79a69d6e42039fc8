// Chooses among the rows that support a node: by static priority, or by timing them.
//
// Knows: how to run one kernel alone on synthetic data, and that winners are cached per device and driver.
// Must not know: graphs beyond one node.
#pragma once

#include <chrono>
#include <string>

#include "runtime/backend/kernel_table.h"
#include "runtime/core/log.h"
#include "runtime/session/memory/memory.h"
#include "runtime/session/prepare/tuning_choices.h"

namespace librt {

struct TuningOptions {
  bool enabled = false;
  std::chrono::milliseconds limit{500};  ///< for one plan
  std::string cache_folder;              ///< see cache.h
  Log log = {};
};

class KernelTuner {
 public:
  explicit KernelTuner(TuningOptions options) : options_(std::move(options)) {}

  /// Starts the time limit of a plan. A kernel that would take more memory alone is not timed. `stop`, if
  /// set, may end it between two kernels.
  void begin_plan(uint64_t most_bytes = ~uint64_t{0}, const StopSignal* stop = nullptr) {
    stop_ = stop;
    deadline_ = std::chrono::steady_clock::now() + options_.limit;
    most_bytes_ = most_bytes;
  }
  /// Index into `rows` (best priority first, never empty). `how` describes the choice in the printed plan.
  /// Rows that cannot be timed lose; if no row can be timed, priority decides. Nodes with large weights are
  /// timed with the caches emptied, as they are when the whole model runs.
  Result<size_t> choose(Device& device, const NodeView& view, const std::vector<const KernelRow*>& rows,
                        std::span<const LayoutId> producer_layouts, std::string& how);
  /// Writes the winners found since the last call.
  void save();
  /// Lines of the printed plan: which files of the cache folder are not used, and why.
  const std::string& notes() const noexcept { return notes_; }

 private:
  struct DeviceCache {
    const Device* device = nullptr;
    std::string file;
    TuningChoices winners;
    bool changed = false;
    bool noted = false;
  };
  DeviceCache& cache_of(const Device& device);
  void note(DeviceCache& cache, const Status& status);

  TuningOptions options_;
  std::chrono::steady_clock::time_point deadline_{};
  uint64_t most_bytes_ = ~uint64_t{0};
  const StopSignal* stop_ = nullptr;
  std::vector<DeviceCache> caches_;
  AlignedBytes evicting_;  ///< while a plan is made: as large as the device's largest cache
  std::string notes_;
};

}  // namespace librt
