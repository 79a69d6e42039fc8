#include "runtime/session/device/device_set.h"

#include <algorithm>

#include "runtime/backend/registry.h"

namespace librt {

Result<std::shared_ptr<DeviceSet>> DeviceSet::open(const std::string& backend, const DeviceOptions& options) {
  RT_ASSIGN(DevicePtr device, open_device(backend, options));
  RT_ASSIGN(auto set, adopt(std::move(device), options));
  set->interop_ = interop_of(backend, set->chosen());
  return set;
}

Result<std::shared_ptr<DeviceSet>> DeviceSet::adopt(DevicePtr device, const DeviceOptions& options) {
  if (const DeviceInfo& info = device->info(); options.tf32 && !has_feature(info, "tf32"))
    return unsupported("precision 'tf32': '", info.name, "' (", info.backend,
                       ") has no TF32 matmuls; use fp32, or cuda on compute capability 8.0 or newer");
  auto set = std::make_shared<DeviceSet>(options);
  RT_TRY(set->add(std::move(device)));
  return set;
}

Status DeviceSet::add(DevicePtr device) {
  const DeviceInfo& info = device->info();
  Entry entry{.device = nullptr, .backend = info.backend, .space = 0};
  if (entries_.empty()) {
    spaces_.push_back(info.host_memory ? SpaceKind::Host : SpaceKind::Device);
    if (!info.host_memory) {
      RT_ASSIGN(SlabPtr sample, device->allocate(4096));
      unified_ = sample->host() != nullptr;
    }
  } else if (spaces_[0] == SpaceKind::Device && !unified_) {
    if (spaces_.size() == 1) spaces_.push_back(SpaceKind::Host);
    entry.space = 1;
  }
  alignment_ = std::max(alignment_, info.alignment);
  device->custom_operators = options_.custom_operators.get();
  if (info.wants_estimates) entry.profile = read_profile(options_.cache_folder, info);
  entry.device = std::move(device);
  entries_.push_back(std::move(entry));
  return {};
}

void DeviceSet::open_fallbacks() {
  if (fallbacks_opened_) return;
  fallbacks_opened_ = true;
  DeviceOptions options = options_;
  options.device.clear();
  options.tf32 = false;
  for (const char* backend : {"cpu", "reference"}) {
    const bool known =
        std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.backend == backend; });
    if (known) continue;
    auto device = open_device(backend, options);
    Status status = device.ok() ? Status() : device.status();
    if (device.ok()) status = add(std::move(device).value());
    if (!status.ok()) append(notes_, notes_.empty() ? "" : "; ", status.message());
  }
}

Device& DeviceSet::owner(size_t space) noexcept {
  for (const Entry& entry : entries_)
    if (entry.space == space) return *entry.device;
  return *entries_.front().device;
}

}  // namespace librt
