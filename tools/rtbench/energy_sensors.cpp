#include "tools/rtbench/energy_sensors.h"

#include <algorithm>
#include <cmath>

#include "tools/rtbench/energy_files.h"

namespace librt::bench {
namespace {

SensorInfo missing(std::string name, Covers covers, std::string reason) {
  return {.name = std::move(name), .covers = covers, .reason = std::move(reason)};
}

// Zones of powercap, added up. Each counts microjoules up to a range of its own.
class Powercap : public Source {
 public:
  struct Zone {
    std::string name, path;
    double range = 0, last = 0, total = 0;  // joules
  };

  explicit Powercap(std::vector<Zone> zones) : zones_(std::move(zones)) {
    info_ = {.covers = Covers::Cpu, .unit = "microjoules", .resolution = 61e-6, .update_seconds = 1e-3};
    for (const Zone& zone : zones_) info_.name += (info_.name.empty() ? "RAPL " : " + ") + zone.name;
    info_.name += " (powercap)";
  }

  std::optional<double> read(std::string& reason) override {
    double sum = 0;
    for (Zone& zone : zones_) {
      const auto now = number_in(zone.path + "/energy_uj", reason);
      if (!now) return std::nullopt;
      const double joules = *now * 1e-6;
      double step = joules - zone.last;
      if (step < 0) step += zone.range;
      zone.total += started_ ? std::max(step, 0.0) : 0;
      zone.last = joules;
      sum += zone.total;
    }
    started_ = true;
    return sum;
  }

 private:
  std::vector<Zone> zones_;
  bool started_ = false;
};

// A power, or an energy, from one or several files: the sum of products of the files in each group, scaled.
class Files : public Source {
 public:
  /// read: sum over groups of scale * product of the group's files.
  Files(SensorInfo info, std::vector<std::vector<std::string>> groups, double scale)
      : groups_(std::move(groups)), scale_(scale) {
    info_ = std::move(info);
  }

  std::optional<double> read(std::string& reason) override {
    double sum = 0;
    for (const auto& group : groups_) {
      double product = scale_;
      for (const std::string& path : group) {
        const auto number = number_in(path, reason);
        if (!number) return std::nullopt;
        product *= *number;
      }
      sum += product;
    }
    return sum;
  }

 private:
  std::vector<std::vector<std::string>> groups_;
  double scale_;
};

// A battery: its power is that of the machine only while it discharges.
class Battery : public Files {
 public:
  Battery(SensorInfo info, std::string folder, std::vector<std::vector<std::string>> groups, double scale)
      : Files(std::move(info), std::move(groups), scale), folder_(std::move(folder)) {}

  std::optional<double> read(std::string& reason) override {
    const auto status = line_of(folder_ + "/status", reason);
    if (!status) return std::nullopt;
    if (*status == "Discharging") return Files::read(reason);
    reason = folder_ +
             "/status: the battery shows the machine's power only while it discharges, and it is '" +
             *status + "'; unplug the machine";
    return std::nullopt;
  }

