// What is asked of all gradients of a step together.
#include <limits>

#include "tests/cases/case.h"

namespace librt::test {
namespace {

template <class Attributes>
void add(std::vector<Case>& cases, std::string name, Attributes attributes,
         std::vector<std::optional<CaseInput>> inputs, size_t outputs) {
  cases.push_back(
      no_gradient(with_outputs(make_case(std::move(name), attributes, std::move(inputs)), outputs)));
}

}  // namespace

std::vector<Case> cases_gradient_scale() {
  std::vector<Case> cases;
  const double infinity = std::numeric_limits<double>::infinity();
  cases.push_back(make_case("global_norm", op::GlobalNormAttributes{}, {f32({3, 5}), f32({7}), f32({})}));
  cases.push_back(make_case("global_norm_one", op::GlobalNormAttributes{}, {f32({300})}));
  cases.push_back(
      no_gradient(make_case("global_norm_types", op::GlobalNormAttributes{},
                            {f32({20011}), tensor(DType::F16, {5}), tensor(DType::BF16, {2, 3})})));
  // More than a launch takes, and one without elements.
  std::vector<std::optional<CaseInput>> many(200, f32({1}));
  many[7] = f32({0, 3});
  many[150] = f32({33});
  cases.push_back(no_gradient(make_case("global_norm_many", op::GlobalNormAttributes{}, many)));
  many[190] = with_values(f32({2}), {1, infinity});
  add(cases, "all_finite_many_infinity", op::AllFiniteAttributes{}, many, 1);
  add(cases, "all_finite", op::AllFiniteAttributes{}, {f32({3, 5}), f32({40})}, 1);
  add(cases, "all_finite_infinity", op::AllFiniteAttributes{},
      {f32({3, 5}), with_values(f32({3}), {1, -infinity, 2})}, 1);
  add(cases, "all_finite_nan", op::AllFiniteAttributes{},
      {with_values(f32({2}), {std::numeric_limits<double>::quiet_NaN(), 1}), f32({3, 5})}, 1);
  op::LossScaleUpdateAttributes update;
  update.interval = 3;
  const auto scale = [&](const char* name, double value, double steps, bool finite) {
    add(cases, name, update,
        {number(DType::F32, value), with_values(tensor(DType::I32, {}), {steps}),
         number(DType::Bool, finite)},
        2);
  };
  scale("loss_scale_good", 1024, 1, true);
  scale("loss_scale_grows", 1024, 2, true);
  scale("loss_scale_overflow", 1024, 2, false);
  scale("loss_scale_least", 1, 2, false);
  return cases;
}

}  // namespace librt::test
