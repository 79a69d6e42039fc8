// From the values that a tensor had on calibration data to the range that its quantization covers.
//
// Knows: histograms, percentiles, entropy. Must not know: graphs, sessions, files.
#pragma once

#include <span>
#include <vector>

#include "tools/compiler/quantize/calibrate.h"

namespace librt::convert {

struct Histogram {
  static constexpr size_t kBins = 2048;

  compiler::Range range;
  std::vector<double> counts = std::vector<double>(kBins, 0);

  float width() const { return (range.high - range.low) / static_cast<float>(kBins); }
  void add(std::span<const float> values);
  float edge(size_t bin) const { return range.low + static_cast<float>(bin) * width(); }
};

/// The range of all but a fraction of the values: half is cut on each side, or all of it on one side where
/// the other is bounded by 0.
compiler::Range percentile_range(const Histogram& histogram, double percentile);

/// The clipping bound on magnitudes with the least KL divergence at 128 steps, after TensorRT's calibration
/// (Migacz 2017), among the bounds that lose at most 6 dB against no clipping. Without that limit, values on
/// a few spikes, such as an empty background, give a small bound with a low divergence but a large
/// error.
compiler::Range entropy_range(const Histogram& histogram);

}  // namespace librt::convert
