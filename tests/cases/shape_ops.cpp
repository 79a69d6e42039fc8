// Shapes as tensors, and tensors from shapes.
#include "tests/cases/case.h"

namespace librt::test {

std::vector<Case> cases_shape_ops() {
  std::vector<Case> cases;
  cases.push_back(make_case("shape", op::ShapeAttributes{}, {f32({2, 3, 4})}));
  op::ConstantOfShapeAttributes filled;
  filled.dtype = static_cast<uint8_t>(DType::F32);
  filled.value = 1.25;
  cases.push_back(make_case("constant_of_shape", filled, {ints({2, 3})}));
  const auto scalar = [](double value) { return constant(number(DType::I64, value)); };
  cases.push_back(make_case("range", op::RangeAttributes{}, {scalar(1), scalar(10), scalar(3)}));
  // Steps whose multiples do not fit the type, though every element does.
  cases.push_back(
      make_case("range_widest", op::RangeAttributes{}, {scalar(-0x1p63), scalar(0x1p63), scalar(0x1p62)}));
  return cases;
}

}  // namespace librt::test
