// Hostile values of integer operands, derived from any case: indices, lengths and positions outside of what
// is valid; the extremes of integer arithmetic; shifts, divisors and scales that hardware traps on or leaves
// open.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/cases/case.h"

namespace librt::test {

using CaseValues = std::vector<std::optional<ops::HostTensor>>;

struct HostileRound {
  std::string name;
  CaseValues given;
  /// What the operator makes of them: values for which its page has a result, the same if it has one for all.
  CaseValues meant;
};

/// The case with operands that may become hostile as inputs, not constants, and values for it. One session
/// runs all rounds.
struct HostileCase {
  Case test_case;
  CaseValues values;
  std::vector<HostileRound> rounds;
};
/// None for operators without such operands.
std::vector<HostileCase> hostile_cases(const Case& test_case, const CaseValues& values);

}  // namespace librt::test
