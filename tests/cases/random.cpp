// Random numbers, which follow from a seed and a counter.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

template <class Attributes>
void add_random(std::vector<Case>& cases, const std::string& name, Attributes attributes) {
  const CaseInput counter = with_values(tensor(DType::I64, {}), {5'000'000'017});
  for (DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    attributes.to = static_cast<uint8_t>(dtype);
    cases.push_back(make_case(text(name, "_", name_of(dtype)), attributes, {ints({3, 37})}));
    cases.push_back(make_case(text(name, "_counted_", name_of(dtype)), attributes, {ints({130}), counter}));
    for (size_t i = cases.size() - 2; i < cases.size(); ++i) {
      cases[i].gradient = false;
      if (dtype == DType::F16) cases[i].tolerance = ops::Tolerance{1e-3, 1e-3};
      if (dtype == DType::BF16) cases[i].tolerance = ops::Tolerance{8e-3, 8e-3};
    }
  }
}

}  // namespace

std::vector<Case> cases_random() {
  std::vector<Case> cases;
  op::RandomUniformAttributes uniform;
  uniform.low = -1.5f;
  uniform.high = 4;
  uniform.seed = -3;
  add_random(cases, "random_uniform", uniform);
  op::RandomNormalAttributes normal;
  normal.mean = 0.5f;
  normal.scale = 2;
  normal.seed = 123'456'789'012;
  add_random(cases, "random_normal", normal);
  return cases;
}

}  // namespace librt::test
