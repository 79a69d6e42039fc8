#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/rtbench/experiments/result_text.h"

namespace librt::bench {
namespace {

using Json = nlohmann::ordered_json;

Json number_json(double number) {
  return std::isfinite(number) ? Json(number) : Json();
}

Json cell_json(const Cell& cell) {
  Json json = {{"text", cell.number ? std::string() : cell.text},
               {"number", cell.number ? number_json(*cell.number) : Json()},
               {"low", cell.interval ? number_json(cell.interval->low) : Json()},
               {"high", cell.interval ? number_json(cell.interval->high) : Json()},
               {"estimated", cell.estimated}};
  return json;
}

Json table_json(const Table& table) {
  Json json = {{"title", table.title}, {"columns", Json::array()}, {"rows", Json::array()}};
  for (const Column& column : table.columns)
    json["columns"].push_back({{"name", column.name}, {"unit", column.unit}});
  for (const auto& row : table.rows) {
    Json cells = Json::array();
    for (size_t i = 0; i < table.columns.size(); ++i)
      cells.push_back(cell_json(i < row.size() ? row[i] : Cell::nothing()));
    json["rows"].push_back(std::move(cells));
  }
  return json;
}

}  // namespace

std::string experiment_json(const ExperimentResult& result) {
  Json json = {{"schema", "experiment.schema.json"},
               {"schema_version", kExperimentSchemaVersion},
               {"experiment", result.name},
               {"summary", result.summary},
               {"arguments", result.arguments},
               {"started", result.started},
               {"seconds", result.seconds},
               {"budget_seconds", result.budget_seconds},
               {"interrupted", result.interrupted},
               {"out_of_time", result.out_of_time},
               {"machine", machine_text(result.machine.facts)},
               {"warnings", result.machine.warnings},
               {"versions", Json::array()},
               {"devices", Json::array()},
               {"method", result.method},
               {"tables", Json::array()},
               {"findings", result.findings},
               {"comparisons", Json::array()},
               {"omissions", Json::array()}};
  for (const auto& [name, version] : result.machine.versions)
    json["versions"].push_back({{"name", name}, {"version", version}});
  for (const ExperimentDevice& device : result.devices)
    json["devices"].push_back(
        {{"id", device.id}, {"name", device.name}, {"type", device.type}, {"driver", device.driver}});
  for (const Table& table : result.tables) json["tables"].push_back(table_json(table));
  for (const ArticleComparison& comparison : result.comparisons)
    json["comparisons"].push_back(
        {{"what", comparison.what}, {"article", comparison.article}, {"measured", comparison.measured}});
  for (const Omission& omission : result.omissions)
    json["omissions"].push_back({{"what", omission.what}, {"why", omission.why}});
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace librt::bench
