#include "tools/compiler/shape/symbol_sums.h"

#include <algorithm>

namespace librt::compiler {
namespace {

/// The symbols that a symbol's name adds up: "past_sequence_length + sequence_length", or "total_x" for
/// "past_x" + "x". Integers in a name ("past + 1") go to `constant`. Empty: not a sum.
std::vector<int32_t> terms_of(const Graph& graph, const std::string& name, int64_t& constant) {
  const auto find = [&](std::string_view wanted) {
    const auto at = std::find_if(graph.symbols.begin(), graph.symbols.end(),
                                 [&](const Symbol& symbol) { return symbol.name == wanted; });
    return at == graph.symbols.end() ? -1 : static_cast<int32_t>(at - graph.symbols.begin());
  };
  constexpr std::string_view kTotal = "total_";
  std::vector<std::string> parts;
  if (name.starts_with(kTotal)) {
    parts = {name.substr(kTotal.size()), text("past_", name.substr(kTotal.size()))};
  } else {
    parts.emplace_back();
    for (const char c : name)
      if (c == '+')
        parts.emplace_back();
      else if (c != ' ')
        parts.back() += c;
  }
  std::vector<int32_t> terms;
  for (const std::string& part : parts) {
    const bool number = !part.empty() && part.size() < 10 &&
                        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (number)
      constant += std::stoll(part);
    else
      terms.push_back(find(part));
  }
  const bool sum = parts.size() > 1 && std::find(terms.begin(), terms.end(), -1) == terms.end();
  return sum ? terms : std::vector<int32_t>{};
}

}  // namespace

bool define_sums(Graph& graph) {
  bool found = false;
  for (Symbol& symbol : graph.symbols) {
    if (!symbol.definition.empty()) continue;
    int64_t constant = 0;
    const std::vector<int32_t> terms = terms_of(graph, symbol.name, constant);
    const bool are_free = std::all_of(terms.begin(), terms.end(), [&](int32_t term) {
      return graph.symbols[static_cast<size_t>(term)].definition.empty();
    });
    if (terms.empty() || !are_free) continue;
    found = true;
    symbol.definition.push_back({ExtentOp::Constant, constant});
    for (const int32_t term : terms) {
      symbol.definition.push_back({ExtentOp::Symbol, term});
      symbol.definition.push_back({ExtentOp::Add, 0});
    }
  }
  return found;
}

}  // namespace librt::compiler
