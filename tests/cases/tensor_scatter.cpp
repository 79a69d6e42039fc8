// Writing into a cache at positions.
#include "tests/cases/case.h"

namespace librt::test {
namespace {

CaseInput starts(std::vector<double> values) {
  const CaseInput input = tensor(DType::I64, {static_cast<int64_t>(values.size())});
  return with_values(input, std::move(values));
}

}  // namespace

std::vector<Case> cases_tensor_scatter() {
  std::vector<Case> cases;
  const auto scatter = [](int64_t axis, bool circular) {
    op::TensorScatterAttributes attributes;
    attributes.axis = axis;
    attributes.circular = circular;
    return attributes;
  };
  cases.push_back(make_case("tensor_scatter", scatter(-2, false),
                            {f32({3, 2, 7, 4}), f32({3, 2, 3, 4}), starts({0, 4, 2})}));
  cases.push_back(
      make_case("tensor_scatter_start", scatter(1, false), {f32({2, 5, 3, 2}), f32({2, 2, 3, 2})}));
  cases.push_back(make_case("tensor_scatter_circular", scatter(-2, true),
                            {f32({2, 3, 5, 4}), f32({2, 3, 4, 4}), starts({3, 9})}));
  cases.push_back(make_case("tensor_scatter_last", scatter(-1, false),
                            {f32({2, 3, 5}), f32({2, 3, 2}), with_values(tensor(DType::I32, {2}), {1, 3})}));
  // Rows that would be before or past the cache are not written, and have no gradient.
  cases.push_back(make_case("tensor_scatter_outside", scatter(1, false),
                            {f32({5, 6, 3}), f32({5, 2, 3}), starts({-1, 5, 9, -4, 2})}));
  cases.push_back(no_gradient(make_case("tensor_scatter_empty", scatter(1, true),
                                        {f32({2, 0, 3}), f32({2, 0, 3}), starts({1, -2})})));
  cases.push_back(
      no_gradient(make_case("tensor_scatter_f16", scatter(1, false),
                            {tensor(DType::F16, {2, 5, 3}), tensor(DType::F16, {2, 1, 3}), starts({4, 0})})));
  cases.push_back(make_case("tensor_scatter_u8", scatter(1, true),
                            {in_range(tensor(DType::U8, {2, 5, 3}), 0, 50),
                             in_range(tensor(DType::U8, {2, 2, 3}), 0, 50), starts({4, 0})}));
  return cases;
}

}  // namespace librt::test
