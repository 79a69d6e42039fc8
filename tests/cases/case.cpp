#include "tests/cases/case.h"

#include <algorithm>
#include <numeric>

#include "runtime/core/element.h"
#include "runtime/core/random.h"

namespace librt::test {

#define RT_FAMILY(name) std::vector<Case> cases_##name();
#include "tests/case_families.inc"
#undef RT_FAMILY

const std::vector<Case>& all_cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> cases;
    auto add = [&](std::vector<Case> family) {
      std::move(family.begin(), family.end(), std::back_inserter(cases));
    };
#define RT_FAMILY(name) add(cases_##name());
#include "tests/case_families.inc"
#undef RT_FAMILY
    return cases;
  }();
  return all;
}

namespace {

// Seeded by the case's name so that adding a case changes no other.
struct Random {
  uint64_t state;
  uint64_t next() { return split_mix(state); }
};

ops::HostTensor fill(const CaseInput& input, ops::Domain domain, Random& random) {
  ops::HostTensor tensor(input.info);
  const int64_t count = input.info.elements();
  if (!input.values.empty()) {
    for (int64_t i = 0; i < count; ++i)
      store_element(tensor.bytes.data(), input.info.dtype, i, input.values[static_cast<size_t>(i)]);
    return tensor;
  }
  // Distinct values in random order, nonzero and without ties: finite differences need that.
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.next() % i]);
  for (int64_t i = 0; i < count; ++i) {
    const double at =
        (static_cast<double>(order[static_cast<size_t>(i)]) + 0.37) / static_cast<double>(count);
    const double value = domain.low + (domain.high - domain.low) * at;
    if (input.info.dtype == DType::Bool)
      store_integer(tensor.bytes.data(), input.info.dtype, i, static_cast<int64_t>(random.next() & 1));
    else
      store_element(tensor.bytes.data(), input.info.dtype, i, is_float(input.info.dtype) ? value : value * 4);
  }
  return tensor;
}

}  // namespace

std::vector<std::optional<ops::HostTensor>> case_values(const Case& test_case) {
  Random random{std::hash<std::string>{}(test_case.name)};
  const ops::CompilerPage* page = ops::compiler_page_of(test_case.op.type);
  std::vector<std::optional<ops::HostTensor>> values;
  for (const auto& input : test_case.inputs) {
    if (!input)
      values.emplace_back();
    else
      values.push_back(fill(*input, input->domain.value_or(page->domain), random));
  }
  return values;
}

}  // namespace librt::test
