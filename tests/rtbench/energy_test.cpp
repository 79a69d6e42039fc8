// Sensors of energy, on made-up trees of /sys.
#include "tools/rtbench/energy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tools/rtbench/energy_sensors.h"

namespace librt::bench {
namespace {

class Tree {
 public:
  Tree() : root_(std::filesystem::path(testing::TempDir()) / ("energy-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~Tree() { std::filesystem::remove_all(root_); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  void write(const std::string& path, const std::string& text) const {
    const auto file = root_ / "sys" / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  void zone(const std::string& entry, const std::string& name, const std::string& microjoules,
            const std::string& range = "262143328850") const {
    write("class/powercap/" + entry + "/name", name);
    write("class/powercap/" + entry + "/energy_uj", microjoules);
    write("class/powercap/" + entry + "/max_energy_range_uj", range);
  }
  std::filesystem::path file(const std::string& path) const { return root_ / "sys" / path; }
  std::string root() const { return root_.string(); }

 private:
  std::filesystem::path root_;
};

// A meter that reads only on request, at times that the test sets.
struct Meter {
  explicit Meter(const Tree& tree, std::string nvml = {})
      : meter({.root = tree.root(),
               .nvml = std::move(nvml),
               .perf = false,
               .clock = [this] { return now; },
               .sample = false}) {}
  double now = 100;
  EnergyMeter meter;
};

TEST(Accumulators, IntegrateCountersAndPowers) {
  Accumulator counter(true);
  for (const double joules : {5.0, 7.0, 7.0, 10.0}) counter.add(0, joules);
  EXPECT_DOUBLE_EQ(counter.joules(), 5);
  counter.add(1, 1.0);  // reset by the driver
  counter.add(2, 2.0);
  EXPECT_DOUBLE_EQ(counter.joules(), 6);
  Accumulator power(false);
  power.add(10, 20);
  power.add(12, 40);  // 60
  power.add(12, 80);  // no time passed
  power.add(13, 80);  // 80
  EXPECT_DOUBLE_EQ(power.joules(), 140);
}

TEST(Powercap, AddsPackagesAndMemoryAndNothingTwice) {
  const Tree tree;
  tree.zone("intel-rapl:0", "package-0", "1000000");
  tree.zone("intel-rapl:0:0", "core", "500000");  // part of the package
  tree.zone("intel-rapl:0:1", "dram", "2000000");
  tree.zone("intel-rapl:1", "package-1", "3000000");
  tree.zone("intel-rapl:2", "psys", "9000000");            // contains the packages
  tree.zone("intel-rapl-mmio:0", "package-0", "1000000");  // the same package by another way
  Meter m(tree);
  ASSERT_EQ(m.meter.sensors().size(), 1u);
  const SensorInfo& info = m.meter.sensors()[0];
  EXPECT_EQ(info.name, "RAPL package-0 + dram-0 + package-1 (powercap)");
  EXPECT_EQ(info.unit, "microjoules");
  const auto first = m.meter.read();
  tree.zone("intel-rapl:0", "package-0", "11000000");  // 10 J
  tree.zone("intel-rapl:0:0", "core", "9500000");
  tree.zone("intel-rapl:0:1", "dram", "4000000");     // 2 J
  tree.zone("intel-rapl:1", "package-1", "6000000");  // 3 J
  m.now += 3;
  const auto use = m.meter.use(0, first, m.meter.read());
  ASSERT_TRUE(use.joules) << use.reason;
  EXPECT_NEAR(*use.joules, 15, 1e-9);
  EXPECT_NEAR(*use.watts, 5, 1e-9);
  EXPECT_FALSE(use.above_idle) << "idle power was not measured";
  std::string reason;
  EXPECT_EQ(m.meter.sensor_for("cpu", true, "", "AMD EPYC", reason), 0u);
  EXPECT_FALSE(m.meter.sensor_for("cuda", false, "1", "NVIDIA L4", reason));
  EXPECT_EQ(reason, "no sensor of this machine measures this device");
}

TEST(Powercap, ContinuesAfterTheEndOfItsRange) {
  const Tree tree;
  tree.zone("intel-rapl:0", "package-0", "262000000000");
  Meter m(tree);
  const auto first = m.meter.read();
  tree.zone("intel-rapl:0", "package-0", "1000000");  // 143.32885 J to the end, and 1 J
  m.now += 10;
  EXPECT_NEAR(m.meter.use(0, first, m.meter.read()).joules.value_or(-1), 144.32885, 1e-6);
}

TEST(Powercap, RefusedPermissionsNameTheFix) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read every file";
  const Tree tree;
  tree.zone("intel-rapl:0", "package-0", "1");
  std::filesystem::permissions(tree.file("class/powercap/intel-rapl:0/energy_uj"),
                               std::filesystem::perms::none);
  Meter m(tree);
  EXPECT_NE(m.meter.reason().find("Permission denied; run as root, or allow it: `sudo chmod a+r "),
            std::string::npos)
      << m.meter.reason();
}

TEST(Powercap, GarbageAndMissingFilesAreReasons) {
  const Tree tree;
  tree.zone("intel-rapl:0", "package-0", "12 apples");
  tree.zone("intel-rapl:1", "package-1", "100");
  Meter m(tree);
  EXPECT_NE(m.meter.reason().find("energy_uj: expected a number of at least 0, found '12 apples'"),
            std::string::npos)
      << m.meter.reason();
  tree.zone("intel-rapl:0", "package-0", "-5");
  EXPECT_NE(Meter(tree).meter.reason().find("found '-5'"), std::string::npos);
  tree.zone("intel-rapl:0", "package-0", "nan");
  EXPECT_NE(Meter(tree).meter.reason().find("found 'nan'"), std::string::npos);
  std::filesystem::remove(tree.file("class/powercap/intel-rapl:0/energy_uj"));
  EXPECT_NE(Meter(tree).meter.reason().find("No such file"), std::string::npos);
}

TEST(Powercap, ASensorThatFailsLaterGivesAReasonAndNoNumber) {
  const Tree tree;
  tree.zone("intel-rapl:0", "package-0", "1000000");
  Meter m(tree);
  const auto first = m.meter.read();
  tree.zone("intel-rapl:0", "package-0", "oops");
  m.now += 1;
  const auto use = m.meter.use(0, first, m.meter.read());
  EXPECT_FALSE(use.joules);
  EXPECT_NE(use.reason.find("oops"), std::string::npos);
}

TEST(Powercap, TooShortSpansAreNotMeasured) {
  const Tree tree;
  tree.zone("intel-rapl:0", "package-0", "1000000");
  Meter m(tree);
  const auto first = m.meter.read();
  tree.zone("intel-rapl:0", "package-0", "2000000");
  m.now += 0.005;
  const auto use = m.meter.use(0, first, m.meter.read());
  EXPECT_FALSE(use.joules);
  EXPECT_EQ(use.reason, "0.005 s is too short for RAPL package-0 (powercap), which needs 0.01 s");
  // A counter that stands still says nothing either.
  m.now += 1;
  const auto second = m.meter.read();
  m.now += 1;
  EXPECT_FALSE(m.meter.use(0, second, m.meter.read()).joules);
}

TEST(Machines, WithoutSensorsSayWhy) {
  const Tree tree;
  Meter m(tree, "libno-such-nvml.so.1");
  EXPECT_NE(m.meter.reason().find("RAPL (powercap): "), std::string::npos);
  EXPECT_NE(m.meter.reason().find("modprobe intel_rapl_msr"), std::string::npos);
  EXPECT_NE(m.meter.reason().find("libno-such-nvml.so.1 cannot be loaded"), std::string::npos);
  std::string reason;
  EXPECT_FALSE(m.meter.sensor_for("cpu", true, "", "", reason));
  EXPECT_NE(reason.find("RAPL"), std::string::npos);
  EXPECT_EQ(reason.find("NVML"), std::string::npos) << "not for a CPU";
  m.meter.measure_idle(0);
  EXPECT_TRUE(m.meter.read().joules.empty());
  EXPECT_NE(sensors_text(m.meter.sensors()).find("not available: "), std::string::npos);
}

TEST(Perf, ReasonsNameTheFileOrTheEvent) {
  const Tree tree;
  const auto reason_now = [&] {
    Sources found;
    std::vector<SensorInfo> unavailable;
    find_perf(tree.root(), found, unavailable);
    EXPECT_TRUE(found.empty());
    return unavailable.empty() ? std::string() : unavailable[0].reason;
  };
  EXPECT_NE(reason_now().find("there is no such PMU"), std::string::npos);
  const std::string pmu = "bus/event_source/devices/power/";
  tree.write(pmu + "type", "999999");
  EXPECT_NE(reason_now().find("cpumask"), std::string::npos);
  tree.write(pmu + "cpumask", "x");
  EXPECT_NE(reason_now().find("expected a list of CPUs, found 'x'"), std::string::npos);
  tree.write(pmu + "cpumask", "0");
  EXPECT_NE(reason_now().find("neither energy-pkg nor energy-ram"), std::string::npos);
  tree.write(pmu + "events/energy-pkg", "event=0x02");
  tree.write(pmu + "events/energy-pkg.scale", "2.3283064365386962890625e-10");
  tree.write(pmu + "events/energy-pkg.unit", "Furlongs");
  EXPECT_NE(reason_now().find("expected event=0x.., a scale and the unit Joules"), std::string::npos);
  tree.write(pmu + "events/energy-pkg.unit", "Joules");
  EXPECT_NE(reason_now().find("energy-pkg on CPU 0: "), std::string::npos) << "no PMU has this type";
}

TEST(Hwmon, ReadsAmdGpusByEnergyOrPower) {
  const Tree tree;
  tree.write("class/hwmon/hwmon0/name", "nvme");
  tree.write("class/hwmon/hwmon1/name", "amdgpu");
  tree.write("class/hwmon/hwmon1/power1_average", "30000000");
  std::filesystem::create_directory_symlink("../../../0000:03:00.0", tree.file("class/hwmon/hwmon1/device"));
  Meter m(tree);
  const SensorInfo& info = m.meter.sensors()[0];
  EXPECT_EQ(info.name, "amdgpu 0000:03:00.0 (hwmon)");
  EXPECT_FALSE(info.counts);
  const auto first = m.meter.read();
  m.now += 2;
  tree.write("class/hwmon/hwmon1/power1_average", "50000000");
  const auto use = m.meter.use(0, first, m.meter.read());
  EXPECT_NEAR(use.joules.value_or(-1), 80, 1e-9) << use.reason;  // from 30 W to 50 W in 2 s
  EXPECT_NE(use.source.find("power integrated every 50 ms"), std::string::npos);
  std::string reason;
  EXPECT_EQ(m.meter.sensor_for("vulkan", false, "", "AMD Radeon RX 7900 XTX", reason), 0u);
  EXPECT_FALSE(m.meter.sensor_for("vulkan", false, "", "Intel Arc", reason));

  tree.write("class/hwmon/hwmon1/energy1_input", "1000000");
  Meter counting(tree);
  EXPECT_TRUE(counting.meter.sensors()[0].counts);
  std::filesystem::remove(tree.file("class/hwmon/hwmon1/energy1_input"));
  std::filesystem::remove(tree.file("class/hwmon/hwmon1/power1_average"));
  EXPECT_NE(Meter(tree).meter.reason().find("offers neither energy1_input"), std::string::npos);
}

TEST(Hwmon, ReadsJetsonBoards) {
  const Tree tree;
  const std::string chip = "class/hwmon/hwmon3/";
  tree.write(chip + "name", "ina3221");
  const auto channel = [&](const std::string& n, const std::string& label, const std::string& mv,
                           const std::string& ma) {
    tree.write(chip + "in" + n + "_label", label);
    tree.write(chip + "in" + n + "_input", mv);
    tree.write(chip + "curr" + n + "_input", ma);
  };
  channel("1", "VDD_GPU_SOC", "5000", "2000");  // 10 W
  channel("2", "VDD_CPU_CV", "5000", "1000");   // 5 W
  channel("3", "NC", "5000", "9000");
  Meter rails(tree);
  EXPECT_EQ(rails.meter.sensors()[0].name, "INA3221 VDD_GPU_SOC + VDD_CPU_CV (hwmon)");
  auto first = rails.meter.read();
  rails.now += 2;
  EXPECT_NEAR(rails.meter.use(0, first, rails.meter.read()).joules.value_or(-1), 30, 1e-9);
  std::string reason;
  EXPECT_EQ(rails.meter.sensor_for("cpu", true, "", "", reason), 0u) << "the board contains it";
  channel("1", "VDD_IN", "19000", "1000");
  Meter whole(tree);
  EXPECT_EQ(whole.meter.sensors()[0].name, "INA3221 VDD_IN (hwmon)");
  std::filesystem::remove_all(tree.file(chip));
  tree.write(chip + "name", "ina3221");
  EXPECT_NE(Meter(tree).meter.reason().find("no channel has both"), std::string::npos);
}

TEST(Batteries, TellThePowerWhileTheyDischarge) {
  const Tree tree;
  const std::string battery = "class/power_supply/BAT0/";
  tree.write("class/power_supply/AC/type", "Mains");
  tree.write("class/power_supply/mouse/type", "Battery");
  tree.write("class/power_supply/mouse/scope", "Device");
  tree.write(battery + "type", "Battery");
  tree.write(battery + "status", "Discharging");
  tree.write(battery + "voltage_now", "12000000");
  tree.write(battery + "current_now", "1500000");  // 18 W
  Meter m(tree);
  const auto first = m.meter.read();
  m.now += 100;
  const auto second = m.meter.read();
  EXPECT_NEAR(m.meter.use(0, first, second).joules.value_or(-1), 1800, 1e-6);
  tree.write(battery + "status", "Charging");
  m.now += 100;
  const auto use = m.meter.use(0, second, m.meter.read());
  EXPECT_FALSE(use.joules);
  EXPECT_NE(use.reason.find("it is 'Charging'; unplug the machine"), std::string::npos) << use.reason;
  tree.write(battery + "power_now", "10000000");
  EXPECT_NE(Meter(tree).meter.reason().find("'Charging'"), std::string::npos);
}

TEST(Nvml, CountsEnergyOrIntegratesPower) {
  const Tree tree;
  Meter m(tree, RT_FAKE_NVML);
  const auto& sensors = m.meter.sensors();
  ASSERT_GE(sensors.size(), 2u);
  ASSERT_EQ(sensors[0].name, "NVML NVIDIA Test") << sensors_text(sensors);
  EXPECT_TRUE(sensors[0].counts);
  EXPECT_EQ(sensors[1].name, "NVML NVIDIA Old");
  EXPECT_FALSE(sensors[1].counts);
  const auto first = m.meter.read();
  m.now += 4;
  const auto last = m.meter.read();
  EXPECT_NEAR(m.meter.use(0, first, last).joules.value_or(-1), 5, 1e-9);
  EXPECT_NEAR(m.meter.use(1, first, last).joules.value_or(-1), 300, 1e-9);
  std::string reason;
  EXPECT_EQ(m.meter.sensor_for("cuda", false, "2222", "NVIDIA Old", reason), 1u);
  EXPECT_FALSE(m.meter.sensor_for("cuda", false, "3333", "NVIDIA Other", reason));
  EXPECT_EQ(reason, "several GPUs report energy, and none has this device's UUID");
}

TEST(IdlePower, IsSubtractedWhereItWasMeasured) {
  const Tree tree;
  tree.write("class/hwmon/hwmon1/name", "amdgpu");
  tree.write("class/hwmon/hwmon1/power1_input", "20000000");
  // Time passes by a second at each look at the clock.
  double now = 0;
  EnergyMeter meter({.root = tree.root(),
                     .nvml = "",
                     .perf = false,
                     .clock = [&now] { return now += 1; },
                     .sample = false});
  meter.measure_idle(0);
  ASSERT_TRUE(meter.idle_watts(0));
  EXPECT_NEAR(*meter.idle_watts(0), 20, 1e-9);
  tree.write("class/hwmon/hwmon1/power1_input", "50000000");
  const auto first = meter.read();
  const auto last = meter.read();
  const auto use = meter.use(0, first, last);
  ASSERT_TRUE(use.above_idle) << use.reason;
  EXPECT_NEAR(*use.above_idle, *use.joules - 20 * use.seconds, 1e-9);
  EXPECT_GT(*use.above_idle, 0);
}

TEST(Sampling, RunsBesideTheMeasurement) {
  const Tree tree;
  tree.write("class/hwmon/hwmon1/name", "amdgpu");
  tree.write("class/hwmon/hwmon1/power1_input", "20000000");
  EnergyMeter meter({.root = tree.root(), .nvml = "", .perf = false});
  const auto first = meter.read();
  meter.measure_idle(1.1);
  const auto use = meter.use(0, first, meter.read());
  EXPECT_NEAR(use.watts.value_or(-1), 20, 1) << use.reason;
}

}  // namespace
}  // namespace librt::bench
