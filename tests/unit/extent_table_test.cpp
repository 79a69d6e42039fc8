// Symbolic extent expressions: normal form, rules, proofs, and terms in files, against plain arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "runtime/core/random.h"
#include "tools/compiler/shape/extent_table.h"

namespace librt::compiler {
namespace {

struct Names {
  ExtentTable table;
  Extent n = table.symbol(0), m = table.symbol(1);
  std::vector<Symbol> names = {{"n", 0, {}}, {"m", 0, {}}};

  Extent plus(Extent a, int64_t b) { return table.add(a, number(b)); }
  std::string text(Extent a) { return table.text_of(a, names); }
};

TEST(ExtentTable, WhatIsEqualIsOneExpression) {
  Names t;
  ExtentTable& e = t.table;
  EXPECT_EQ(e.subtract(e.add(t.n, t.m), t.m), t.n);
  EXPECT_EQ(e.multiply(e.add(t.n, t.m), e.subtract(t.n, t.m)),
            e.subtract(e.multiply(t.n, t.n), e.multiply(t.m, t.m)));
  // Two strides of 2 are one of 4: ceil(ceil(n / 2) / 2).
  EXPECT_EQ(e.ceil_divide(e.ceil_divide(t.n, number(2)), number(2)), e.ceil_divide(t.n, number(4)));
  EXPECT_EQ(e.floor_divide(e.add(e.scale(t.n, 6), number(4)), number(3)), t.plus(e.scale(t.n, 2), 1));
  EXPECT_EQ(e.floor_divide(e.multiply(t.n, t.m), t.m), t.n);
  EXPECT_EQ(e.minimum(t.n, number(16)), e.subtract(t.n, e.maximum(t.plus(t.n, -16), number(0))));
  EXPECT_EQ(e.is_zero(e.scale(t.n, 3)), e.is_zero(t.n));
  EXPECT_TRUE(e.is_zero(t.plus(e.scale(t.n, 2), 1)).is_constant(0));
  EXPECT_FALSE(e.minimum(t.n, number(16)) == number(16));
  EXPECT_FALSE(e.floor_divide(t.n, number(160)) == number(0));
}

TEST(ExtentTable, Broadcasting) {
  Names t;
  EXPECT_EQ(t.table.broadcast(t.n, number(1)), t.n);
  EXPECT_EQ(t.table.broadcast(t.n, number(7)), number(7));
  EXPECT_EQ(t.table.broadcast(t.n, t.n), t.n);
  const Extent both = t.table.broadcast(t.n, t.m);
  const std::vector<int64_t> first{1, 5}, second{5, 1}, equal{4, 4}, empty{0, 1};
  EXPECT_EQ(t.table.evaluate(both, first), 5);
  EXPECT_EQ(t.table.evaluate(both, second), 5);
  EXPECT_EQ(t.table.evaluate(both, equal), 4);
  EXPECT_EQ(t.table.evaluate(both, empty), 0);
}

TEST(ExtentTable, Proofs) {
  Names t;
  ExtentTable& e = t.table;
  EXPECT_TRUE(e.is_nonnegative(e.minimum(t.n, number(16))));
  EXPECT_TRUE(e.is_at_least(e.add(t.n, number(3)), 3));
  EXPECT_TRUE(e.is_nonnegative(e.subtract(t.n, e.scale(e.floor_divide(t.n, number(7)), 7))));
  EXPECT_FALSE(e.is_nonnegative(t.plus(t.n, -1)));  // an extent may be 0
  e.assume_nonnegative(t.plus(t.n, -4));            // a window of 4 fits
  EXPECT_TRUE(e.is_nonnegative(t.plus(t.n, -1)));
}

TEST(ExtentTable, EquationsAreSolvedForASymbol) {
  Names t;
  ExtentTable& e = t.table;
  const auto all = [](int32_t) { return true; };
  // 96 m = n m, for m other than 0
  const Extent difference = e.primitive(e.subtract(e.scale(t.m, 96), e.multiply(t.n, t.m)));
  const auto solution = e.solve(difference, all);
  ASSERT_TRUE(solution.has_value());
  EXPECT_EQ(solution->first, 0);
  EXPECT_EQ(solution->second, number(96));
  EXPECT_EQ(e.equation_text(e.subtract(e.multiply(t.n, t.m), number(12)), t.names), "n*m = 12");
  EXPECT_FALSE(e.solve(e.subtract(e.multiply(t.n, t.m), number(12)), all).has_value());
}

TEST(ExtentTable, Text) {
  Names t;
  ExtentTable& e = t.table;
  EXPECT_EQ(t.text(e.minimum(t.n, number(16))), "min(n, 16)");
  EXPECT_EQ(t.text(e.maximum(t.plus(t.n, -2), number(0))), "max(n - 2, 0)");
  EXPECT_EQ(t.text(t.plus(e.floor_divide(t.plus(t.n, 1), number(2)), 3)), "floor((n + 1) / 2) + 3");
}

TEST(ExtentTable, TextOfPartsThatShareParts) {
  Names t;
  ExtentTable& e = t.table;
  Extent a = t.n;
  for (int64_t i = 0; i < 30 && !a.is_unknown(); ++i) {
    EXPECT_LT(t.text(a).size(), 4096U);
    a = e.maximum(e.floor_divide(a, number(2)), t.plus(e.minimum(a, number(100 + i)), i));
  }
}

/// A random expression, by the table and by plain arithmetic.
struct Random {
  uint64_t state;
  ExtentTable& table;
  std::vector<Extent> symbols;
  using Plain = std::function<std::optional<int64_t>(const std::vector<int64_t>&)>;
  struct Both {
    Extent extent;
    Plain plain;
  };

  int64_t pick(int64_t count) { return static_cast<int64_t>(split_mix(state) >> 1) % count; }

