#include "tools/rtbench/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "tools/cli/cache_folder.h"
#include "tools/cli/exit_code.h"
#include "tools/rtbench/machine.h"
#include "tools/rtbench/prepare.h"
#include "tools/rtbench/statistics.h"

namespace librt::bench {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// One run; with two in flight, the next is submitted before the previous one is waited for.
rt::Status advance(rt::Session& session, const MeasureOptions& options) {
  if (options.in_flight == 1) return session.run();
  if (rt::Status status = session.submit(); !status) return status;
  return session.wait();
}

// Warms up, then runs until the time budget is spent; returns the milliseconds of each run.
rt::Result<std::vector<double>> time_runs(rt::Session& session, const MeasureOptions& options) {
  for (int ahead = 1; ahead < options.in_flight; ++ahead)
    if (rt::Status status = session.submit(); !status) return status;
  const Clock::time_point warm = Clock::now();
  for (int run = 0; run < 2 || (run < 50 && ms_since(warm) < 100 * options.seconds); ++run)
    if (rt::Status status = advance(session, options); !status) return status;
  if (options.profile)
    if (rt::Status status = session.reset_profile(); !status) return status;
  std::vector<double> times;
  const Clock::time_point start = Clock::now();
  while (static_cast<int>(times.size()) < options.least_runs ||
         (ms_since(start) < 1000 * options.seconds && times.size() < 100000)) {
    const Clock::time_point run = Clock::now();
    if (rt::Status status = advance(session, options); !status) return status;
    times.push_back(ms_since(run));
  }
  for (int ahead = 1; ahead < options.in_flight; ++ahead)
    if (rt::Status status = session.wait(); !status) return status;
  return times;
}

// Trains from the initial weights, always on the same batch, until the target loss is reached. The first
// step, which includes planning, is counted as an average step.
rt::Status time_to_target(const BenchModel& model, const rt::Model& loaded, const rt::DeviceInfo& device,
                          const std::vector<rt::Tensor>& inputs, const MeasureOptions& options,
                          Measurement& result) {
  MeasureOptions plain = options;
  plain.profile = false;
  auto session = rt::Session::create(loaded, session_options(model, device, plain));
  if (!session) return session.status();
  if (rt::Status status = feed(*session, inputs); !status) return status;
  result.target_steps = 0;
  Clock::time_point start = Clock::now();
  for (int step = 1;; ++step) {
    if (step == 2) start = Clock::now();
    if (rt::Status status = session->run(); !status) return status;
    const auto loss = session->output(0);
    if (!loss) return loss.status();
    const double seconds =
        step == 1 ? result.median_ms * 1e-3 : ms_since(start) * 1e-3 * step / static_cast<double>(step - 1);
    result.target_seconds = seconds;
    if (loss->values<float>()[0] <= *options.target_loss) {
      result.target_steps = step;
      return {};
    }
    if (seconds > options.most_seconds) return {};
  }
}

rt::Status measure_into(const BenchModel& model, const rt::DeviceInfo& device, int64_t batch,
                        const MeasureOptions& options, Outputs* outputs, Measurement& result) {
  const uint64_t resident = resident_bytes();
  const Clock::time_point start = Clock::now();
  auto loaded = load(model, options.load);
  if (!loaded) return loaded.status();
  result.load_ms = ms_since(start);
  auto inputs = make_inputs(model, *loaded, batch, options);
  if (!inputs) return inputs.status();
  const Clock::time_point first = Clock::now();
  auto session = open_session(*loaded, session_options(model, device, options), options);
  if (!session) return session.status();
  if (rt::Status status = feed(*session, *inputs); !status) return status;
  if (rt::Status status = session->run(); !status) return status;
  result.first_run_ms = ms_since(first);
  // Every training step changes the weights, so the outputs of the first are compared.
  if (outputs != nullptr)
    if (rt::Status status = collect(*session, *outputs); !status) return status;
  auto times = time_runs(*session, options);
  if (!times) return times.status();
  std::sort(times->begin(), times->end());
  result.runs = static_cast<int>(times->size());
  result.least_ms = times->front();
  result.median_ms = quantile(*times, 0.5);
  result.p90_ms = quantile(*times, 0.9);
  result.p99_ms = quantile(*times, 0.99);
  result.samples_per_second = 1000.0 * static_cast<double>(batch) / result.median_ms;
  result.fallbacks = session->fallback_count();
  if (const auto plan = session->plan_text()) librt::tools::report_unused("rtbench", *plan);
  const rt_memory_stats memory = session->memory();
  result.memory_bytes = memory.states + memory.weights + memory.packed + memory.arena;
  if (const uint64_t now = resident_bytes(); now > resident) result.resident_bytes = now - resident;
  if (options.profile) {
    const auto runs = static_cast<double>(std::max<uint64_t>(session->profile_runs(), 1));
    for (const rt_profile_entry& entry : session->profile())
      result.ops.push_back({entry.name, entry.op, entry.kernel, entry.device,
                            static_cast<double>(entry.nanoseconds) / 1e6 / runs, entry.flops, entry.bytes});
  }
  if (options.target_loss) return time_to_target(model, *loaded, device, *inputs, options, result);
  return {};
}

}  // namespace

