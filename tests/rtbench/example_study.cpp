#include "tests/rtbench/example_study.h"

#include <algorithm>
#include <cmath>

namespace librt::bench {
namespace {

constexpr double kSpread = 0.012;

Timing timing(double ms) {
  return {.median_ms = ms,
          .interval = {ms * (1 - kSpread), ms * (1 + kSpread)},
          .p90_ms = ms * 1.06,
          .p99_ms = ms * 1.2,
          .least_ms = ms * 0.97,
          .runs = 60,
          .rounds = 3,
          .outliers = 2,
          .precise = true};
}

Point point(int64_t batch, double ms, double joules_per_sample, double price_per_hour) {
  Point result{.batch = batch, .timing = timing(ms)};
  const auto samples = static_cast<double>(batch) * 1e3;
  result.samples_per_second = samples / ms;
  result.samples_interval = {samples / result.timing.interval.high, samples / result.timing.interval.low};
  result.load_ms = 3.5;
  result.first_run_ms = 180;
  result.memory_bytes = static_cast<uint64_t>(50'000'000 + 7'000'000 * batch);
  result.resident_bytes = result.memory_bytes + 12'000'000;
  result.flops = 3.6e9 * static_cast<double>(batch);
  result.bytes = 9e7 + 2.5e7 * static_cast<double>(batch);
  result.roof_share = 0.4;
  if (joules_per_sample > 0)
    result.energy = {.joules_per_sample = joules_per_sample,
                     .watts = joules_per_sample * result.samples_per_second,
                     .source = "RAPL package (powercap)"};
  else
    result.energy.reason = "vulkan: the driver has no sensor";
  if (price_per_hour > 0)
    result.cost.per_million_samples = price_per_hour / 3600 / result.samples_per_second * 1e6;
  else
    result.cost.reason = "no price for this device";
  return result;
}

Profile profile(const std::string& name, int64_t batch, double total_ms) {
  Profile result{.batch = batch,
                 .total_ms = total_ms,
                 .kernels_ms = total_ms * 0.86,
                 .transfers_ms = total_ms * 0.05,
                 .launches_ms = total_ms * 0.07,
                 .waiting_ms = total_ms * 0.02,
                 .overhead = 0.013};
  result.memory = {.weights = 46'800'000,
                   .packed = 12'000'000,
                   .states = 0,
                   .arena = static_cast<uint64_t>(6'400'000 * batch),
                   .unshared = static_cast<uint64_t>(41'000'000 * batch)};
  constexpr int kNodes = 21;
  double shares = 0;
  const auto share = [](int i) { return 1.0 + 3 * std::fabs(std::sin(1.7 * i)); };
  for (int i = 0; i < kNodes; ++i) shares += share(i);
  for (int i = 0; i < kNodes; ++i) {
    const bool is_conv = i % 4 != 3;
    NodeTime node{.name = i == 0 ? name : "layer" + std::to_string(i / 4) + "/node" + std::to_string(i),
                  .op = i == kNodes - 1 ? "MatMul"
                        : is_conv       ? "Conv"
                                        : "Add",
                  .kernel = is_conv ? "conv.winograd" : "binary",
                  .device = "cpu",
                  .milliseconds = result.kernels_ms * share(i) / shares,
                  .flops = (is_conv ? 2e8 : 1e6) * static_cast<double>(batch),
                  .bytes = 5e6 + 1e6 * static_cast<double>(batch * (i % 5 + 1)),
                  .roof_share = 0.2 + 0.03 * i,
                  .bound = is_conv ? "compute" : "memory"};
    node.live_bytes = static_cast<uint64_t>((6.0 - 0.2 * i) * 1e6) * static_cast<uint64_t>(batch);
    node.scratch_bytes = is_conv ? 400'000 * static_cast<uint64_t>(batch) : 0;
    result.nodes.push_back(node);
  }
  return result;
}

/// Throughput that grows from `first` at batch 1 to `most` with the form batch / (batch + half).
Series series(const std::string& name, size_t device, const std::string& precision, Mode mode, double first,
              double most, double joules, double price) {
  Series result{.device = device, .precision = precision, .mode = mode};
  const double half = most / first - 1;
  for (int64_t batch = 1; batch <= 64; batch *= 2) {
    const auto n = static_cast<double>(batch);
    const double rate = most * n / (n + half);
    result.points.push_back(point(batch, n / rate * 1e3, joules > 0 ? joules * most / rate : 0, price));
  }
  result.knee = Knee{.batch = 32,
                     .samples_per_second = result.points[5].samples_per_second,
                     .reached = true,
                     .why = "throughput grew by 2.1 % from 32 to 64"};
  result.profiles = {profile(name, 1, result.points[0].timing.median_ms),
                     profile(name, 32, result.points[5].timing.median_ms)};
  return result;
}

Machine machine() {
  Machine result;
  result.facts = {.cpu = "AMD EPYC 9554 64-Core Processor",
                  .kernel = "Linux 6.1.0-18-amd64",
                  .system = "Debian GNU/Linux 12 (bookworm)",
                  .virtual_machine = true,
                  .online_cpus = 8,
                  .allowed_cpus = 4,
                  .quota_cpus = 2,
                  .smt = true,
                  .governor = "powersave",
                  .frequency_mhz = 3100,
                  .highest_mhz = 3750,
                  .boost = true,
                  .memory_bytes = uint64_t{16} << 30};
  result.before = {.seconds = 0.5, .other_cpus = 0.1, .steal = 0.0, .pressure = 0.01};
  result.during = {.seconds = 151,
                   .other_cpus = 0.6,
                   .steal = 0.02,
                   .pressure = 0.12,
                   .quota_throttled = 0.01,
                   .heat_throttled = 3,
                   .frequency_mhz = 3050};
  result.versions = {{"librt", "0.1.0"}, {"oneDNN", "2.7.3"}};
  result.warnings = {"Other programs kept 0.6 of 2 CPUs busy while it measured."};
  return result;
}

}  // namespace

Study example_study(const std::string& name) {
  Study study;
  study.model = {.name = name,
                 .source = "zoo:resnet18",
                 .hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                 .file_bytes = 46'900'000,
                 .batch_symbol = "batch",
                 .inputs = {"image f32 [batch,224,224,3]"},
                 .outputs = {"scores f32 [batch,1000]"}};
  study.arguments = {"study", "zoo:resnet18", "--mode", "both"};
  study.started = "2025-01-31T12:34:56Z";
  study.seconds = 151.5;
  study.budget_seconds = 180;
  study.machine = machine();
  study.electricity_per_kwh = 0.3;
  study.samples_per_epoch = 10000;
  study.devices = {{.id = "cpu:0",
                    .backend = "cpu",
                    .name = "AMD EPYC 9554 64-Core Processor",
                    .type = "CPU",
                    .driver = "oneDNN 2.7.3",
                    .program = "librt 0.1.0",
                    .memory_bytes = uint64_t{16} << 30,
                    .threads = 2,
                    .roof = {true, 2.1e11, 2.2e10, 4e-6},
                    .idle_watts = 22,
                    .price_per_hour = 0.17},
                   {.id = "vulkan:0",
                    .backend = "vulkan",
                    .name = "AMD Radeon RX 6600",
                    .type = "discrete GPU",
                    .driver = "RADV 22.3.6",
                    .program = "librt 0.1.0",
                    .memory_bytes = uint64_t{8} << 30,
                    .roof = {true, 8.9e12, 2.2e11, 6e-5}}};
  study.series = {series(name, 0, "fp32", Mode::Infer, 60, 95, 0.9, 0.17),
                  series(name, 0, "bf16", Mode::Infer, 95, 170, 0.55, 0.17),
                  series(name, 0, "int8", Mode::Infer, 120, 210, 0.4, 0.17),
                  series(name, 1, "fp32", Mode::Infer, 38, 900, 0, 0),
                  series(name, 1, "fp16", Mode::Infer, 44, 1600, 0, 0),
                  series(name, 0, "fp32", Mode::Train, 14, 27, 3.1, 0.17),
                  series(name, 1, "fp32", Mode::Train, 9, 240, 0, 0)};
  study.series[1].difference = Difference{0.004, "reference", 0.05};
  study.series[2].difference = Difference{0.08, "reference", 0.3};
  study.series[3].difference = Difference{2e-6, "reference", 1e-3};
  study.series[4].difference = Difference{0.0011, "reference", 0.05};
  study.series[1].only_stored = "the CPU has no instructions for bf16";
  study.series[3].points.back() = Point{.batch = 64, .error = "there is no memory for 512 MiB"};
  study.series[4].cut_short = "the budget was spent";
  study.series.push_back(
      {.device = 1, .precision = "bf16", .not_measured = "the device does not compute in bf16"});
  study.crossovers = {{.below = 0,
                       .above = 3,
                       .kind = Crossover::Kind::Crosses,
                       .last_below = 1,
                       .first_above = 2,
                       .estimate = 1.7,
                       .resolved = true},
                      {.below = 2, .above = 0, .kind = Crossover::Kind::AlwaysFaster, .least_margin = 1.9},
                      {.below = 5,
                       .above = 6,
                       .kind = Crossover::Kind::Crosses,
                       .last_below = 1,
                       .first_above = 4,
                       .estimate = 2.4}};
  study.pareto_infer = {{2, 0}, {2, 1}, {4, 3}, {4, 4}, {4, 5}, {4, 6}};
  study.pareto_train = {{5, 0}, {6, 2}, {6, 3}, {6, 6}};
  study.load_crossovers = {{0, 3, 130}};
  study.targets = {{.device = 0,
                    .precision = "fp32",
                    .metric = "accuracy",
                    .wanted = 0.985,
                    .reached = true,
                    .best = 0.987,
                    .seconds = 41.5,
                    .waiting_seconds = 0.8,
                    .samples_per_second = 740,
                    .epochs = 3,
                    .steps = 937,
                    .seed = 42,
                    .energy = study.series[5].points[0].energy,
                    .cost = study.series[5].points[0].cost,
                    .total_joules = 1800,
                    .total_cost = 0.002},
                   {.device = 1,
                    .precision = "fp32",
                    .metric = "accuracy",
                    .wanted = 0.985,
                    .best = 0.981,
                    .epochs = 8,
                    .steps = 2500,
                    .seed = 42,
                    .reason = "8 epochs were not enough: the best accuracy was 0.981"}};
  using About = Sentence::About;
  study.verdict = {
      {About::Latency, Mode::Infer, false,
       "At batch 1, cpu:0 in int8 answers in 8.33 ms; in fp32 it takes 2.0 times (1.9 to 2.1) as long."},
      {About::Throughput, Mode::Infer, false, "Most samples per second: vulkan:0 in fp16, 1100 at batch 64."},
      {About::Crossover, Mode::Infer, false,
       "In fp32, use cpu:0 for one sample and vulkan:0 from batch 2 on."},
      {About::Precision, Mode::Infer, true, "cpu:0: int8 and bf16 are too close to call at batch 4."},
      {About::Throughput, Mode::Train, false,
       "For training use vulkan:0 from batch 4 on: 6 times as fast at batch 32."},
      {About::Caution, Mode::Infer, false,
       "The sweep of vulkan:0 in fp16 ended before throughput flattened."}};
  study.omissions = {{"vulkan:0 in bf16", "the device does not compute in bf16"}};
  return study;
}

}  // namespace librt::bench
