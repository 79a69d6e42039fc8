#include "tools/rtbench/calibrate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "runtime/core/cache_folder.h"
#include "tools/rtbench/calibration_models.h"
#include "tools/rtbench/energy.h"
#include "tools/rtbench/machine.h"
#include "tools/rtbench/workload.h"

namespace librt::bench {
namespace {

// A run of a calibration model that would take longer is left out, with all larger sizes of its family.
constexpr double kLongestRun = 0.8;
// Each size is timed so often, with all others between: a burst of other work disturbs one of them.
constexpr int kRounds = 2;
// Of one kernel, timed at the start and at the end.
constexpr double kLargestDrift = 1.2;
constexpr double kMuchOtherWork = 0.25;  // CPUs
constexpr double kMuchSteal = 0.05;

// A quick series: enough for the least of its times to be the device's.
MeasureOptions quick(const MeasureOptions& options) {
  MeasureOptions result = options;
  result.profile = false;
  result.time_limit_ms = 0;
  result.in_flight = 1;
  result.dims.clear();
  result.target_loss.reset();
  result.adapter.clear();
  result.seconds = 0.08;
  result.least_runs = 5;
  return result;
}

class Calibrator {
 public:
  Calibrator(const rt::DeviceInfo& device, const MeasureOptions& options,
             const std::function<void(const std::string&)>& progress)
      : device_(device), options_(quick(options)), progress_(progress) {
    for (size_t family = 0; family < kFamilies; ++family)
      steps_ += kRounds * calibration_sizes(static_cast<Family>(family));
    profile_ = typical_profile(cost_identity(device, options.threads));
  }

  Calibration run() {
    const auto first = seconds_of(Family::Matmul, 2);
    if (!first) return {std::move(profile_), {}, problem_};
    measure_submission();
    curve(Family::Elementwise);  // others are joined by its nodes
    measure_transfers();
    std::array<TimeCurve, kFamilies> least{};
    for (int round = 0; round < kRounds; ++round) {
      for (size_t family = 0; family < kFamilies; ++family) curve(static_cast<Family>(family));
      for (size_t family = 0; family < kFamilies; ++family)
        least[family] = lower(least[family], profile_.curves[family]);
    }
    profile_.curves = least;
    measure_rates();
    const auto last = seconds_of(Family::Matmul, 2);
    const double drift = last ? std::max(*last / *first, *first / *last) : 1;
    const MachineLoad load = load_between(before_, machine_counters());
    char text[160] = "";
    if (load.other_cpus.value_or(0) > kMuchOtherWork)
      std::snprintf(text, sizeof(text), "other programs used %.1f CPUs while it was measured",
                    *load.other_cpus);
    else if (load.steal.value_or(0) > kMuchSteal)
      std::snprintf(text, sizeof(text), "the hypervisor took %.0f %% of the time while it was measured",
                    100 * *load.steal);
    else if (drift > kLargestDrift)
      std::snprintf(text, sizeof(text), "the same kernel took %.0f us at the start and %.0f us at the end",
                    *first * 1e6, *last * 1e6);
    profile_.measured = true;
    return {std::move(profile_), text, {}};
  }

 private:
  void report() {
    if (progress_) progress_(std::to_string(++step_) + " of " + std::to_string(steps_));
  }

  // The least time of a run of the model.
  std::optional<double> seconds_of(const BenchModel& model) {
    const Measurement m = measure(model, device_, 1, options_, nullptr);
    if (m.error.empty()) return m.least_ms * 1e-3;
    problem_ = m.error;
    return std::nullopt;
  }
  std::optional<double> seconds_of(Family family, size_t size, int repeats = 0) {
    const auto made = calibration_model(family, size, repeats, problem_);
    return made ? seconds_of(made->model) : std::nullopt;
  }

  // What a run takes beside its nodes.
  double around(const Workload& work) const {
    return profile_.submit_seconds +
           (device_.host_memory ? 0 : (work.input_bytes + work.output_bytes) / profile_.transfer_bandwidth);
  }

  void measure_submission() {
    std::string error;
    if (const auto tiny = copy_model(16, error))
      if (const auto seconds = seconds_of(*tiny)) profile_.submit_seconds = *seconds;
  }

