#include "tools/rtbench/study/analysis.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace librt::bench {
namespace {

// Log of a's throughput over b's; 0 where lines between medians cross.
double log_ratio(const Point& a, const Point& b) {
  return std::log(a.samples_per_second / b.samples_per_second);
}

struct Common {
  int64_t batch;
  const Point *a, *b;
};

std::vector<Common> common_points(const Series& a, const Series& b) {
  std::vector<Common> common;
  for (const Point* point : valid_points(a))
    if (const Point* other = point_at(b, point->batch)) common.push_back({point->batch, point, other});
  return common;
}

// The batch in the middle of two, on a logarithmic scale; nothing if there is none between.
std::optional<int64_t> between(int64_t low, int64_t high) {
  if (high - low < 2) return std::nullopt;
  const auto middle =
      static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(low) * static_cast<double>(high))));
  return std::clamp(middle, low + 1, high - 1);
}

// Where the straight line between log ratios at two batches, over log batch, is 0.
double crossing(const Common& low, const Common& high) {
  const double at_low = log_ratio(*low.a, *low.b), at_high = log_ratio(*high.a, *high.b);
  if (at_low == at_high) return static_cast<double>(high.batch);
  const double x0 = std::log(static_cast<double>(low.batch)), x1 = std::log(static_cast<double>(high.batch));
  return std::exp(std::clamp(x0 + (x1 - x0) * at_low / (at_low - at_high), x0, x1));
}

int64_t largest_valid(const Series& series) {
  const auto points = valid_points(series);
  return points.empty() ? 0 : points.back()->batch;
}

}  // namespace

std::vector<const Point*> valid_points(const Series& series) {
  std::vector<const Point*> valid;
  for (const Point& point : series.points)
    if (point.error.empty()) valid.push_back(&point);
  return valid;
}

const Point* point_at(const Series& series, int64_t batch) {
  for (const Point& point : series.points)
    if (point.batch == batch && point.error.empty()) return &point;
  return nullptr;
}

const Point* best_point(const Series& series) {
  const Point* best = nullptr;
  for (const Point* point : valid_points(series))
    if (best == nullptr || point->samples_per_second > best->samples_per_second) best = point;
  return best;
}

void set_throughput(Point& point) {
  const auto rate = [&](double ms) { return ms > 0 ? 1000.0 * static_cast<double>(point.batch) / ms : 0; };
  point.samples_per_second = rate(point.timing.median_ms);
  point.samples_interval = {rate(point.timing.interval.high), rate(point.timing.interval.low)};
}

const Point* flat_from(const Series& series) {
  const auto points = valid_points(series);
  const auto is_known = [](const Point& point) {
    return precision_of(point.timing.interval, point.timing.median_ms) <= kPrecisionForGrowth;
  };
  if (points.size() < 2) return nullptr;
  const Point& last = *points.back();
  // A point of which little is known may be slow by chance: then the one before it decides.
  const bool are_known = is_known(last) && is_known(*points[points.size() - 2]);
  if (!are_known && points.size() < 3) return nullptr;
  const Point* const before = points[points.size() - (are_known ? 2 : 3)];
  return last.samples_per_second < kWorthwhileGrowth * before->samples_per_second ? before : nullptr;
}

int compare(const Point& a, const Point& b) {
  if (overlap(a.samples_interval, b.samples_interval)) return 0;
  return a.samples_per_second > b.samples_per_second ? 1 : -1;
}