Measurement measure(const BenchModel& model, const rt::DeviceInfo& device, int64_t batch,
                    const MeasureOptions& options, Outputs* outputs) {
  Measurement result;
  result.model = model.name;
  result.precision = model.precision;
  result.file_bytes = model.file_bytes;
  result.mode = model.entry.empty() ? Mode::Infer : Mode::Train;
  result.backend = device.backend;
  result.device = device.name;
  result.batch = batch;
  result.in_flight = options.in_flight;
  rt::Status status = measure_into(model, device, batch, options, outputs, result);
  // If the device does not compute in this 16-bit type, the model still runs with 16-bit storage.
  if (!status && status.code() == rt::Code::Unsupported &&
      (model.precision == "fp16" || model.precision == "bf16")) {
    result.only_stored = status.message();
    BenchModel stored = model;
    stored.precision.clear();
    status = measure_into(stored, device, batch, options, outputs, result);
  }
  if (!status) {
    result.error = status.message();
    result.exit_code = tools::exit_code_of(status.code());
  }
  return result;
}

rt::Result<std::vector<tools::Array>> calibration_rows(const BenchModel& model,
                                                       const MeasureOptions& options) {
  constexpr int64_t kRows = 8;
  auto loaded = load(model, options.load);
  if (!loaded) return loaded.status();
  const auto inputs = make_inputs(model, *loaded, kRows, options);
  if (!inputs) return inputs.status();
  std::vector<tools::Array> rows;
  const auto specs = loaded->inputs(model.entry);
  for (size_t i = 0; i < specs.size(); ++i) {
    const rt::Tensor& tensor = (*inputs)[i];
    const auto* bytes = static_cast<const std::byte*>(tensor.data());
    rows.push_back({.name = std::string(specs[i].name),
                    .type = static_cast<DType>(tensor.dtype()),
                    .dims = {tensor.dims().begin(), tensor.dims().end()},
                    .bytes = {bytes, bytes + tensor.bytes()}});
  }
  return rows;
}

rt::Result<Outputs> outputs_of(const BenchModel& model, const std::string& backend, int64_t batch,
                               const MeasureOptions& options) {
  auto loaded = load(model, options.load);
  if (!loaded) return loaded.status();
  auto inputs = make_inputs(model, *loaded, batch, options);
  if (!inputs) return inputs.status();
  auto session = open_session(
      *loaded, {.backend = backend, .entry = model.entry, .custom_operators = options.operators}, options);
  if (!session) return session.status();
  if (rt::Status status = feed(*session, *inputs); !status) return status;
  if (rt::Status status = session->run(); !status) return status;
  Outputs outputs;
  if (rt::Status status = collect(*session, outputs); !status) return status;
  return outputs;
}

