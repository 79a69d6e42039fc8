// Matmuls of ascending size: what a device computes, and what moving the operands to it and back costs.
#include <algorithm>

#include "tools/rtbench/experiments/rounds.h"
#include "tools/rtbench/experiments/runs.h"
#include "tools/rtbench/experiments/workplace.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

constexpr int64_t kSizes[] = {32, 64, 128, 256, 512, 1024, 2048, 4096};
/// That articles use: it comes first, so that a short budget has it.
constexpr int64_t kArticle = 1024;
constexpr double kSecondsOfASize = 4;
constexpr double kSecondsOfAProfile = 0.3;

/// A device in a precision, over all sizes.
struct Ladder {
  const WorkDevice* device = nullptr;
  std::string precision;
  std::string error;
  double last_ms = 0;  ///< of the largest size so far
  struct Point {
    int64_t size = 0;
    Timing whole;                     ///< operands to the device, matmul, result back
    std::optional<double> kernel_ms;  ///< the matmul alone
  };
  std::vector<Point> points;

  const Point* at(int64_t size) const {
    const auto found =
        std::find_if(points.begin(), points.end(), [&](const Point& p) { return p.size == size; });
    return found == points.end() ? nullptr : &*found;
  }
  std::string name() const { return device->id + (precision == "fp32" ? "" : " " + precision); }
};

double flops_of(int64_t size) {
  return 2.0 * static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size);
}

// Time of the nodes that compute, from a session that times each.
std::optional<double> kernel_ms(Workplace& workplace, const Racer& racer) {
  MeasureOptions options = racer.options;
  options.profile = true;
  auto runner = SessionRunner::open(racer.model, racer.device->info, options, workplace.stop());
  if (!runner || !(*runner)->set_batch(1, nullptr)) return std::nullopt;
  rt::Session& session = (*runner)->session();
  std::vector<double> times;
  if (!session.reset_profile() || !(*runner)->run(kSecondsOfAProfile, 3, times)) return std::nullopt;
  double nanoseconds = 0;
  for (const rt_profile_entry& entry : session.profile())
    if (!is_transfer(entry.op)) nanoseconds += static_cast<double>(entry.nanoseconds);
  return nanoseconds * 1e-6 / static_cast<double>(std::max<uint64_t>(session.profile_runs(), 1));
}

// A run grows by 8 when the size doubles; a size that would take most of the time that is left is omitted.
bool fits(const Workplace& workplace, const Ladder& series, int64_t size) {
  constexpr double kRuns = 12, kGrowth = 8;
  if (series.points.empty()) return true;
  const double growth = size > series.points.back().size ? kGrowth : 1;
  return series.last_ms * growth * 1e-3 * kRuns < workplace.budget().left();
}

void measure_size(Workplace& workplace, std::vector<Ladder>& all, int64_t size) {
  std::string error;
  const auto model = two_input_matmul_model(size, error);
  if (!model) return workplace.omit(std::to_string(size), error);
  std::vector<Racer> racers;
  std::vector<Ladder*> series;
  for (Ladder& one : all) {
    const std::string what = one.name() + ", size " + std::to_string(size);
    if (!one.error.empty()) continue;
    if (!fits(workplace, one, size)) {
      workplace.omit(what, "the budget: it would take too long");
      workplace.result().out_of_time = true;
      continue;
    }
    const auto typed = in_precision(*model, one.precision, {}, error);
    if (!typed) {
      one.error = error;
      continue;
    }
    racers.push_back({.device = one.device, .model = *typed, .options = workplace.measure_options()});
    series.push_back(&one);
  }
  std::vector<Racer*> pointers;
  for (Racer& racer : racers) pointers.push_back(&racer);
  race(workplace, pointers, 1,
       std::min(kSecondsOfASize * static_cast<double>(racers.size()), workplace.budget().left() / 3));
  for (size_t i = 0; i < racers.size(); ++i) {
    series[i]->error = racers[i].error;
    if (racers[i].runner != nullptr && !racers[i].runner->only_stored().empty())
      series[i]->error = "it only stores in this precision: " + racers[i].runner->only_stored();
    if (racers[i].timing.runs == 0 || !series[i]->error.empty()) continue;
    series[i]->last_ms = racers[i].timing.median_ms;
    racers[i].runner.reset();  // its memory
    series[i]->points.push_back({size, racers[i].timing, {}});
    // On the CPU there is nothing to transfer.
    if (series[i]->device->is_gpu()) series[i]->points.back().kernel_ms = kernel_ms(workplace, racers[i]);
  }
}

