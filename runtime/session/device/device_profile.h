// Performance parameters of a device, in five values: measured by rtbench and kept in the cache folder, or
// typical for its type.
//
// Knows: the values and their file. Must not know: how they are measured.
#pragma once

#include <string>

#include "runtime/backend/backend.h"

namespace librt {

struct DeviceProfile {
  double flops_f32 = 0;           ///< matmul throughput, operations per second
  double memory_bandwidth = 0;    ///< bytes per second
  double transfer_bandwidth = 0;  ///< host to device, bytes per second
  double launch_seconds = 0;      ///< fixed overhead of a node
  double submit_seconds = 0;      ///< fixed overhead of a run
  bool measured = false;
  Status problem{};  ///< why the file is not used
};

/// Typical values for devices of this type.
DeviceProfile typical_profile(const DeviceInfo& info);
/// From the cache folder, else typical values.
DeviceProfile read_profile(const std::string& folder, const DeviceInfo& info);
Status write_profile(const std::string& folder, const DeviceInfo& info, const DeviceProfile& profile);

}  // namespace librt
