#include "tools/rttrain/speed.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace rt::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSeconds = 0.5;
constexpr size_t kLeastRuns = 3, kMostRuns = 1000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The time of kernels does not depend on values.
rt::Status feed_zeros(rt::Session& session, const std::vector<Column>& columns, size_t samples) {
  for (const rt::TensorSpec& input : session.inputs()) {
    const auto column = std::find_if(columns.begin(), columns.end(),
                                     [&](const Column& each) { return each.input == input.name; });
    if (column == columns.end())
      return bad_data("--share auto: the data has no column for the input '" + input.name +
                      "' of infer; give a number for each rank instead, such as --share 3,1");
    std::vector<int64_t> dims = column->dims;
    dims.insert(dims.begin(), static_cast<int64_t>(samples));
    rt::Tensor zeros(input.dtype, dims);
    if (rt::Status status = session.set_input(input.name, zeros); !status) return status;
  }
  return {};
}

// Samples per second of this rank.
rt::Result<double> speed_of(rt::Session& session, const std::vector<Column>& columns, const Ranks& ranks,
                            size_t samples) {
  rt::Status status = feed_zeros(session, columns, samples);
  for (int warm_up = 0; warm_up < 2 && status; ++warm_up) status = session.run();
  if (!status) return status;
  if (status = ranks.meet(); !status) return status;
  std::vector<double> times;
  const Clock::time_point start = Clock::now();
  while (times.size() < kLeastRuns || (seconds_since(start) < kSeconds && times.size() < kMostRuns)) {
    const Clock::time_point run = Clock::now();
    if (status = session.run(); !status) return status;
    times.push_back(seconds_since(run));
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return static_cast<double>(samples) / std::max(1e-9, times[times.size() / 2]);
}

}  // namespace

rt::Result<std::vector<double>> measure_speeds(rt::Trainer& trainer, const std::vector<Column>& columns,
                                               const Ranks& ranks, size_t batch) {
  auto session = trainer.open("infer");
  if (!session) return session.status();
  std::vector<double> speeds(ranks.count(), 1);
  for (int pass = 0; pass < 2; ++pass) {
    const auto own = speed_of(*session, columns, ranks, Shares(speeds).part_of(ranks.rank(), batch));
    if (!own) return own.status();
    speeds[ranks.rank()] = *own;
    if (rt::Status status = ranks.all_gather(speeds.data(), sizeof speeds[0]); !status) return status;
  }
  return speeds;
}

}  // namespace rt::train