// The smallest size from which on the GPU is faster with certainty at every size measured on both; 0: none.
int64_t wins_from(const Ladder& cpu, const Ladder& gpu, bool with_transfers) {
  int64_t from = 0;
  for (const Ladder::Point& point : gpu.points) {
    const Ladder::Point* other = cpu.at(point.size);
    if (other == nullptr) continue;
    const bool wins = with_transfers ? point.whole.interval.high < other->whole.interval.low
                                     : point.kernel_ms && *point.kernel_ms < other->whole.interval.low;
    from = !wins ? 0 : from == 0 ? point.size : from;
  }
  return from;
}

void conclude(Workplace& workplace, const std::vector<Ladder>& all) {
  std::vector<std::string>& findings = workplace.result().findings;
  for (const Ladder& one : all) {
    if (one.points.empty()) continue;
    const auto best =
        std::max_element(one.points.begin(), one.points.end(), [](const auto& a, const auto& b) {
          return flops_of(a.size) / a.whole.median_ms < flops_of(b.size) / b.whole.median_ms;
        });
    findings.push_back(
        words::format("%s reaches %s GFLOP/s, at size %ld.", one.name().c_str(),
                      words::number_text(flops_of(best->size) / best->whole.median_ms * 1e-6).c_str(),
                      static_cast<long>(best->size)));
  }
  for (const Ladder& cpu : all)
    for (const Ladder& gpu : all) {
      if (cpu.device->is_gpu() || !gpu.device->is_gpu() || cpu.precision != gpu.precision) continue;
      if (cpu.points.empty() || gpu.points.empty()) continue;
      const auto text = [&](bool with_transfers) {
        const int64_t from = wins_from(cpu, gpu, with_transfers);
        return from > 0 ? "from size " + std::to_string(from) + " on" : std::string("at no size measured");
      };
      findings.push_back(gpu.name() + " is faster than " + cpu.name() + " " + text(true) +
                         " with transfers counted, " + text(false) + " without.");
    }
}

}  // namespace

void run_matmul(Workplace& workplace) {
  ExperimentResult& result = workplace.result();
  const auto& wanted = workplace.options().precisions;
  std::vector<Ladder> all;
  for (const std::string& precision : wanted.empty() ? std::vector<std::string>{"fp32"} : wanted)
    for (const WorkDevice& device : workplace.devices())
      all.push_back({.device = &device, .precision = precision, .error = {}, .points = {}});
  result.method = {
      "C = A B of size x size x size, both operands inputs of a run. A run brings them to the device and the "
      "result back; on a GPU \"kernel\" is the matmul alone, timed by the session. 2 size^3 operations."};
  workplace.progress().begin("matmul", std::size(kSizes));
  std::vector<int64_t> sizes = {kArticle};
  for (const int64_t size : kSizes)
    if (size != kArticle) sizes.push_back(size);
  for (const int64_t size : sizes) {
    if (workplace.is_over()) {
      workplace.omit_rest("size " + std::to_string(size));
      continue;
    }
    workplace.progress().step("size " + std::to_string(size));
    measure_size(workplace, all, size);
  }
  Table table{"",
              {{"device", ""},
               {"size", ""},
               {"run", "ms"},
               {"GFLOP/s", "GFLOP/s"},
               {"kernel", "ms"},
               {"kernel GFLOP/s", "GFLOP/s"},
               {"not the kernel", "%"}},
              {}};
  for (Ladder& one : all) {
    std::sort(one.points.begin(), one.points.end(),
              [](const auto& a, const auto& b) { return a.size < b.size; });
    for (const Ladder::Point& point : one.points) {
      const double gflop = flops_of(point.size) * 1e-9;
      table.rows.push_back(
          {Cell::of(one.name()), Cell::of(static_cast<double>(point.size)), time_cell(point.whole),
           rate_cell(point.whole, gflop), Cell::maybe(point.kernel_ms),
           point.kernel_ms ? Cell::of(1e3 * gflop / *point.kernel_ms) : Cell::nothing(),
           point.kernel_ms ? Cell::of(std::max(0.0, 100 * (1 - *point.kernel_ms / point.whole.median_ms)))
                           : Cell::nothing()});
    }
    if (!one.error.empty()) workplace.omit(one.name(), one.error);
  }
  result.tables.push_back(std::move(table));
  conclude(workplace, all);
}

}  // namespace librt::bench
