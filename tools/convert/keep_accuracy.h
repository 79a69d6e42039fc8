// --keep-accuracy: which nodes stay in f32, found by measuring.
//
// Knows: how to try sets of nodes on the CPU. Must not know: options' spelling, how graphs are rewritten.
#pragma once

#include <string>
#include <vector>

#include "tools/compiler/pipeline.h"
#include "tools/convert/verify.h"

namespace librt::convert {

struct AccuracyReport {
  struct Node {
    std::string name, op;
    double error = 0;  ///< of the outputs when this node alone computes in 16 bits
  };
  std::vector<Node> nodes;  ///< all nodes that would compute in 16 bits, worst first
  size_t kept = 0;          ///< how many of these, from the front, stay in f32
  double wanted = 0;        ///< the tolerance
  double before = 0;        ///< error of the outputs with none kept
  double after = 0;
  /// "kept 3 of 54 nodes in f32: conv1, fc; error of the outputs 0.021 before, 0.00084 now".
  std::string text() const;
};

/// `model` is optimized in f32. Errors are the largest |got - want| / |want|max of a float output against
/// f32, on the inputs of `options` (random where none are given), with explicit rounding to
/// pipeline.precision. Keeps the fewest worst nodes in f32 that bring the error within `tolerance`.
Result<AccuracyReport> keep_accuracy(const ModelGraph& model, const compiler::PipelineOptions& pipeline,
                                     double tolerance, const VerifyOptions& options);

/// Accuracy cost of a precision. error is negative where it was not measured, for the reason `why`.
struct PrecisionCost {
  double error = -1;  ///< as in AccuracyReport
  std::string why;
  bool is_ruinous() const { return error > kRuinous; }
  static constexpr double kRuinous = 0.1;
};

/// Measures the output error of 16 bits (pipeline.precision) on one run of a model optimized in f32. Large
/// models are skipped unless `always`; a failure to measure is no error.
PrecisionCost cost_of_16_bits(const ModelGraph& model, const compiler::PipelineOptions& pipeline,
                              const VerifyOptions& options, bool always);
/// The same for an already changed model, against one in f32 with the same inputs.
PrecisionCost cost_of_change(const ModelGraph& exact, const ModelGraph& changed, const VerifyOptions& options,
                             bool always);

/// Why a run of the entry `infer` with these inputs is too costly to be made unasked; empty if it is not.
Result<std::string> too_costly(const ModelGraph& model, std::span<const tools::Array> inputs);

/// A shell pattern that matches this name alone.
std::string exactly(const std::string& name);

}  // namespace librt::convert
