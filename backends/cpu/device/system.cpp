#include "backends/cpu/device/system.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "runtime/core/text.h"

namespace librt::cpu {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<int> affinity() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

/// The CPU quota of the cgroup, in CPUs; 0 for no limit.
double cgroup_cpus() {
  if (const std::string line = first_line("/sys/fs/cgroup/cpu.max");
      !line.empty()) {  // version 2: "quota period"
    char* rest = nullptr;
    const double quota = std::strtod(line.c_str(), &rest);
    const double period = std::strtod(rest, nullptr);
    return rest != line.c_str() && period > 0 ? quota / period : 0;
  }
  const double quota = std::strtod(first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").c_str(), nullptr);
  const double period = std::strtod(first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us").c_str(), nullptr);
  return quota > 0 && period > 0 ? quota / period : 0;
}

struct Description {
  std::string name;
  std::vector<std::string> features;
  bool whole = false;  ///< /proc/cpuinfo could be read
};

Description describe() {
  Description found;
#if defined(__x86_64__)
  found.name = "x86-64 CPU";
  __builtin_cpu_init();
#define RT_FEATURE(name) \
  if (__builtin_cpu_supports(name)) found.features.emplace_back(name)
  RT_FEATURE("sse4.2");
  RT_FEATURE("avx2");
  RT_FEATURE("fma");
  RT_FEATURE("avx512f");
  RT_FEATURE("avx512bw");
  RT_FEATURE("avx512vl");
  RT_FEATURE("avx512vnni");
#undef RT_FEATURE
#elif defined(__aarch64__)
  found.name = "AArch64 CPU";
  found.features.emplace_back("neon");
#else
  found.name = "CPU";
#endif
  std::ifstream file("/proc/cpuinfo");
  bool has_name = false;
  for (std::string line; std::getline(file, line) && !line.empty(); found.whole = true) {  // of the first CPU
    for (const std::string_view key : {"model name", "Processor", "cpu model"})
      if (const size_t colon = line.find(": ");
          !has_name && line.starts_with(key) && colon != std::string::npos) {
        found.name = line.substr(colon + 2);
        has_name = true;
      }
#if defined(__x86_64__)
    if (!line.starts_with("flags")) continue;
    line += ' ';  // features that __builtin_cpu_supports() of older compilers lacks
    for (const char* name : {"avx512_bf16", "avx512_fp16", "amx_bf16", "amx_int8", "avx_vnni"})
      if (line.find(text(" ", name, " ")) != std::string::npos) found.features.emplace_back(name);
#endif
  }
  return found;
}

/// Every session opens a device, and /proc/cpuinfo takes milliseconds where there are many CPUs.
Description description() {
  static std::mutex mutex;
  static Description known;
  const std::lock_guard lock(mutex);
  if (!known.whole) known = describe();
  return known;
}

}  // namespace

std::string cpu_name() {
  return description().name;
}

std::vector<std::string> cpu_features() {
  return description().features;
}

int allowed_cpus() {
  const size_t cpus = affinity().size();
  if (cpus > 0) return static_cast<int>(cpus);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

uint64_t cache_bytes() {
  const std::vector<int> cpus = affinity();
  uint64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    const std::string folder =
        text("/sys/devices/system/cpu/cpu", cpus.empty() ? 0 : cpus.front(), "/cache/index", index, "/");
    const std::string size = first_line(folder + "size");  // "32768K"
    char* unit = nullptr;
    uint64_t bytes = std::strtoull(size.c_str(), &unit, 10);
    if (*unit == 'K') bytes <<= 10;
    if (*unit == 'M') bytes <<= 20;
    largest = std::max(largest, bytes);
  }
  return largest;
}

int default_threads() {
  std::set<std::pair<std::string, std::string>> cores;
  for (const int cpu : affinity()) {
    const std::string folder = text("/sys/devices/system/cpu/cpu", cpu, "/topology/");
    std::string core = first_line(folder + "core_id");
    if (core.empty()) core = text("cpu", cpu);
    cores.emplace(first_line(folder + "physical_package_id"), std::move(core));
  }
  int threads = cores.empty() ? allowed_cpus() : static_cast<int>(cores.size());
  if (const double quota = cgroup_cpus(); quota > 0)
    threads = std::min(threads, std::max(1, static_cast<int>(quota)));
  return threads;
}

}  // namespace librt::cpu