  void curve(Family family) {
    TimeCurve curve;
    double expected = 0;
    for (size_t size = 0; size < calibration_sizes(family) && curve.count < TimeCurve::kMost; ++size) {
      report();
      const auto made = calibration_model(family, size, 0, problem_);
      if (!made) return;
      double work = 0, others = 0;
      int count = 0;
      const bool of_run = family == Family::Weights;
      for (const NodeWork& node : made->work.nodes) {
        if (!of_run && node.family != family) {
          others += node_seconds(node, made->work, profile_);
          continue;
        }
        work += of_run ? node.weight_bytes : is_bound_by_flops(family) ? node.flops : node.bytes;
        ++count;
      }
      if (of_run) count = 1;
      if (count == 0 || work <= 0) return;
      work /= count;
      if (curve.count > 0) {
        const TimeCurve::Point& last = curve.points[curve.count - 1];
        expected = count * static_cast<double>(last.seconds) * work / last.work;
      }
      if (expected > kLongestRun) return;
      const auto seconds = seconds_of(made->model);
      if (!seconds) return;
      // What is subtracted was measured too: nodes take no less than a quarter of the rest of the run, and
      // larger ones no less than smaller ones.
      const double rest = std::max(*seconds - around(made->work), 0.1 * profile_.submit_seconds);
      double nodes = std::max(rest - others, 0.25 * rest) / count;
      if (curve.count > 0) nodes = std::max<double>(nodes, curve.points[curve.count - 1].seconds);
      curve.points[curve.count++] = {static_cast<float>(work), static_cast<float>(nodes)};
      profile_.curves[static_cast<size_t>(family)] = curve;
    }
  }

  // Of two curves with the same sizes; one may end earlier.
  static TimeCurve lower(const TimeCurve& a, const TimeCurve& b) {
    TimeCurve result = a.count > b.count ? a : b;
    for (size_t i = 0; i < std::min(a.count, b.count); ++i)
      result.points[i].seconds = std::min(a.points[i].seconds, b.points[i].seconds);
    return result;
  }

  // Two runs that differ in nothing but their number of nodes give the time of a node; the rest is transfers.
  void measure_transfers() {
    if (device_.host_memory) return;
    constexpr size_t kSize = 3;
    const auto few = calibration_model(Family::Elementwise, kSize, 2, problem_);
    const auto many = calibration_model(Family::Elementwise, kSize, 6, problem_);
    if (!few || !many) return;
    const auto short_run = seconds_of(few->model);
    const auto long_run = seconds_of(many->model);
    if (!short_run || !long_run) return;
    const double node = std::max(0.0, (*long_run - *short_run) / 4);
    const double rest = *short_run - 2 * node - profile_.submit_seconds;
    const double bytes = few->work.input_bytes + few->work.output_bytes;
    if (rest > 0) profile_.transfer_bandwidth = bytes / rest;
  }

  // The rates that stand for whole curves where only one number is shown.
  void measure_rates() {
    const TimeCurve& matmul = profile_.curves[static_cast<size_t>(Family::Matmul)];
    const TimeCurve& memory = profile_.curves[static_cast<size_t>(Family::Elementwise)];
    if (matmul.count > 0) {
      profile_.flops_f32 = 0;
      for (size_t i = 0; i < matmul.count; ++i)
        profile_.flops_f32 =
            std::max<double>(profile_.flops_f32, matmul.points[i].work / matmul.points[i].seconds);
    }
    if (memory.count > 0) {
      const TimeCurve::Point& last = memory.points[memory.count - 1];
      profile_.memory_bandwidth = last.work / last.seconds;
      profile_.launch_seconds = memory.points[0].seconds;
    }
    const auto made = calibration_model(Family::Matmul, 3, 0, problem_);
    if (!made) return;
    for (const char* precision : {"bf16", "fp16"}) {
      BenchModel narrow = made->model;
      narrow.precision = precision;
      const Measurement wide = measure(made->model, device_, 1, options_, nullptr);
      const Measurement m = measure(narrow, device_, 1, options_, nullptr);
      if (!m.error.empty() || !m.only_stored.empty() || !wide.error.empty()) continue;
      profile_.rate_16bit = std::clamp(wide.least_ms / m.least_ms, 0.1, 100.0);
      return;
    }
    profile_.rate_16bit = 1;
  }