  Both make(int depth) {
    if (depth == 0 || pick(6) == 0) {
      if (pick(3) == 0) {
        const int64_t value = pick(41) - 20;
        return {number(value), [value](const auto&) { return std::optional(value); }};
      }
      const auto which = static_cast<size_t>(pick(static_cast<int64_t>(symbols.size())));
      return {symbols[which], [which](const auto& values) { return std::optional(values[which]); }};
    }
    const Both a = make(depth - 1), b = make(depth - 1);
    const auto with = [&](Extent extent, auto function) {
      return Both{extent, [a, b, function](const auto& values) -> std::optional<int64_t> {
                    const auto x = a.plain(values), y = b.plain(values);
                    if (!x || !y) return std::nullopt;
                    return function(*x, *y);
                  }};
    };
    using Number = std::optional<int64_t>;
    const int64_t divisor = 1 + pick(9);
    switch (pick(9)) {
      case 0: return with(table.add(a.extent, b.extent), [](int64_t x, int64_t y) { return Number(x + y); });
      case 1:
        return with(table.subtract(a.extent, b.extent), [](int64_t x, int64_t y) { return Number(x - y); });
      case 2:
        return with(table.multiply(a.extent, b.extent), [](int64_t x, int64_t y) { return Number(x * y); });
      case 3:
        return with(table.floor_divide(a.extent, number(divisor)),
                    [divisor](int64_t x, int64_t) { return Number(floor_divide(x, divisor)); });
      case 4:
        return with(table.truncated_divide(a.extent, number(divisor)),
                    [divisor](int64_t x, int64_t) { return Number(x / divisor); });
      case 5:
        return with(table.maximum(a.extent, b.extent),
                    [](int64_t x, int64_t y) { return Number(std::max(x, y)); });
      case 6:
        return with(table.minimum(a.extent, b.extent),
                    [](int64_t x, int64_t y) { return Number(std::min(x, y)); });
      case 7: return with(table.is_zero(a.extent), [](int64_t x, int64_t) { return Number(x == 0); });
      default: return with(table.is_negative(a.extent), [](int64_t x, int64_t) { return Number(x < 0); });
    }
  }
};

TEST(ExtentTable, RandomExpressionsHaveTheirPlainValues) {
  int known = 0, proven = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    ExtentTable table;
    Random random{seed, table, {table.symbol(0), table.symbol(1), table.symbol(2)}};
    const Random::Both both = random.make(4);
    if (both.extent.is_unknown()) continue;
    ++known;
    const bool nonnegative = table.is_nonnegative(both.extent);
    proven += nonnegative && !both.extent.is_constant();
    const std::vector<ExtentTerm> terms = table.terms(both.extent);
    for (int sample = 0; sample < 12; ++sample) {
      std::vector<int64_t> values;
      for (int i = 0; i < 3; ++i) values.push_back(random.pick(sample % 2 == 0 ? 4 : 40));
      const auto wanted = both.plain(values);
      ASSERT_TRUE(wanted.has_value());
      const auto found = table.evaluate(both.extent, values);
      ASSERT_EQ(found, wanted) << "seed " << seed;
      if (nonnegative) {
        ASSERT_GE(*wanted, 0) << "seed " << seed;
      }
      if (!terms.empty()) {
        ASSERT_TRUE(is_expression(terms, 3));
        ASSERT_EQ(evaluate(terms, values), wanted) << "seed " << seed;
      }
    }
    const std::vector<Extent>& symbols = random.symbols;
    if (!terms.empty()) {
      ASSERT_EQ(table.from_terms(terms, [&](int32_t i) { return symbols[static_cast<size_t>(i)]; }),
                both.extent)
          << "seed " << seed;
    }
  }
  EXPECT_GT(known, 2500);
  EXPECT_GT(proven, 200);
}

TEST(Extent, TermsOfFilesAreChecked) {
  using enum ExtentOp;
  EXPECT_TRUE(is_expression(std::vector<ExtentTerm>{{Symbol, 0}, {Constant, 2}, {FloorDivide, 0}}, 1));
  EXPECT_FALSE(is_expression(std::vector<ExtentTerm>{}, 1));
  EXPECT_FALSE(is_expression(std::vector<ExtentTerm>{{Symbol, 1}}, 1));
  EXPECT_FALSE(is_expression(std::vector<ExtentTerm>{{Symbol, -1}}, 1));
  EXPECT_FALSE(is_expression(std::vector<ExtentTerm>{{Symbol, 0}, {Add, 0}}, 1));
  EXPECT_FALSE(is_expression(std::vector<ExtentTerm>{{Symbol, 0}, {Symbol, 0}}, 1));
  EXPECT_FALSE(is_expression(std::vector<ExtentTerm>{{static_cast<ExtentOp>(8), 0}}, 1));
  EXPECT_FALSE(is_expression(std::vector<ExtentTerm>(kMostExtentDepth + 1, {Constant, 1}), 1));
  const std::vector<int64_t> five{5}, unknown{-1};
  EXPECT_EQ(evaluate(std::vector<ExtentTerm>{{Symbol, 0}, {Constant, 0}, {FloorDivide, 0}}, five),
            std::nullopt);
  EXPECT_EQ(evaluate(std::vector<ExtentTerm>{{Symbol, 0}}, unknown), std::nullopt);
  EXPECT_EQ(evaluate(std::vector<ExtentTerm>{{Constant, INT64_MAX}, {Constant, 2}, {Multiply, 0}}, five),
            std::nullopt);
  EXPECT_EQ(evaluate(std::vector<ExtentTerm>{{Constant, INT64_MIN}, {Constant, -1}, {FloorDivide, 0}}, five),
            std::nullopt);
}

}  // namespace
}  // namespace librt::compiler
