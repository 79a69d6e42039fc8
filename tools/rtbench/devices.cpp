#include "tools/rtbench/devices.h"

#include <algorithm>
#include <cstdio>

#include "runtime/core/environment.h"

namespace librt::bench {
namespace {

bool software_counts() {
  return environment("RT_VULKAN_ALLOW_SOFTWARE") != nullptr;
}

}  // namespace

rt::Result<std::vector<rt::DeviceInfo>> choose_devices(const rt::Devices& devices,
                                                       const std::vector<std::string>& backends) {
  std::vector<rt::DeviceInfo> chosen;
  const auto choose = [&](const rt::DeviceInfo& device) {
    const bool is_new = std::none_of(chosen.begin(), chosen.end(), [&](const rt::DeviceInfo& other) {
      return other.backend == device.backend && other.index == device.index;
    });
    if (is_new) chosen.push_back(device);
  };
  for (const std::string& wanted : backends) {
    if (wanted == "all") {
      for (const rt::DeviceInfo& device : devices.devices) {
        if (device.backend == "reference") continue;
        if (device.type == RT_SOFTWARE_GPU && !software_counts())
          std::fprintf(stderr,
                       "rtbench: %s:%d (%s) is a software device; name it with --backend %s to measure it\n",
                       device.backend.c_str(), device.index, device.name.c_str(), device.backend.c_str());
        else
          choose(device);
      }
      continue;
    }
    bool found = false;
    const size_t colon = wanted.find(':');
    const std::string backend = wanted.substr(0, colon);
    for (const rt::DeviceInfo& device : devices.devices)
      if (device.backend == backend &&
          (colon == std::string::npos || wanted.substr(colon + 1) == std::to_string(device.index))) {
        choose(device);
        found = true;
      }
    if (found) continue;
    std::string names;
    for (const auto& known : devices.backends) {
      if (known.name == backend)
        return rt::Status(rt::Code::Device,
                          wanted + ": " + (known.reason.empty() ? "there is no such device" : known.reason));
      names += ", " + known.name;
    }
    return rt::Status(rt::Code::InvalidArgument, "unknown backend '" + backend + "'; expected all" + names);
  }
  return chosen;
}

const char* type_text(rt_device_type type) {
  switch (type) {
    case RT_CPU: return "CPU";
    case RT_INTEGRATED_GPU: return "integrated GPU";
    case RT_DISCRETE_GPU: return "discrete GPU";
    case RT_VIRTUAL_GPU: return "virtual GPU";
    case RT_SOFTWARE_GPU: return "software GPU";
  }
  return "unknown";
}

std::vector<std::pair<std::string, std::string>> versions_of(const std::vector<rt::DeviceInfo>& devices) {
  std::vector<std::pair<std::string, std::string>> versions = {{"librt", rt::version()}};
  for (const rt::DeviceInfo& device : devices)
    versions.emplace_back(device.backend + ":" + std::to_string(device.index), device.driver);
  return versions;
}

}  // namespace librt::bench
