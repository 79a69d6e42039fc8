#include "tools/compiler/train/block_state.h"

#include <algorithm>
#include <cmath>

namespace librt::compiler {

std::vector<float> dynamic_codebook(bool real) {
  constexpr int kDecades = 7;
  std::vector<float> numbers;
  for (int decade = 0; decade < kDecades; ++decade) {
    const int count = 1 << (real ? decade : decade + 1);
    for (int i = 0; i < count; ++i)
      numbers.push_back(
          static_cast<float>(std::pow(10.0, decade - kDecades + 1) * (0.1 + 0.9 * (i + 0.5) / count)));
  }
  if (real)
    numbers.back() = 1;
  else
    numbers.push_back(1);
  const size_t above = numbers.size();
  numbers.push_back(0);
  if (real)
    for (size_t i = 0; i < above; ++i) numbers.push_back(-numbers[i]);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace librt::compiler
