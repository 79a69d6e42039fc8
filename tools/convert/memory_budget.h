// Training within a memory budget: chooses the micro-batch, which nodes are recomputed instead of stored, and
// the dtype of the optimizer states, and reports the resulting memory.
//
// Knows: the order in which these are tried. Must not know: how memory is planned (planned_peak.h), how
// recomputation works (tools/compiler/train/recompute.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/compiler/pipeline.h"
#include "tools/convert/options.h"
#include "tools/convert/planned_peak.h"

namespace librt::convert {

struct MemoryBudget {
  int64_t batch = 0, micro_batch = 0;
  DType optimizer_state = DType::F32;
  size_t recomputed_nodes = 0;
  double recomputed_flops = 0;  ///< as a fraction of the operations of a step
  uint64_t states = 0;
  std::vector<std::pair<std::string, PlannedMemory>> entries;  ///< of the sessions that rttrain opens
  uint64_t total() const noexcept;
};

/// Adds training to a model that is not optimized yet, optimizes it, and makes it fit into options.memory
/// bytes on options.memory_backend. Chooses the cheapest candidate that fits, by operations: a micro-batch of
/// n samples costs 1 + 1 / (2 n), plus the fraction recomputed. 16-bit optimizer moments are tried last, as
/// only they change results. If nothing fits, the error names the smallest budget that would. The choice is
/// recorded in the model's metadata.
Result<MemoryBudget> fit_training(ModelGraph& model, const Options& options,
                                  const compiler::PipelineOptions& pipeline, compiler::TrainReport& training);

/// A line for each entry.
std::string budget_text(const MemoryBudget& budget, const Options& options);

}  // namespace librt::convert
