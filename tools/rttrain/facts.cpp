#include "tools/rttrain/facts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace rt::train {
namespace {

template <class T>
std::string shortest(T number) {
  std::array<char, 64> out;
  return {out.data(), std::to_chars(out.data(), out.data() + out.size(), number).ptr};
}

template <class T>
std::optional<std::string> as_number(const std::string& text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && last == end ? std::optional(shortest(number)) : std::nullopt;
}

const std::string& value_of(const Facts& facts, const std::string& name) {
  static const std::string kNone = "unknown";
  const auto found = std::find_if(facts.begin(), facts.end(), [&](const Fact& f) { return f.name == name; });
  return found == facts.end() ? kNone : found->value;
}

/// "NAME is VALUE on rank 0, OTHER on ranks 1, 2"; empty if all are equal.
std::string difference(std::span<const Facts> by_rank, const std::string& name) {
  std::vector<std::pair<std::string, std::vector<size_t>>> ranks_of;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    const std::string& value = value_of(by_rank[rank], name);
    auto found =
        std::find_if(ranks_of.begin(), ranks_of.end(), [&](const auto& each) { return each.first == value; });
    if (found == ranks_of.end()) found = ranks_of.insert(ranks_of.end(), {value, {}});
    found->second.push_back(rank);
  }
  if (ranks_of.size() == 1) return {};
  std::string out;
  for (const auto& [value, ranks] : ranks_of) {
    out += (out.empty() ? name + " is " : ", ") + value + (ranks.size() == 1 ? " on rank " : " on ranks ");
    for (const size_t rank : ranks) out += (rank == ranks[0] ? "" : ", ") + std::to_string(rank);
  }
  return out;
}

std::string text_of(const Facts& facts) {
  auto all = nlohmann::json::array();
  for (const Fact& fact : facts) all.push_back({fact.name, fact.value});
  // Paths and names may be invalid UTF-8, which JSON requires.
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Empty where another version of rttrain wrote something else.
Facts facts_of(const std::string& text) {
  Facts facts;
  const auto all = nlohmann::json::parse(text, nullptr, false);
  if (!all.is_array()) return facts;
  for (const auto& each : all)
    if (each.is_array() && each.size() == 2 && each[0].is_string() && each[1].is_string())
      facts.push_back({each[0], each[1]});
  return facts;
}

}  // namespace

void set_fact(Facts& facts, const std::string& name, std::string value) {
  const auto found = std::find_if(facts.begin(), facts.end(), [&](const Fact& f) { return f.name == name; });
  if (found == facts.end())
    facts.push_back({name, std::move(value)});
  else
    found->value = std::move(value);
}

std::string number_text(float number) {
  return shortest(number);
}

std::string plain_number(const std::string& text) {
  // Integers first: a double does not hold all of their digits.
  if (const auto number = as_number<int64_t>(text)) return *number;
  if (const auto number = as_number<uint64_t>(text)) return *number;
  return as_number<double>(text).value_or(text);
}

std::string differences(std::span<const Facts> by_rank) {
  std::vector<std::string> names;
  for (const Facts& facts : by_rank)
    for (const Fact& fact : facts)
      if (std::find(names.begin(), names.end(), fact.name) == names.end()) names.push_back(fact.name);
  std::string out;
  for (const std::string& name : names)
    if (const std::string one = difference(by_rank, name); !one.empty())
      out += (out.empty() ? "" : "; ") + one;
  return out;
}

rt::Status compare_facts(Ranks& ranks, const Facts& own) {
  if (ranks.count() == 1) return {};
  const auto texts = ranks.gather(text_of(own));
  if (!texts) return texts.status();
  std::vector<Facts> all;
  for (const std::string& text : *texts) all.push_back(facts_of(text));
  const std::string found = differences(all);
  if (found.empty()) return {};
  return ranks.refuse("the ranks differ: " + found +
                      "; start all with the same options, model and data, from the same version of librt");
}

}  // namespace rt::train
