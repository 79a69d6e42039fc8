// What follows from measured points: knees, crossovers, the Pareto front.
//
// Knows: study.h. Must not know: sessions, clocks. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/rtbench/study/study.h"

namespace librt::bench {

/// Throughput of a doubled batch that is not worth it: below this factor.
inline constexpr double kWorthwhileGrowth = 1.05;
/// An interval within this share of the median shows such a growth.
inline constexpr double kPrecisionForGrowth = 0.05;

/// The valid point of a series at a batch size; null: none.
const Point* point_at(const Series& series, int64_t batch);
/// The points without an error, by batch.
std::vector<const Point*> valid_points(const Series& series);
/// The point of highest throughput; null: none.
const Point* best_point(const Series& series);

/// Sets samples_per_second and its interval from the timing.
void set_throughput(Point& point);

/// The point of a sweep that doubles from which on more brought less than 5 %: the one before the last, if
/// both are known well enough; the one before that, if they are not, and neither of the last two doublings
/// was worth it: one disturbed point does not end a sweep. Null: throughput still grows, or that is not
/// certain yet.
const Point* flat_from(const Series& series);

/// Compares two points of one batch size in throughput: 1: a is faster; -1: b is faster; 0: the intervals
/// overlap.
int compare(const Point& a, const Point& b);

/// What is known of where two series cross, from the batches at which both were measured, and the batch to
/// measure next on both to know it better: nothing when that is all, or none would help.
struct CrossoverState {
  Crossover crossover;
  std::optional<int64_t> next;
};
/// largest: no batch above this is proposed.
CrossoverState find_crossover(const Study& study, size_t a, size_t b, int64_t largest);

/// Points of this mode of which no other has both a shorter time and a higher throughput; by ascending time.
std::vector<PointRef> pareto_front(const Study& study, Mode mode);

/// Share of the roof: the time in which a device could do this at its peak rates, over the time it took.
/// Nothing if neither is known.
std::optional<double> roof_share(const Roof& roof, double flops, double bytes, double seconds);
/// "compute" or "memory", by which of the two the roof takes longer for; empty: unknown.
std::string bound_of(const Roof& roof, double flops, double bytes);

}  // namespace librt::bench
