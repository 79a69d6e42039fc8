// Measures a device's profile: rates, and for every family of nodes the time at a few sizes.
//
// Knows: sessions, families of the cost model, the profile's file. Must not know: the command line.
#pragma once

#include <functional>
#include <string>

#include "rt/rt.hpp"
#include "runtime/session/device/device_profile.h"
#include "tools/rtbench/measure.h"

namespace librt::bench {

/// The device as the cost model identifies it. threads: of the CPU, 0: all.
DeviceInfo cost_identity(const rt::DeviceInfo& device, int threads);

/// The stored profile, or typical values.
DeviceProfile stored_profile(const rt::DeviceInfo& device, int threads);

struct Calibration {
  DeviceProfile profile;
  std::string busy;     ///< not empty: what disturbed, a sentence
  std::string problem;  ///< not empty: it is not kept, and why
};

/// Measures rates and curves anew and stores them. Takes about ten seconds. Profiles of a machine that was
/// busy meanwhile are kept only if keep_busy: the same kernel, timed at start and end, must take the same
/// time, and other programs must have left the CPU alone. progress: called with "12 of 48" before each
/// step; may be empty.
Calibration calibrate(const rt::DeviceInfo& device, const MeasureOptions& options, bool keep_busy,
                      const std::function<void(const std::string&)>& progress);

/// Removes the curves of the stored profile; whether there were any.
bool forget_curves(const rt::DeviceInfo& device);

/// A line for each family: what its nodes take, and what they reach.
std::string curves_text(const DeviceProfile& profile);

/// Remembers the median of measured runs for `auto`, which then needs no prediction for this model at these
/// extents. Nothing to do for training, or a model whose work is not known before it runs.
void remember_run(const BenchModel& model, const rt::DeviceInfo& device,
                  const std::map<std::string, int64_t>& extents, const MeasureOptions& options,
                  double milliseconds);

}  // namespace librt::bench
