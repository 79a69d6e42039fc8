#include "tools/rtbench/study/breakdown.h"

#include <algorithm>

#include "tools/rtbench/statistics.h"
#include "tools/rtbench/study/analysis.h"

namespace librt::bench {
namespace {

constexpr double kSecondsOfAProfile = 0.3;

rt::Status profile_point(LaneContext& context, SessionRunner& runner, const Point& point, Series& series) {
  if (rt::Status status = runner.set_batch(point.batch, nullptr); !status) return status;
  if (rt::Status status = runner.session().reset_profile(); !status) return status;
  std::vector<double> times;
  if (rt::Status status = runner.run(kSecondsOfAProfile, 1, times); !status) return status;
  std::sort(times.begin(), times.end());
  const auto runs = static_cast<double>(std::max<uint64_t>(runner.session().profile_runs(), 1));
  std::vector<NodeTime> nodes;
  for (const rt_profile_entry& entry : runner.session().profile()) {
    NodeTime& node = nodes.emplace_back();
    node.name = entry.name;
    node.op = entry.op;
    node.kernel = entry.kernel;
    node.device = entry.device;
    node.milliseconds = static_cast<double>(entry.nanoseconds) / 1e6 / runs;
    node.flops = entry.flops;
    node.bytes = entry.bytes;
    node.live_bytes = entry.live_bytes;
    node.scratch_bytes = entry.scratch_bytes;
  }
  // Rates of fp32 say nothing of other precisions.
  const Roof roof = series.precision == "fp32" ? context.study.devices[series.device].roof : Roof{};
  series.profiles.push_back(
      split_run(point.batch, point.timing.median_ms, quantile(times, 0.5), std::move(nodes), roof));
  const rt_memory_stats memory = runner.session().memory();
  series.profiles.back().memory = {.weights = memory.weights,
                                   .packed = memory.packed,
                                   .states = memory.states,
                                   .arena = memory.peak_planned,
                                   .unshared = memory.naive};
  return {};
}

}  // namespace

Profile split_run(int64_t batch, double total_ms, double profiled_ms, std::vector<NodeTime> nodes,
                  const Roof& roof) {
  Profile profile{.batch = batch, .total_ms = total_ms};
  double sum = 0;
  for (const NodeTime& node : nodes) sum += node.milliseconds;
  const double scale = sum > total_ms && sum > 0 ? total_ms / sum : 1;
  for (NodeTime& node : nodes) {
    node.milliseconds *= scale;
    (is_transfer(node.op) ? profile.transfers_ms : profile.kernels_ms) += node.milliseconds;
    node.roof_share = roof_share(roof, node.flops, node.bytes, node.milliseconds * 1e-3);
    node.bound = bound_of(roof, node.flops, node.bytes);
  }
  profile.launches_ms = std::max(0.0, total_ms - profile.kernels_ms - profile.transfers_ms);
  profile.overhead = total_ms > 0 ? std::max(0.0, profiled_ms / total_ms - 1) : 0;
  profile.nodes = std::move(nodes);
  return profile;
}

void break_down(LaneContext& context, std::vector<Lane>& lanes, double seconds) {
  context.progress.begin("times of nodes", 0);
  const double end = context.budget.spent() + seconds;
  MeasureOptions options = context.options.measure;
  options.profile = true;
  for (Lane& lane : lanes) {
    Series& series = context.study.series[lane.series];
    const auto points = valid_points(series);
    if (points.empty() || lane.peer != nullptr) continue;
    std::vector<const Point*> wanted = {points.front()};
    if (series.knee)
      if (const Point* knee = point_at(series, series.knee->batch); knee != nullptr && knee != points.front())
        wanted.push_back(knee);
    std::unique_ptr<SessionRunner> runner;
    for (const Point* point : wanted) {
      const std::string what = name_of(context.study, series) + ", batch " + std::to_string(point->batch);
      const double expected = least_seconds(lane, point->batch);
      std::string why;
      if (context.stop.requested())
        why = "interrupted";
      else if (context.budget.limited() && context.budget.spent() + expected > end)
        why = context.budget.spent() >= end ? "the budget was spent"
                                            : "the budget: it would take about " + duration_text(expected);
      if (why.empty()) {
        context.progress.step(what);
        rt::Status status;
        if (runner == nullptr) {
          auto opened = SessionRunner::open(*lane.model, lane.device, options, context.stop);
          if (opened)
            runner = std::move(*opened);
          else
            status = opened.status();
        }
        if (status.ok()) status = profile_point(context, *runner, *point, series);
        if (!status) why = status.message();
      }
      if (!why.empty()) context.study.omissions.push_back({"times of nodes of " + what, why});
    }
  }
}

}  // namespace librt::bench
