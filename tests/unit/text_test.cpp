// Numbers and strings in messages.
#include "runtime/core/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace librt {
namespace {

template <class T>
using Limits = std::numeric_limits<T>;

TEST(Text, WritesIntegersOfEachSize) {
  EXPECT_EQ(text(0, " ", 7u, " ", -1, " ", int64_t{-10}), "0 7 -1 -10");
  EXPECT_EQ(text(Limits<int64_t>::min(), " ", Limits<int64_t>::max()),
            "-9223372036854775808 9223372036854775807");
  EXPECT_EQ(text(Limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(text(static_cast<int8_t>(-128), " ", static_cast<uint16_t>(65535)), "-128 65535");
}

TEST(Text, WritesFloatsThatReadBackEqual) {
  EXPECT_EQ(text(0.1f, " ", 0.1, " ", -2.5f), "0.1 0.1 -2.5");
  EXPECT_EQ(text(1e30f, " ", true, " ", 'x', " ", std::string("y")), "1e+30 true x y");
}

TEST(Text, TakesNumbersOneAfterTheOther) {
  const std::string line = text(0.1, "  ", 2.5e-7, " ", 3, " max");
  const char* rest = line.c_str();
  EXPECT_EQ(take_number(rest), 0.1);
  EXPECT_EQ(take_number(rest), 2.5e-7);
  EXPECT_EQ(take_number(rest), 3);
  EXPECT_EQ(take_number(rest), 0);
  EXPECT_STREQ(rest, "max");
  rest = "";
  EXPECT_EQ(take_number(rest), 0);
  EXPECT_STREQ(rest, "");
}

}  // namespace
}  // namespace librt
