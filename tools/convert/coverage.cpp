#include "tools/convert/coverage.h"

#include <sstream>

#include "runtime/core/text.h"
#include "runtime/graph/node_view.h"
#include "runtime/ops/control.h"
#include "tools/operators_document.h"

namespace librt::convert {
namespace {

enum class Support { None, Some, All };
/// By backend, operator, element type.
using Table = std::map<std::string, std::map<std::string, std::map<std::string, Support>>>;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (size_t begin = 1; begin < line.size();) {
    const size_t end = std::min(line.find('|', begin), line.size());
    const size_t first = line.find_first_not_of(' ', begin);
    const size_t last = line.find_last_not_of(' ', end - 1);
    cells.push_back(first < end ? line.substr(first, last + 1 - first) : "");
    begin = end + 1;
  }
  return cells;
}

/// The columns named "BACKEND forward" of the document's table.
Table read_table() {
  Table table;
  std::vector<std::string> header;
  std::istringstream lines(kOperatorsDocument);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] != '|') continue;
    const std::vector<std::string> cells = cells_of(line);
    if (header.empty()) {
      header = cells;
      continue;
    }
    if (cells[0].size() < 2 || cells[0][0] != '`') continue;
    const std::string op = cells[0].substr(1, cells[0].size() - 2);
    for (size_t i = 1; i < std::min(cells.size(), header.size()); ++i) {
      constexpr std::string_view kForward = " forward";
      if (!header[i].ends_with(kForward)) continue;
      auto& types = table[header[i].substr(0, header[i].size() - kForward.size())][op];
      std::istringstream words(cells[i]);
      for (std::string word; words >> word;) {
        const bool some = word[0] == '(';
        types[some ? word.substr(1, word.size() - 2) : word] = some ? Support::Some : Support::All;
      }
    }
  }
  return table;
}

/// Nodes whose results depend on shapes and constants alone are evaluated during planning.
std::vector<bool> planned_nodes(const Graph& graph) {
  std::vector<bool> known(graph.values.size());
  for (size_t id = 0; id < known.size(); ++id) known[id] = graph.values[id].role == Role::Constant;
  std::vector<bool> planned;
  for (const Node& node : graph.nodes) {
    bool all = true;
    for (const ValueId input : node.inputs) all = all && (input == kNoValue || known[input]);
    planned.push_back(all || node.kind() == OpKind::Shape);
    for (const ValueId output : node.outputs)
      if (output != kNoValue) known[output] = planned.back();
  }
  return planned;
}

std::string list_of(const std::map<std::string, size_t>& nodes) {
  std::string list;
  for (const auto& [what, count] : nodes)
    list += librt::text(list.empty() ? "" : ", ", what, count > 1 ? librt::text(" x", count) : "");
  return list;
}

using Operators = std::map<std::string, std::map<std::string, Support>>;

/// Bodies run on the same devices; their nodes count like those of the graph.
void count_nodes(const Graph& graph, const Operators& operators, Coverage& coverage) {
  const std::vector<bool> planned = planned_nodes(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (ops::runs_on_host(node.kind())) {
      ++coverage.host;
      for (const Graph& body : node.bodies) count_nodes(body, operators, coverage);
      continue;
    }
    if (planned[i] || node.kind() == OpKind::Identity || node.kind() == OpKind::Reshape) continue;
    const std::string op(op_name(node));
    ValueId first = kNoValue;
    for (const ValueId input : node.inputs)
      if (first == kNoValue) first = input;
    const std::string type(first == kNoValue ? "" : name_of(graph[first].dtype));
    const auto row = operators.find(op);
    const auto found = row == operators.end() ? decltype(row->second.find(type)){} : row->second.find(type);
    const bool listed = row != operators.end() && found != row->second.end();
    if (!listed && !node.bodies.empty()) {  // a composite without a kernel runs as its body
      count_nodes(node.bodies[0], operators, coverage);
      continue;
    }
    ++coverage.nodes;
    if (!listed)
      ++coverage.elsewhere[librt::text(op, " ", type)];
    else if (found->second == Support::Some)
      ++coverage.depends[librt::text(op, " ", type)];
  }
}

}  // namespace

std::vector<Coverage> coverage_of(const Graph& graph) {
  static const Table kTable = read_table();
  std::vector<Coverage> result;
  for (const auto& [backend, operators] : kTable) {
    Coverage& coverage = result.emplace_back();
    coverage.backend = backend;
    count_nodes(graph, operators, coverage);
  }
  return result;
}

std::string Coverage::text() const {
  size_t away = 0;
  for (const auto& [what, count] : elsewhere) away += count;
  std::string line =
      away == 0 ? librt::text("all ", nodes, " nodes") : librt::text(nodes - away, " of ", nodes, " nodes");
  if (!elsewhere.empty()) line += librt::text("; not ", list_of(elsewhere));
  if (host > 0) line += librt::text("; ", host, " on the host in between");
  if (!depends.empty()) line += librt::text("; depending on shapes and attributes ", list_of(depends));
  return line;
}

}  // namespace librt::convert
