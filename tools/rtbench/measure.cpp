#include "tools/rtbench/measure.h"

#if defined(__linux__)
#include <malloc.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "tools/cli/cache_folder.h"
#include "tools/data/random.h"

namespace librt::bench {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

rt::SessionOptions session_options(const BenchModel& model, const rt::DeviceInfo& device,
                                   const MeasureOptions& options) {
  return {.backend = device.backend,
          .device = std::to_string(device.index),
          .entry = model.entry,
          .precision = is_quantized(model.precision) ? std::string() : model.precision,
          .threads = options.threads,
          .profile = options.profile,
          .tuning = options.tuning,
          .time_limit_ms = options.time_limit_ms};
}

rt::Result<rt::Session> open_session(const rt::Model& model, const rt::SessionOptions& session_options,
                                     const MeasureOptions& options) {
  auto session = rt::Session::create(model, session_options);
  if (!session || options.adapter.empty()) return session;
  if (rt::Status status = session->load_adapter(options.adapter); !status) return status;
  return session;
}

rt::Status feed(rt::Session& session, const std::vector<rt::Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (rt::Status status = session.set_input(i, inputs[i]); !status) return status;
  return {};
}

rt::Status collect(rt::Session& session, Outputs& outputs) {
  outputs.clear();
  for (size_t i = 0; i < session.output_count(); ++i) {
    auto output = session.output(i);
    if (!output) return output.status();
    outputs.push_back(output->clone());
  }
  return {};
}

// Resident memory of this process; 0: unknown. Freed memory is returned to the system first.
uint64_t resident_bytes() {
#if defined(__linux__)
  malloc_trim(0);
  unsigned long long size = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%llu %llu", &size, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
#else
  return 0;
#endif
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

// A tensor of the input's shape at a batch size.
rt::Result<rt::Tensor> shaped(const rt::TensorSpec& spec, const std::string& batch_name, int64_t batch,
                              const MeasureOptions& options) {
  std::vector<int64_t> dims;
  for (const rt::Dim& dim : spec.dims) {
    int64_t extent = dim.extent;
    if (extent < 0) {
      const auto given = options.dims.find(dim.symbol);
      if (given != options.dims.end())
        extent = given->second;
      else if (dim.symbol == batch_name)
        extent = batch;
      else
        return rt::Status(rt::Code::InvalidArgument, "input '" + spec.name + "' has the dynamic dimension '" +
                                                         dim.symbol + "'; give --dim " + dim.symbol + "=N");
    }
    dims.push_back(extent);
  }
  return rt::Tensor(spec.dtype, dims);
}

// f32 and f16 in [-1, 1), i64 and i32 in [0, bound); the bytes of other types are 0 or 1.
void fill(rt::Tensor& tensor, uint64_t bound, uint64_t& state) {
  const auto next = [&state] { return split_mix(state); };
  switch (tensor.dtype()) {
    case rt::DType::F32:
      for (float& value : tensor.values<float>()) value = static_cast<float>(next() >> 40) * 0x1p-23f - 1.0f;
      break;
    case rt::DType::F16:  // sign, exponents 2^-5..2^-1, any fraction
      for (uint16_t& value : tensor.values<uint16_t>()) {
        const uint64_t bits = next();
        value = static_cast<uint16_t>((bits & 0x83ffu) | ((10 + (bits >> 16) % 5) << 10));
      }
      break;
    case rt::DType::I64:
      for (int64_t& value : tensor.values<int64_t>()) value = static_cast<int64_t>(next() % bound);
      break;
    case rt::DType::I32:
      for (int32_t& value : tensor.values<int32_t>()) value = static_cast<int32_t>(next() % bound);
      break;
    default:  // any byte pattern is a value of the other integer types; bool needs 0 or 1
      for (size_t i = 0; i < tensor.bytes(); ++i)
        static_cast<uint8_t*>(tensor.data())[i] = static_cast<uint8_t>(next() & 1);
      break;
  }
}

// Seeded inputs for a batch size.
rt::Result<std::vector<rt::Tensor>> make_inputs(const BenchModel& model, const rt::Model& loaded,
                                                int64_t batch, const MeasureOptions& options) {
  if (!model.entry.empty() && loaded.metadata("train.loss") == "ctc")
    return rt::Status(rt::Code::Unsupported,
                      "inputs cannot be generated for the loss ctc: lengths must fit its labels");
  int64_t fixed = 1;
  const std::string symbol = batch_symbol(model, loaded, fixed);
  std::vector<rt::Tensor> inputs;
  uint64_t state = 42;
  for (const rt::TensorSpec& spec : loaded.inputs(model.entry)) {
    auto tensor = shaped(spec, symbol, batch, options);
    if (!tensor) return tensor.status();
    if (!model.entry.empty() && spec.name == "learning_rate") {
      tensor->values<float>()[0] = options.learning_rate;
    } else {
      const auto bound = model.index_bounds.find(spec.name);
      fill(*tensor, bound == model.index_bounds.end() ? 1000 : static_cast<uint64_t>(bound->second), state);
    }
    inputs.push_back(std::move(*tensor));
  }
  return inputs;
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

rt::Result<rt::Model> load(const BenchModel& model, const rt::ModelOptions& options) {
  return rt::Model::load(model.path, options);
}

std::string batch_symbol(const BenchModel& model, const rt::Model& loaded, int64_t& fixed) {
  fixed = 1;
  for (const rt::TensorSpec& input : loaded.inputs(model.entry)) {
    if (input.dims.empty()) continue;
    fixed = input.dims[0].extent;
    return input.dims[0].extent >= 0 ? std::string() : input.dims[0].symbol;
  }
  return {};
}

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
  if (!status) result.error = status.message();
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
  auto session = open_session(*loaded, {.backend = backend, .entry = model.entry}, options);
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
    if (const auto stored = rt::Status::take(rt_device_profile_write(&info, nullptr, &profile)); !stored)
      std::fprintf(stderr, "rtbench: the device's rates are not kept: %s\n", stored.message().c_str());
  }
  return profile;
}

}  // namespace librt::bench
