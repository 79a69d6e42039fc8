// RAPL through perf: the PMU "power", events energy-pkg and energy-ram, on one CPU of each package.
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "tools/rtbench/energy_files.h"
#include "tools/rtbench/energy_sensors.h"

namespace librt::bench {
namespace {

class Perf : public Source {
 public:
  Perf(SensorInfo info, std::vector<std::pair<int, double>> counters) : counters_(std::move(counters)) {
    info_ = std::move(info);
  }
  ~Perf() override {
    for (const auto& [file, scale] : counters_) close(file);
  }
  Perf(const Perf&) = delete;
  Perf& operator=(const Perf&) = delete;

  std::optional<double> read(std::string& reason) override {
    double sum = 0;
    for (const auto& [file, scale] : counters_) {
      uint64_t count = 0;
      if (::read(file, &count, sizeof(count)) != sizeof(count)) {
        reason = std::string("perf: ") + std::strerror(errno);
        return std::nullopt;
      }
      sum += static_cast<double>(count) * scale;
    }
    return sum;
  }

 private:
  std::vector<std::pair<int, double>> counters_;  // file descriptor, joules of one count
};

// "0,18" or "0-1": the first CPU of each package.
std::vector<int> cpus_of(const std::string& mask) {
  std::vector<int> cpus;
  const char* at = mask.data();
  const char* end = at + mask.size();
  while (at < end) {
    int first = 0;
    auto [stop, problem] = std::from_chars(at, end, first);
    if (problem != std::errc()) return {};
    int last = first;
    if (stop < end && *stop == '-') {
      const auto range = std::from_chars(stop + 1, end, last);
      if (range.ec != std::errc() || last < first || last - first > 4096) return {};
      stop = range.ptr;
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    at = stop < end && *stop == ',' ? stop + 1 : end;
  }
  return cpus;
}

// "event=0x02"
std::optional<uint64_t> config_of(const std::string& text) {
  constexpr std::string_view kPrefix = "event=0x";
  uint64_t config = 0;
  if (!text.starts_with(kPrefix)) return std::nullopt;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data() + kPrefix.size(), end, config, 16);
  if (problem != std::errc() || stop != end) return std::nullopt;
  return config;
}

}  // namespace

void find_perf(const std::string& root, Sources& found, std::vector<SensorInfo>& unavailable) {
  const std::string folder = root + "/sys/bus/event_source/devices/power";
  SensorInfo info{.covers = Covers::Cpu, .unit = "counts", .update_seconds = 1e-3};
  const auto refuse = [&](std::string reason) {
    info.name = "RAPL (perf)";
    info.reason = std::move(reason);
    unavailable.push_back(info);
  };
  if (!is_there(folder)) return refuse(folder + ": there is no such PMU");
  std::string reason;
  const auto type = number_in(folder + "/type", reason);
  const auto mask = line_of(folder + "/cpumask", reason);
  if (!type || !mask) return refuse(reason);
  const std::vector<int> cpus = cpus_of(*mask);
  if (cpus.empty()) return refuse(folder + "/cpumask: expected a list of CPUs, found '" + *mask + "'");
  std::vector<std::pair<int, double>> counters;
  const auto give_up = [&](std::string why) {
    for (const auto& [file, scale] : counters) close(file);
    refuse(std::move(why));
  };
  for (const char* event : {"energy-pkg", "energy-ram"}) {
    const std::string path = folder + "/events/" + event;
    if (!is_there(path)) continue;
    const auto config = config_of(line_of(path, reason).value_or(""));
    const auto scale = number_in(path + ".scale", reason);
    const auto unit = line_of(path + ".unit", reason);
    if (!config || !scale || *scale <= 0 || unit.value_or("") != "Joules")
      return give_up(path + ": expected event=0x.., a scale and the unit Joules" +
                     (reason.empty() ? "" : "; " + reason));
    for (const int cpu : cpus) {
      perf_event_attr attributes{};
      attributes.size = sizeof(attributes);
      attributes.type = static_cast<uint32_t>(*type);
      attributes.config = *config;
      const auto file =
          static_cast<int>(syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC));
      if (file < 0) {
        const int problem = errno;
        std::string why =
            std::string(event) + " on CPU " + std::to_string(cpu) + ": " + std::strerror(problem);
        if (problem == EACCES || problem == EPERM)
          why += "; run as root, or allow it: `sudo sysctl kernel.perf_event_paranoid=0`";
        return give_up(why);
      }
      counters.emplace_back(file, *scale);
    }
    info.name += (info.name.empty() ? "RAPL " : " + ") + std::string(event);
    info.resolution = *scale;
  }
  if (counters.empty()) return refuse(folder + "/events: there is neither energy-pkg nor energy-ram");
  info.name += " (perf)";
  found.push_back(std::make_unique<Perf>(info, std::move(counters)));
}

}  // namespace librt::bench
