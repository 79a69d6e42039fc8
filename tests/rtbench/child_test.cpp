// What is said of a program that failed.
#include "tools/rtbench/child.h"

#include <gtest/gtest.h>

namespace librt::bench {
namespace {

TEST(LastError, IsTheProgramsOwnLastLine) {
  EXPECT_EQ(last_error("rttrain", "rttrain: reading\nwarning\nrttrain: no memory\n"), "no memory");
}

TEST(LastError, IsElseTheFirstLineInWords) {
  EXPECT_EQ(last_error("rttrain", "--------\n\nmpirun has detected an attempt to run as root.\nmore\n"),
            "rttrain failed: mpirun has detected an attempt to run as root.");
}

TEST(LastError, MayBeMissing) {
  EXPECT_EQ(last_error("rttrain", ""), "rttrain failed without a message");
  EXPECT_EQ(last_error("rttrain", "----\n"), "rttrain failed without a message");
}

}  // namespace
}  // namespace librt::bench