double relative_error(const Outputs& got, const Outputs& want) {
  double error = 0;
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    if (got[i].dtype() != rt::DType::F32) {
      const bool same = got[i].bytes() == want[i].bytes() &&
                        std::memcmp(got[i].data(), want[i].data(), got[i].bytes()) == 0;
      if (!same && got[i].dtype() != rt::DType::F16) return INFINITY;
      continue;
    }
    const auto a = got[i].values<float>();
    const auto b = want[i].values<float>();
    if (a.size() != b.size()) return INFINITY;
    double difference = 0, largest = 0;
    for (size_t k = 0; k < a.size(); ++k) {
      const double distance = std::fabs(static_cast<double>(a[k]) - static_cast<double>(b[k]));
      if (std::isnan(distance)) return INFINITY;
      difference = std::max(difference, distance);
      largest = std::max(largest, std::fabs(static_cast<double>(b[k])));
    }
    error = std::max(error, largest > 0 ? difference / largest : difference);
  }
  return error;
}

rt_device_profile device_profile(const rt::DeviceInfo& device, const MeasureOptions& options, bool fresh) {
  rt_device_info info = RT_DEVICE_INFO_INIT;
  info.backend = device.backend.c_str();
  info.index = device.index;
  info.type = device.type;
  info.name = device.name.c_str();
  info.uuid = device.uuid.c_str();
  info.driver = device.driver.c_str();
  info.features = "";
  info.memory_bytes = device.memory_bytes;
  info.host_memory = device.host_memory;
  info.threads = device.threads;
  rt_device_profile profile = RT_DEVICE_PROFILE_INIT;
  rt_status_free(rt_device_profile_read(&info, nullptr, &profile));
  if (profile.measured != 0 && !fresh) return profile;

  MeasureOptions quick = options;
  quick.profile = false;
  quick.time_limit_ms = 0;
  quick.in_flight = 1;
  quick.dims.clear();
  quick.target_loss.reset();
  quick.threads = 0;  // the device's peak, also for a model on fewer threads
  quick.seconds = 0.3;
  std::string error;
  const MachineCounters before = machine_counters();
  const int64_t size = device.type == RT_SOFTWARE_GPU ? 512 : device.type == RT_CPU ? 1024 : 4096;
  const int64_t elements =
      device.type == RT_SOFTWARE_GPU || device.type == RT_CPU ? int64_t{1} << 25 : int64_t{1} << 27;
  bool measured = false;
  if (const auto matmul = matmul_model(size, error)) {
    const Measurement m = measure(*matmul, device, 1, quick, nullptr);
    if (m.error.empty()) {
      profile.flops_f32 = 2.0 * static_cast<double>(size * size * size) / (m.least_ms * 1e-3);
      measured = true;
    }
  }
  if (const auto copy = copy_model(elements, error)) {
    const Measurement m = measure(*copy, device, 1, quick, nullptr);
    if (m.error.empty()) profile.memory_bandwidth = 8.0 * static_cast<double>(elements) / (m.least_ms * 1e-3);
  }
  if (const auto tiny = copy_model(16, error)) {
    const Measurement m = measure(*tiny, device, 1, quick, nullptr);
    if (m.error.empty()) profile.submit_seconds = m.median_ms * 1e-3;
  }
  if (measured) {
    profile.measured = 1;
    for (const std::string& found :
         disturbances(machine_facts(), {}, load_between(before, machine_counters())))
      std::fprintf(stderr, "rtbench: rates of %s:%d: %s; `rtbench --measure-devices` measures them again\n",
                   device.backend.c_str(), device.index, found.c_str());
    if (const auto stored = rt::Status::take(rt_device_profile_write(&info, nullptr, &profile)); !stored)
      std::fprintf(stderr, "rtbench: the device's rates are not kept: %s\n", stored.message().c_str());
  }
  return profile;
}

}  // namespace librt::bench
