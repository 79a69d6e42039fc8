// What ends a run early.
#include "runtime/core/stop_signal.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace librt::test {
namespace {

TEST(StopSignal, RequestsDeadlinesAndIterations) {
  StopSignal stop;
  stop.begin(0, 0);
  EXPECT_TRUE(stop.check().ok());
  stop.request();
  EXPECT_EQ(stop.check().code(), Code::Cancelled);
  stop.withdraw();
  EXPECT_TRUE(stop.check().ok());
  stop.begin(1, 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(stop.check().code(), Code::LimitExceeded);
  stop.begin(0, 2);
  EXPECT_TRUE(stop.next_iteration().ok());
  EXPECT_TRUE(stop.next_iteration().ok());
  EXPECT_EQ(stop.next_iteration().code(), Code::LimitExceeded);
}

/// A request that is withdrawn while a run without a time limit looks at it is a request or none.
TEST(StopSignal, WithdrawnRequestsAreNoDeadline) {
  StopSignal stop;
  stop.begin(0, 0);
  std::atomic<bool> done = false;
  std::jthread other([&] {
    while (!done) {
      stop.request();
      stop.withdraw();
    }
  });
  // Many requests seen, so many also seen half way; on one core that is a matter of time slices.
  constexpr int kWanted = 100'000;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  int cancelled = 0;
  while (cancelled < kWanted && std::chrono::steady_clock::now() < end) {
    const Status status = stop.check();
    if (status.ok()) continue;
    ++cancelled;
    if (status.code() != Code::Cancelled) {
      ADD_FAILURE() << "after " << cancelled << " requests: " << status.message();
      break;
    }
  }
  done = true;
  EXPECT_GT(cancelled, 0);
}

}  // namespace
}  // namespace librt::test
