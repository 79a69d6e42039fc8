// Joules of a span of time, where the machine reports them.
//
// Knows: sensors, how a counter or a power becomes joules. Must not know: models, devices of librt beyond
// their names, prices. A value that no sensor reported does not exist here: there is a reason instead.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace librt::bench {

/// What a sensor measures.
enum class Covers : uint8_t {
  Cpu,   ///< processor packages, and memory where the machine reports it
  Gpu,   ///< one graphics card or graphics unit
  Board  ///< the whole machine
};

struct SensorInfo {
  std::string name;  ///< "RAPL package-0 + package-1 + dram (powercap)", "NVML NVIDIA L4"
  Covers covers = Covers::Cpu;
  std::string unit;  ///< of the counter: "microjoules", or of the power: "milliwatts"
  /// Smallest step of the value, joules of a counter, watts of a power. As the interface states it.
  double resolution = 0;
  /// False: a power, which is integrated over readings every kSamplePeriod.
  bool counts = true;
  /// Seconds between updates of the value; shorter spans are not measured.
  double update_seconds = 0;
  std::string uuid;    ///< of a GPU: as the device's, or its address on the PCI bus; empty: unknown
  std::string reason;  ///< not empty: it is not available, and why, and what to do
};

/// Seconds between readings of a power.
inline constexpr double kSamplePeriod = 0.05;

/// A source of readings. Not thread-safe: EnergyMeter calls it from one thread at a time.
class Source {
 public:
  virtual ~Source() = default;
  const SensorInfo& info() const noexcept { return info_; }
  /// Now: joules of a counter since any moment, or watts. Nothing: `reason` says why. A source whose counter
  /// starts again at 0 after a range continues it; it must be read more often than the counter does that.
  virtual std::optional<double> read(std::string& reason) = 0;

 protected:
  SensorInfo info_;
};

/// Joules from readings: differences of a counter, or a power by the trapezoidal rule.
class Accumulator {
 public:
  explicit Accumulator(bool counts) noexcept : counts_(counts) {}
  /// seconds: of a clock that never goes back. A counter that went back was reset: the step is left out.
  void add(double seconds, double value) noexcept;
  double joules() const noexcept { return joules_; }

 private:
  bool counts_;
  bool started_ = false;
  double seconds_ = 0, value_ = 0, joules_ = 0;
};

/// Where sensors are looked for. The defaults are the machine's; tests pass their own.
struct EnergyPlaces {
  std::string root;                        ///< "" for the machine; a folder with sys/ in it
  std::string nvml = "libnvidia-ml.so.1";  ///< empty: not looked for
  bool perf = true;                        ///< perf's counters, where powercap has none
  std::function<double()> clock;           ///< seconds; empty: the machine's
  bool sample = true;                      ///< false: no thread reads powers; read() alone does
};

/// All sensors of the machine, available or not; those of one kind together. Powercap and perf report the
/// same counters, so perf is only tried where powercap cannot be read.
std::vector<std::unique_ptr<Source>> find_sensors(const EnergyPlaces& places,
                                                  std::vector<SensorInfo>& unavailable);

/// The counters at one moment.
struct EnergyReading {
  double seconds = 0;
  std::vector<double> joules;        ///< by sensor, since the meter was made
  std::vector<std::string> reasons;  ///< by sensor: not empty: it could not be read at some time since then
};

/// What was used between two readings.
struct EnergyUse {
  double seconds = 0;
  std::optional<double> joules;      ///< in total, idle power included
  std::optional<double> watts;       ///< joules / seconds
  std::optional<double> idle_watts;  ///< before the measurement; nothing: it was not measured
  /// joules - idle_watts * seconds, at least 0; nothing where one of them is.
  std::optional<double> above_idle;
  std::string source;  ///< name of the sensor, and how it is read
  std::string reason;  ///< not empty: why nothing was measured
};

/// Reads all sensors of the machine. Thread-safe.
class EnergyMeter {
 public:
  explicit EnergyMeter(const EnergyPlaces& places = {});
  ~EnergyMeter();
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  /// Those that can be read, then those that cannot, with reasons.
  const std::vector<SensorInfo>& sensors() const noexcept { return infos_; }
  /// Why no sensor can be read, all reasons; empty if one can.
  std::string reason() const;

  /// The sensor for work on a device: of the GPU itself, of the CPU for a CPU or a GPU that it emulates
  /// (RT_SOFTWARE_GPU), else of the whole machine; `reason` where there is none. A GPU is found by its UUID,
  /// or as the only one of its kind. backend: "cpu", "cuda", "vulkan".
  std::optional<size_t> sensor_for(const std::string& backend, bool runs_on_cpu, const std::string& uuid,
                                   const std::string& device_name, std::string& reason) const;

  /// Sleeps that long, and remembers each sensor's power meanwhile as idle. The caller sees that nothing
  /// runs.
  void measure_idle(double seconds);
  std::optional<double> idle_watts(size_t sensor) const;

  EnergyReading read();
  EnergyUse use(size_t sensor, const EnergyReading& first, const EnergyReading& last) const;

 private:
  struct State;
  std::vector<SensorInfo> infos_;
  std::unique_ptr<State> state_;
};

/// One line for each sensor: name, unit, resolution, or the reason why it is not available.
std::string sensors_text(const std::vector<SensorInfo>& sensors);

}  // namespace librt::bench
