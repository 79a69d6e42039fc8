// Statuses and results of the C++ API in tests: that they are ok, and what an error says.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "rt/rt.hpp"

#define ASSERT_OK(expression)                                                       \
  do {                                                                              \
    const auto& asserted_status = (expression);                                     \
    ASSERT_TRUE(asserted_status.ok()) << librt::test::status_text(asserted_status); \
  } while (0)

namespace librt::test {

inline std::string status_text(const rt::Status& status) {
  return status.message();
}
template <class T>
std::string status_text(const rt::Result<T>& result) {
  return result.status().message();
}
template <class Outcome>
testing::AssertionResult says(const Outcome& outcome, std::string_view words) {
  if (!outcome.ok() && status_text(outcome).find(words) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected an error with '" << words << "', found '"
                                     << status_text(outcome) << "'";
}

}  // namespace librt::test