 private:
  std::string folder_;
};

// Appends the source if it can be read now.
void add(std::unique_ptr<Source> source, Sources& found, std::vector<SensorInfo>& unavailable) {
  SensorInfo info = source->info();
  if (source->read(info.reason))
    found.push_back(std::move(source));
  else
    unavailable.push_back(std::move(info));
}

void add_amdgpu(const std::string& folder, Sources& found, std::vector<SensorInfo>& unavailable) {
  const std::string address = target_of(folder + "/device");
  SensorInfo info{.name = "amdgpu" + (address.empty() ? "" : " " + address) + " (hwmon)",
                  .covers = Covers::Gpu,
                  .unit = "microjoules",
                  .resolution = 1e-6,
                  .update_seconds = 1e-3,
                  .uuid = address};
  if (is_there(folder + "/energy1_input"))
    return add(std::make_unique<Files>(
                   info, std::vector<std::vector<std::string>>{{folder + "/energy1_input"}}, 1e-6),
               found, unavailable);
  info.counts = false;
  info.unit = "microwatts";
  info.update_seconds = 2 * kSamplePeriod;
  for (const char* file : {"/power1_average", "/power1_input"})
    if (is_there(folder + file))
      return add(std::make_unique<Files>(info, std::vector<std::vector<std::string>>{{folder + file}}, 1e-6),
                 found, unavailable);
  unavailable.push_back(missing(info.name, Covers::Gpu,
                                folder + ": the driver offers neither energy1_input, power1_average nor "
                                         "power1_input for this GPU"));
}

// Channels 1 to 3 measure millivolts and milliamperes. VDD_IN (Jetson Orin Nano and NX, Xavier NX, Nano's
// POM_5V_IN) is the whole module; where it is missing, as on AGX boards, the rails add up.
void add_ina3221(const std::string& folder, Sources& found, std::vector<SensorInfo>& unavailable) {
  std::vector<std::vector<std::string>> groups;
  std::string rails;
  for (const char* channel : {"1", "2", "3"}) {
    const std::string volts = folder + "/in" + channel + "_input";
    const std::string amperes = folder + "/curr" + channel + "_input";
    if (!is_there(volts) || !is_there(amperes)) continue;
    std::string ignored;
    const std::string label = line_of(folder + "/in" + channel + "_label", ignored).value_or("");
    if (label == "NC") continue;
    if (label == "VDD_IN" || label == "POM_5V_IN" || label == "VIN") {
      groups = {{volts, amperes}};
      rails = label;
      break;
    }
    groups.push_back({volts, amperes});
    rails += (rails.empty() ? "" : " + ") + (label.empty() ? "channel " + std::string(channel) : label);
  }
  if (groups.empty()) {
    unavailable.push_back(
        missing("INA3221 (hwmon)", Covers::Board, folder + ": no channel has both a voltage and a current"));
    return;
  }
  add(std::make_unique<Files>(SensorInfo{.name = "INA3221 " + rails + " (hwmon)",
                                         .covers = Covers::Board,
                                         .unit = "millivolts x milliamperes",
                                         .resolution = 8e-3,  // 8 mV steps (datasheet SBOS576B), at 1 A
                                         .counts = false,
                                         .update_seconds = 2 * kSamplePeriod},
                              std::move(groups), 1e-6),
      found, unavailable);
}

}  // namespace

bool find_powercap(const std::string& root, Sources& found, std::vector<SensorInfo>& unavailable) {
  const std::string folder = root + "/sys/class/powercap";
  std::vector<Powercap::Zone> zones;
  std::string reason, name;
  // "intel-rapl:0" is a package, also on AMD; "intel-rapl:0:1" a part of it. "intel-rapl-mmio:0" counts the
  // package once more, and psys contains it. Of the parts only memory is not contained in its package.
  for (const std::string& entry : names_in(folder, "intel-rapl:")) {
    const std::string path = folder + "/" + entry;
    const auto zone = line_of(path + "/name", reason);
    if (!zone || !(zone->starts_with("package") || zone->starts_with("dram"))) continue;
    const auto range = number_in(path + "/max_energy_range_uj", reason);
    std::string unreadable;
    if (!range || !number_in(path + "/energy_uj", unreadable)) {
      unavailable.push_back(
          missing("RAPL " + *zone + " (powercap)", Covers::Cpu, range ? unreadable : reason));
      continue;
    }
    // A package's memory is named "dram" in each package.
    const std::string package = entry.substr(0, entry.rfind(':'));
    const bool part = package.find(':') != std::string::npos;
    zones.push_back(
        {part ? *zone + "-" + package.substr(package.find(':') + 1) : *zone, path, *range * 1e-6});
  }
  const bool has_package = std::any_of(
      zones.begin(), zones.end(), [](const Powercap::Zone& zone) { return zone.name.starts_with("pack"); });
  // Packages that cannot be read would be left out of the sum: then there is none.
  const bool whole = std::none_of(unavailable.begin(), unavailable.end(), [](const SensorInfo& info) {
    return info.name.starts_with("RAPL package");
  });
  if (has_package && whole) {
    add(std::make_unique<Powercap>(std::move(zones)), found, unavailable);
    return true;
  }
  if (unavailable.empty())
    unavailable.push_back(missing(
        "RAPL (powercap)", Covers::Cpu,
        folder + ": there is no package in it; the CPU has no such counter, a virtual machine hides it, "
                 "or the module intel_rapl_msr is not loaded (`sudo modprobe intel_rapl_msr`)"));
  return false;
}

void find_hwmon(const std::string& root, Sources& found, std::vector<SensorInfo>& unavailable) {
  const std::string folder = root + "/sys/class/hwmon";
  for (const std::string& entry : names_in(folder, "hwmon")) {
    std::string reason;
    const auto name = line_of(folder + "/" + entry + "/name", reason);
    if (!name) continue;
    if (*name == "amdgpu") add_amdgpu(folder + "/" + entry, found, unavailable);
    if (*name == "ina3221") add_ina3221(folder + "/" + entry, found, unavailable);
  }
}

void find_battery(const std::string& root, Sources& found, std::vector<SensorInfo>& unavailable) {
  const std::string folder = root + "/sys/class/power_supply";
  for (const std::string& entry : names_in(folder, "")) {
    const std::string path = folder + "/" + entry;
    std::string reason;
    if (line_of(path + "/type", reason).value_or("") != "Battery") continue;
    // Batteries of mice and pens have the scope Device.
    if (line_of(path + "/scope", reason).value_or("System") == "Device") continue;
    SensorInfo info{.name = "battery " + entry,
                    .covers = Covers::Board,
                    .unit = "microwatts",
                    .resolution = 1e-3,
                    .counts = false,
                    .update_seconds = 5};  // controllers update it every few seconds
    std::vector<std::vector<std::string>> groups{{path + "/power_now"}};
    double scale = 1e-6;
    if (!is_there(path + "/power_now")) {
      info.unit = "microvolts x microamperes";
      groups = {{path + "/voltage_now", path + "/current_now"}};
      scale = 1e-12;
    }
    add(std::make_unique<Battery>(info, path, std::move(groups), scale), found, unavailable);
  }
}

}  // namespace librt::bench
