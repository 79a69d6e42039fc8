#include "runtime/backend/registry.h"

#include <dirent.h>

#include <algorithm>
#include <memory>

#include "runtime/backend/loader.h"

namespace librt {

namespace {
struct CloseFolder {
  void operator()(DIR* folder) const noexcept { closedir(folder); }
};
}  // namespace

std::vector<std::string> backend_names() {
  std::vector<std::string> names(kBackendNames.begin(), kBackendNames.end());
  constexpr std::string_view kPrefix = "librt_", kSuffix = ".so";
  for (const std::string& folder : module_folders()) {
    const std::unique_ptr<DIR, CloseFolder> listing(opendir(folder.c_str()));
    while (const dirent* entry = listing != nullptr ? readdir(listing.get()) : nullptr) {
      const std::string_view file = entry->d_name;
      if (file.size() <= kPrefix.size() + kSuffix.size() || !file.starts_with(kPrefix) ||
          !file.ends_with(kSuffix))
        continue;
      const auto name = file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size());
      if (name == "compiler") continue;  // librt_compiler.so, which is in the same folder, is no module
      if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
    }
  }
  return names;
}

std::vector<BackendReport> probe_backends() {
  std::vector<BackendReport> reports;
  for (const std::string& name : backend_names()) {
    BackendReport report{.name = name};
    auto module = load_module(name);
    if (!module.ok()) {
      report.reason = module.status().message();
    } else if (Status status = (*module)->probe(report.devices, report.reason); !status.ok()) {
      report.devices.clear();
      report.reason = status.message();
    }
    if (!report.devices.empty())
      report.reason.clear();
    else if (report.reason.empty())
      report.reason = text("backend ", name, " found no device");
    reports.push_back(std::move(report));
  }
  return reports;
}

Result<DevicePtr> open_device(std::string_view backend, const DeviceOptions& options) {
  // A backend or device that is not there is the machine's fault, not the caller's.
  const auto of_machine = [](const Status& status) {
    const bool absent = status.code() == Code::NotFound || status.code() == Code::Unsupported;
    return absent ? Status(Code::Device, status.message()) : status;
  };
  const auto module = load_module(backend);
  if (!module.ok()) return of_machine(module.status());
  auto device = (*module)->open(options);
  if (!device.ok()) {
    Status status = of_machine(device.status());
    if (status.message().find(backend) == std::string::npos) return std::move(status).in("backend ", backend);
    return status;
  }
  if (*device == nullptr) return internal_error("backend ", backend, " opened no device");
  return device;
}

Interop* interop_of(std::string_view backend, Device& device) {
  const auto module = load_module(backend);
  return module.ok() && (*module)->interop != nullptr ? (*module)->interop(device) : nullptr;
}

}  // namespace librt
