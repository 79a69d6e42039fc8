// Transfers and timestamps on a GPU whose memory types and queues a layer pretends (RT_TEST_DEVICE); another
// one counts submissions (RT_TEST_SUBMISSIONS).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "runtime/backend/registry.h"

namespace librt {
namespace {

using Bytes = std::vector<std::byte>;

Bytes pattern(size_t count, size_t seed) {
  Bytes bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((i * 31 + i / 4096 + seed) % 251);
  return bytes;
}

bool pretends(std::string_view word) {
  return std::string_view(std::getenv("RT_TEST_DEVICE")).find(word) != std::string_view::npos;
}

/// Submissions with work since this was made.
class Submissions {
 public:
  Submissions() { std::filesystem::remove(path()); }
  int count() const {
    std::ifstream file(path());
    int lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    return lines;
  }

 private:
  static const char* path() { return std::getenv("RT_TEST_SUBMISSIONS"); }
};

class MemoryTypes : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_device("vulkan", {.validation = true});
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    device = std::move(*opened);
  }
  DevicePtr device;
  /// The host writes to tensors, or reads and writes them.
  const bool written = pretends("bar") || pretends("uncached") || read();
  static bool read() { return pretends("integrated") && !pretends("uncached"); }
};

TEST_F(MemoryTypes, TransfersOfAnySize) {
  constexpr size_t kMost = (size_t{21} << 20) + 64;
  const SlabPtr slab = device->allocate(kMost).value();
  EXPECT_EQ(slab->host() != nullptr, read());
  size_t seed = 0;
  for (const size_t size : {size_t{1}, size_t{1000}, size_t{2} << 20, (size_t{2} << 20) + 5, kMost - 64})
    for (const size_t offset : {size_t{0}, size_t{3}, size_t{64}}) {
      const Bytes given = pattern(size, ++seed);
      const Submissions writing;
      ASSERT_TRUE(device->upload(*slab, offset, given).ok());
      EXPECT_EQ(writing.count() == 0, written) << writing.count();
      Bytes found(size);
      const Submissions reading;
      ASSERT_TRUE(device->download(*slab, offset, found).ok());
      EXPECT_EQ(reading.count() == 0, read()) << reading.count();
      EXPECT_EQ(given, found) << size << " bytes at " << offset;
    }
}

TEST_F(MemoryTypes, TransfersAreOrderedWithWork) {
  constexpr size_t kBytes = size_t{5} << 20;
  const SlabPtr from = device->allocate(kBytes).value(), to = device->allocate(kBytes).value();
  Slab* const slots[] = {from.get(), to.get()};
  const CommandListPtr commands = device->begin({.slots = slots}).value();
  ASSERT_TRUE(commands->copy({1, 0, kBytes}, {0, 0, kBytes}).ok());
  ASSERT_TRUE(commands->finish().ok());
  for (size_t round = 0; round < 3; ++round) {
    const Bytes given = pattern(kBytes, round);
    ASSERT_TRUE(device->upload(*from, 0, given).ok());
    ASSERT_TRUE(commands->submit().ok());
    const Bytes other = pattern(kBytes, round + 100);  // after the work
    ASSERT_TRUE(device->upload(*from, 0, other).ok());
    Bytes found(kBytes);
    ASSERT_TRUE(device->download(*to, 0, found).ok());
    EXPECT_EQ(given, found);
  }
  ASSERT_TRUE(commands->wait().ok());
}

TEST_F(MemoryTypes, ExchangeMemory) {
  constexpr size_t kBytes = 100000;
  const SlabPtr exchange = device->allocate_exchange(2 * kBytes).value(),
                slab = device->allocate(kBytes).value();
  Slab* const slots[] = {exchange.get(), slab.get()};
  const CommandListPtr commands = device->begin({.slots = slots}).value();
  ASSERT_TRUE(commands->copy({1, 0, kBytes}, {0, 0, kBytes}).ok());
  ASSERT_TRUE(commands->copy({0, kBytes, kBytes}, {1, 0, kBytes}).ok());
  ASSERT_TRUE(commands->finish().ok());
  const Bytes given = pattern(kBytes, 7);
  const Submissions submissions;
  ASSERT_TRUE(device->upload(*exchange, 0, given).ok());
  ASSERT_TRUE(commands->submit().ok());
  ASSERT_TRUE(commands->wait().ok());
  Bytes found(kBytes);
  ASSERT_TRUE(device->download(*exchange, kBytes, found).ok());
  EXPECT_EQ(given, found);
  EXPECT_EQ(submissions.count(), 1);
}

TEST_F(MemoryTypes, TimesOfWork) {
  constexpr size_t kBytes = size_t{1} << 20;
  const SlabPtr slab = device->allocate(2 * kBytes).value();
  Slab* const slots[] = {slab.get()};
  const CommandListPtr commands = device->begin({.slots = slots, .spans = 2, .profile = true}).value();
  for (uint32_t span = 0; span < 2; ++span) {
    ASSERT_TRUE(commands->mark(span).ok());
    ASSERT_TRUE(commands->copy({0, kBytes, kBytes}, {0, 0, kBytes}).ok());
  }
  ASSERT_TRUE(commands->finish().ok());
  ASSERT_TRUE(commands->submit().ok());
  ASSERT_TRUE(commands->wait().ok());
  uint64_t nanoseconds[2] = {};
  ASSERT_TRUE(commands->timings(nanoseconds).ok());
  for (const uint64_t time : nanoseconds) {
    EXPECT_GT(time, 0u);
    EXPECT_LT(time, 10'000'000'000u);
  }
}

}  // namespace
}  // namespace librt
