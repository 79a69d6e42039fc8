// The work of a model at given extents, for the cost model.
//
// Knows: model files, the cost model. Must not know: sessions.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/session/prepare/cost_model.h"
#include "tools/rtbench/models.h"

namespace librt::bench {

struct ModelWork {
  std::shared_ptr<const ModelGraph> graph;  ///< owns the nodes of `work`
  Workload work;
  double live_bytes = 0;                   ///< of intermediate values alive at once, at least
  std::map<std::string, int64_t> extents;  ///< of all symbols of inputs, as assumed
};

/// extents: of the symbols of inputs; the others at their bound, else 1. Nothing: `error` says why, for
/// example because shapes depend on data.
std::optional<ModelWork> model_work(const BenchModel& model, const std::map<std::string, int64_t>& extents,
                                    std::string& error);

/// The symbol of the first input's leading axis; empty: the batch is fixed, at `fixed`.
std::string batch_symbol_of(const BenchModel& model, int64_t& fixed, std::string& error);

}  // namespace librt::bench
