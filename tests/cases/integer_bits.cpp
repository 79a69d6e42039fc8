// bitwise, random: integer bit operations and random numbers.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

template <class Attributes>
void add_bits(std::vector<Case>& cases, const std::string& name) {
  for (DType dtype :
       {DType::U8, DType::I8, DType::U16, DType::I16, DType::U32, DType::I32, DType::U64, DType::I64}) {
    const double low = is_unsigned_integer(dtype) ? 0 : -30;
    cases.push_back(no_gradient(
        make_case(text(name, "_", name_of(dtype)), Attributes{},
                  {in_range(tensor(dtype, {5, 13}), low, 30), in_range(tensor(dtype, {5, 13}), low, 30)})));
  }
  cases.push_back(no_gradient(make_case(name + "_broadcast", Attributes{},
                                        {in_range(tensor(DType::I32, {2, 3, 1, 4}), -30, 30),
                                         in_range(tensor(DType::I32, {3, 5, 1}), -30, 30)})));
}

/// Shift counts below 0, equal to the width and above it.
void add_shifts(std::vector<Case>& cases) {
  const DType types[] = {DType::U8,  DType::I8,  DType::U16, DType::I16,
                         DType::U32, DType::I32, DType::U64, DType::I64};
  for (DType dtype : types)
    for (bool left : {true, false}) {
      const auto width = static_cast<double>(8 * size_of(dtype));
      const double first = is_unsigned_integer(dtype) ? 0 : -1;
      op::BitShiftAttributes attributes;
      attributes.left = left;
      cases.push_back(no_gradient(
          make_case(text("bit_shift_", left ? "left_" : "right_", name_of(dtype)), attributes,
                    {with_values(tensor(dtype, {2, 1}), {93, is_unsigned_integer(dtype) ? 200.0 : -77.0}),
                     with_values(tensor(dtype, {6}), {first, 0, 1, width - 1, width, width + 3})})));
    }
}

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

std::vector<Case> cases_integer_bits() {
  std::vector<Case> cases;
  add_bits<op::BitwiseAndAttributes>(cases, "bitwise_and");
  add_bits<op::BitwiseOrAttributes>(cases, "bitwise_or");
  add_bits<op::BitwiseXorAttributes>(cases, "bitwise_xor");
  add_shifts(cases);
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
