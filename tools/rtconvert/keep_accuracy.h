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

/// A shell pattern that matches this name alone.
std::string exactly(const std::string& name);

}  // namespace rt::convert
