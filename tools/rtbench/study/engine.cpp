#include "tools/rtbench/study/engine.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "tools/rtbench/devices.h"
#include "tools/rtbench/study/analysis.h"
#include "tools/rtbench/study/breakdown.h"
#include "tools/rtbench/study/cost.h"
#include "tools/rtbench/study/lanes.h"
#include "tools/rtbench/study/peers.h"
#include "tools/rtbench/study/setup.h"
#include "tools/rtbench/study/target.h"
#include "tools/rtbench/study/verdict.h"
#include "tools/rtbench/words.h"

namespace librt::bench {
namespace {

using namespace words;  // NOLINT: functions that make text

// Parts of a budget that later phases may count on.
constexpr double kForSweeps = 0.35, kForTargets = 0.3, kForCrossovers = 0.15, kForBreakdowns = 0.15;
constexpr double kSecondsOfPeakRates = 2;
constexpr double kSecondsOfIdle = 1;
// Sweeps flatten after about this many doublings.
constexpr double kUsualDoublings = 5;
// Measuring around one crossover ends after this many batches.
constexpr int kMostCrossoverBatches = 8;

class Engine {
 public:
  Engine(const StudyOptions& options, StopRequest& stop)
      : options_(options), budget_(options.budget_seconds), progress_(budget_), context_{options,   budget_,
                                                                                         progress_, stop,
                                                                                         study_,    meter_,
                                                                                         {}} {}

  rt::Result<Study> run();

 private:
  double for_targets() const { return options_.target.arguments.empty() ? 0 : kForTargets; }
  /// A phase begins: later ones are to get these shares of the time left now.
  void keep(double later_shares) { kept_ = budget_.limited() ? budget_.left() * later_shares : 0; }
  /// What the phase may still take.
  double available() const { return budget_.left() - kept_; }
  bool is_over() const { return context_.stop.requested() || budget_.left() <= 0; }
  std::string budget_text() const { return "the budget of " + duration_text(budget_.limit().value_or(0)); }

  void find_sensors();
  int64_t first_batch();
  bool give_model(Lane& lane);
  const Lane* measured_like(const Lane& lane) const;
  bool fits_first_point(const Lane& lane, int64_t batch, double left, double& planned);
  double seconds_for_point(double available, size_t lanes, double levels) const;
  void first_points(int64_t batch);
  void settle_first_point(Lane& lane);
  void second_chances(int64_t batch);
  void sweep(int64_t batch);
  std::vector<Lane*> admitted(int64_t batch);
  void end_flat_sweeps(int64_t batch);
  void end_sweep(Lane& lane, bool reached, std::string why);
  void crossovers();
  void measure_around(size_t a, size_t b);
  void roofs();
  void work();
  void conclude();

