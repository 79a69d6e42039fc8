// The devices that a command line names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rt/rt.hpp"

namespace librt::bench {

/// backends: "all", "cpu", "vulkan:1", ... All leaves out the reference, and software devices with a line on
/// stderr. An unknown or absent backend is an error with its reason. Each device once.
rt::Result<std::vector<rt::DeviceInfo>> choose_devices(const rt::Devices& devices,
                                                       const std::vector<std::string>& backends);

/// "CPU", "integrated GPU", "discrete GPU", "virtual GPU", "software GPU".
const char* type_text(rt_device_type type);

/// Name and version of librt and of what runs the devices: {"vulkan:0", "llvmpipe Mesa 22.3.6"}.
std::vector<std::pair<std::string, std::string>> versions_of(const std::vector<rt::DeviceInfo>& devices);

}  // namespace librt::bench
