#include "tools/rtbench/energy.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "tools/rtbench/energy_sensors.h"

namespace librt::bench {
namespace {

double machine_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A span shorter than this many updates of a sensor, or this many of its steps, is not measured: the error of
// its ends would exceed ten percent.
constexpr double kLeastUpdates = 10;
constexpr double kLeastSteps = 20;
// Counters are read at least this often: none passes its range twice in this time.
constexpr double kCounterPeriod = 5;

std::string number_text(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g", number);
  return text;
}

}  // namespace

void Accumulator::add(double seconds, double value) noexcept {
  if (started_ && counts_) {
    joules_ += std::max(value - value_, 0.0);
  } else if (started_ && seconds > seconds_) {
    joules_ += 0.5 * (value + value_) * (seconds - seconds_);
  }
  started_ = true;
  seconds_ = seconds;
  value_ = value;
}

std::vector<std::unique_ptr<Source>> find_sensors(const EnergyPlaces& places,
                                                  std::vector<SensorInfo>& unavailable) {
  Sources found;
  if (!find_powercap(places.root, found, unavailable) && places.perf)
    find_perf(places.root, found, unavailable);
  if (!places.nvml.empty()) find_nvml(places.nvml, found, unavailable);
  find_hwmon(places.root, found, unavailable);
  find_battery(places.root, found, unavailable);
  return found;
}

struct EnergyMeter::State {
  struct Sensor {
    std::unique_ptr<Source> source;
    Accumulator accumulator;
    std::string reason;
    double read_at = -1;
    std::optional<double> idle_watts;
  };

  explicit State(const EnergyPlaces& places) : clock(places.clock ? places.clock : machine_clock) {}

  // Holds the mutex.
  void sample(bool counters) {
    for (Sensor& sensor : sensors) {
      const double now = clock();
      if (!counters && sensor.source->info().counts && now - sensor.read_at < kCounterPeriod) continue;
      sensor.read_at = now;
      std::string reason;
      if (const auto value = sensor.source->read(reason))
        sensor.accumulator.add(clock(), *value);
      else
        sensor.reason = reason;
    }
  }

