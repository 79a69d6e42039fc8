#include "tools/rtbench/study/lanes.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/cli/cache_folder.h"
#include "tools/rtbench/peer/peer_runner.h"
#include "tools/rtbench/study/analysis.h"
#include "tools/rtbench/tolerance.h"

namespace librt::bench {
namespace {

constexpr size_t kLeastRounds = 3, kMostRounds = 8;
constexpr size_t kLeastRuns = kLeastForBootstrap, kSlowRounds = 3;
constexpr double kLaterSetUps = 0.4;
// Rounds in which the time of a point is spent, if it takes all of it.
constexpr double kRoundsOfAPoint = 4;

// A lane at one batch.
struct Measuring {
  Lane* lane = nullptr;
  Point point;
  Rounds rounds;
  double joules = 0, energy_seconds = 0;  ///< of rounds whose energy was measured
  size_t energy_runs = 0;
  bool failed = false, enough = false;
};

bool shares_memory(const rt::DeviceInfo& device) {
  return device.type == RT_CPU || device.type == RT_SOFTWARE_GPU || device.type == RT_INTEGRATED_GPU;
}

rt::Status no_memory(int64_t batch, uint64_t wanted, uint64_t there) {
  char text[160];
  std::snprintf(text, sizeof text, "batch %lld would take about %.0f MiB more; %.0f MiB are available",
                static_cast<long long>(batch), static_cast<double>(wanted) / (1 << 20),
                static_cast<double>(there) / (1 << 20));
  return rt::Status(rt::Code::OutOfMemory, text);
}

// Memory grows with the batch, at most in proportion. Devices that share the machine's are checked before
// they take it, because the system may end the program instead of refusing.
rt::Status check_memory(const Lane& lane, const Series& series, int64_t batch) {
  if (!shares_memory(lane.device) || series.points.empty() || lane.runner == nullptr) return {};
  const uint64_t now = lane.runner->memory_bytes();
  const int64_t before = std::max<int64_t>(lane.runner->batch(), 1);
  if (batch <= before) return {};
  const double growth =
      static_cast<double>(now) * (static_cast<double>(batch) / static_cast<double>(before) - 1);
  const auto there = available_memory();
  if (there && growth > 0.8 * static_cast<double>(*there))
    return no_memory(batch, static_cast<uint64_t>(growth), *there);
  return {};
}

rt::Status open_lane(LaneContext& context, Lane& lane, Series& series) {
  if (lane.runner != nullptr) return {};
  MeasureOptions options = context.options.measure;
  options.profile = false;
  // No run may take longer than the study has.
  if (context.budget.limited())
    options.time_limit_ms = static_cast<uint64_t>(1000 * std::max(context.budget.left(), 0.1)) + 1;
  if (lane.peer != nullptr) {
    auto runner = PeerRunner::open(*lane.peer, *lane.model, options, context.stop);
    if (!runner) return runner.status();
    lane.runner = std::move(*runner);
    return {};
  }
  auto runner = SessionRunner::open(*lane.model, lane.device, options, context.stop);
  if (!runner) return runner.status();
  lane.runner = std::move(*runner);
  series.only_stored = lane.runner->only_stored();
  return {};
}

void compare_outputs(LaneContext& context, Series& series, Outputs outputs) {
  const std::string id = context.study.devices[series.device].id;
  auto found = context.expected.find(series.mode);
  if (found == context.expected.end()) {
    // Without outputs of the reference, those of the first fp32 series are what others are compared with.
    if (!is_lower(series.precision)) context.expected[series.mode] = {std::move(outputs), id};
    return;
  }
  series.difference = Difference{.relative = relative_error(outputs, found->second.outputs),
                                 .compared_with = found->second.source,
                                 .allowed = largest_error(series.precision)};
}

rt::Status set_up(LaneContext& context, Measuring& measuring, int64_t batch, bool compare) {
  Lane& lane = *measuring.lane;
  Series& series = context.study.series[lane.series];
  const double start = context.budget.spent();
  if (rt::Status status = open_lane(context, lane, series); !status) return status;
  if (rt::Status status = check_memory(lane, series, batch); !status) return status;
  Outputs outputs;
  if (rt::Status status = lane.runner->set_batch(batch, compare ? &outputs : nullptr); !status) return status;
  series.only_stored = lane.runner->only_stored();
  if (compare) compare_outputs(context, series, std::move(outputs));
  if (series.points.empty())
    if (const std::string plan = lane.runner->plan_text(); !plan.empty()) {
      context.progress.clear();
      tools::report_unused("rtbench", plan);
    }
  lane.sample_seconds = lane.runner->last_ms() * 1e-3 / static_cast<double>(batch);
  // Long runs need no warm-up: the second one counts.
  if (lane.runner->last_ms() >= kShortRunMs && measuring.rounds.empty())
    measuring.rounds.push_back({lane.runner->last_ms()});
  ++lane.points;
  lane.set_up_seconds = std::max(0.0, context.budget.spent() - start - 2e-3 * lane.runner->last_ms());
  if (lane.points == 1) lane.first_set_up_seconds = lane.set_up_seconds;
  return {};
}

void fail(LaneContext& context, Measuring& measuring, const rt::Status& status) {
  measuring.failed = true;
  measuring.point.error = status.message();
  measuring.lane->runner.reset();
  if (status.code() == rt::Code::Cancelled) measuring.point.error = "interrupted";
  if (status.code() == rt::Code::LimitExceeded && context.budget.limited())
    measuring.point.error = "the budget of " + duration_text(*context.budget.limit()) + " was spent";
  if (status.code() == rt::Code::OutOfMemory) measuring.point.error = "no memory: " + status.message();
}

// Sets up one lane. Out of memory while other sessions hold some of it: they are closed, and it is tried
// again.
void set_up_or_fail(LaneContext& context, std::vector<Measuring>& all, Measuring& measuring, int64_t batch,
                    bool compare) {
  rt::Status status = set_up(context, measuring, batch, compare);
  if (status.code() == rt::Code::OutOfMemory) {
    bool closed = false;
    for (Measuring& other : all)
      if (&other != &measuring && other.lane->runner != nullptr && other.rounds.size() <= 1) {
        other.lane->runner.reset();
        closed = true;
      }
    measuring.lane->runner.reset();
    if (closed) status = set_up(context, measuring, batch, compare);
  }
  if (!status) fail(context, measuring, status);
}

void one_round(LaneContext& context, Measuring& measuring, int64_t batch, double seconds) {
  Lane& lane = *measuring.lane;
  if (lane.runner == nullptr || lane.runner->batch() != batch) {  // closed for another one's sake
    if (rt::Status status = set_up(context, measuring, batch, false); !status) {
      fail(context, measuring, status);
      return;
    }
  }
  std::vector<double>& times = measuring.rounds.emplace_back();
  const size_t runs_before = lane.runner->runs_done();
  const EnergyReading first = lane.sensor ? context.meter.read() : EnergyReading();
  const rt::Status status = lane.runner->run(seconds, 1, times);
  if (lane.sensor) {
    const EnergyUse use = context.meter.use(*lane.sensor, first, context.meter.read());
    measuring.point.energy.source = use.source;
    if (use.joules) {
      measuring.joules += *use.joules;
      measuring.energy_seconds += use.seconds;
      measuring.energy_runs += lane.runner->runs_done() - runs_before;
    } else {
      measuring.point.energy.reason = use.reason;
    }
  }
  if (times.empty()) measuring.rounds.pop_back();
  if (!status) fail(context, measuring, status);
  if (!measuring.rounds.empty() && measuring.rounds.size() >= kLeastRounds)
    measuring.enough = is_enough(summarize(measuring.rounds), kLeastRuns);
}

void finish_energy(const Lane& lane, Measuring& measuring) {
  Energy& energy = measuring.point.energy;
  if (!lane.sensor) energy.reason = lane.no_energy;
  if (measuring.energy_runs == 0) return;
  energy.reason.clear();
  energy.joules_per_sample = measuring.joules / static_cast<double>(measuring.energy_runs) /
                             static_cast<double>(measuring.point.batch);
  if (measuring.energy_seconds > 0) energy.watts = measuring.joules / measuring.energy_seconds;
}

void finish(LaneContext& context, Measuring& measuring) {
  Lane& lane = *measuring.lane;
  Series& series = context.study.series[lane.series];
  Point& point = measuring.point;
  size_t runs = 0;
  for (const std::vector<double>& round : measuring.rounds) runs += round.size();
  if (runs >= 2) {  // what was measured before a failure counts
    point.error.clear();
    point.timing = summarize(measuring.rounds);
    if (!point.timing.precise) {
      char text[128];
      if (point.timing.rounds < 2)
        std::snprintf(text, sizeof text, "the time was spent after one round");
      else if (runs < kLeastForBootstrap)
        std::snprintf(text, sizeof text, "the time was spent after %zu runs", runs);
      else
        std::snprintf(text, sizeof text, "the time was spent: the interval is within %.1f %%, not %.0f %%",
                      100 * precision_of(point.timing.interval, point.timing.median_ms),
                      100 * kWantedPrecision);
      point.timing.imprecise = text;
    }
    set_throughput(point);
    finish_energy(lane, measuring);
    lane.sample_seconds = point.timing.median_ms * 1e-3 / static_cast<double>(point.batch);
  } else if (point.error.empty()) {
    point.error = context.stop.requested() ? "interrupted" : "the budget was spent";
    if (runs == 1) point.error += " after one run of " + duration_text(measuring.rounds[0][0] * 1e-3);
  }
  if (lane.runner != nullptr && lane.runner->batch() == point.batch) {
    point.load_ms = lane.runner->load_ms();
    point.first_run_ms = lane.runner->first_run_ms();
    point.memory_bytes = lane.runner->memory_bytes();
    point.resident_bytes = lane.runner->resident_bytes();
    point.fallbacks = lane.runner->fallbacks();
  }
  const auto at = std::upper_bound(series.points.begin(), series.points.end(), point.batch,
                                   [](int64_t batch, const Point& other) { return batch < other.batch; });
  series.points.insert(at, std::move(point));
}

}  // namespace

std::string name_of(const Study& study, const Series& series) {
  return study.devices[series.device].id + " " + series.precision +
         (series.mode == Mode::Train ? " train" : " infer");
}

double least_seconds(const Lane& lane, int64_t batch) {
  // The first point also opened the device and compiled what further batches use again.
  const double set_up = lane.points > 1 ? lane.set_up_seconds : kLaterSetUps * lane.set_up_seconds;
  return set_up + 4 * lane.sample_seconds * static_cast<double>(batch);
}

double first_seconds(const Lane& lane, int64_t batch) {
  return lane.first_set_up_seconds + 4 * lane.sample_seconds * static_cast<double>(batch);
}

void measure_points(LaneContext& context, const std::vector<Lane*>& lanes, int64_t batch,
                    const std::function<double()>& seconds, bool compare) {
  std::vector<Measuring> all(lanes.size());
  const auto is_over = [&] { return context.stop.requested() || context.budget.left() <= 0; };
  const auto show = [&](const Measuring& measuring) {
    context.progress.step(name_of(context.study, context.study.series[measuring.lane->series]) + ", batch " +
                          std::to_string(batch));
  };
  for (size_t i = 0; i < lanes.size(); ++i) {
    all[i].lane = lanes[i];
    all[i].point.batch = batch;
  }
  for (Measuring& measuring : all) {
    if (is_over()) break;
    show(measuring);
    set_up_or_fail(context, all, measuring, batch, compare);
  }
  const double time = seconds();
  // Each lane's rounds are spread over the time of all of them, so that what disturbs for a while disturbs
  // all.
  for (size_t round = 0; round < kMostRounds && !is_over(); ++round) {
    bool any = false;
    for (Measuring& measuring : all) {
      if (measuring.failed || measuring.enough || is_over()) continue;
      // A lane that is slower than its time gets a few runs.
      const double spent =
          static_cast<double>(round) *
          std::max(time / kRoundsOfAPoint, measuring.lane->sample_seconds * static_cast<double>(batch));
      if (measuring.rounds.size() >= kSlowRounds && spent >= 2 * time) continue;
      show(measuring);
      one_round(context, measuring, batch, time / kRoundsOfAPoint);
      any = true;
    }
    if (!any) break;
  }
  for (Measuring& measuring : all) finish(context, measuring);
}

}  // namespace librt::bench
