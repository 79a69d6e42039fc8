#include "tools/convert/calibration_range.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace librt::convert {

using compiler::Range;

constexpr size_t kBins = Histogram::kBins;

void Histogram::add(std::span<const float> values) {
  const float scale = width() > 0 ? 1 / width() : 0;
  for (const float value : values) {
    const auto bin = static_cast<int64_t>((value - range.low) * scale);
    ++counts[static_cast<size_t>(std::clamp<int64_t>(bin, 0, kBins - 1))];
  }
}

Range percentile_range(const Histogram& histogram, double percentile) {
  double total = 0, seen = 0;
  for (const double count : histogram.counts) total += count;
  const bool positive = histogram.range.low >= 0, negative = histogram.range.high <= 0;
  const double share = total * (1 - percentile / 100) / (positive || negative ? 1 : 2);
  size_t first = 0, last = kBins;
  for (; !positive && first + 1 < last; ++first)
    if ((seen += histogram.counts[first]) > share) break;
  seen = 0;
  for (; !negative && last > first + 1; --last)
    if ((seen += histogram.counts[last - 1]) > share) break;
  return {histogram.edge(first), histogram.edge(last)};
}

namespace {

/// KL divergence between a distribution over `bins` bins and the same quantized to 128 steps.
double divergence(std::span<const double> counts, size_t bins, double beyond) {
  constexpr size_t kSteps = 128;
  std::vector<double> p(counts.begin(), counts.begin() + static_cast<ptrdiff_t>(bins)), q(bins, 0);
  p.back() += beyond;
  for (size_t step = 0; step < kSteps; ++step) {
    const size_t first = step * bins / kSteps, last = (step + 1) * bins / kSteps;
    double sum = 0, filled = 0;
    for (size_t i = first; i < last; ++i) {
      sum += counts[i];
      filled += counts[i] > 0 ? 1 : 0;
    }
    for (size_t i = first; i < last && filled > 0; ++i)
      if (counts[i] > 0) q[i] = sum / filled;
  }
  double p_sum = 0, q_sum = 0, result = 0;
  for (size_t i = 0; i < bins; ++i) {
    p_sum += p[i];
    q_sum += q[i];
  }
  for (size_t i = 0; i < bins; ++i)
    if (p[i] > 0)
      result += p[i] / p_sum * std::log(p[i] / p_sum / std::max(q[i] / std::max(q_sum, 1e-300), 1e-12));
  return result;
}

/// The mean squared error, in bins, of magnitudes that are clipped at `bins` and rounded to 255 steps below.
double squared_error(std::span<const double> counts, size_t bins) {
  const double step = static_cast<double>(bins) / 255;
  double total = 0, clipped = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    total += counts[i];
    const double beyond = static_cast<double>(i) + 0.5 - static_cast<double>(bins);
    if (i >= bins) clipped += counts[i] * beyond * beyond;
  }
  return step * step / 12 + clipped / std::max(total, 1.0);
}

}  // namespace

Range entropy_range(const Histogram& histogram) {
  const float largest = std::max(-histogram.range.low, histogram.range.high);
  if (largest <= 0) return histogram.range;
  std::vector<double> magnitudes(kBins, 0);
  for (size_t i = 0; i < kBins; ++i) {
    const float middle = std::abs(histogram.edge(i) + histogram.width() / 2);
    const auto bin = static_cast<size_t>(middle / largest * static_cast<float>(kBins));
    magnitudes[std::min(bin, kBins - 1)] += histogram.counts[i];
  }
  magnitudes[0] = 0;  // exact zeros have no rounding error
  const double most = 4 * squared_error(magnitudes, kBins);
  double beyond = 0, best = std::numeric_limits<double>::infinity();
  size_t best_bins = kBins;
  for (size_t bins = kBins; bins >= 128; --bins) {
    if (squared_error(magnitudes, bins) > most) break;
    const double value = divergence(magnitudes, bins, beyond);
    if (value < best) {
      best = value;
      best_bins = bins;
    }
    beyond += magnitudes[bins - 1];
  }
  const float bound = largest * static_cast<float>(best_bins) / static_cast<float>(kBins);
  return {std::max(histogram.range.low, -bound), std::min(histogram.range.high, bound)};
}

}  // namespace librt::convert
