#include "tools/rtbench/study/runner.h"

#include <chrono>

#include "tools/rtbench/prepare.h"

namespace librt::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostRunsOfARound = 20000;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

bool is_16_bit(const std::string& precision) {
  return precision == "fp16" || precision == "bf16";
}

}  // namespace

void StopRequest::request() noexcept {
  requested_.store(true);
  if (rt_session* session = session_.load()) rt_session_cancel(session);
}

rt::Result<std::unique_ptr<SessionRunner>> SessionRunner::open(const BenchModel& model,
                                                               const rt::DeviceInfo& device,
                                                               const MeasureOptions& options,
                                                               StopRequest& stop) {
  const uint64_t resident = bench::resident_bytes();
  const Clock::time_point start = Clock::now();
  auto loaded = load(model, options.load);
  if (!loaded) return loaded.status();
  const double load_ms = ms_since(start);
  const Clock::time_point opening = Clock::now();
  BenchModel used = model;
  std::string only_stored;
  auto session = open_session(*loaded, session_options(used, device, options), options);
  if (!session && session.status().code() == rt::Code::Unsupported && is_16_bit(model.precision)) {
    only_stored = session.status().message();
    used.precision.clear();
    session = open_session(*loaded, session_options(used, device, options), options);
  }
  if (!session) return session.status();
  std::unique_ptr<SessionRunner> runner(
      new SessionRunner(std::move(used), device, options, stop, std::move(*loaded), std::move(*session)));
  runner->load_ms_ = load_ms;
  runner->open_ms_ = ms_since(opening);
  runner->resident_before_ = resident;
  runner->only_stored_ = std::move(only_stored);
  return runner;
}

rt::Status SessionRunner::run_once() {
  if (stop_->requested()) return rt::Status(rt::Code::Cancelled, "interrupted");
  stop_->watch(session_.handle());
  rt::Status status = session_.run();
  stop_->watch(nullptr);
  ++runs_done_;
  return status;
}

rt::Status SessionRunner::first_run(int64_t batch) {
  auto inputs = make_inputs(model_, loaded_, batch, options_);
  if (!inputs) return inputs.status();
  inputs_ = std::move(*inputs);
  if (rt::Status status = feed(session_, inputs_); !status) return status;
  return run_once();
}

rt::Status SessionRunner::set_batch(int64_t batch, Outputs* outputs) {
  const Clock::time_point start = Clock::now();
  rt::Status status = first_run(batch);
  // Whether the device computes in a 16-bit type may turn out only when kernels are chosen.
  if (status.code() == rt::Code::Unsupported && is_16_bit(model_.precision)) {
    only_stored_ = status.message();
    model_.precision.clear();
    auto session = open_session(loaded_, session_options(model_, device_, options_), options_);
    if (!session) return session.status();
    session_ = std::move(*session);
    status = first_run(batch);
  }
  if (!status) return status;
  first_run_ms_ = ms_since(start) + open_ms_;
  open_ms_ = 0;
  batch_ = batch;
  // Every training step changes the weights, so the outputs of the first are compared.
  if (outputs != nullptr)
    if (rt::Status collected = collect(session_, *outputs); !collected) return collected;
  const Clock::time_point second = Clock::now();
  if (status = run_once(); !status) return status;
  last_ms_ = ms_since(second);
  if (const uint64_t now = bench::resident_bytes(); now > resident_before_)
    resident_ = now - resident_before_;
  return {};
}

rt::Status SessionRunner::run(double seconds, size_t least, std::vector<double>& times) {
  const size_t before = times.size();
  if (last_ms_ < kShortRunMs)
    for (int warm_up = 0; warm_up < 2; ++warm_up)
      if (rt::Status status = run_once(); !status) return status;
  const Clock::time_point start = Clock::now();
  while (times.size() < before + least ||
         (ms_since(start) + last_ms_ < 1000 * seconds && times.size() < before + kMostRunsOfARound)) {
    const Clock::time_point run = Clock::now();
    if (rt::Status status = run_once(); !status) return status;
    last_ms_ = ms_since(run);
    times.push_back(last_ms_);
  }
  return {};
}

std::string SessionRunner::plan_text() {
  auto text = session_.plan_text();
  return text ? std::move(*text) : std::string();
}

uint64_t SessionRunner::memory_bytes() const {
  const rt_memory_stats memory = session_.memory();
  return memory.states + memory.weights + memory.packed + memory.peak_planned;
}

}  // namespace librt::bench
