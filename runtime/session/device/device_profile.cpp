#include "runtime/session/device/device_profile.h"

#include <cstdlib>
#include <utility>

#include "runtime/core/hash.h"
#include "runtime/session/device/cache.h"

namespace librt {

namespace {

constexpr std::pair<const char*, double DeviceProfile::*> kFields[] = {
    {"flops_f32", &DeviceProfile::flops_f32},
    {"memory_bandwidth", &DeviceProfile::memory_bandwidth},
    {"transfer_bandwidth", &DeviceProfile::transfer_bandwidth},
    {"launch_seconds", &DeviceProfile::launch_seconds},
    {"submit_seconds", &DeviceProfile::submit_seconds},
};

std::string file_of(const DeviceInfo& info) {
  const std::string identity = text(info.backend, "|", info.name, "|", info.uuid, "|", info.driver);
  return text("device-", info.backend, "-", hex(hash_bytes(identity.data(), identity.size())), ".txt");
}

}  // namespace

DeviceProfile typical_profile(const DeviceInfo& info) {
  const double threads = info.threads > 0 ? info.threads : 1;
  switch (info.type) {
    case DeviceType::Cpu:
      if (info.backend == "reference") return {1e8, 1e9, 1e10, 1e-6, 1e-6};
      return {40e9 * threads, 8e9 + 2e9 * threads, 1e12, 2e-6, 2e-6};
    case DeviceType::IntegratedGpu: return {1e12, 40e9, 10e9, 5e-6, 60e-6};
    case DeviceType::DiscreteGpu: return {8e12, 400e9, 10e9, 4e-6, 40e-6};
    case DeviceType::VirtualGpu: return {2e12, 100e9, 5e9, 8e-6, 100e-6};
    case DeviceType::SoftwareGpu: return {4e9 * threads, 4e9, 4e9, 2e-5, 2e-4};
  }
  return {1e9, 1e9, 1e9, 1e-5, 1e-4};
}

DeviceProfile read_profile(const std::string& folder, const DeviceInfo& info) {
  DeviceProfile profile;
  size_t found = 0;
  std::vector<std::string> lines;
  Status problem = read_cache(folder, file_of(info), lines);
  for (const std::string& line : lines)
    for (const auto& [name, field] : kFields) {
      const std::string prefix = text(name, " ");
      if (!line.starts_with(prefix)) continue;
      const double number = std::strtod(line.c_str() + prefix.size(), nullptr);
      if (number > 0 && number < 1e30) {
        profile.*field = number;
        ++found;
      }
    }
  if (found != std::size(kFields)) profile = typical_profile(info);
  profile.measured = found == std::size(kFields);
  profile.problem = std::move(problem);
  return profile;
}

Status write_profile(const std::string& folder, const DeviceInfo& info, const DeviceProfile& profile) {
  std::vector<std::string> lines;
  for (const auto& [name, field] : kFields) {
    if (!(profile.*field > 0)) return invalid_argument("device profile: ", name, " must be above 0");
    lines.push_back(text(name, " ", profile.*field));
  }
  if (folder.empty())
    return Status(Code::Io, "device profile: neither XDG_CACHE_HOME nor HOME is an absolute path");
  return write_cache(folder, file_of(info), lines);
}

}  // namespace librt
