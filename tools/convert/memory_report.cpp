#include "tools/convert/memory_report.h"

#include <algorithm>

#include "tools/compiler/report.h"

namespace librt::convert {

nlohmann::ordered_json MemoryReport::json() const {
  auto all = nlohmann::ordered_json::array();
  for (const EntryMemory& each : entries) {
    nlohmann::ordered_json entry = {{"entry", each.entry}, {"backend", backend}, {"extents", each.extents}};
    if (each.planned.ok()) {
      entry["session_bytes"] = states + each.planned->total();
      entry["packed_bytes"] = each.planned->constants;
      entry["state_bytes"] = states;
      entry["working_bytes"] = each.planned->working;
      entry["staging_bytes"] = each.planned->staging;
    } else {
      entry["no_plan"] = each.planned.status().message();
    }
    entry["file_weight_bytes"] = weights;
    all.push_back(std::move(entry));
  }
  return all;
}

std::string MemoryReport::text() const {
  std::string lines;
  for (const EntryMemory& each : entries) {
    append(lines, "session     entry '", each.entry, "' on ", backend);
    for (const auto& [name, extent] : each.extents)
      append(lines, name == each.extents.begin()->first ? " at " : ", ", name, "=", extent);
    if (each.planned.ok())
      append(lines, ": ", bytes_text(states + each.planned->total()), " (packed weights ",
             bytes_text(each.planned->constants), ", states ", bytes_text(states), ", working memory ",
             bytes_text(each.planned->working), ", inputs and outputs ", bytes_text(each.planned->staging),
             "), beside ", bytes_text(weights), " of weights in the file\n");
    else
      append(lines, ": no plan: ", each.planned.status().message(), "\n");
  }
  return lines;
}

Result<MemoryReport> memory_report(const ModelGraph& model, const Options& options) {
  MemoryReport report{.backend = options.memory_backend};
  RT_ASSIGN(report.states, state_bytes(model.states, report.backend));
  for (const auto& [name, graph] : model.entries) {
    RT_ASSIGN(const compiler::GraphReport at, compiler::report_of(graph, model.states, options.dims));
    report.weights = std::max<uint64_t>(report.weights, at.parameter_bytes);
    report.entries.push_back(
        {name, at.extents, planned_memory(graph, model.states, at.extents, report.backend)});
  }
  return report;
}

}  // namespace librt::convert
