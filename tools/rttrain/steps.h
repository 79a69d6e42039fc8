// Computes steps: of a whole batch, or of micro-batches whose gradients are accumulated.
//
// Knows: Trainer, the entries accumulate and update, how many steps may be in flight. Must not know: epochs,
// checkpoints, reports.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "tools/rttrain/budget.h"
#include "tools/rttrain/gradient_sums.h"
#include "tools/rttrain/loader.h"
#include "tools/rttrain/loop_options.h"

namespace rt::train {

class Steps {
 public:
  Steps(rt::Trainer& trainer, Budget& budget, const Source& source, const Ranks& ranks,
        const LoopOptions& options);
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  /// Checks that the batches can be cut as the options say, and plans all their sizes.
  rt::Status open(const Shares& shares);
  /// Steps begun and not finished.
  size_t in_flight() const noexcept { return in_flight_; }
  bool may_begin() const noexcept { return in_flight_ < most_; }
  rt::Status begin(const Batch& batch, double rate);

  struct Finished {
    double loss = 0, rate = 0;
    size_t samples = 0;     ///< over all ranks
    double stop_votes = 0;  ///< number of ranks that received a signal
  };
  /// Waits for the oldest step in flight.
  rt::Result<Finished> finish();
  /// What computes the steps.
  std::vector<rt::Session*> sessions();

 private:
  rt::Status check_parts() const;
  rt::Status open_whole(const Shares& shares);
  rt::Status open_accumulation();
  rt::Status submit(const std::vector<rt::Tensor>& tensors, double rate);
  rt::Result<float> accumulate(const Batch& batch);
  rt::Result<float> accumulate_in_order(const Batch& batch);
  /// The size of micro-batches, given a batch's samples of this rank and of all.
  size_t part_of(size_t own, size_t all) const;
  rt::Result<float> wait_part();
  rt::Status update(double rate);
  rt::Status submit_part(const std::vector<rt::Tensor>& tensors, size_t part, size_t parts, size_t samples);

  struct Begun {
    Finished step;
    std::optional<float> loss;  ///< known at once for micro-batches
  };

  rt::Trainer& trainer_;
  Budget& budget_;
  const std::vector<Column>& columns_;
  const Ranks& ranks_;
  const LoopOptions& options_;
  const size_t last_;  ///< samples of the last, smaller batch; 0: none
  std::optional<rt::Session> accumulate_, update_;
  std::optional<GradientSums> sums_;  ///< with options.ordered_sums
  size_t ahead_ = 1;                  ///< runs that may be under way on the device
  size_t most_ = 1;                   ///< steps that may be in flight
  std::array<Begun, 2> begun_;
  size_t oldest_ = 0, in_flight_ = 0;
};

}  // namespace rt::train
