// Losses with a gradient of their own.
#include "tests/cases/case.h"

namespace librt::test {

std::vector<Case> cases_loss() {
  std::vector<Case> cases;
  cases.push_back(make_case("softmax_cross_entropy", op::SoftmaxCrossEntropyAttributes{},
                            {f32({6, 5}), with_values(tensor(DType::I64, {6}), {0, 4, 2, 2, 1, 3})}));
  return cases;
}

}  // namespace librt::test
