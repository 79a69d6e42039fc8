// The pipeline: runs the passes over a model, in order, timed, and verified after each.
//
// Knows: the order of passes. Must not know: what they do, ONNX, files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/compiler/pass.h"
#include "tools/compiler/progress.h"

namespace librt::compiler {

struct PipelineOptions {
  std::vector<std::string> disabled;  ///< names of passes to leave out; an unknown name is an error
  bool verify = true;                 ///< check the graph after every pass
  /// Compute f16 and bf16 graphs in f32: constants keep their 16-bit storage, inputs and outputs their type.
  bool compute_f32 = true;
  /// F16 or BF16: GEMM-like operators and the nodes between them are computed in this type; their weights are
  /// stored in it. Precision-sensitive nodes, states, inputs and outputs keep f32.
  DType precision = DType::F32;
  /// Shell patterns over names of nodes that stay in f32. One that matches no node is an error.
  std::vector<std::string> keep_fp32;
  /// Whether residual additions are fused into MatMul and Conv; quantization looks at both operands instead.
  bool residuals = true;
  /// Whether 16-bit weights that are read in f32 become f32 in the graph, as quantization needs them.
  bool widen = false;
  /// For each entry; empty: all entries.
  std::vector<std::string> entries;
  Progress* progress = nullptr;  ///< gets the stage "optimize" before each pass
};

struct PassReport {
  std::string entry;
  std::string pass;
  size_t nodes_before = 0;
  size_t nodes_after = 0;
  double milliseconds = 0;
};

struct PipelineReport {
  std::vector<PassReport> passes;
  /// A table for `rtconvert --verbose`.
  std::string table() const;
};

/// All passes, in the order in which optimize() runs them.
std::span<const Pass> all_passes();

/// Runs the passes over the model's entries. On an error the model is left in an unspecified state. report
/// may be null.
Status optimize(ModelGraph& model, const PipelineOptions& options, PipelineReport* report);

/// One pass by name, for tests and experiments.
Status run_pass(std::string_view name, Graph& graph, const std::vector<State>& states);

/// Replaces the nodes that the pass `elementwise` made by the operators that they are made of, for changes
/// that look for operators.
Status write_out_chains(ModelGraph& model);

/// Gives a symbol an extent (`--dim batch=8`) in all entries and infers the dimensions again.
Status bind_symbol(ModelGraph& model, std::string_view symbol, int64_t extent);

/// Turns every state into a constant with its initial value. Refused while an entry updates states: drop that
/// first.
Status freeze_states(ModelGraph& model);

/// Fills Node::bodies of every composite node that has none; part of optimize(), and needed before a graph is
/// written.
Status expand_composites(Graph& graph, const std::vector<State>& states);

}  // namespace librt::compiler
