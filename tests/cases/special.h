// Inputs that are not ordinary numbers, made from those of any case: NaN, infinities, denormals, numbers near
// the largest, equal maxima. Every operator with float inputs is tried with them, unless it is said here, or
// with the case, why not.
#pragma once

#include <functional>

#include "tests/cases/case.h"

namespace rt::test {

using CaseValues = std::vector<std::optional<ops::HostTensor>>;

/// The case's own rule, or its operator's.
SpecialDomain special_domain(const Case& test_case);

/// f(round, values) for each way to spoil the inputs, one input at a time; `round` says which ("x0: one
/// NaN"). Constants stay as they are. Ends at the first round for which f returns false.
void for_each_special(const Case& test_case, const CaseValues& values,
                      const std::function<bool(const std::string&, const CaseValues&)>& f);

}  // namespace rt::test
