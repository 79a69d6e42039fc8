// The machine that measures: what it is, what else it does, and whether that disturbs.
//
// Knows: /proc, /sys and cgroups of Linux, under a root folder. Must not know: models, measurements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace librt::bench {

/// What does not change while something is measured. Empty or nothing: the machine does not report it.
struct MachineFacts {
  std::string cpu;                                   ///< "AMD EPYC 9554"
  std::string kernel;                                ///< "Linux 6.1.0-18-amd64"
  std::string system;                                ///< "Debian GNU/Linux 12 (bookworm)"
  bool virtual_machine = false;                      ///< the CPU's flags name a hypervisor
  int online_cpus = 0;                               ///< logical processors of the machine
  int allowed_cpus = 0;                              ///< of these, in this process's affinity
  std::optional<double> quota_cpus;                  ///< processors that the cgroups grant; nothing: no limit
  std::optional<bool> smt;                           ///< several hardware threads share a core
  std::string governor;                              ///< "powersave", or several: "performance, powersave"
  std::optional<double> frequency_mhz, highest_mhz;  ///< now (average over CPUs), and at most
  std::optional<bool> boost;                         ///< turbo frequencies are allowed
  uint64_t memory_bytes = 0;
};

/// What happened on the machine in a span of time.
struct MachineLoad {
  double seconds = 0;                ///< length of the span; 0: nothing was observed
  std::optional<double> other_cpus;  ///< processors busy with other work, of those this process may use
  std::optional<double> steal;       ///< share of the time that the hypervisor gave to other machines, [0,1]
  std::optional<double> pressure;    ///< share of the time in which some task waited for a processor, [0,1]
  std::optional<double> quota_throttled;   ///< share of the time that the cgroup's quota stopped this process
  std::optional<uint64_t> heat_throttled;  ///< times that a core was slowed by heat
  std::optional<double> frequency_mhz;     ///< at its end
};

/// Counters at one moment; the difference of two is a MachineLoad.
struct MachineCounters {
  double at_seconds = 0;  ///< of a clock that never goes back
  bool has_stat = false;
  double busy_seconds = 0, steal_seconds = 0;  ///< of the allowed processors together, since start
  double own_seconds = 0;                      ///< of this process and the children that it waited for
  int cpus = 0;                                ///< processors counted
  std::optional<double> pressure_seconds, quota_throttled_seconds, frequency_mhz;
  std::optional<uint64_t> heat_throttled;
};

/// The state of the machine as part of a result.
struct Machine {
  MachineFacts facts;
  MachineLoad before;  ///< a short span before the first measurement
  MachineLoad during;  ///< all measurements
  /// "librt", "oneDNN", "driver of vulkan:0", ...: name and version.
  std::vector<std::pair<std::string, std::string>> versions;
  /// Sentences that stand in the first lines of every output: what disturbs, with the figure. Empty: quiet.
  std::vector<std::string> warnings;
};

/// root: "" for the machine; tests pass a folder with proc/ and sys/ in it.
MachineFacts machine_facts(const std::string& root = {});
/// Bytes that could be allocated without taking them from others, in the cgroups' limits; nothing: unknown.
std::optional<uint64_t> available_memory(const std::string& root = {});
MachineCounters machine_counters(const std::string& root = {});
MachineLoad load_between(const MachineCounters& first, const MachineCounters& last);
/// Sleeps that long, and returns what others did meanwhile.
MachineLoad observe(double seconds, const std::string& root = {});

/// What of it disturbs measurements, as sentences with figures.
std::vector<std::string> disturbances(const MachineFacts& facts, const MachineLoad& before,
                                      const MachineLoad& during);

/// The machine's state over the life of this object, which should begin before the first measurement.
class MachineWatch {
 public:
  /// Reads the facts, then observes the machine that long.
  explicit MachineWatch(double seconds_before = 0.2, std::string root = {});
  /// Until now.
  Machine state(std::vector<std::pair<std::string, std::string>> versions) const;

 private:
  std::string root_;
  MachineFacts facts_;
  MachineLoad before_;
  MachineCounters start_;
};

/// One line: "AMD EPYC, 2 CPUs, SMT off, 2596 MHz, virtual machine, Linux 6.1.0-18-amd64".
std::string machine_text(const MachineFacts& facts);

}  // namespace librt::bench
