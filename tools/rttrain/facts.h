// What the ranks of a training must have in common, and what of it differs.
//
// Knows: names and values as texts. Must not know: what they mean, how they were found.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/rttrain/ranks.h"

namespace rt::train {

struct Fact {
  std::string name, value;
};
using Facts = std::vector<Fact>;

/// Replaces the value of this name, or adds it.
void set_fact(Facts& facts, const std::string& name, std::string value);
/// The shortest text that reads as this number.
std::string number_text(float number);
/// "0.5" of "0.50" and "5e-1"; other texts as they are.
std::string plain_number(const std::string& text);
/// "--seed is 5 on ranks 0, 2, 6 on rank 1; ..."; empty if all ranks have the same. by_rank: of at least one
/// rank.
std::string differences(std::span<const Facts> by_rank);

/// A collective call: compares the ranks' facts. Where they differ all ranks get the same error, and end
/// together.
rt::Status compare_facts(Ranks& ranks, const Facts& own);

}  // namespace rt::train
