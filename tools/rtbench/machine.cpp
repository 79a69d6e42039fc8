#include "tools/rtbench/machine.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>

#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

using namespace words;  // NOLINT: functions that make text

constexpr double kTicksPerSecond =
    100;  // USER_HZ, in which /proc counts, is 100 on every architecture of Linux
// Other work of this size shows in the times of a program that uses all CPUs.
constexpr double kMuchOtherWork = 0.1;
constexpr double kMuchOfTheTime = 0.01;  // steal, stops by the quota

// The whole file; empty if it cannot be read. Files of /proc and /sys have no size of their own.
std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string first_line(const std::string& path) {
  const std::string text = text_of(path);
  return text.substr(0, text.find('\n'));
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\"");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\"\r") - first + 1);
}

std::optional<double> number_in(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::optional<double> number_of(const std::string& path) {
  return number_in(first_line(path));
}

// Value of the first line "key: value", or "key=value".
std::string field(const std::string& text, std::string_view key, char separator) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(separator);
    if (at != std::string::npos && trimmed(std::string_view(line).substr(0, at)) == key)
      return std::string(trimmed(std::string_view(line).substr(at + 1)));
  }
  return {};
}

// "0-2,5": 0, 1, 2, 5.
std::set<int> cpu_list(const std::string& text) {
  std::set<int> all;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::istringstream range(part);
    int first = 0, last = 0;
    if (!(range >> first)) continue;
    if (char dash = 0; !(range >> dash >> last)) last = first;
    for (int cpu = first; cpu <= last && cpu < first + 65536; ++cpu) all.insert(cpu);
  }
  return all;
}

std::set<int> allowed_cpus(const std::string& root) {
  return cpu_list(field(text_of(root + "/proc/self/status"), "Cpus_allowed_list", ':'));
}

std::string cpu_folder(const std::string& root, int cpu) {
  return root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
}

