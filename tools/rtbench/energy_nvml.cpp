// NVIDIA's GPUs through NVML (NVML API Reference Guide): its header is not needed, its functions are looked
// up.
#include <dlfcn.h>

#include <string>

#include "tools/rtbench/energy_sensors.h"

namespace librt::bench {
namespace {

using Device = void*;
constexpr int kSuccess = 0;

struct Nvml {
  void* library = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*energy)(Device,
                unsigned long long*) = nullptr;  // millijoules since the driver was loaded; Volta and later
  int (*power)(Device, unsigned*) = nullptr;     // milliwatts
  const char* (*error)(int) = nullptr;

  Nvml() = default;
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (started) shutdown();
    if (library != nullptr) dlclose(library);
  }
  bool started = false;

  std::string text(int code) const {
    return error != nullptr ? error(code) : "error " + std::to_string(code);
  }
};

class NvmlSensor : public Source {
 public:
  NvmlSensor(SensorInfo info, std::shared_ptr<Nvml> nvml, Device device)
      : nvml_(std::move(nvml)), device_(device) {
    info_ = std::move(info);
  }

  std::optional<double> read(std::string& reason) override {
    unsigned long long millijoules = 0;
    unsigned milliwatts = 0;
    const int code = info_.counts ? nvml_->energy(device_, &millijoules) : nvml_->power(device_, &milliwatts);
    if (code == kSuccess) return 1e-3 * (info_.counts ? static_cast<double>(millijoules) : milliwatts);
    reason = info_.name + ": " + nvml_->text(code);
    return std::nullopt;
  }

 private:
  std::shared_ptr<Nvml> nvml_;
  Device device_;
};

template <class Function>
bool look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

void find_nvml(const std::string& library, Sources& found, std::vector<SensorInfo>& unavailable) {
  const auto refuse = [&](const std::string& reason) {
    unavailable.push_back({.name = "NVML", .covers = Covers::Gpu, .reason = reason});
  };
  auto nvml = std::make_shared<Nvml>();
  nvml->library = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (nvml->library == nullptr)
    return refuse(library + " cannot be loaded: it comes with NVIDIA's driver, which is not installed");
  void* const at = nvml->library;
  if (!look_up(at, "nvmlInit_v2", nvml->init) || !look_up(at, "nvmlShutdown", nvml->shutdown) ||
      !look_up(at, "nvmlDeviceGetCount_v2", nvml->count) ||
      !look_up(at, "nvmlDeviceGetHandleByIndex_v2", nvml->by_index) ||
      !look_up(at, "nvmlDeviceGetName", nvml->name) || !look_up(at, "nvmlDeviceGetUUID", nvml->uuid))
    return refuse(library + " lacks functions of NVML; update NVIDIA's driver");
  look_up(at, "nvmlErrorString", nvml->error);
  look_up(at, "nvmlDeviceGetTotalEnergyConsumption", nvml->energy);
  look_up(at, "nvmlDeviceGetPowerUsage", nvml->power);
  if (const int code = nvml->init(); code != kSuccess) return refuse(library + ": " + nvml->text(code));
  nvml->started = true;
  unsigned count = 0;
  if (const int code = nvml->count(&count); code != kSuccess)
    return refuse(library + ": " + nvml->text(code));
  if (count == 0) return refuse(library + ": the machine has no NVIDIA GPU");
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    char name[96] = "", uuid[96] = "";
    if (const int code = nvml->by_index(i, &device); code != kSuccess) {
      refuse("GPU " + std::to_string(i) + ": " + nvml->text(code));
      continue;
    }
    if (nvml->name(device, name, sizeof(name)) != kSuccess) name[0] = '\0';
    if (nvml->uuid(device, uuid, sizeof(uuid)) != kSuccess) uuid[0] = '\0';
    SensorInfo info{.name = "NVML " + (name[0] != '\0' ? std::string(name) : "GPU " + std::to_string(i)),
                    .covers = Covers::Gpu,
                    .unit = "millijoules",
                    .resolution = 1e-3,
                    .update_seconds = 0.1,  // the counter is updated every 20 to 100 ms
                    .uuid = uuid};
    unsigned long long millijoules = 0;
    unsigned milliwatts = 0;
    if (nvml->energy == nullptr || nvml->energy(device, &millijoules) != kSuccess) {
      info.counts = false;
      info.unit = "milliwatts";
      info.update_seconds = 2 * kSamplePeriod;
      const int code = nvml->power == nullptr ? -1 : nvml->power(device, &milliwatts);
      if (code != kSuccess) {
        info.reason = "the GPU reports neither energy nor power" + (code > 0 ? ": " + nvml->text(code) : "");
        unavailable.push_back(info);
        continue;
      }
    }
    found.push_back(std::make_unique<NvmlSensor>(info, nvml, device));
  }
}

}  // namespace librt::bench
