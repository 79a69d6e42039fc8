// Connectionist temporal classification.
#include "tests/cases/case.h"

namespace librt::test {

std::vector<Case> cases_ctc() {
  std::vector<Case> cases;
  const CaseInput labels = with_values(tensor(DType::I64, {3, 4}), {1, 2, 2, 3, 4, 4, 0, 0, 3, 1, 2, 4});
  const auto lengths = [](DType dtype, std::vector<double> values) {
    return with_values(tensor(dtype, {3}), std::move(values));
  };
  op::CtcLossAttributes ctc;
  const CaseInput x = in_range(f32({9, 3, 5}), -3, -0.2);
  cases.push_back(with_outputs(
      make_case("ctc_loss", ctc, {x, labels, lengths(DType::I64, {9, 7, 9}), lengths(DType::I64, {4, 2, 3})}),
      2));
  ctc.blank = 4;
  const CaseInput without_blank =
      with_values(tensor(DType::I32, {3, 4}), {1, 2, 2, 3, 0, 0, 3, 3, 3, 1, 2, 0});
  cases.push_back(with_outputs(
      make_case("ctc_loss_last_blank", ctc,
                {x, without_blank, lengths(DType::I32, {9, 5, 1}), lengths(DType::I32, {4, 2, 0})}),
      2));
  ctc.blank = 0;
  ctc.zero_infinity = true;  // the second label sequence is too long for its input
  cases.push_back(
      with_outputs(make_case("ctc_loss_too_short", ctc,
                             {x, labels, lengths(DType::I64, {9, 2, 8}), lengths(DType::I64, {4, 2, 4})}),
                   2));
  return cases;
}

}  // namespace librt::test
