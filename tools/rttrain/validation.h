// Validation: metrics of the entry infer over a data set.
//
// Knows: the session on infer, how outputs and labels are compared. Must not know: when to validate, what a
// metric's value leads to.
#pragma once

#include <optional>
#include <vector>

#include "tools/rttrain/budget.h"
#include "tools/rttrain/loader.h"
#include "tools/rttrain/loop_options.h"

namespace rt::train {

class Validation {
 public:
  Validation(const Samples& samples, const Ranks& ranks, const LoopOptions& options);
  Validation(const Validation&) = delete;
  Validation& operator=(const Validation&) = delete;
  /// Plans the sizes of all batches.
  rt::Status open(Budget& budget);
  /// What run() will measure.
  std::vector<std::string> names() const;
  /// Over all ranks; not over all samples if a signal stops it.
  rt::Result<std::vector<Measured>> run();
  /// After open().
  rt::Session& session() { return *session_; }

 private:
  rt::Status measure(const Batch& batch, Metrics& metrics);
  rt::Status measure_sequences(const Batch& batch, const rt::Tensor& output, Metrics& metrics) const;
  size_t inner_extent(std::span<const int64_t> dims) const;
  const rt::Tensor* find(const Batch& batch, std::string_view input) const;

  const Source& source_;
  const Transform& transform_;
  const Ranks& ranks_;
  const Ranks alone_;
  const Ranks& parts_;  ///< who divides the samples among themselves
  const LoopOptions& options_;
  const size_t batch_;  ///< no rank's part is larger than what it trains at once
  std::optional<rt::Session> session_;
};

}  // namespace rt::train