CrossoverState find_crossover(const Study& study, size_t a, size_t b, int64_t largest) {
  CrossoverState state;
  Crossover& found = state.crossover;
  found.below = a;
  found.above = b;
  const std::vector<Common> common = common_points(study.series[a], study.series[b]);
  if (common.empty()) return state;
  // Who is faster at the smallest batch where that is certain is `below`; it is overtaken at most once here:
  // where curves cross more than once, the first crossing is the one that is found.
  const auto certain =
      std::find_if(common.begin(), common.end(), [](const Common& at) { return compare(*at.a, *at.b) != 0; });
  if (certain == common.end()) return state;
  const int first = compare(*certain->a, *certain->b);
  if (first < 0) std::swap(found.below, found.above);
  const auto overtaken =
      std::find_if(certain, common.end(), [&](const Common& at) { return compare(*at.a, *at.b) == -first; });
  if (overtaken == common.end()) {
    found.kind = Crossover::Kind::AlwaysFaster;
    found.least_margin = std::numeric_limits<double>::infinity();
    for (const Common& at : common)
      found.least_margin = std::min(found.least_margin, std::exp(first * log_ratio(*at.a, *at.b)));
    found.last_below = common.back().batch;
    // The slower one may still overtake at batches that only one of them was measured at.
    const int64_t next = std::min(largest, common.back().batch * 2);
    const int64_t most = std::max(largest_valid(study.series[a]), largest_valid(study.series[b]));
    if (common.back().batch < most && next > common.back().batch) state.next = std::min(next, most);
    return state;
  }
  found.kind = Crossover::Kind::Crosses;
  const Common* low = &*certain;
  for (auto at = certain; at != overtaken; ++at)
    if (compare(*at->a, *at->b) == first) low = &*at;
  const Common* high = &*overtaken;
  found.last_below = low->batch;
  found.first_above = high->batch;
  // First the gap in which the lines between medians cross, then those next to the batches of certainty: in
  // between intervals overlap.
  const Common* left = low;
  const Common* right = high;
  for (const Common* at = low + 1; at < high; ++at) {
    (first * log_ratio(*at->a, *at->b) > 0 ? left : right) = at;
    if (right != high) break;
  }
  found.estimate = crossing(*left, *right);
  found.resolved = true;
  for (const auto& [below, above] :
       {std::pair(left, right), std::pair(low, low + 1), std::pair(high - 1, high)}) {
    const bool is_fine = static_cast<double>(above->batch) <= 1.1 * static_cast<double>(below->batch);
    const auto middle = between(below->batch, above->batch);
    if (is_fine || !middle) continue;
    found.resolved = false;
    if (!state.next) state.next = middle;
  }
  return state;
}

std::vector<PointRef> pareto_front(const Study& study, Mode mode) {
  std::vector<PointRef> all, front;
  const auto at = [&](const PointRef& ref) -> const Point& {
    return study.series[ref.series].points[ref.point];
  };
  for (size_t i = 0; i < study.series.size(); ++i)
    for (size_t k = 0; study.series[i].mode == mode && k < study.series[i].points.size(); ++k)
      if (study.series[i].points[k].error.empty()) all.push_back({i, k});
  std::sort(all.begin(), all.end(), [&](const PointRef& x, const PointRef& y) {
    const Point &a = at(x), &b = at(y);
    if (a.timing.median_ms != b.timing.median_ms) return a.timing.median_ms < b.timing.median_ms;
    return a.samples_per_second > b.samples_per_second;
  });
  double best = 0;
  for (const PointRef& ref : all)
    if (at(ref).samples_per_second > best) {
      best = at(ref).samples_per_second;
      front.push_back(ref);
    }
  return front;
}

std::optional<double> roof_share(const Roof& roof, double flops, double bytes, double seconds) {
  if (!roof.measured || !(seconds > 0)) return std::nullopt;
  const double compute = roof.flops_per_second > 0 ? flops / roof.flops_per_second : 0;
  const double memory = roof.bytes_per_second > 0 ? bytes / roof.bytes_per_second : 0;
  if (!(compute > 0) && !(memory > 0)) return std::nullopt;
  return std::max(compute, memory) / seconds;
}

std::string bound_of(const Roof& roof, double flops, double bytes) {
  if (!roof.measured || !(roof.flops_per_second > 0) || !(roof.bytes_per_second > 0)) return {};
  if (!(flops > 0) && !(bytes > 0)) return {};
  return flops / roof.flops_per_second >= bytes / roof.bytes_per_second ? "compute" : "memory";
}

}  // namespace librt::bench
