#include "backends/cuda/device/device_choice.h"

#include <dlfcn.h>
#include <link.h>

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "backends/cuda/device/errors.h"
#include "backends/cuda/libraries/cublaslt.h"
#include "backends/cuda/libraries/cudnn.h"
#include "runtime/core/environment.h"

namespace librt::cuda {
namespace {

std::string version_text(int version) {
  return text(version / 1000, ".", version % 1000 / 10);
}

std::string capability_text(int capability) {
  return text(capability / 10, ".", capability % 10);
}

std::string lower(std::string_view from) {
  std::string to(from);
  for (char& c : to) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return to;
}

std::optional<int> as_number(std::string_view digits) {
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

std::string listing(std::span<const DeviceFacts> devices) {
  std::string names;
  for (size_t i = 0; i < devices.size(); ++i)
    append(names, text(i == 0 ? "" : ", ", i, " '", devices[i].name, "' ", devices[i].uuid));
  return names;
}

/// Why the runtime found no driver: it loads the same library.
std::string why_no_driver() {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    return reason != nullptr ? reason : "libcuda.so.1 was not found";
  }
  const link_map* loaded = nullptr;
  const bool named = dlinfo(library, RTLD_DI_LINKMAP, &loaded) == 0;
  std::string why = text(named ? loaded->l_name : "libcuda.so.1", " does not answer as a driver");
  dlclose(library);
  return why;
}

}  // namespace

Status explain(const ProbeFacts& facts) {
  const auto no_device = [](const auto&... parts) { return Status::make(Code::NotFound, parts...); };
  if (facts.error == cudaErrorStubLibrary)
    return no_device(
        "libcuda.so.1 is the toolkit's stub for linking, not a driver; take its folder out of "
        "LD_LIBRARY_PATH");
  if (facts.error == cudaErrorInsufficientDriver && facts.driver_version == 0)
    return no_device("there is no NVIDIA driver (", facts.no_driver, "); install one for CUDA ",
                     version_text(facts.runtime_version));
  if (facts.error == cudaErrorInsufficientDriver)
    return no_device("the NVIDIA driver supports CUDA ", version_text(facts.driver_version),
                     ", this build needs ", version_text(facts.runtime_version), "; install a newer driver");
  if (facts.error == cudaErrorNoDevice || (facts.error == cudaSuccess && facts.count == 0)) {
    if (facts.visible_set)
      return no_device("CUDA_VISIBLE_DEVICES='", facts.visible,
                       "' hides every CUDA device, or there is none");
    return no_device("the NVIDIA driver lists no device");
  }
  if (facts.error != cudaSuccess) return no_device("the NVIDIA driver does not start: ", facts.error_text);
  return {};
}

bool runs_on(std::string_view architectures, int compute_capability) {
  while (!architectures.empty()) {
    const size_t end = architectures.find(';');
    std::string_view entry = architectures.substr(0, end);
    architectures = end == std::string_view::npos ? std::string_view() : architectures.substr(end + 1);
    bool machine_code = true, ptx = true;
    if (const size_t dash = entry.find('-'); dash != std::string_view::npos) {
      ptx = entry.substr(dash) == "-virtual";
      machine_code = !ptx;
      entry = entry.substr(0, dash);
    }
    bool exact = false;  // code for 90a runs on 9.0 only
    if (!entry.empty() && std::isalpha(static_cast<unsigned char>(entry.back())) != 0) {
      exact = true;
      entry.remove_suffix(1);
    }
    const auto compiled = as_number(entry);
    if (!compiled) continue;
    if (exact && *compiled != compute_capability) continue;
    if (machine_code && *compiled / 10 == compute_capability / 10 && *compiled <= compute_capability)
      return true;
    if (ptx && *compiled <= compute_capability) return true;
  }
  return false;
}

Status usable(const DeviceFacts& device) {
  if (!device.problem.empty()) return Status(Code::Device, device.problem);
  if (runs_on(RT_CUDA_COMPILED_ARCHITECTURES, device.compute_capability)) return {};
  return unsupported("device '", device.name, "' has compute capability ",
                     capability_text(device.compute_capability), ", this build has code for ",
                     RT_CUDA_COMPILED_ARCHITECTURES,
                     "; build with RT_CUDA_ARCHITECTURES=", device.compute_capability);
}

Result<size_t> choose_device(std::span<const DeviceFacts> devices, std::string_view wanted, int local_rank) {
  if (wanted.empty()) {
    std::string reasons;
    std::vector<size_t> found;
    for (size_t i = 0; i < devices.size(); ++i) {
      const Status status = usable(devices[i]);
      if (status.ok())
        found.push_back(i);
      else
        append(reasons, text("; ", status.message()));
    }
    if (!found.empty()) return found[static_cast<size_t>(local_rank) % found.size()];
    return Status::make(Code::NotFound, "no CUDA device to choose", reasons);
  }
  if (const auto index = as_number(wanted)) {
    if (*index < 0 || static_cast<size_t>(*index) >= devices.size())
      return Status::make(Code::NotFound, "there is no CUDA device ", *index,
                          "; there are: ", listing(devices));
    RT_TRY(usable(devices[static_cast<size_t>(*index)]));
    return static_cast<size_t>(*index);
  }
  const std::string needle = lower(wanted);
  for (size_t i = 0; i < devices.size(); ++i)
    if (lower(devices[i].uuid) == needle || lower(devices[i].name).find(needle) != std::string::npos) {
      RT_TRY(usable(devices[i]));
      return i;
    }
  return Status::make(Code::NotFound, "no CUDA device has '", wanted,
                      "' in its name or as its UUID; there are: ", listing(devices));
}

DeviceInfo describe(const DeviceFacts& device) {
  DeviceInfo info;
  info.backend = RT_CUDA_BACKEND;
  info.index = device.ordinal;
  info.name = device.name;
  info.uuid = device.uuid;
  const Result<std::string> cublaslt = CublasLt::installed_version();
  const Result<std::string> cudnn = Cudnn::installed_version();
  info.driver = text("CUDA ", version_text(device.driver_version), ", ",
                     cublaslt.ok() ? "cuBLASLt " + *cublaslt : std::string("no cuBLASLt"), ", ",
                     cudnn.ok() ? "cuDNN " + *cudnn : std::string("no cuDNN"));
#if defined(RT_CUDA_EMULATED)
  info.type = DeviceType::SoftwareGpu;
#else
  info.type = DeviceType::DiscreteGpu;
#endif
  info.memory_bytes = device.memory_bytes;
  info.alignment = 256;  // as cudaMalloc's; kernels require 16
  info.asynchronous = true;
  info.replays = Replays::Launches;
  info.features = {text("compute_", device.compute_capability), "fp16", "int8"};
  if (device.compute_capability >= 80) info.features.insert(info.features.end(), {"bf16", "tf32"});
  return info;
}

Status list_devices(std::vector<DeviceFacts>& devices) {
  ProbeFacts facts;
  int count = 0;  // left unchanged by the runtime when it fails
  facts.error = cudaGetDeviceCount(&count);
  facts.count = facts.error == cudaSuccess ? count : 0;
  if (facts.error != cudaSuccess) facts.error_text = cudaGetErrorString(facts.error);
  cudaGetLastError();
  if (cudaDriverGetVersion(&facts.driver_version) != cudaSuccess) facts.driver_version = 0;
  if (facts.error == cudaErrorInsufficientDriver && facts.driver_version == 0)
    facts.no_driver = why_no_driver();
  if (cudaRuntimeGetVersion(&facts.runtime_version) != cudaSuccess) facts.runtime_version = 0;
  if (const char* visible = environment("CUDA_VISIBLE_DEVICES"); visible != nullptr) {
    facts.visible = visible;
    facts.visible_set = true;
  }
  RT_TRY(explain(facts));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    DeviceFacts device;
    device.ordinal = ordinal;
    device.driver_version = facts.driver_version;
    cudaDeviceProp properties{};
    // A GPU that does not answer is listed with its reason, and does not hide the others.
    if (const Status status = check(cudaGetDeviceProperties(&properties, ordinal),
                                    "querying the properties of CUDA device ", ordinal);
        !status.ok()) {
      device.name = text("CUDA device ", ordinal);
      device.problem = status.message();
      devices.push_back(std::move(device));
      continue;
    }
    device.name = properties.name;
    for (const char byte : properties.uuid.bytes) {
      constexpr char kDigits[] = "0123456789abcdef";
      const auto value = static_cast<unsigned char>(byte);
      device.uuid += kDigits[value >> 4];
      device.uuid += kDigits[value & 15];
    }
    device.compute_capability = properties.major * 10 + properties.minor;
    device.multiprocessors = properties.multiProcessorCount;
    device.memory_bytes = properties.totalGlobalMem;
    device.shared_bytes = properties.sharedMemPerBlockOptin;
    devices.push_back(std::move(device));
  }
  return {};
}

}  // namespace librt::cuda
