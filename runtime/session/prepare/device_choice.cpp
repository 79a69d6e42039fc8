#include "runtime/session/prepare/device_choice.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/backend/registry.h"
#include "runtime/session/device/device_profile.h"
#include "runtime/session/prepare/legalize.h"
#include "runtime/session/prepare/shapes.h"

namespace librt {

namespace {

/// Device-independent cost of a run.
struct Workload {
  std::vector<ops::Cost> nodes;
  double io_bytes = 0;
};

Result<Workload> workload_of(const Graph& graph, const std::vector<State>& states) {
  DeviceSet devices;
  const std::vector<TensorInfo> inputs = assumed_inputs(graph);
  const std::vector<const std::byte*> values(inputs.size());
  FoldedConstants folded;
  ConvertedConstants converted;
  KernelTuner kernel_tuner{TuningOptions{}};
  RT_ASSIGN(const std::unique_ptr<Program> program, legalize({.graph = graph,
                                                              .states = states,
                                                              .devices = devices,
                                                              .inputs = inputs,
                                                              .values = values,
                                                              .folded = folded,
                                                              .converted = converted,
                                                              .kernel_tuner = kernel_tuner,
                                                              .costs_only = true}));
  Workload work;
  for (const Step& step : program->steps) work.nodes.push_back(step.cost);
  for (const TensorInfo& input : inputs) work.io_bytes += static_cast<double>(input.bytes());
  for (const Ref output : program->outputs)
    work.io_bytes += static_cast<double>(program->values[output].bytes);
  return work;
}

double predict(const Workload& work, const DeviceInfo& info, const DeviceProfile& profile) {
  double seconds = profile.submit_seconds;
  for (const ops::Cost& cost : work.nodes)
    seconds += std::max(cost.flops / profile.flops_f32, cost.bytes / profile.memory_bandwidth) +
               profile.launch_seconds;
  if (!info.host_memory) seconds += work.io_bytes / profile.transfer_bandwidth;
  return seconds;
}

std::string milliseconds(double seconds) {
  const auto micro = static_cast<int64_t>(std::llround(seconds * 1e6));
  std::string fraction = text(micro % 1000);
  fraction.insert(0, 3 - std::min<size_t>(3, fraction.size()), '0');
  return text(micro / 1000, ".", fraction, " ms");
}

}  // namespace

Result<DeviceChoice> choose_device(const Graph& graph, const std::vector<State>& states,
                                   const std::string& backend, const DeviceOptions& options) {
  if (!backend.empty() && backend != "auto") return DeviceChoice{backend, {}, "requested"};
  const auto work = workload_of(graph, states);
  std::string listing;
  std::optional<DeviceInfo> best;
  double best_seconds = 0;
  for (const BackendReport& report : probe_backends()) {
    if (report.name == "reference") continue;
    if (report.devices.empty()) append(listing, "\n  ", report.name, ": ", report.reason);
    for (const DeviceInfo& info : report.devices) {
      if (options.tf32 && !has_feature(info, "tf32")) {
        append(listing, "\n  ", report.name, " ", info.index, " (", info.name, "): no TF32");
        continue;
      }
      const DeviceProfile profile = read_profile(options.cache_folder, info);
      // Without a prediction the CPU is the safe choice.
      const double seconds = work.ok()                      ? predict(*work, info, profile)
                             : info.type == DeviceType::Cpu ? 0.0
                                                            : 1.0;
      append(listing, "\n  ", report.name, " ", info.index, " (", info.name,
             "): ", work.ok() ? milliseconds(seconds) : "no prediction",
             profile.measured ? ", measured profile" : ", typical profile");
      if (!profile.problem.ok()) append(listing, "\n  cache: ", profile.problem.message());
      if (!best || seconds < best_seconds) {
        best = info;
        best_seconds = seconds;
      }
    }
  }
  if (!best) return Status(Code::Device, text("no backend offers a device:", listing));
  const std::string why =
      work.ok() ? "the shortest predicted time" : text("no prediction: ", work.status().message());
  return DeviceChoice{best->backend, options.device.empty() ? text(best->index) : "",
                      text("auto: ", best->backend, " ", best->index, ", ", why, listing)};
}

}  // namespace librt
