// How fast a device is, in five numbers: measured by rtbench and kept in the cache folder, or typical for its
// type.
//
// Knows: the numbers and their file. Must not know: how they are measured.
#pragma once

#include <string>

#include "runtime/backend/backend.h"

namespace rt {

struct DeviceProfile {
  double flops_f32 = 0;           ///< matrix product, operations per second
  double memory_bandwidth = 0;    ///< bytes per second
  double transfer_bandwidth = 0;  ///< host to device, bytes per second
  double launch_seconds = 0;      ///< fixed cost of a node
  double submit_seconds = 0;      ///< fixed cost of a run
  bool measured = false;
};

/// What devices of this type usually do.
DeviceProfile typical_profile(const DeviceInfo& info);
/// From the cache folder, else typical.
DeviceProfile read_profile(const std::string& folder, const DeviceInfo& info);
Status write_profile(const std::string& folder, const DeviceInfo& info, const DeviceProfile& profile);

}  // namespace rt
