// Training within a memory budget: chooses the micro-batch, what is computed a second time instead of kept,
// and the type of the optimizer's states, and says what the result takes.
//
// Knows: the order in which these are tried. Must not know: how memory is planned (planned_peak.h), how
// recomputation works (tools/compiler/recompute.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/compiler/pipeline.h"
#include "tools/rtconvert/options.h"
#include "tools/rtconvert/planned_peak.h"

namespace rt::convert {

struct MemoryBudget {
  int64_t batch = 0, micro_batch = 0;
  DType optimizer_state = DType::F32;
  size_t recomputed_nodes = 0;
  double recomputed_flops = 0;  ///< part of the operations of a step
  uint64_t states = 0;
  std::vector<std::pair<std::string, PlannedMemory>> entries;  ///< of the sessions that rttrain opens
  uint64_t total() const noexcept;
};

/// Adds training to a model that is not optimized yet, optimizes it, and makes it fit into options.memory
/// bytes on options.memory_backend. Of what fits, the fastest by operations: a micro-batch of n samples is
/// taken to cost 1 + 1 / (2 n), and recomputed operations what they are. Moments of two bytes come last, as
/// they alone change numbers. The error of a budget that is too small names the smallest. The model's
/// metadata say what was chosen.
Result<MemoryBudget> fit_training(ModelGraph& model, const Options& options,
                                  const compiler::PipelineOptions& pipeline, compiler::TrainReport& training);

/// A line for each entry.
std::string budget_text(const MemoryBudget& budget, const Options& options);

}  // namespace rt::convert
