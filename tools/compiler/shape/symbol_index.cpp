#include "tools/compiler/shape/symbol_index.h"

namespace librt::compiler {

int32_t SymbolIndex::find(std::string_view name) {
  for (; named_ < graph_.symbols.size(); ++named_)
    by_name_.try_emplace(graph_.symbols[named_].name, static_cast<int32_t>(named_));
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? -1 : found->second;
}

std::string SymbolIndex::unused(const std::string& name) {
  for (size_t& number = numbers_[name];; ++number)
    if (std::string candidate = text(name, '#', number); find(candidate) < 0 && !is_around(candidate, true))
      return candidate;
}

std::string SymbolIndex::unused_of_definition(std::string name) {
  while (find(name) >= 0 || is_around(name, false)) name += '\'';
  return name;
}

bool SymbolIndex::is_around(std::string_view name, bool with_definition) {
  for (SymbolIndex* around = outer_; around != nullptr; around = around->outer_)
    if (const int32_t symbol = around->find(name); symbol >= 0)
      if (with_definition || around->graph_.symbols[static_cast<size_t>(symbol)].definition.empty())
        return true;
  return false;
}

void SymbolIndex::carry(const Value& input) {
  positions_.resize(graph_.symbols.size());
  for (int axis = 0; axis < input.rank(); ++axis)
    if (const int32_t symbol = input.dims[static_cast<size_t>(axis)].symbol; symbol >= 0)
      if (auto& position = positions_[static_cast<size_t>(symbol)]; !position)
        position = AxisPosition{.axis = axis, .rank = input.rank()};
}

std::optional<AxisPosition> SymbolIndex::position_of(int32_t symbol) {
  for (; inputs_ < graph_.inputs.size(); ++inputs_) carry(graph_.values[graph_.inputs[inputs_]]);
  const auto index = static_cast<size_t>(symbol);
  return index < positions_.size() ? positions_[index] : std::nullopt;
}

bool SymbolIndex::is_free_input(int32_t symbol) {
  return position_of(symbol) && graph_.symbols[static_cast<size_t>(symbol)].definition.empty();
}

void SymbolIndex::clear() {
  by_name_.clear();
  numbers_.clear();
  positions_.clear();
  named_ = inputs_ = 0;
}

}  // namespace librt::compiler