  const rt::DeviceInfo& device_;
  const MachineCounters before_ = machine_counters();
  MeasureOptions options_;
  const std::function<void(const std::string&)>& progress_;
  DeviceProfile profile_;
  std::string problem_;
  size_t step_ = 0, steps_ = 0;
};

}  // namespace

DeviceInfo cost_identity(const rt::DeviceInfo& device, int threads) {
  DeviceInfo info;
  info.backend = device.backend;
  info.index = device.index;
  info.type = static_cast<DeviceType>(device.type);
  info.name = device.name;
  info.uuid = device.uuid;
  info.driver = device.driver;
  info.threads = device.type == RT_CPU && threads > 0 ? threads : device.threads;
  info.host_memory = device.host_memory;
  return info;
}

DeviceProfile stored_profile(const rt::DeviceInfo& device, int threads) {
  return read_profile(cache_folder(), cost_identity(device, threads), device.threads);
}

bool forget_curves(const rt::DeviceInfo& device) {
  DeviceProfile profile = stored_profile(device, 0);
  const bool has_any = std::any_of(profile.curves.begin(), profile.curves.end(),
                                   [](const TimeCurve& curve) { return curve.count > 0; });
  profile.curves = {};
  return has_any && write_profile(cache_folder(), cost_identity(device, 0), profile).ok();
}

Calibration calibrate(const rt::DeviceInfo& device, const MeasureOptions& options, bool keep_busy,
                      const std::function<void(const std::string&)>& progress) {
  EnergyMeter meter;
  std::string no_power;
  const bool on_cpu = device.type == RT_CPU || device.type == RT_SOFTWARE_GPU;
  const auto sensor = meter.sensor_for(device.backend, on_cpu, device.uuid, device.name, no_power);
  const EnergyReading before = meter.read();
  Calibration result = Calibrator(device, options, progress).run();
  if (sensor)
    if (const auto watts = meter.use(*sensor, before, meter.read()).watts; watts && *watts > 0) {
      result.profile.watts = *watts;
      result.profile.measured_watts = true;
    }
  if (!result.problem.empty()) return result;
  if (!result.busy.empty() && !keep_busy) {
    result.problem = result.busy + "; measure again when nothing else runs, or add --keep-busy";
    return result;
  }
  const DeviceInfo info = cost_identity(device, options.threads);
  if (const Status stored = write_profile(cache_folder(), info, result.profile); !stored.ok())
    result.problem = stored.message();
  return result;
}

std::string curves_text(const DeviceProfile& profile) {
  std::string out;
  for (size_t i = 0; i < kFamilies; ++i) {
    const TimeCurve& curve = profile.curves[i];
    const auto family = static_cast<Family>(i);
    char text[96];
    std::snprintf(text, sizeof(text), "  %-14s", kFamilyNames[i]);
    out += text;
    for (size_t k = 0; k < curve.count; ++k) {
      const TimeCurve::Point& point = curve.points[k];
      std::snprintf(text, sizeof(text), "%s%.3g us (%.3g %s/s)", k == 0 ? "" : ", ", point.seconds * 1e6,
                    point.work / point.seconds * 1e-9, is_bound_by_flops(family) ? "GFLOP" : "GB");
      out += text;
    }
    out += curve.count == 0 ? "not measured\n" : "\n";
  }
  return out;
}

void remember_run(const BenchModel& model, const rt::DeviceInfo& device,
                  const std::map<std::string, int64_t>& extents, const MeasureOptions& options,
                  double milliseconds) {
  if (!model.entry.empty()) return;
  std::string ignored;
  const auto work = model_work(model, extents, ignored);
  if (!work) return;
  // A cache that cannot be written is reported with the session's plan.
  (void)write_run(cache_folder(), work->work.hash, cost_identity(device, options.threads),
                  milliseconds * 1e-3);
}

}  // namespace librt::bench