  const StudyOptions& options_;
  Budget budget_;
  Progress progress_;
  Study study_;
  EnergyMeter meter_;
  LaneContext context_;
  std::map<Mode, TypedModels> models_;
  std::vector<Lane> lanes_;
  double kept_ = 0;            ///< seconds for later phases
  std::set<size_t> left_out_;  ///< series whose first points did not fit beside the sweeps
};

void Engine::find_sensors() {
  study_.energy_reason = meter_.reason();
  if (study_.energy_reason.empty()) meter_.measure_idle(kSecondsOfIdle);
  for (Lane& lane : lanes_) {
    lane.sensor = meter_.sensor_for(lane.device.backend,
                                    lane.device.type == RT_CPU || lane.device.type == RT_SOFTWARE_GPU,
                                    lane.device.uuid, lane.device.name, lane.no_energy);
    if (lane.sensor)
      study_.devices[study_.series[lane.series].device].idle_watts = meter_.idle_watts(*lane.sensor);
  }
}

// The smallest batch: 1, or the model's own.
int64_t Engine::first_batch() {
  int64_t fixed = 1;
  std::string error;
  if (!study_.model.batch_symbol.empty()) return 1;
  for (auto& [mode, models] : models_)
    if (const auto model = models.in("fp32", error))
      if (const auto loaded = load(*model, options_.measure.load)) batch_symbol(*model, *loaded, fixed);
  return std::max<int64_t>(fixed, 1);
}

// The wanted time, or less where the budget is for so many more points.
double Engine::seconds_for_point(double available, size_t lanes, double levels) const {
  if (!budget_.limited()) return options_.measure.seconds;
  const double share =
      0.5 * available / (static_cast<double>(std::max<size_t>(lanes, 1)) * std::max(levels, 1.0));
  return std::clamp(share, 0.01, options_.measure.seconds);
}

void Engine::end_sweep(Lane& lane, bool reached, std::string why) {
  lane.ended = true;
  Series& series = study_.series[lane.series];
  if (const Point* best = best_point(series)) {
    const Point* flat = flat_from(series);
    const Point* knee = reached && flat != nullptr ? flat : best;
    series.knee = Knee{knee->batch, knee->samples_per_second, reached, std::move(why)};
  }
}

// False: the reason is in the series.
bool Engine::give_model(Lane& lane) {
  Series& series = study_.series[lane.series];
  if (is_over()) {
    series.not_measured = context_.stop.requested() ? "interrupted" : budget_text() + " was spent";
    return false;
  }
  progress_.step("model in " + series.precision);
  std::string error;
  lane.model = models_.at(series.mode).in(series.precision, error);
  if (lane.model == nullptr) series.not_measured = error;
  return lane.model != nullptr;
}

// A lane of the same device and mode that has a point, fp32 first; null: none.
const Lane* Engine::measured_like(const Lane& lane) const {
  const Series& series = study_.series[lane.series];
  for (const Lane& other : lanes_) {
    const Series& like = study_.series[other.series];
    if (like.device == series.device && like.mode == series.mode && other.points > 0) return &other;
  }
  return nullptr;
}

// A lower precision costs about as much as fp32 on the same device. left: seconds for first points; planned:
// those that lanes before it take, to which it adds its own. False: the reason is in the series.
bool Engine::fits_first_point(const Lane& lane, int64_t batch, double left, double& planned) {
  Series& series = study_.series[lane.series];
  const Lane* like = measured_like(lane);
  if (like == nullptr || !budget_.limited()) return true;
  const double expected = first_seconds(*like, batch);
  left -= planned;
  if (expected <= left) {
    planned += expected;
    return true;
  }
  left_out_.insert(lane.series);
  series.not_measured = left <= 0
                            ? budget_text() + " was spent"
                            : budget_text() + " leaves " + duration_text(left) + ", and " +
                                  study_.series[like->series].precision + " took " + duration_text(expected);
  return false;
}

void Engine::first_points(int64_t batch) {
  progress_.begin(format("first points of %zu series", lanes_.size()), 0);
  keep(for_targets() + kForCrossovers + kForBreakdowns);
  expect_outputs(context_, models_, batch);
  // A group is a precision: its lanes are measured together, fp32 first.
  for (size_t begin = 0; begin < lanes_.size();) {
    std::vector<Lane*> group;
    double planned = 0;
    const double left = available() - kForSweeps * budget_.limit().value_or(0);
    const std::string& precision = study_.series[lanes_[begin].series].precision;
    size_t end = begin;
    for (; end < lanes_.size() && study_.series[lanes_[end].series].precision == precision; ++end)
      if (fits_first_point(lanes_[end], batch, left, planned) && give_model(lanes_[end]))
        group.push_back(&lanes_[end]);
    begin = end;
    if (group.empty()) continue;
    const auto seconds = [&] {
      // Setting up further precisions takes about as long as it did for fp32.
      double rest = 0;
      for (size_t i = end; i < lanes_.size(); ++i)
        if (const Lane* like = measured_like(lanes_[i])) rest += first_seconds(*like, batch);
      return seconds_for_point(available() - rest, lanes_.size(), kUsualDoublings);
    };
    measure_points(context_, group, batch, seconds, options_.check);
  }
  for (Lane& lane : lanes_) settle_first_point(lane);
}

// A series without a point has a reason instead, and no sweep.
void Engine::settle_first_point(Lane& lane) {
  Series& series = study_.series[lane.series];
  if (!series.points.empty() && series.points.back().error.empty()) return;
  lane.ended = true;
  if (!series.not_measured.empty()) return;
  series.not_measured = series.points.empty() ? budget_text() + " was spent" : series.points.back().error;
  series.points.clear();
}

// What sweeps left over goes to first points of series that were left out for their sake.
void Engine::second_chances(int64_t batch) {
  progress_.begin("series left out", 0);
  std::vector<Lane*> chosen;
  double planned = 0;
  const double left = available();  // as for the sweeps
  for (Lane& lane : lanes_) {
    Series& series = study_.series[lane.series];
    if (!left_out_.contains(lane.series) || is_over() || !fits_first_point(lane, batch, left, planned))
      continue;
    series.not_measured.clear();
    if (give_model(lane)) chosen.push_back(&lane);
  }
  const auto seconds = [&] { return seconds_for_point(available(), chosen.size(), 1); };
  if (!chosen.empty()) measure_points(context_, chosen, batch, seconds, options_.check);
  for (Lane* lane : chosen) {
    settle_first_point(*lane);
    Series& series = study_.series[lane->series];
    if (series.points.empty()) continue;
    series.cut_short = budget_text() + " was for other series: no further batch was measured";
    end_sweep(*lane, false, series.cut_short);
  }
  for (const size_t series : left_out_) study_.out_of_time |= !study_.series[series].not_measured.empty();
}

// The lanes whose next point fits, the cheapest first: what one does not use is left to the next.
std::vector<Lane*> Engine::admitted(int64_t batch) {
  std::vector<Lane*> candidates, chosen;
  for (Lane& lane : lanes_)
    if (!lane.ended) candidates.push_back(&lane);
  std::sort(candidates.begin(), candidates.end(), [&](const Lane* a, const Lane* b) {
    return least_seconds(*a, batch) < least_seconds(*b, batch);
  });
  double left = available();
  for (size_t i = 0; i < candidates.size(); ++i) {
    Lane& lane = *candidates[i];
    const double expected = least_seconds(lane, batch);
    const double share = left / static_cast<double>(candidates.size() - i);
    if (budget_.limited() && expected > share) {
      const std::string why =
          share <= 0 ? budget_text() + " was spent"
                     : format("%s: batch %lld would take about %s, and its share is %s",
                              budget_text().c_str(), static_cast<long long>(batch),
                              duration_text(expected).c_str(), duration_text(std::max(0.0, share)).c_str());
      study_.series[lane.series].cut_short = why;
      study_.out_of_time = true;
      end_sweep(lane, false, why);
      continue;
    }
    left -= expected;
    chosen.push_back(&lane);
  }
  return chosen;
}

void Engine::end_flat_sweeps(int64_t batch) {
  for (Lane& lane : lanes_) {
    if (lane.ended) continue;
    Series& series = study_.series[lane.series];
    const Point& last = series.points.back();
    if (last.batch != batch || !last.error.empty()) {
      const std::string why = last.batch != batch ? "it was not measured further" : last.error;
      const bool no_memory = why.starts_with("no memory");
      if (!no_memory) series.cut_short = format("batch %lld: ", static_cast<long long>(batch)) + why;
      end_sweep(lane, no_memory,
                no_memory ? format("no memory for batch %lld", static_cast<long long>(batch)) : why);
    } else if (const Point* flat = flat_from(series)) {
      const double growth = last.samples_per_second / flat->samples_per_second - 1;
      end_sweep(lane, true,
                format("throughput %s by %.1f %% from batch %lld to %lld", growth < 0 ? "fell" : "grew",
                       100 * std::fabs(growth), static_cast<long long>(flat->batch),
                       static_cast<long long>(batch)));
    } else if (batch * 2 > options_.largest_batch) {
      end_sweep(lane, false,
                format("--largest-batch is %lld", static_cast<long long>(options_.largest_batch)));
    }
  }
}

void Engine::sweep(int64_t batch) {
  if (study_.model.batch_symbol.empty()) {
    for (Lane& lane : lanes_)
      if (!lane.ended)
        end_sweep(lane, false, format("the model's batch is fixed at %lld", static_cast<long long>(batch)));
    return;
  }
  keep(for_targets() + kForCrossovers + kForBreakdowns);
  int level = 1;
  end_flat_sweeps(batch);  // where --largest-batch is 1
  for (int64_t next = batch * 2; !is_over(); next *= 2, ++level) {
    const std::vector<Lane*> lanes = admitted(next);
    if (lanes.empty()) break;
    double expected = 0;
    for (const Lane* lane : lanes) expected += least_seconds(*lane, next) + options_.measure.seconds;
    progress_.begin(format("batch %lld, %zu of %zu series still grow", static_cast<long long>(next),
                           lanes.size(), lanes_.size()),
                    0, expected);
    const auto seconds = [&] {
      return seconds_for_point(available(), lanes.size(), kUsualDoublings - level);
    };
    measure_points(context_, lanes, next, seconds, false);
    end_flat_sweeps(next);
  }
  for (Lane& lane : lanes_)
    if (!lane.ended) {
      const std::string why = context_.stop.requested() ? "interrupted" : budget_text() + " was spent";
      study_.series[lane.series].cut_short = why;
      end_sweep(lane, false, why);
    }
}

// Pairs of devices in the same precision and mode.
void Engine::crossovers() {
  progress_.begin("crossovers", 0);
  keep(for_targets() + kForBreakdowns);
  for (size_t a = 0; a < study_.series.size(); ++a)
    for (size_t b = a + 1; b < study_.series.size(); ++b) {
      const Series &first = study_.series[a], &second = study_.series[b];
      if (first.mode != second.mode || first.precision != second.precision || first.device == second.device)
        continue;
      if (is_peer(study_.devices[first.device]) || is_peer(study_.devices[second.device])) continue;
      if (best_point(first) != nullptr && best_point(second) != nullptr) measure_around(a, b);
    }
}

void Engine::measure_around(size_t a, size_t b) {
  std::set<int64_t> tried;
  for (int round = 0; round < kMostCrossoverBatches && !is_over(); ++round) {
    const CrossoverState state = find_crossover(study_, a, b, options_.largest_batch);
    if (!state.next || study_.model.batch_symbol.empty() || !tried.insert(*state.next).second) break;
    std::vector<Lane*> missing;
    double expected = 0;
    for (Lane& lane : lanes_)
      if ((lane.series == a || lane.series == b) &&
          point_at(study_.series[lane.series], *state.next) == nullptr) {
        missing.push_back(&lane);
        expected += least_seconds(lane, *state.next);
      }
    if (budget_.limited() && expected > 0.5 * available()) break;
    const auto seconds = [&] { return seconds_for_point(available(), missing.size(), 4); };
    measure_points(context_, missing, *state.next, seconds, false);
  }
  study_.crossovers.push_back(find_crossover(study_, a, b, options_.largest_batch).crossover);
}

// Measuring the peak rates of a device takes some seconds, once: they are kept.
void Engine::roofs() {
  progress_.begin("peak rates", study_.devices.size());
  for (size_t i = 0; i < study_.devices.size(); ++i) {
    const auto lane = std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& other) {
      return study_.series[other.series].device == i;
    });
    if (lane == lanes_.end()) continue;
    const std::string what = "peak rates of " + study_.devices[i].id;
    if (context_.stop.requested())
      study_.omissions.push_back({what, "interrupted"});
    else if (budget_.limited() && available() < kSecondsOfPeakRates)
      study_.omissions.push_back({what, budget_text() + ": measuring them takes some seconds"});
    else {
      progress_.step(study_.devices[i].id);
      study_.devices[i].roof = roof_of(lane->device, options_.measure);
    }
  }
}

