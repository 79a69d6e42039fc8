// The machine's state, read from folders that stand for /proc and /sys.
#include "tools/rtbench/machine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tools/cli/process.h"

namespace librt::bench {
namespace {

class Root {
 public:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file(folder() + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  const std::string& folder() const { return scratch_.path(); }

 private:
  tools::TemporaryFolder scratch_{"rtbench-machine"};
};

const char* const kInfo =
    "processor\t: 0\nmodel name\t: Example CPU 3000\ncpu MHz\t\t: 1000.0\nflags\t\t: fpu sse hypervisor "
    "avx\n\n"
    "processor\t: 1\nmodel name\t: Example CPU 3000\ncpu MHz\t\t: 3000.0\n";

void laptop(const Root& root) {
  root.write("/proc/cpuinfo", kInfo);
  root.write("/proc/self/status", "Name:\tx\nCpus_allowed:\tb\nCpus_allowed_list:\t0-1,3\n");
  root.write("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n");
  root.write("/proc/sys/kernel/ostype", "Linux\n");
  root.write("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  root.write("/etc/os-release",
             "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  root.write("/sys/devices/system/cpu/online", "0-7\n");
  root.write("/sys/devices/system/cpu/smt/active", "1\n");
  root.write("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
  for (const std::string cpu : {"0", "1", "3"}) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + cpu;
    root.write(folder + "/cpufreq/scaling_governor", cpu == "3" ? "performance\n" : "powersave\n");
    root.write(folder + "/cpufreq/scaling_cur_freq", "2000000\n");
    root.write(folder + "/cpufreq/cpuinfo_max_freq", "4700000\n");
    root.write(folder + "/thermal_throttle/core_throttle_count", "5\n");
  }
}

TEST(Machine, FactsOfALaptop) {
  const Root root;
  laptop(root);
  const MachineFacts facts = machine_facts(root.folder());
  EXPECT_EQ(facts.cpu, "Example CPU 3000");
  EXPECT_EQ(facts.kernel, "Linux 6.1.0-18-amd64");
  EXPECT_EQ(facts.system, "Debian GNU/Linux 12 (bookworm)");
  EXPECT_TRUE(facts.virtual_machine);
  EXPECT_EQ(facts.online_cpus, 8);
  EXPECT_EQ(facts.allowed_cpus, 3);
  EXPECT_FALSE(facts.quota_cpus);
  EXPECT_EQ(facts.smt, true);
  EXPECT_EQ(facts.governor, "performance, powersave");
  EXPECT_DOUBLE_EQ(facts.frequency_mhz.value_or(0), 2000);
  EXPECT_DOUBLE_EQ(facts.highest_mhz.value_or(0), 4700);
  EXPECT_EQ(facts.boost, false);
  EXPECT_EQ(facts.memory_bytes, uint64_t{16} << 30);
  EXPECT_EQ(
      machine_text(facts),
      "Example CPU 3000, 3 of 8 CPUs, SMT on, governor performance, powersave, 2000 of at most 4700 MHz, "
      "boost off, virtual machine, Linux 6.1.0-18-amd64");
}

// A container without /sys, and one without anything.
TEST(Machine, WhatIsNotThereIsNotInvented) {
  const Root root;
  root.write("/proc/cpuinfo", kInfo);
  MachineFacts facts = machine_facts(root.folder());
  EXPECT_DOUBLE_EQ(facts.frequency_mhz.value_or(0), 2000);  // of /proc/cpuinfo
  EXPECT_FALSE(facts.smt);
  EXPECT_FALSE(facts.boost);
  EXPECT_TRUE(facts.governor.empty());
  facts = machine_facts(root.folder() + "/nothing");
  EXPECT_TRUE(facts.cpu.empty());
  EXPECT_EQ(facts.online_cpus, 0);
  EXPECT_EQ(machine_text(facts), "unknown CPU");
  const MachineCounters counters = machine_counters(root.folder() + "/nothing");
  EXPECT_FALSE(counters.has_stat);
  MachineCounters later = counters;
  later.at_seconds += 1;
  const MachineLoad load = load_between(counters, later);
  EXPECT_FALSE(load.other_cpus);
  EXPECT_FALSE(load.steal);
  EXPECT_FALSE(load.pressure);
  EXPECT_FALSE(load.quota_throttled);
  EXPECT_TRUE(disturbances(facts, load, load).empty());
}

TEST(Machine, QuotasOfBothVersionsOfCgroups) {
  const Root two;
  two.write("/proc/self/cgroup", "0::/outer/inner\n");
  two.write("/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  two.write("/sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
  two.write("/sys/fs/cgroup/outer/inner/cpu.stat", "usage_usec 5\nnr_throttled 3\nthrottled_usec 2500000\n");
  EXPECT_DOUBLE_EQ(machine_facts(two.folder()).quota_cpus.value_or(0), 1.5);
  EXPECT_DOUBLE_EQ(machine_counters(two.folder()).quota_throttled_seconds.value_or(0), 2.5);
  const Root one;
  one.write("/proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n2:memory:/docker/abc\n");
  one.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");  // the container sees its group as the top
  one.write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  one.write("/sys/fs/cgroup/cpu/cpu.stat", "nr_periods 1\nnr_throttled 3\nthrottled_time 1500000000\n");
  EXPECT_DOUBLE_EQ(machine_facts(one.folder()).quota_cpus.value_or(0), 0.5);
  EXPECT_DOUBLE_EQ(machine_counters(one.folder()).quota_throttled_seconds.value_or(0), 1.5);
  const Root none;
  none.write("/proc/self/cgroup", "4:cpu,cpuacct:/\n");
  none.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  none.write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(machine_facts(none.folder()).quota_cpus);
}

TEST(Machine, MemoryWithinTheLimitOfTheCgroup) {
  const Root two;
  two.write("/proc/meminfo", "MemTotal: 4096 kB\nMemAvailable: 2048 kB\n");
  EXPECT_EQ(available_memory(two.folder()), 2048u * 1024);
  two.write("/proc/self/cgroup", "0::/job\n");
  two.write("/sys/fs/cgroup/job/memory.max", "max\n");
  two.write("/sys/fs/cgroup/job/memory.current", "500000\n");
  EXPECT_EQ(available_memory(two.folder()), 2048u * 1024);
  two.write("/sys/fs/cgroup/job/memory.max", "1000000\n");
  two.write("/sys/fs/cgroup/job/memory.stat", "anon 300000\ninactive_file 200000\n");
  EXPECT_EQ(available_memory(two.folder()), 700000u);
  const Root one;
  one.write("/proc/self/cgroup", "9:memory:/job\n");
  one.write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000000\n");
  one.write("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1200000\n");
  EXPECT_EQ(available_memory(one.folder()), 0u);
  EXPECT_FALSE(available_memory(one.folder() + "/nothing"));
}

// Ten seconds, CPUs 0, 1 and 3 allowed: other work 4 s, this program 6 s, stolen 1.5 s; CPU 2 is another's.
void at(const Root& root, bool end) {
  root.write("/proc/stat",
             end ? "cpu  9 9 9 9\ncpu0 300 100 200 0 0 0 0 50 0 0\ncpu1 500 0 0 0 0 0 0 100 0 0\n"
                   "cpu2 99999 0 0 0 0 0 0 9999 0 0\ncpu3 0 0 0 0 0 0 0 0 0 0\nintr 1\n"
                 : "cpu  9 9 9 9\ncpu0 100 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n"
                   "cpu2 0 0 0 0 0 0 0 0 0 0\ncpu3 0 0 0 0 0 0 0 0 0 0\nintr 1\n");
  root.write("/proc/self/stat", end ? "12 (a ) b) R 1 2 3 4 5 6 7 8 9 10 400 100 70 30 20 0 1 0 1 2\n"
                                    : "12 (a ) b) R 1 2 3 4 5 6 7 8 9 10 0 0 0 0 20 0 1 0 1 2\n");
  root.write("/proc/pressure/cpu", end ? "some avg10=1.00 avg60=1.00 avg300=1.00 total=3000000\n"
                                       : "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n");
  root.write("/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", end ? "12\n" : "5\n");
}

TEST(Machine, LoadWithoutOwnTime) {
  const Root root;
  laptop(root);
  at(root, false);
  MachineCounters first = machine_counters(root.folder());
  at(root, true);
  MachineCounters last = machine_counters(root.folder());
  first.at_seconds = 20;  // as the difference of two times since the start of the machine it would be rounded
  last.at_seconds = 30;
  const MachineLoad load = load_between(first, last);
  EXPECT_EQ(last.cpus, 3);
  EXPECT_DOUBLE_EQ(load.other_cpus.value_or(-1), 0.4);
  EXPECT_DOUBLE_EQ(load.steal.value_or(-1), 0.05);
  EXPECT_DOUBLE_EQ(load.pressure.value_or(-1), 0.2);
  EXPECT_EQ(load.heat_throttled, 7u);
  const auto warnings = disturbances(machine_facts(root.folder()), {.seconds = 1, .other_cpus = 0.01}, load);
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_EQ(warnings[0],
            "noisy machine: other work used 0.01 CPUs before and 0.40 CPUs during the measurements, of 3");
  EXPECT_EQ(warnings[1], "noisy machine: the hypervisor gave 5.0 % of the time to other machines");
  EXPECT_EQ(warnings[2], "heat slowed CPU cores 7 times during the measurements");
}

TEST(Machine, QuietMachinesAreNotWarnedAbout) {
  const MachineLoad quiet = {.seconds = 10, .other_cpus = 0.05, .steal = 0.001, .quota_throttled = 0.0};
  EXPECT_TRUE(disturbances({.allowed_cpus = 2}, quiet, quiet).empty());
  MachineLoad stopped = quiet;
  stopped.quota_throttled = 0.25;
  const auto warnings = disturbances({.allowed_cpus = 2, .quota_cpus = 1.5}, quiet, stopped);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0], "the cgroup's quota of 1.50 CPUs stopped this program in 25.0 % of the time");
}

TEST(Machine, CountersThatGoBackAreNotNegativeLoads) {
  const MachineCounters first = {.at_seconds = 1, .has_stat = true, .busy_seconds = 5, .cpus = 1};
  const MachineCounters last = {.at_seconds = 2, .has_stat = true, .busy_seconds = 4, .cpus = 1};
  EXPECT_EQ(load_between(first, last).other_cpus.value_or(-1), 0);
  EXPECT_EQ(load_between(last, first).seconds, 0);
}

}  // namespace
}  // namespace librt::bench
