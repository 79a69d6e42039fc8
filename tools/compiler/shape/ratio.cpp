#include "tools/compiler/shape/ratio.h"

#include <cmath>
#include <utility>

namespace librt::compiler {

Ratio ratio_of(float number) noexcept {
  if (!(number >= 0x1p-20f && number <= 0x1p20f)) return {};
  double rest = static_cast<double>(number);
  Ratio before{0, 1}, ratio{1, 0};
  for (;;) {
    const double whole = std::floor(rest);
    const auto digit = static_cast<int64_t>(whole);
    before = std::exchange(
        ratio, {digit * ratio.numerator + before.numerator, digit * ratio.denominator + before.denominator});
    if (static_cast<float>(static_cast<double>(ratio.numerator) / static_cast<double>(ratio.denominator)) ==
        number)
      return ratio;
    rest = 1 / (rest - whole);
  }
}

}  // namespace librt::compiler
