// What a session of a model will take, before there is one: rtconvert --memory-report.
//
// Knows: the parts of a session's memory. Must not know: how they are planned (planned_peak.h).
#pragma once

#include <nlohmann/json.hpp>

#include "tools/convert/options.h"
#include "tools/convert/planned_peak.h"

namespace librt::convert {

/// A session of one entry.
struct EntryMemory {
  std::string entry;
  std::map<std::string, int64_t> extents;  ///< of the symbols
  Result<PlannedMemory> planned;
};

struct MemoryReport {
  std::string backend;
  uint64_t weights = 0;  ///< bytes in the file, which is mapped
  uint64_t states = 0;
  std::vector<EntryMemory> entries;

  nlohmann::ordered_json json() const;
  /// A line for each entry.
  std::string text() const;
};

/// Of a model as it is read from its file, at options.dims (others: as in GraphReport) on
/// options.memory_backend. An entry whose shapes depend on values of inputs has no plan.
Result<MemoryReport> memory_report(const ModelGraph& model, const Options& options);

}  // namespace librt::convert
