// Where: elements of one of two tensors.
#include "tests/cases/case.h"

namespace librt::test {

std::vector<Case> cases_select() {
  std::vector<Case> cases;
  cases.push_back(make_case("where_same", op::WhereAttributes{},
                            {tensor(DType::Bool, {3, 5}), f32({3, 5}), f32({3, 5})}));
  cases.push_back(
      make_case("where_broadcast", op::WhereAttributes{}, {tensor(DType::Bool, {5}), f32({3, 1}), f32({})}));
  cases.push_back(make_case("where_i64", op::WhereAttributes{},
                            {tensor(DType::Bool, {4}), tensor(DType::I64, {4}), tensor(DType::I64, {1})}));
  return cases;
}

}  // namespace librt::test
