// Bits of integers.
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

}  // namespace

std::vector<Case> cases_binary_bitwise() {
  std::vector<Case> cases;
  add_bits<op::BitwiseAndAttributes>(cases, "bitwise_and");
  add_bits<op::BitwiseOrAttributes>(cases, "bitwise_or");
  add_bits<op::BitwiseXorAttributes>(cases, "bitwise_xor");
  add_shifts(cases);
  return cases;
}

}  // namespace librt::test
