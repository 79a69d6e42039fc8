#include "tests/cpu/integer_tile.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace librt::test {

void check_integer_tile(const cpu::IntegerTile& tile) {
  constexpr int64_t kStride = cpu::IntegerGemmLoops::kMostColumns + 3;
  for (const int64_t groups : {1, 2, 9})
    for (int64_t m = 1; m <= tile.rows; ++m)
      for (int64_t n = 1; n <= tile.columns; ++n) {
        std::vector<uint8_t> a(static_cast<size_t>(tile.group * groups * tile.rows)),
            b(static_cast<size_t>(tile.group * groups * tile.columns));
        std::vector<int16_t> wide_a(a.size());
        for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<uint8_t>(i % 3 == 0 ? 128 : i * 89);
        for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<uint8_t>(i % 5 == 0 ? 128 : i * 57);
        for (size_t i = 0; i < a.size(); ++i)
          wide_a[i] = static_cast<int16_t>(i % 3 == 0 ? -128 : i % 7 == 0 ? 255 : a[i]);
        std::vector<int32_t> y(static_cast<size_t>((tile.rows + 1) * kStride), 7);
        const int64_t a_stride = tile.group * groups;
        tile.run(tile.wide_a ? reinterpret_cast<const uint8_t*>(wide_a.data()) : a.data(), 2 * a_stride,
                 b.data(), groups, y.data(), kStride, m, n);
        int wrong = 0;
        for (int64_t i = 0; i <= tile.rows; ++i)
          for (int64_t j = 0; j < kStride; ++j) {
            int32_t expected = i < m && j < n ? 0 : 7;
            for (int64_t p = 0; i < m && j < n && p < tile.group * groups; ++p) {
              const int64_t group = p / tile.group, step = p % tile.group;
              const auto at = static_cast<size_t>(tile.wide_a ? i * a_stride + p
                                                              : (group * tile.rows + i) * tile.group + step);
              const uint8_t w = b[static_cast<size_t>((group * tile.columns + j) * tile.group + step)];
              expected += (tile.wide_a     ? wide_a[at]
                           : tile.a_signed ? static_cast<int8_t>(a[at])
                                           : a[at]) *
                          static_cast<int8_t>(w);
            }
            wrong += y[static_cast<size_t>(i * kStride + j)] == expected ? 0 : 1;
          }
        ASSERT_EQ(wrong, 0) << "groups " << groups << " m " << m << " n " << n;
      }
}

}  // namespace librt::test
