#include "tools/onnx/sort.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "tools/onnx/attribute.h"

namespace librt::onnx {

namespace {

using Producers = std::unordered_map<std::string_view, int>;

using Names = std::unordered_set<std::string_view>;

/// The names that a graph gives to values of its own.
Names own_names(const rt_onnx::GraphProto& graph) {
  Names names;
  for (const auto& input : graph.input()) names.insert(input.name());
  for (const auto& initializer : graph.initializer()) names.insert(initializer.name());
  for (const auto& initializer : graph.sparse_initializer()) names.insert(initializer.values().name());
  for (const auto& node : graph.node())
    for (const std::string& output : node.output()) names.insert(output);
  return names;
}

/// hidden: the own names of the graphs between.
void visit_outer_names(const rt_onnx::GraphProto& body, std::vector<const Names*>& hidden,
                       const std::function<void(const std::string&)>& visit) {
  const Names own = own_names(body);
  hidden.push_back(&own);
  const auto outer = [&](const std::string& name) {
    if (std::ranges::none_of(hidden, [&](const Names* names) { return names->contains(name); })) visit(name);
  };
  for (const auto& node : body.node()) {
    for (const std::string& input : node.input()) outer(input);
    each_body(node, [&](const rt_onnx::GraphProto& inner) { visit_outer_names(inner, hidden, visit); });
  }
  for (const auto& output : body.output()) outer(output.name());
  hidden.pop_back();
}

// The nodes of the list that `node` or a graph inside it reads from.
void collect_dependencies(const rt_onnx::NodeProto& node, const Producers& producers,
                          std::vector<int>& found) {
  const auto add = [&](const std::string& name) {
    const auto producer = producers.find(name);
    if (producer != producers.end()) found.push_back(producer->second);
  };
  for (const std::string& input : node.input()) add(input);
  each_body(node, [&](const rt_onnx::GraphProto& body) { each_outer_name(body, add); });
}

Status find_producers(const NodeList& nodes, Producers& producers) {
  std::string twice;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string& output : nodes[i].output()) {
      if (output.empty()) continue;
      const auto [first, fresh] = producers.emplace(output, i);
      if (!fresh)
        twice += text(twice.empty() ? "" : "; ", "'", output, "' is produced by ",
                      describe(nodes[first->second], first->second), " and by ", describe(nodes[i], i));
    }
  return twice.empty() ? Status() : invalid_model(twice);
}

// Follows unfinished dependencies from an unfinished node until a node comes up again.
Status cycle_error(const NodeList& nodes, const std::vector<std::vector<int>>& dependencies,
                   const std::vector<int>& waiting_for) {
  int at = 0;
  while (waiting_for[static_cast<size_t>(at)] == 0) ++at;
  std::vector<int> path;
  std::vector<bool> on_path(waiting_for.size());
  while (!on_path[static_cast<size_t>(at)]) {
    on_path[static_cast<size_t>(at)] = true;
    path.push_back(at);
    for (int dependency : dependencies[static_cast<size_t>(at)])
      if (waiting_for[static_cast<size_t>(dependency)] != 0) {
        at = dependency;
        break;
      }
  }
  std::string names;
  constexpr size_t kShown = 8;
  const auto first = static_cast<size_t>(std::find(path.begin(), path.end(), at) - path.begin());
  for (size_t i = path.size(); i-- > first && path.size() - i <= kShown;)
    names += describe(nodes[path[i]], path[i]) + " -> ";
  return invalid_model("the nodes form a cycle: ", names, path.size() - first > kShown ? "... -> " : "",
                       describe(nodes[path.back()], path.back()));
}

}  // namespace

void each_outer_name(const rt_onnx::GraphProto& body, const std::function<void(const std::string&)>& visit) {
  std::vector<const Names*> hidden;
  visit_outer_names(body, hidden, visit);
}

std::string describe(const rt_onnx::NodeProto& node, int index) {
  if (!node.name().empty()) return text("node '", node.name(), "' (", node.op_type(), ")");
  return text("node ", index, " (", node.op_type(), ")");
}

Result<std::vector<int>> topological_order(const NodeList& nodes) {
  Producers producers;
  RT_TRY(find_producers(nodes, producers));
  const auto count = static_cast<size_t>(nodes.size());
  std::vector<std::vector<int>> dependencies(count);
  std::vector<std::vector<int>> readers(count);
  std::vector<int> waiting_for(count);
  for (size_t i = 0; i < count; ++i) {
    auto& found = dependencies[i];
    collect_dependencies(nodes[static_cast<int>(i)], producers, found);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    for (int dependency : found) readers[static_cast<size_t>(dependency)].push_back(static_cast<int>(i));
    waiting_for[i] = static_cast<int>(found.size());
  }
  // Always the earliest node that is ready, so that a sorted list keeps its order.
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (size_t i = 0; i < count; ++i)
    if (waiting_for[i] == 0) ready.push(static_cast<int>(i));
  std::vector<int> order;
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    order.push_back(node);
    for (int reader : readers[static_cast<size_t>(node)])
      if (--waiting_for[static_cast<size_t>(reader)] == 0) ready.push(reader);
  }
  if (order.size() != count) return cycle_error(nodes, dependencies, waiting_for);
  return order;
}

}  // namespace librt::onnx
