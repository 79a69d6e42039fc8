#include "backends/cpu/device/open.h"

#include <system_error>

#include "backends/cpu/device/device.h"
#include "backends/cpu/device/system.h"
#include "backends/cpu/device/team.h"
#include "backends/cpu/onednn/kernels.h"
#include "runtime/core/exception.h"
#include "runtime/core/host_memory.h"

namespace librt::cpu {
namespace {

DeviceInfo describe_device() {
  DeviceInfo info;
  info.backend = "cpu";
  info.name = cpu_name();
  info.driver = onednn::version();
  info.type = DeviceType::Cpu;
  info.memory_bytes = host_memory_bytes();
  info.cache_bytes = cache_bytes();
  info.host_memory = true;
  info.threads = default_threads();
  info.features = cpu_features();
  info.features.emplace_back(text("kernels_", best_simd().name));
  return info;
}

}  // namespace

Status probe(std::vector<DeviceInfo>& devices, std::string&) noexcept {
  RT_ATTEMPT {
    devices.push_back(describe_device());
    return {};
  }
  RT_CAUGHT {
    return caught_exception("describing the CPU");
  }
}

Result<DevicePtr> open(const DeviceOptions& options) noexcept {
  RT_ATTEMPT {
    DeviceInfo info = describe_device();
    const std::string& wanted = options.device;
    if (!wanted.empty() && wanted != "0" && info.name.find(wanted) == std::string::npos)
      return Status::make(Code::NotFound, "cpu: no device '", wanted, "'; there is one, number 0, '",
                          info.name, "'");
    if (options.threads < 0 || options.threads > kMostThreads)
      return invalid_argument("cpu: threads must be 0 (all that are allowed) to ", kMostThreads, ", not ",
                              options.threads);
    if (options.threads > 0) info.threads = options.threads;
    if (options.parallel.run != nullptr) info.threads = options.parallel.threads;
    // Work is split by the thread count alone, so runs with the same count are bitwise identical:
    // `deterministic` adds nothing.
    return DevicePtr(std::make_unique<CpuDevice>(std::move(info), options));
#if defined(__cpp_exceptions)
  }
  catch (const PlacementError& error) {
    return Status::make(
        Code::Device, "cpu: the OS refused the placement of threads (", error.what(),
        "); use CPUs of the process's affinity mask, and a priority of at least its nice value");
  }
  catch (const std::system_error& error) {
    return Status::make(Code::Device, "cpu: the OS refused a thread (", error.what(),
                        "); use fewer threads, or see `ulimit -u` and the cgroup's pids.max");
#endif
  }
  RT_CAUGHT {
    return caught_exception("opening the CPU");
  }
}

}  // namespace librt::cpu
