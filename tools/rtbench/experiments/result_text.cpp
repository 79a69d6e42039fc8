#include "tools/rtbench/experiments/result_text.h"

#include <algorithm>

#include "tools/rtbench/report/markdown.h"
#include "tools/rtbench/report/text.h"
#include "tools/rtbench/study/budget.h"

namespace librt::bench {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr const char* kOtherHardware =
    "An article's figures come from other hardware and other programs: compare ratios, not seconds.";

std::string number_in(double number, const std::string& unit) {
  if (unit == "ms") return time_text(number);
  if (unit == "bytes") return bytes_text(static_cast<uint64_t>(std::max(0.0, number)));
  if (unit == "%") return format("%.1f %%", number);
  return number_text(number) + (unit == "s" ? " s" : unit == "hours" ? " h" : "");
}

std::string cell_text(const Cell& cell, const Column& column) {
  if (!cell.number) return cell.text.empty() ? "-" : printable(cell.text);
  std::string text = (cell.estimated ? "~" : "") + number_in(*cell.number, column.unit);
  if (column.unit.empty() && *cell.number == static_cast<double>(static_cast<int64_t>(*cell.number)))
    text = std::to_string(static_cast<int64_t>(*cell.number));
  if (cell.interval && *cell.number > 0)
    text += format(" (%.1f to +%.1f %%)", 100 * (cell.interval->low / *cell.number - 1),
                   100 * (cell.interval->high / *cell.number - 1));
  return text;
}

// Without columns in which no row has anything.
Rows rows_of(const Table& table) {
  Rows rows(table.rows.size() + 1);
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const bool used = std::any_of(table.rows.begin(), table.rows.end(), [&](const std::vector<Cell>& row) {
      return i < row.size() && (row[i].number || !row[i].text.empty());
    });
    if (!used) continue;
    rows[0].push_back(table.columns[i].name);
    for (size_t r = 0; r < table.rows.size(); ++r)
      rows[r + 1].push_back(i < table.rows[r].size() ? cell_text(table.rows[r][i], table.columns[i]) : "-");
  }
  return rows;
}

// Leading columns without a number, which are left-aligned.
size_t left_columns(const Table& table) {
  size_t left = 0;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    bool used = false;
    for (const auto& row : table.rows) {
      if (i >= row.size()) continue;
      if (row[i].number) return std::max<size_t>(left, 1);
      used |= !row[i].text.empty();
    }
    left += used ? 1 : 0;
  }
  return std::max<size_t>(left, 1);
}

bool has_estimates(const ExperimentResult& result) {
  for (const Table& table : result.tables)
    for (const auto& row : table.rows)
      if (std::any_of(row.begin(), row.end(), [](const Cell& cell) { return cell.estimated; })) return true;
  return false;
}

std::string head_of(const ExperimentResult& result) {
  return result.name + ", " + duration_text(result.seconds) +
         (result.interrupted   ? ", interrupted"
          : result.out_of_time ? ", cut short by the budget of " + duration_text(result.budget_seconds)
                               : "");
}

constexpr const char* kEstimates = "~: extrapolated from less work than it stands for.";

}  // namespace

bool has_measured(const ExperimentResult& result) {
  for (const Table& table : result.tables)
    for (const auto& row : table.rows)
      for (size_t i = 1; i < row.size(); ++i)
        if (row[i].number) return true;
  return false;
}

std::string experiment_text(const ExperimentResult& result) {
  std::string text;
  for (const std::string& warning : result.machine.warnings) text += warning + "\n";
  text += "experiment " + head_of(result) + "\n" + result.summary + "\n";
  text += "machine: " + machine_text(result.machine.facts) + "\n";
  for (const ExperimentDevice& device : result.devices)
    text += device.id + ": " + printable(device.name) + ", " + printable(device.driver) + "\n";
  if (!result.method.empty()) text += "\n";
  for (const std::string& sentence : result.method) text += sentence + "\n";
  for (const Table& table : result.tables)
    text +=
        "\n" + (table.title.empty() ? "" : table.title + "\n") + columns(rows_of(table), left_columns(table));
  if (has_estimates(result)) text += std::string(kEstimates) + "\n";
  if (!result.findings.empty()) text += "\n";
  for (const std::string& sentence : result.findings) text += sentence + "\n";
  if (!result.comparisons.empty()) {
    Rows rows = {{"beside an article", "article", "here"}};
    for (const ArticleComparison& comparison : result.comparisons)
      rows.push_back({comparison.what, comparison.article, comparison.measured});
    text += "\n" + columns(rows, 3) + kOtherHardware + "\n";
  }
  if (!result.omissions.empty()) text += "\nnot measured:\n";
  for (const Omission& omission : result.omissions)
    text += "  " + printable(omission.what) + ": " + printable(omission.why) + "\n";
  return text;
}

std::string experiment_markdown(const ExperimentResult& result) {
  std::string text = "# " + markdown_text(head_of(result)) + "\n\n" + markdown_text(result.summary) + "\n\n";
  std::vector<std::string> lines = result.machine.warnings;
  lines.push_back("machine: " + machine_text(result.machine.facts));
  for (const ExperimentDevice& device : result.devices)
    lines.push_back(device.id + ": " + device.name + ", " + device.driver);
  lines.insert(lines.end(), result.method.begin(), result.method.end());
  text += markdown_list(lines);
  for (const Table& table : result.tables) {
    if (!table.title.empty()) text += "## " + markdown_text(table.title) + "\n\n";
    text += markdown_table(rows_of(table), left_columns(table));
  }
  if (has_estimates(result)) text += markdown_text(kEstimates) + "\n\n";
  text += markdown_list(result.findings);
  if (!result.comparisons.empty()) {
    Rows rows = {{"beside an article", "article", "here"}};
    for (const ArticleComparison& comparison : result.comparisons)
      rows.push_back({comparison.what, comparison.article, comparison.measured});
    text += markdown_table(rows, 3) + kOtherHardware + "\n\n";
  }
  lines.clear();
  for (const Omission& omission : result.omissions) lines.push_back(omission.what + ": " + omission.why);
  if (!lines.empty()) text += "Not measured:\n\n" + markdown_list(lines);
  return text;
}

}  // namespace librt::bench
