// Rotary position embeddings.
#include "tests/cases/case.h"

namespace librt::test {

std::vector<Case> cases_rotary() {
  std::vector<Case> cases;
  const auto rotary = [](bool interleaved, int64_t dimension) {
    op::RotaryEmbeddingAttributes attributes;
    attributes.interleaved = interleaved;
    attributes.rotary_dimension = dimension;
    return attributes;
  };
  cases.push_back(
      make_case("rotary_embedding", rotary(false, 0), {f32({2, 3, 5, 8}), f32({2, 5, 4}), f32({2, 5, 4})}));
  cases.push_back(make_case("rotary_embedding_interleaved", rotary(true, 0),
                            {f32({2, 3, 5, 8}), f32({1, 5, 4}), f32({1, 5, 4})}));
  cases.push_back(make_case("rotary_embedding_part", rotary(false, 4),
                            {f32({2, 3, 5, 10}), f32({2, 5, 2}), f32({2, 5, 2})}));
  cases.push_back(make_case("rotary_embedding_interleaved_part", rotary(true, 6),
                            {f32({2, 3, 5, 7}), f32({1, 5, 3}), f32({1, 5, 3})}));
  return cases;
}

}  // namespace librt::test
