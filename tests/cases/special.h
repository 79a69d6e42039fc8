// Special input values derived from any case: NaN, infinities, denormals, values near the largest, equal
// maxima. Every operator with float inputs is tested with them unless an exception with a reason is given
// here or in the case.
#pragma once

#include <functional>

#include "tests/cases/case.h"

namespace librt::test {

using CaseValues = std::vector<std::optional<ops::HostTensor>>;

/// The case's own rule, else its operator's.
SpecialDomain special_domain(const Case& test_case);

/// Calls f(round, values) for each way to overwrite inputs with special values, one input at a time; `round`
/// names it ("x0: one NaN"). Constants are unchanged. In a list of many inputs each takes one of the ways.
/// Stops at the first round for which f returns false.
void for_each_special(const Case& test_case, const CaseValues& values,
                      const std::function<bool(const std::string&, const CaseValues&)>& f);

}  // namespace librt::test
