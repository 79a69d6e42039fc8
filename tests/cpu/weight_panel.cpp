#include "tests/cpu/weight_panel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace librt::test {
namespace {

/// Against sums in f64. The results of columns that are not there stay as they are.
void check_panel(const cpu::WeightPanelLoops& loops, int bits, int64_t rows, int64_t columns, int64_t k,
                 int64_t group, int64_t block) {
  SCOPED_TRACE(::testing::Message() << bits << " bits, " << rows << "x" << k << " times " << columns);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto draw = [&](int64_t n) {
    std::vector<float> values(static_cast<size_t>(n));
    for (float& value : values) value = normal(random);
    return values;
  };
  const std::vector<float> x = draw(rows * k), scale = draw(k / group * cpu::kWeightColumns),
                           bias = draw(columns);
  std::vector<uint8_t> weights(static_cast<size_t>(k * bits / 8 * cpu::kWeightColumns));
  for (uint8_t& byte : weights) byte = static_cast<uint8_t>(random());
  // Of a panel's column: 4 bytes of neighbours along k, then those of the next column.
  const auto weight = [&](int64_t i, int64_t column) -> double {
    const int64_t byte = i * bits / 8;
    const uint8_t at = weights[static_cast<size_t>((byte / 4 * cpu::kWeightColumns + column) * 4 + byte % 4)];
    return bits == 8 ? static_cast<int8_t>(at) : (i % 2 == 0 ? at % 16 : at / 16) - 8;
  };
  const auto elements = static_cast<size_t>(rows * k), blocks = elements / static_cast<size_t>(block);
  std::vector<int8_t> high(elements), low(elements);
  std::vector<int32_t> start(blocks);
  std::vector<float> row_scale(blocks), y(static_cast<size_t>(rows * cpu::kWeightColumns), 7);
  const cpu::SplitRows split{high.data(), low.data(), start.data(), row_scale.data(), k, block};
  const int kind = bits == 4 ? 1 : 0;
  for (int64_t row = 0; row < rows; ++row) ASSERT_TRUE(loops.split_row[kind](x.data() + row * k, split, row));
  loops.multiply[kind]({.weights = reinterpret_cast<const int32_t*>(weights.data()),
                        .scale = scale.data(),
                        .bias = bias.data(),
                        .y = y.data(),
                        .next = weights.data(),
                        .group = group,
                        .stride = cpu::kWeightColumns,
                        .columns = columns},
                       split, 0, rows);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < cpu::kWeightColumns; ++column) {
      const float got = y[static_cast<size_t>(row * cpu::kWeightColumns + column)];
      if (column >= columns) {
        EXPECT_EQ(got, 7) << row << " " << column;
        continue;
      }
      double sum = bias[static_cast<size_t>(column)], squares = 0;
      for (int64_t i = 0; i < k; ++i) {
        const double product = x[static_cast<size_t>(row * k + i)] * weight(i, column) *
                               scale[static_cast<size_t>(i / group * cpu::kWeightColumns + column)];
        sum += product;
        squares += product * product;
      }
      EXPECT_NEAR(got, sum, 3e-4 * std::sqrt(squares) + 1e-5) << row << " " << column;
    }
}

}  // namespace

void check_weight_panels(const cpu::WeightPanelLoops& loops) {
  for (const int bits : {8, 4}) {
    check_panel(loops, bits, 1, 32, 32, 32, 32);
    check_panel(loops, bits, 5, 19, 96, 32, 32);
    check_panel(loops, bits, 4, 1, 80, 16, 16);
    check_panel(loops, bits, 7, 24, 192, 96, 32);
  }
  for (const float value : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    std::vector<float> x(64, 1), scale(2);
    x[40] = value;
    std::vector<int8_t> high(64), low(64);
    std::vector<int32_t> start(2);
    for (const int kind : {0, 1})
      EXPECT_FALSE(
          loops.split_row[kind](x.data(), {high.data(), low.data(), start.data(), scale.data(), 64, 32}, 0));
  }
}

}  // namespace librt::test
