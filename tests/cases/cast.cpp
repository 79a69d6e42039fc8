// Conversions between types.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

Case cast_case(const char* name, DType from, DType to, std::vector<double> values) {
  op::CastAttributes attributes;
  attributes.to = static_cast<uint8_t>(to);
  const auto count = static_cast<int64_t>(values.size());
  return no_gradient(
      make_case(text("cast_", name), attributes, {with_values(tensor(from, {count}), std::move(values))}));
}

}  // namespace

std::vector<Case> cases_cast() {
  std::vector<Case> cases;
  cases.push_back(cast_case("f32_i64", DType::F32, DType::I64, {-2.7, -0.5, 0, 0.9, 3.2, 1e6}));
  cases.push_back(cast_case("f32_i32", DType::F32, DType::I32, {-2.7, -0.5, 0, 0.9, 3.2, 1e6}));
  cases.push_back(cast_case("f32_u8", DType::F32, DType::U8, {0, 0.9, 3.2, 200, 255}));
  cases.push_back(cast_case("f32_bool", DType::F32, DType::Bool, {0, 1, -3, 0.25}));
  cases.push_back(cast_case("f32_f16", DType::F32, DType::F16, {0, 1, -3, 0.1, 70000, 1e-7, 65504}));
  cases.push_back(cast_case("f16_f32", DType::F16, DType::F32, {0, 1, -3, 0.1, 1e-7, 65504}));
  cases.push_back(cast_case("bf16_f32", DType::BF16, DType::F32, {0, 1, -3, 0.1, 1e30}));
  cases.push_back(cast_case("f32_bf16", DType::F32, DType::BF16, {0, 1, -3, 0.1, 1e30}));
  cases.push_back(cast_case("i64_f32", DType::I64, DType::F32, {0, 1, -3, 12345678}));
  cases.push_back(cast_case("i32_i64", DType::I32, DType::I64, {0, 1, -3, 12345678}));
  cases.push_back(cast_case("u8_f32", DType::U8, DType::F32, {0, 1, 127, 255}));
  cases.push_back(cast_case("bool_f32", DType::Bool, DType::F32, {0, 1, 1}));
  return cases;
}

}  // namespace librt::test