// Operations and bytes of every point, and which share of the roof it reaches.
void Engine::work() {
  for (const Lane& lane : lanes_) {
    Series& series = study_.series[lane.series];
    for (Point& point : series.points) {
      if (!point.error.empty()) continue;
      auto extents = options_.measure.dims;
      if (!study_.model.batch_symbol.empty()) extents[study_.model.batch_symbol] = point.batch;
      const auto work = work_of(*lane.model, extents);
      if (!work) continue;
      point.flops = work->flops;
      point.bytes = work->bytes;
      if (series.precision == "fp32")  // the roof is that of fp32
        point.roof_share = roof_share(study_.devices[series.device].roof, work->flops, work->bytes,
                                      point.timing.median_ms * 1e-3);
    }
  }
}

void Engine::conclude() {
  const Study own = without_peers(study_);
  study_.pareto_infer = pareto_front(own, Mode::Infer);
  study_.pareto_train = pareto_front(own, Mode::Train);
  study_.interrupted = context_.stop.requested();
  study_.out_of_time |= budget_.limited() && budget_.left() <= 0;
  for (const Series& series : study_.series) {
    if (!series.not_measured.empty())
      study_.omissions.push_back({name_of(study_, series), series.not_measured});
    if (!series.cut_short.empty()) study_.omissions.push_back({name_of(study_, series), series.cut_short});
    if (!series.only_stored.empty() && series.not_measured.empty())
      study_.omissions.push_back({name_of(study_, series) + ", computing in this precision",
                                  "it only stores in it: " + series.only_stored});
  }
  add_costs(study_);
  study_.verdict = verdict_of(without_peers(study_));
  for (Sentence& sentence : sentences_of_peers(study_)) study_.verdict.push_back(std::move(sentence));
}

