// The kinds of sensors. Each function appends what it can read to `found`, and what is there but cannot be
// read to `unavailable`, with a reason; nothing where the machine has none of its kind and `unavailable` need
// not say so.
#pragma once

#include "tools/rtbench/energy.h"

namespace librt::bench {

using Sources = std::vector<std::unique_ptr<Source>>;

/// Intel's and AMD's counters of packages and memory through powercap (Documentation/power/powercap in
/// Linux). Returns whether it can be read.
bool find_powercap(const std::string& root, Sources& found, std::vector<SensorInfo>& unavailable);
/// The same counters through perf's power PMU.
void find_perf(const std::string& root, Sources& found, std::vector<SensorInfo>& unavailable);
/// NVIDIA's GPUs through NVML, which is loaded with dlopen.
void find_nvml(const std::string& library, Sources& found, std::vector<SensorInfo>& unavailable);
/// AMD's GPUs and the INA3221 of Jetson boards through hwmon.
void find_hwmon(const std::string& root, Sources& found, std::vector<SensorInfo>& unavailable);
/// The battery of a portable machine, while it discharges.
void find_battery(const std::string& root, Sources& found, std::vector<SensorInfo>& unavailable);

}  // namespace librt::bench
