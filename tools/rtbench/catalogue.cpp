#include "tools/rtbench/catalogue.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/cli/find_program.h"
#include "tools/data/file.h"
#include "tools/rtbench/report/text.h"

namespace librt::bench {
namespace {

using Json = nlohmann::json;

/// A number of an entry, in the key's unit. Beyond its bounds it is most likely in another unit.
struct Field {
  const char* key;
  double least, most, scale;
  bool required;
  const char* unit;
};
constexpr Field kBandwidth{"memory_bandwidth_gb_s", 0.5, 50'000, 1e9, true, "GB/s"};
constexpr Field kMemory{"memory_gb", 0.1, 10'000, 1e9, false, "GB"};
constexpr Field kWatts{"watts", 0.5, 5'000, 1, false, "W"};
constexpr Field kIdleWatts{"idle_watts", 0, 5'000, 1, false, "W"};
constexpr Field kTransfer{"transfer_gb_s", 0.1, 2'000, 1e9, false, "GB/s"};
constexpr Field kLaunch{"launch_us", 0.01, 10'000, 1e-6, false, "microseconds"};
constexpr Field kSubmit{"submit_us", 0.01, 100'000, 1e-6, false, "microseconds"};
constexpr Field kPrice{"price_per_hour", 0, 10'000, 1, false, "an hour"};
constexpr Field kPeak{"peak_tflops", 0.001, 100'000, 1e12, true, "10^12 operations per second"};

constexpr std::pair<const char*, DeviceType> kKinds[] = {{"CPU", DeviceType::Cpu},
                                                         {"integrated GPU", DeviceType::IntegratedGpu},
                                                         {"discrete GPU", DeviceType::DiscreteGpu}};
constexpr const char* kPrecisions[] = {"fp32", "tf32", "fp16", "bf16", "int8"};

std::string number_text(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", number);
  return text;
}

class Entry {
 public:
  Entry(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  std::optional<DeviceDescription> read(std::string& error) {
    DeviceDescription device;
    if (!json_.is_object()) fail("", "expected an object, found " + std::string(json_.type_name()));
    device.name = word("name");
    device.title = word("title");
    device.source = word("source");
    device.notes = word("notes", false);
    if (error_.empty() && !device.source.starts_with("https://") && !device.source.starts_with("http://"))
      fail("source", "expected a URL, found '" + device.source + "'");
    read_kind(device);
    read_peaks(device);
    device.memory_bandwidth = number(kBandwidth).value_or(0);
    device.memory_bytes = number(kMemory);
    device.watts = number(kWatts);
    device.idle_watts = number(kIdleWatts);
    device.price_per_hour = number(kPrice);
    assume(device);
    if (error_.empty()) check_keys();
    if (error_.empty()) return device;
    error = where_ + ": " + error_;
    return std::nullopt;
  }

 private:
  void fail(const std::string& field, const std::string& problem) {
    if (error_.empty()) error_ = (field.empty() ? "" : "'" + field + "': ") + problem;
  }

  std::string word(const char* key, bool required = true) {
    known_.insert(key);
    if (!error_.empty()) return {};
    if (!json_.contains(key)) {
      if (required) fail(key, "is missing");
      return {};
    }
    const Json& value = json_[key];
    constexpr size_t kMostBytes = 1000;
    if (value.is_string() && !value.get_ref<const std::string&>().empty() &&
        value.get_ref<const std::string&>().size() <= kMostBytes)
      return printable(value.get_ref<const std::string&>());
    fail(key, "expected a text of 1 to " + std::to_string(kMostBytes) + " bytes, found " +
                  value.dump().substr(0, 40));
    return {};
  }

  double checked(const Json& value, const Field& field, const std::string& name) {
    const double found = value.is_number() ? value.get<double>() : NAN;
    if (found >= field.least && found <= field.most) return found * field.scale;
    fail(name, "expected a number of " + std::string(field.unit) + " from " + number_text(field.least) +
                   " to " + number_text(field.most) + ", found " + value.dump().substr(0, 40));
    return 0;
  }

  std::optional<double> number(const Field& field) {
    known_.insert(field.key);
    if (!error_.empty()) return std::nullopt;
    if (json_.contains(field.key)) return checked(json_[field.key], field, field.key);
    if (field.required) fail(field.key, "is missing; it is in " + std::string(field.unit));
    return std::nullopt;
  }

  void read_kind(DeviceDescription& device) {
    const std::string kind = word("kind");
    if (!error_.empty()) return;
    std::string names;
    for (const auto& [name, type] : kKinds) {
      if (kind == name) {
        device.type = type;
        return;
      }
      names += (names.empty() ? "" : ", ") + std::string(name);
    }
    fail("kind", "expected one of " + names + ", found '" + kind + "'");
  }

  void read_peaks(DeviceDescription& device) {
    known_.insert(kPeak.key);
    if (!error_.empty()) return;
    if (!json_.contains(kPeak.key)) return fail(kPeak.key, "is missing; it has fp32 and other precisions");
    const Json& peaks = json_[kPeak.key];
    if (!peaks.is_object())
      return fail(kPeak.key, "expected an object of precisions, found " + peaks.dump().substr(0, 40));
    for (const auto& [precision, value] : peaks.items()) {
      const std::string name = std::string(kPeak.key) + "." + precision;
      if (std::find(std::begin(kPrecisions), std::end(kPrecisions), precision) == std::end(kPrecisions))
        return fail(name, "expected one of fp32, tf32, fp16, bf16, int8");
      device.peak_flops[precision] = checked(value, kPeak, name);
    }
    if (!device.peak_flops.contains("fp32")) fail(std::string(kPeak.key) + ".fp32", "is missing");
  }

  // What data sheets do not state is taken from the typical device of this kind.
  void assume(DeviceDescription& device) {
    DeviceInfo info;
    info.type = device.type;
    const DeviceProfile typical = typical_profile(info);
    const auto take = [&](const Field& field, double otherwise, double& value) {
      const auto stated = number(field);
      value = stated.value_or(otherwise);
      if (!stated)
        device.assumed.push_back(std::string(field.key) + " = " + number_text(otherwise / field.scale));
    };
    take(kTransfer,
         device.type == DeviceType::DiscreteGpu ? typical.transfer_bandwidth : device.memory_bandwidth,
         device.transfer_bandwidth);
    take(kLaunch, typical.launch_seconds, device.launch_seconds);
    take(kSubmit, typical.submit_seconds, device.submit_seconds);
  }

  void check_keys() {
    for (const auto& [key, value] : json_.items()) {
      if (known_.contains(key)) continue;
      std::string names;
      for (const std::string& name : known_) names += (names.empty() ? "" : ", ") + name;
      return fail(key, "is unknown; an entry has " + names);
    }
  }

  const Json& json_;
  std::string where_, error_;
  std::set<std::string> known_;
};

}  // namespace

std::string catalogue_path() {
  const std::filesystem::path program = tools::own_program();
  return (program.parent_path().parent_path() / "share/librt/devices.json").string();
}

std::optional<std::vector<DeviceDescription>> parse_catalogue(const std::string& text,
                                                              const std::string& path, std::string& error) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    error = path + ": is not valid JSON";
    return std::nullopt;
  }
  if (!json.is_object() || !json.contains("devices") || !json["devices"].is_array() ||
      json["devices"].empty()) {
    error = path + ": expected an object with 'devices', a list of at least one entry";
    return std::nullopt;
  }
  for (const auto& [key, value] : json.items())
    if (key != "devices" && key != "about") {
      error = path + ": '" + key + "' is unknown; the file has 'about' and 'devices'";
      return std::nullopt;
    }
  std::vector<DeviceDescription> devices;
  for (const Json& entry : json["devices"]) {
    std::string where = path + ": entry " + std::to_string(devices.size() + 1);
    if (entry.is_object() && entry.contains("name") && entry["name"].is_string())
      where += " '" + entry["name"].get<std::string>() + "'";
    auto device = Entry(entry, where).read(error);
    if (!device) return std::nullopt;
    for (const DeviceDescription& other : devices)
      if (other.name == device->name) {
        error = where + ": 'name': there are two entries of this name";
        return std::nullopt;
      }
    devices.push_back(std::move(*device));
  }
  return devices;
}

std::optional<std::vector<DeviceDescription>> read_catalogue(const std::string& path, std::string& error) {
  const auto bytes = tools::read_file(path, size_t{16} << 20);
  if (!bytes.ok()) {
    error = bytes.status().message();
    return std::nullopt;
  }
  return parse_catalogue({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, path, error);
}

std::optional<std::vector<DeviceDescription>> described_devices(const std::vector<std::string>& names,
                                                                std::string& error) {
  std::vector<DeviceDescription> chosen;
  for (const std::string& name : names) {
    const bool is_file = name.ends_with(".json") || name.find('/') != std::string::npos;
    auto entries = read_catalogue(is_file ? name : catalogue_path(), error);
    if (!entries) return std::nullopt;
    if (is_file) {
      chosen.insert(chosen.end(), entries->begin(), entries->end());
      continue;
    }
    const auto found = std::find_if(entries->begin(), entries->end(),
                                    [&](const DeviceDescription& device) { return device.name == name; });
    if (found == entries->end()) {
      error = "--what-if: '" + name + "' is neither a .json file nor in the catalogue, which has";
      for (const DeviceDescription& device : *entries)
        error += (&device == &entries->front() ? " " : ", ") + device.name;
      return std::nullopt;
    }
    chosen.push_back(*found);
  }
  return chosen;
}

std::string catalogue_text(const std::vector<DeviceDescription>& devices) {
  size_t name = 0, title = 0;
  for (const DeviceDescription& device : devices) {
    name = std::max(name, device.name.size());
    title = std::max(title, device.title.size());
  }
  std::string out;
  for (const DeviceDescription& device : devices) {
    char figures[96];
    std::snprintf(figures, sizeof(figures), "%8.2f TFLOP/s %7.1f GB/s  ",
                  device.peak_flops.at("fp32") * 1e-12, device.memory_bandwidth * 1e-9);
    out += device.name + std::string(name + 2 - device.name.size(), ' ') + device.title +
           std::string(title - device.title.size(), ' ') + figures + device.source + "\n";
  }
  return out;
}

}  // namespace librt::bench
