#include "runtime/session/prepare/device_choice.h"

#include <cmath>
#include <optional>

#include "runtime/backend/registry.h"
#include "runtime/session/prepare/cost_model.h"
#include "runtime/session/prepare/shapes.h"

namespace librt {

namespace {

constexpr int64_t kThroughputBatch = 32;
constexpr double kNotYet = 1e30;  // seconds or joules: only without any other device

/// thousandths: of the unit.
std::string decimal(double thousandths, const char* unit) {
  const int64_t number = std::llround(thousandths);
  std::string fraction = text(1000 + number % 1000);
  fraction[0] = '.';
  return text(number / 1000, fraction, unit);
}

/// Inputs for an estimate; for throughput leading extents that are free become a batch.
std::vector<TensorInfo> inputs_for(const Graph& graph, bool throughput) {
  std::vector<TensorInfo> inputs = assumed_inputs(graph);
  for (size_t i = 0; throughput && i < inputs.size(); ++i) {
    const std::vector<Dim>& dims = graph[graph.inputs[i]].dims;
    if (dims.empty() || dims[0].is_known() || inputs[i].shape[0] != 1) continue;
    Shape shape = inputs[i].shape;
    shape[0] = kThroughputBatch;
    inputs[i].shape = shape;
  }
  return inputs;
}

}  // namespace

Result<DeviceChoice> choose_device(const Graph& graph, const std::vector<State>& states,
                                   const DeviceWish& wish, const DeviceOptions& options) {
  const bool throughput = wish.prefer == "throughput", energy = wish.prefer == "energy";
  if (!throughput && !energy && !wish.prefer.empty() && wish.prefer != "latency")
    return invalid_argument("prefer: expected latency, throughput or energy, found '", wish.prefer, "'");
  if (!wish.backend.empty() && wish.backend != "auto") {
    if (!wish.prefer.empty())
      return invalid_argument("prefer: is for the backend auto, found ", wish.backend);
    return DeviceChoice{wish.backend, {}, "requested"};
  }
  const auto work = workload_of(graph, states, inputs_for(graph, throughput), wish.precision);
  std::string listing;
  std::optional<DeviceInfo> best;
  double least = 0;
  const char* why = nullptr;
  for (const BackendReport& report : probe_backends()) {
    if (report.name == "reference") continue;
    if (report.devices.empty()) append(listing, "\n  ", report.name, ": ", report.reason);
    for (DeviceInfo info : report.devices) {
      append(listing, "\n  ", report.name, " ", info.index, " (", info.name);
      if (options.tf32 && !has_feature(info, "tf32")) {
        append(listing, "): no TF32");
        continue;
      }
      const int all_threads = info.threads;
      if (info.type == DeviceType::Cpu && options.threads > 0) info.threads = options.threads;
      const DeviceProfile profile = read_profile(options.cache_folder, info, all_threads);
      // Without a prediction the CPU is the safe choice.
      double cost = info.type == DeviceType::Cpu ? 0 : 1;
      const char* source = "): no prediction";
      const double remembered = work.ok() ? read_run(options.cache_folder, work->hash, info) : 0;
      if (work.ok()) {
        cost = remembered > 0 ? remembered : run_seconds(*work, info.host_memory, profile);
        source = remembered > 0 ? ", measured" : ", predicted";
        append(listing, "): ", decimal(cost * 1e6, " ms"));
      }
      append(listing, source, profile.measured ? ", measured profile" : ", typical profile");
      if (profile.scaled_from > 0) append(listing, " of ", profile.scaled_from, " threads");
      if (energy) {
        append(listing, ", ", profile.measured_watts ? "measured " : "typical ",
               decimal(profile.watts * 1e3, " W"));
        cost *= profile.watts;
      }
      if (!profile.problem.ok()) append(listing, "\n  cache: ", profile.problem.message());
      // It shares the CPU's cores and obeys no `threads`: a prediction is no reason to leave the CPU.
      if (info.type == DeviceType::SoftwareGpu && remembered == 0) {
        append(listing, ", software: a candidate once it is measured");
        cost += kNotYet;
      }
      if (!best || cost < least) {
        best = info;
        least = cost;
        why = remembered > 0 ? "measured" : "predicted";
      }
    }
  }
  if (!best) return Status(Code::Device, text("no backend offers a device:", listing));
  const std::string reason = work.ok() ? text("the least ", why,
                                              energy       ? " energy"
                                              : throughput ? " time at batch 32"
                                                           : " time")
                                       : text("no prediction: ", work.status().message());
  return DeviceChoice{best->backend, options.device.empty() ? text(best->index) : "",
                      text("auto: ", best->backend, " ", best->index, ", ", reason, listing)};
}

}  // namespace librt
