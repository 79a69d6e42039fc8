// --keep-accuracy: which nodes stay in f32, found by measuring.
//
// Knows: how to try sets of nodes on the CPU. Must not know: options' spelling, how graphs are rewritten.
#pragma once

#include <string>
#include <vector>

#include "tools/compiler/pipeline.h"
#include "tools/rtconvert/verify.h"

namespace rt::convert {

struct AccuracyReport {
  struct Node {
    std::string name, op;
    double error = 0;  ///< of the outputs when this node alone computes in 16 bits
  };
  std::vector<Node> nodes;  ///< all that would compute in 16 bits, the worst first
  size_t kept = 0;          ///< of these, from the front: those that stay in f32
  double before = 0;        ///< error of the outputs with none kept
  double after = 0;
  /// "kept 3 of 54 nodes in f32: conv1, fc; error of the outputs 0.021 before, 0.00084 now".
  std::string text() const;
};

/// `model` is optimized in f32. Errors are the largest |got - want| / |want|max of a float output against
/// f32, on the inputs of `options` (random where none are given), with rounding to `precision` made explicit.
/// Keeps as few of the worst nodes as bring the error within `tolerance`.
Result<AccuracyReport> keep_accuracy(const ModelGraph& model, const compiler::PipelineOptions& pipeline,
                                     double tolerance, const VerifyOptions& options);

/// What a precision costs. error is negative where it was not measured; `why` says so then.
struct PrecisionCost {
  double error = -1;  ///< as in AccuracyReport
  std::string why;
  bool is_ruinous() const { return error > kRuinous; }
  static constexpr double kRuinous = 0.1;
};

/// Measures what 16 bits (pipeline.precision) do to a model that is optimized in f32, on one run. Large
/// models are left out unless `always`; that it could not be measured is no error.
PrecisionCost cost_of_16_bits(const ModelGraph& model, const compiler::PipelineOptions& pipeline,
                              const VerifyOptions& options, bool always);
/// The same of a model that was changed, as it is, against one in f32 with the same inputs.
PrecisionCost cost_of_change(const ModelGraph& exact, const ModelGraph& changed, const VerifyOptions& options,
                             bool always);

/// A shell pattern that matches this name alone.
std::string exactly(const std::string& name);

}  // namespace rt::convert
