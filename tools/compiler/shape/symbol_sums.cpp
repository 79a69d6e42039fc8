#include "tools/compiler/shape/symbol_sums.h"

#include <algorithm>

namespace librt::compiler {
namespace {

/// The names and numbers that a symbol's name adds up; a single one where it is not a sum.
std::vector<std::string> parts_of(const std::string& name) {
  constexpr std::string_view kTotal = "total_";
  if (name.starts_with(kTotal))
    return {name.substr(kTotal.size()), text("past_", name.substr(kTotal.size()))};
  std::vector<std::string> parts(1);
  for (const char c : name)
    if (c == '+')
      parts.emplace_back();
    else if (c != ' ')
      parts.back() += c;
  return parts;
}

bool is_number(const std::string& part) {
  return !part.empty() && part.size() < 10 &&
         std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

bool SymbolSums::define(Graph& graph, SymbolIndex& names, int32_t index) {
  Symbol& symbol = graph.symbols[static_cast<size_t>(index)];
  if (!symbol.definition.empty()) return false;
  const std::vector<std::string> parts = parts_of(symbol.name);
  if (parts.size() < 2) return false;
  int64_t constant = 0;
  std::vector<int32_t> terms;
  for (const std::string& part : parts) {
    if (is_number(part)) {
      constant += std::stoll(part);
      continue;
    }
    terms.push_back(names.find(part));
    if (terms.back() < 0) {
      waiting_[part].push_back(index);
      return false;
    }
  }
  const bool are_free = std::all_of(terms.begin(), terms.end(), [&](int32_t term) {
    return graph.symbols[static_cast<size_t>(term)].definition.empty();
  });
  if (terms.empty() || !are_free) return false;
  symbol.definition.push_back({ExtentOp::Constant, constant});
  for (const int32_t term : terms) {
    symbol.definition.push_back({ExtentOp::Symbol, term});
    symbol.definition.push_back({ExtentOp::Add, 0});
  }
  return true;
}

bool SymbolSums::define(Graph& graph, SymbolIndex& names) {
  std::set<int32_t> candidates;
  for (; seen_ < graph.symbols.size(); ++seen_) {
    candidates.insert(static_cast<int32_t>(seen_));
    const auto found = waiting_.extract(graph.symbols[seen_].name);
    if (!found.empty()) candidates.insert(found.mapped().begin(), found.mapped().end());
  }
  bool any = false;
  for (const int32_t symbol : candidates) any = define(graph, names, symbol) || any;
  return any;
}

void SymbolSums::clear() {
  waiting_.clear();
  seen_ = 0;
}

}  // namespace librt::compiler
