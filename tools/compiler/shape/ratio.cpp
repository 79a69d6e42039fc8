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

Ratio ratio_of_extents(float scale) noexcept {
  const Ratio ratio = ratio_of(scale);
  if (ratio.denominator == 0) return {};
  for (int64_t n = 1; n <= kComparedExtents; ++n)
    if (static_cast<int64_t>(static_cast<float>(n) * scale) != n * ratio.numerator / ratio.denominator)
      return {};
  return ratio;
}

}  // namespace librt::compiler
