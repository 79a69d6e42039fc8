// rt_devices_list, rt_backend_*, rt_device_profile_* of rt.h.
#include "runtime/api/handles.h"
#include "runtime/backend/registry.h"
#include "runtime/core/cache_folder.h"
#include "runtime/session/device/device_profile.h"

struct rt_device_list {
  std::vector<librt::BackendReport> backends;
  struct Device {
    const librt::DeviceInfo* info;
    std::string features;
  };
  std::vector<Device> devices;
};

namespace {

using librt::Status;
using librt::api::guarded;

/// The fields of a DeviceInfo that identify its profile.
Status device_from(const rt_device_info* from, librt::DeviceInfo& info) {
  rt_device_info c;
  RT_TRY(librt::api::take_in(from, c, "rt_device_info"));
  if (from == nullptr || c.backend == nullptr) return librt::invalid_argument("rt_device_info: no device");
  const auto string = [](const char* chars) { return std::string(chars != nullptr ? chars : ""); };
  info.backend = string(c.backend);
  info.index = c.index;
  info.type = static_cast<librt::DeviceType>(c.type);
  info.name = string(c.name);
  info.uuid = string(c.uuid);
  info.driver = string(c.driver);
  info.threads = c.threads;
  info.host_memory = c.host_memory != 0;
  return {};
}

std::string folder_of(const char* asked) {
  return librt::cache_folder(asked != nullptr ? asked : "");
}

}  // namespace

extern "C" {

rt_status* rt_devices_list(rt_device_list** list) {
  return guarded([&]() -> Status {
    if (list == nullptr) return librt::invalid_argument("rt_devices_list: the pointer is null");
    *list = nullptr;
    auto made = std::make_unique<rt_device_list>();
    made->backends = librt::probe_backends();
    for (const auto& backend : made->backends)
      for (const librt::DeviceInfo& info : backend.devices) {
        made->devices.push_back({&info, {}});
        (void)librt::api::device_of(info, made->devices.back().features);
      }
    *list = made.release();
    return {};
  });
}
void rt_device_list_free(rt_device_list* list) {
  delete list;
}
size_t rt_device_list_count(const rt_device_list* list) {
  return list != nullptr ? list->devices.size() : 0;
}
rt_status* rt_device_list_get(const rt_device_list* list, size_t index, rt_device_info* info) {
  return guarded([&]() -> Status {
    if (index >= rt_device_list_count(list))
      return librt::invalid_argument("device ", index, ": the list has ", rt_device_list_count(list));
    const auto& device = list->devices[index];
    std::string features;
    rt_device_info out = librt::api::device_of(*device.info, features);
    out.features = device.features.c_str();
    return librt::api::hand_out(out, info, "rt_device_info");
  });
}
size_t rt_backend_count(const rt_device_list* list) {
  return list != nullptr ? list->backends.size() : 0;
}
const char* rt_backend_name(const rt_device_list* list, size_t index) {
  return index < rt_backend_count(list) ? list->backends[index].name.c_str() : nullptr;
}
const char* rt_backend_reason(const rt_device_list* list, size_t index) {
  return index < rt_backend_count(list) ? list->backends[index].reason.c_str() : nullptr;
}

rt_status* rt_device_profile_read(const rt_device_info* info, const char* cache_folder,
                                  rt_device_profile* profile) {
  return guarded([&]() -> Status {
    librt::DeviceInfo device;
    RT_TRY(device_from(info, device));
    const librt::DeviceProfile found = librt::read_profile(folder_of(cache_folder), device);
    const rt_device_profile out{
        sizeof(rt_device_profile), found.flops_f32,      found.memory_bandwidth, found.transfer_bandwidth,
        found.launch_seconds,      found.submit_seconds, found.measured};
    return librt::api::hand_out(out, profile, "rt_device_profile");
  });
}
rt_status* rt_device_profile_write(const rt_device_info* info, const char* cache_folder,
                                   const rt_device_profile* profile) {
  return guarded([&]() -> Status {
    librt::DeviceInfo device;
    RT_TRY(device_from(info, device));
    rt_device_profile c;
    RT_TRY(librt::api::take_in(profile, c, "rt_device_profile"));
    const std::string folder = folder_of(cache_folder);
    librt::DeviceProfile stored = librt::read_profile(folder, device);  // curves and power stay
    stored.flops_f32 = c.flops_f32;
    stored.memory_bandwidth = c.memory_bandwidth;
    stored.transfer_bandwidth = c.transfer_bandwidth;
    stored.launch_seconds = c.launch_seconds;
    stored.submit_seconds = c.submit_seconds;
    return librt::write_profile(folder, device, stored);
  });
}

}  // extern "C"