// Average over the CPUs; drivers of virtual machines give it in /proc/cpuinfo only.
std::optional<double> frequency_mhz(const std::string& root, const std::set<int>& cpus) {
  double sum = 0;
  int count = 0;
  for (const int cpu : cpus)
    if (const auto khz = number_of(cpu_folder(root, cpu) + "/cpufreq/scaling_cur_freq")) {
      sum += *khz * 1e-3;
      ++count;
    }
  if (count == 0) {
    std::istringstream lines(text_of(root + "/proc/cpuinfo"));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("cpu MHz"))
        if (const auto mhz = number_in(std::string_view(line).substr(line.find(':') + 1))) {
          sum += *mhz;
          ++count;
        }
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

// The folders of this process's cgroup that limit something, "cpu" or "memory", up to the top. A container
// may not see its own: the path of /proc/self/cgroup is then that on the host, and only its end, or nothing
// of it, is there.
std::vector<std::string> cgroups(const std::string& root, const std::string& controller) {
  std::vector<std::string> folders;
  std::istringstream lines(text_of(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {  // "4:cpu,cpuacct:/a/b", or "0::/a/b" of version 2
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::vector<std::string> tops;
    if (controllers == ",,")
      tops = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    else if (controllers.find("," + controller + ",") != std::string::npos)
      tops = {"/sys/fs/cgroup/" + controller, "/sys/fs/cgroup/" + line.substr(first + 1, second - first - 1)};
    for (const std::string& top : tops)
      for (std::string path = line.substr(second + 1);; path.resize(path.find_last_of('/'))) {
        while (path.ends_with('/')) path.pop_back();
        folders.push_back(root + top + path);
        if (path.find('/') == std::string::npos) break;
      }
  }
  return folders;
}

std::optional<double> quota_cpus(const std::string& root) {
  std::optional<double> least;
  const auto limit = [&](double quota, double period) {
    if (quota > 0 && period > 0) least = std::min(least.value_or(quota / period), quota / period);
  };
  for (const std::string& folder : cgroups(root, "cpu")) {
    double quota = 0, period = 0;
    if (std::istringstream(first_line(folder + "/cpu.max")) >> quota >> period) limit(quota, period);
    const auto us = number_of(folder + "/cpu.cfs_quota_us");
    const auto period_us = number_of(folder + "/cpu.cfs_period_us");
    if (us && period_us) limit(*us, *period_us);
  }
  return least;
}

std::optional<double> quota_throttled(const std::string& root) {
  for (const std::string& folder : cgroups(root, "cpu")) {  // the innermost group counts this process's
    std::istringstream lines(text_of(folder + "/cpu.stat"));
    std::string key;
    for (double value = 0; lines >> key >> value;) {
      if (key == "throttled_usec") return value * 1e-6;
      if (key == "throttled_time") return value * 1e-9;
    }
  }
  return std::nullopt;
}

// What a cgroup's limit leaves; caches of files, which the kernel gives up first, do not count as used.
std::optional<uint64_t> left_of_limit(const std::string& folder) {
  for (const auto& [limit_name, usage_name, cache_name] :
       {std::array{"memory.max", "memory.current", "inactive_file"},
        std::array{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}}) {
    const auto limit = number_of(folder + "/" + limit_name);
    const auto usage = number_of(folder + "/" + usage_name);
    if (!limit || !usage) continue;
    double used = *usage;
    std::istringstream lines(text_of(folder + "/memory.stat"));
    std::string key;
    for (double value = 0; lines >> key >> value;)
      if (key == cache_name) used -= value;
    return static_cast<uint64_t>(std::max(0.0, *limit - std::max(0.0, used)));
  }
  return std::nullopt;
}

std::string governors(const std::string& root, const std::set<int>& cpus) {
  std::set<std::string> names;
  for (const int cpu : cpus)
    if (std::string name = first_line(cpu_folder(root, cpu) + "/cpufreq/scaling_governor"); !name.empty())
      names.insert(std::move(name));
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

std::string cpu_name(const std::string& root) {
  const std::string info = text_of(root + "/proc/cpuinfo");
  for (const char* key : {"model name", "Model", "cpu", "Hardware"})
    if (std::string name = field(info, key, ':'); !name.empty()) return name;
  // Boards with ARM CPUs name themselves here; the text ends with a zero byte.
  std::string board = first_line(root + "/proc/device-tree/model");
  return board.substr(0, board.find('\0'));
}

// utime, stime, cutime and cstime: fields 14 to 17 of /proc/self/stat, after a name that may hold anything.
double own_seconds(const std::string& root) {
  const std::string text = text_of(root + "/proc/self/stat");
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, system = 0, children_user = 0, children_system = 0;
  fields >> user >> system >> children_user >> children_system;
  return (user + system + children_user + children_system) / kTicksPerSecond;
}

}  // namespace

MachineFacts machine_facts(const std::string& root) {
  MachineFacts facts;
  const std::set<int> allowed = allowed_cpus(root);
  const std::set<int> online = cpu_list(first_line(root + "/sys/devices/system/cpu/online"));
  const std::string info = text_of(root + "/proc/cpuinfo");
  facts.cpu = cpu_name(root);
  const std::string type = first_line(root + "/proc/sys/kernel/ostype");
  const std::string release = first_line(root + "/proc/sys/kernel/osrelease");
  facts.kernel = type.empty() || release.empty() ? release : type + " " + release;
  facts.system = field(text_of(root + "/etc/os-release"), "PRETTY_NAME", '=');
  facts.virtual_machine = (" " + field(info, "flags", ':') + " ").find(" hypervisor ") != std::string::npos;
  facts.online_cpus = static_cast<int>(online.size());
  facts.allowed_cpus = static_cast<int>(allowed.size());
  facts.quota_cpus = quota_cpus(root);
  if (const auto active = number_of(root + "/sys/devices/system/cpu/smt/active")) facts.smt = *active != 0;
  facts.governor = governors(root, allowed);
  facts.frequency_mhz = frequency_mhz(root, allowed);
  for (const int cpu : allowed)
    if (const auto khz = number_of(cpu_folder(root, cpu) + "/cpufreq/cpuinfo_max_freq"))
      facts.highest_mhz = std::max(facts.highest_mhz.value_or(0), *khz * 1e-3);
  if (const auto boost = number_of(root + "/sys/devices/system/cpu/cpufreq/boost"))
    facts.boost = *boost != 0;
  else if (const auto none = number_of(root + "/sys/devices/system/cpu/intel_pstate/no_turbo"))
    facts.boost = *none == 0;
  if (const auto kib = number_in(field(text_of(root + "/proc/meminfo"), "MemTotal", ':')))
    facts.memory_bytes = static_cast<uint64_t>(*kib * 1024);
  return facts;
}

std::optional<uint64_t> available_memory(const std::string& root) {
  std::optional<uint64_t> least;
  if (const auto kib = number_in(field(text_of(root + "/proc/meminfo"), "MemAvailable", ':')))
    least = static_cast<uint64_t>(*kib * 1024);
  for (const std::string& folder : cgroups(root, "memory"))
    if (const auto left = left_of_limit(folder)) least = std::min(least.value_or(*left), *left);
  return least;
}

MachineCounters machine_counters(const std::string& root) {
  MachineCounters counters;
  counters.at_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  const std::set<int> allowed = allowed_cpus(root);
  std::istringstream lines(text_of(root + "/proc/stat"));
  for (std::string line; std::getline(lines, line);) {
    int cpu = 0;
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0, interrupt = 0, soft = 0, steal = 0;
    if (!line.starts_with("cpu")) continue;
    std::istringstream numbers(line.substr(3));
    // "cpu" with a space after it is the sum of all.
    if (numbers.peek() == ' ' ||
        !(numbers >> cpu >> user >> nice >> system >> idle >> wait >> interrupt >> soft) ||
        (!allowed.empty() && !allowed.contains(cpu)))
      continue;
    numbers >> steal;  // not in old kernels
    counters.has_stat = true;
    ++counters.cpus;
    counters.busy_seconds += (user + nice + system + interrupt + soft) / kTicksPerSecond;
    counters.steal_seconds += steal / kTicksPerSecond;
    const std::string count = cpu_folder(root, cpu) + "/thermal_throttle/core_throttle_count";
    if (const auto times = number_of(count))
      counters.heat_throttled = counters.heat_throttled.value_or(0) + static_cast<uint64_t>(*times);
  }
  counters.own_seconds = own_seconds(root);
  const std::string pressure = first_line(root + "/proc/pressure/cpu");  // "some avg10=0.00 ... total=123"
  if (const size_t at = pressure.find("total="); at != std::string::npos)
    if (const auto us = number_in(std::string_view(pressure).substr(at + 6)))
      counters.pressure_seconds = *us * 1e-6;
  counters.quota_throttled_seconds = quota_throttled(root);
  counters.frequency_mhz = frequency_mhz(root, allowed);
  return counters;
}

MachineLoad load_between(const MachineCounters& first, const MachineCounters& last) {
  MachineLoad load;
  load.seconds = last.at_seconds - first.at_seconds;
  if (load.seconds <= 0) return {};
  const auto share = [&](double seconds) { return std::max(0.0, seconds) / load.seconds; };
  if (first.has_stat && last.has_stat && last.cpus > 0) {
    load.other_cpus =
        share((last.busy_seconds - first.busy_seconds) - (last.own_seconds - first.own_seconds));
    load.steal = share(last.steal_seconds - first.steal_seconds) / last.cpus;
  }
  if (first.pressure_seconds && last.pressure_seconds)
    load.pressure = std::min(1.0, share(*last.pressure_seconds - *first.pressure_seconds));
  if (first.quota_throttled_seconds && last.quota_throttled_seconds)
    load.quota_throttled = share(*last.quota_throttled_seconds - *first.quota_throttled_seconds);
  if (first.heat_throttled && last.heat_throttled && *last.heat_throttled >= *first.heat_throttled)
    load.heat_throttled = *last.heat_throttled - *first.heat_throttled;
  load.frequency_mhz = last.frequency_mhz;
  return load;
}

MachineLoad observe(double seconds, const std::string& root) {
  const MachineCounters first = machine_counters(root);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  return load_between(first, machine_counters(root));
}

std::vector<std::string> disturbances(const MachineFacts& facts, const MachineLoad& before,
                                      const MachineLoad& during) {
  std::vector<std::string> found;
  const auto disturbs = [&](const MachineLoad& load) {
    return load.other_cpus.value_or(0) >= kMuchOtherWork;
  };
  if (disturbs(before) || disturbs(during)) {
    std::string text = "noisy machine: other work used";
    if (before.other_cpus) text += format(" %.2f CPUs before", *before.other_cpus);
    if (before.other_cpus && during.other_cpus) text += " and";
    if (during.other_cpus) text += format(" %.2f CPUs during", *during.other_cpus);
    found.push_back(text + format(" the measurements, of %d", std::max(facts.allowed_cpus, 1)));
  }
  const double steal = std::max(before.steal.value_or(0), during.steal.value_or(0));
  if (steal >= kMuchOfTheTime)
    found.push_back(
        format("noisy machine: the hypervisor gave %.1f %% of the time to other machines", 100 * steal));
  if (during.quota_throttled.value_or(0) >= kMuchOfTheTime)
    found.push_back(format("the cgroup's quota of %.2f CPUs stopped this program in %.1f %% of the time",
                           facts.quota_cpus.value_or(0), 100 * *during.quota_throttled));
  if (during.heat_throttled.value_or(0) > 0)
    found.push_back(format("heat slowed CPU cores %llu times during the measurements",
                           static_cast<unsigned long long>(*during.heat_throttled)));
  return found;
}

MachineWatch::MachineWatch(double seconds_before, std::string root)
    : root_(std::move(root)),
      facts_(machine_facts(root_)),
      before_(observe(seconds_before, root_)),
      start_(machine_counters(root_)) {}

Machine MachineWatch::state(std::vector<std::pair<std::string, std::string>> versions) const {
  Machine machine{.facts = facts_, .before = before_, .versions = std::move(versions)};
  machine.during = load_between(start_, machine_counters(root_));
  machine.warnings = disturbances(facts_, before_, machine.during);
  return machine;
}

std::string machine_text(const MachineFacts& facts) {
  std::vector<std::string> parts = {facts.cpu.empty() ? "unknown CPU" : facts.cpu};
  if (facts.allowed_cpus > 0)
    parts.push_back(facts.allowed_cpus == facts.online_cpus
                        ? format("%d CPUs", facts.online_cpus)
                        : format("%d of %d CPUs", facts.allowed_cpus, facts.online_cpus));
  if (facts.quota_cpus) parts.push_back(format("a quota of %.2f CPUs", *facts.quota_cpus));
  if (facts.smt) parts.push_back(*facts.smt ? "SMT on" : "SMT off");
  if (!facts.governor.empty()) parts.push_back("governor " + facts.governor);
  if (facts.frequency_mhz && facts.highest_mhz)
    parts.push_back(format("%.0f of at most %.0f MHz", *facts.frequency_mhz, *facts.highest_mhz));
  else if (facts.frequency_mhz)
    parts.push_back(format("%.0f MHz", *facts.frequency_mhz));
  if (facts.boost) parts.push_back(*facts.boost ? "boost on" : "boost off");
  if (facts.virtual_machine) parts.push_back("virtual machine");
  if (!facts.kernel.empty()) parts.push_back(facts.kernel);
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : ", ") + part;
  return all;
}

}  // namespace librt::bench
