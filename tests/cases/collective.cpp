// Collectives, with a single rank.
#include "tests/cases/case.h"

namespace librt::test {

std::vector<Case> cases_collective() {
  std::vector<Case> cases;
  const auto one = [&](const char* name, auto attributes, const CaseInput& x) {
    cases.push_back(no_gradient(make_case(name, attributes, {x})));
  };
  one("all_reduce", op::AllReduceAttributes{}, f32({5, 7}));
  one("all_reduce_f64", op::AllReduceAttributes{}, tensor(DType::F64, {3}));
  one("all_gather", op::AllGatherAttributes{}, f32({9}));
  one("collective_wait", op::CollectiveWaitAttributes{}, f32({4, 3}));
  one("rank_shard", op::RankShardAttributes{}, f32({5, 7}));
  return cases;
}

}  // namespace librt::test