  std::function<double()> clock;
  mutable std::mutex mutex;
  std::condition_variable stopping;
  bool stop = false;
  std::vector<Sensor> sensors;
  std::thread thread;
};

EnergyMeter::EnergyMeter(const EnergyPlaces& places) : state_(std::make_unique<State>(places)) {
  std::vector<SensorInfo> unavailable;
  for (auto& source : find_sensors(places, unavailable)) {
    infos_.push_back(source->info());
    const Accumulator accumulator(source->info().counts);
    state_->sensors.push_back({.source = std::move(source), .accumulator = accumulator});
  }
  infos_.insert(infos_.end(), unavailable.begin(), unavailable.end());
  state_->sample(true);
  if (state_->sensors.empty() || !places.sample) return;
  state_->thread = std::thread([state = state_.get()] {
    std::unique_lock lock(state->mutex);
    while (!state->stopping.wait_for(lock, std::chrono::duration<double>(kSamplePeriod),
                                     [state] { return state->stop; }))
      state->sample(false);
  });
}

EnergyMeter::~EnergyMeter() {
  if (!state_->thread.joinable()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->stopping.notify_all();
  state_->thread.join();
}

std::string EnergyMeter::reason() const {
  std::string all;
  for (const SensorInfo& info : infos_) {
    if (info.reason.empty()) return {};
    all += (all.empty() ? "" : "; ") + info.name + ": " + info.reason;
  }
  return all;
}

std::optional<size_t> EnergyMeter::sensor_for(const std::string& backend, bool runs_on_cpu,
                                              const std::string& uuid, const std::string& device_name,
                                              std::string& reason) const {
  const size_t count = state_->sensors.size();
  const auto all_with = [&](auto&& fits) {
    std::vector<size_t> fitting;
    for (size_t i = 0; i < count; ++i)
      if (fits(infos_[i])) fitting.push_back(i);
    return fitting;
  };
  const Covers wanted = runs_on_cpu ? Covers::Cpu : Covers::Gpu;
  std::vector<size_t> fitting;
  if (runs_on_cpu) {
    fitting = all_with([](const SensorInfo& info) { return info.covers == Covers::Cpu; });
  } else {
    // NVML's UUIDs are "GPU-" and that of Vulkan and CUDA.
    fitting = all_with([&](const SensorInfo& info) {
      return info.covers == Covers::Gpu && !uuid.empty() && !info.uuid.empty() &&
             (info.uuid == uuid || info.uuid == "GPU-" + uuid);
    });
    if (fitting.empty())
      fitting = all_with([&](const SensorInfo& info) {
        const bool nvidia = info.name.starts_with("NVML");
        const bool same_maker = nvidia ? backend == "cuda" || device_name.find("NVIDIA") != std::string::npos
                                       : device_name.find("AMD") != std::string::npos ||
                                             device_name.find("Radeon") != std::string::npos;
        return info.covers == Covers::Gpu && same_maker;
      });
    if (fitting.size() > 1) {
      reason = "several GPUs report energy, and none has this device's UUID";
      return std::nullopt;
    }
  }
  if (!fitting.empty()) return fitting.front();
  if (const auto boards = all_with([](const SensorInfo& info) { return info.covers == Covers::Board; });
      !boards.empty())
    return boards.front();
  reason.clear();
  for (const SensorInfo& info : infos_)
    if (!info.reason.empty() && (info.covers == wanted || info.covers == Covers::Board))
      reason += (reason.empty() ? "" : "; ") + info.name + ": " + info.reason;
  if (reason.empty()) reason = "no sensor of this machine measures this device";
  return std::nullopt;
}

void EnergyMeter::measure_idle(double seconds) {
  const EnergyReading first = read();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const EnergyReading last = read();
  for (size_t i = 0; i < state_->sensors.size(); ++i) {
    const std::optional<double> watts = use(i, first, last).watts;
    const std::lock_guard lock(state_->mutex);
    state_->sensors[i].idle_watts = watts;
  }
}

std::optional<double> EnergyMeter::idle_watts(size_t sensor) const {
  const std::lock_guard lock(state_->mutex);
  return state_->sensors[sensor].idle_watts;
}

EnergyReading EnergyMeter::read() {
  const std::lock_guard lock(state_->mutex);
  state_->sample(true);
  EnergyReading reading{.seconds = state_->clock()};
  for (const State::Sensor& sensor : state_->sensors) {
    reading.joules.push_back(sensor.accumulator.joules());
    reading.reasons.push_back(sensor.reason);
  }
  return reading;
}

EnergyUse EnergyMeter::use(size_t sensor, const EnergyReading& first, const EnergyReading& last) const {
  const SensorInfo& info = infos_[sensor];
  EnergyUse use{.seconds = last.seconds - first.seconds};
  use.source =
      info.name + (info.counts ? "" : ", power integrated every " + number_text(1e3 * kSamplePeriod) + " ms");
  const double joules = last.joules[sensor] - first.joules[sensor];
  if (!last.reasons[sensor].empty()) {
    use.reason = last.reasons[sensor];
  } else if (use.seconds < kLeastUpdates * info.update_seconds) {
    use.reason = number_text(use.seconds) + " s is too short for " + info.name + ", which needs " +
                 number_text(kLeastUpdates * info.update_seconds) + " s";
  } else if (info.counts && joules < kLeastSteps * info.resolution) {
    use.reason = info.name + " counted less than " + number_text(kLeastSteps * info.resolution) + " J";
  }
  if (!use.reason.empty()) return use;
  use.joules = joules;
  use.watts = joules / use.seconds;
  const std::lock_guard lock(state_->mutex);
  use.idle_watts = state_->sensors[sensor].idle_watts;
  if (use.idle_watts) use.above_idle = std::max(0.0, joules - *use.idle_watts * use.seconds);
  return use;
}

std::string sensors_text(const std::vector<SensorInfo>& sensors) {
  std::string out;
  for (const SensorInfo& info : sensors) {
    out += info.name + ": ";
    if (!info.reason.empty())
      out += "not available: " + info.reason;
    else
      out += info.unit + ", steps of " + number_text(info.resolution) + (info.counts ? " J" : " W") +
             (info.counts ? "" : ", read every " + number_text(1e3 * kSamplePeriod) + " ms");
    out += '\n';
  }
  return out;
}

}  // namespace librt::bench
