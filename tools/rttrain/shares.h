// How ranks divide a batch: equally, or in the proportion of their speed.
//
// Knows: proportions. Must not know: processes, what is in a batch, how speed is measured (speed.h).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rt/rt.hpp"

namespace rt::train {

/// The same on all ranks. Parts are contiguous and in the order of the ranks, so that a batch holds the same
/// samples however it is divided; the compiled step weights each rank's mean by its number of samples.
class Shares {
 public:
  explicit Shares(size_t ranks = 1) : ranks_(ranks) {}
  /// weights: one for each rank, above 0. Every rank gets at least one sample where there are enough.
  explicit Shares(std::vector<double> weights);

  /// The first sample of a rank's part of `samples`; that of rank `ranks()` is `samples`.
  size_t first_of(size_t rank, size_t samples) const noexcept;
  size_t part_of(size_t rank, size_t samples) const noexcept {
    return first_of(rank + 1, samples) - first_of(rank, samples);
  }
  size_t ranks() const noexcept { return ranks_; }

 private:
  size_t ranks_;
  std::vector<double> before_;  ///< the sum of the weights of the ranks before each, of all; empty: equal
};

/// --share: "equal", "auto", or numbers such as "3,1".
struct ShareOption {
  bool is_measured = false;
  std::vector<double> weights;  ///< empty: equal, or measured

  bool is_equal() const noexcept { return !is_measured && weights.empty(); }
};
rt::Result<ShareOption> parse_share(const std::string& text);

}  // namespace rt::train