rt::Result<Study> Engine::run() {
  study_.started = utc_now();
  study_.arguments = options_.arguments;
  study_.budget_seconds = options_.budget_seconds;
  const MachineWatch watch;
  auto setup = set_up_study(options_, study_);
  if (!setup) return setup.status();
  add_peers(options_, budget_, study_, *setup, context_.stop);
  models_ = std::move(setup->models);
  lanes_ = std::move(setup->lanes);
  find_sensors();
  const int64_t batch = first_batch();
  if (!lanes_.empty()) {
    first_points(batch);
    sweep(batch);
    second_chances(batch);
    crossovers();
    for (Lane& lane : lanes_) lane.runner.reset();
    keep(for_targets());
    roofs();
    break_down(context_, lanes_, available());
  }
  work();
  measure_targets(context_, lanes_);
  std::vector<rt::DeviceInfo> devices;
  for (const Lane& lane : lanes_) devices.push_back(lane.device);
  std::set<std::string> known;
  for (auto& version : versions_of(devices))
    if (known.insert(version.first).second) study_.machine.versions.push_back(std::move(version));
  study_.machine = watch.state(std::move(study_.machine.versions));
  study_.seconds = budget_.spent();
  conclude();
  progress_.clear();
  return std::move(study_);
}

}  // namespace

rt::Result<Study> run_study(const StudyOptions& options, StopRequest& stop) {
  Engine engine(options, stop);
  return engine.run();
}

}  // namespace librt::bench
