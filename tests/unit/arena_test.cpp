// An allocator in memory of the application: blocks apart from each other, and all of it free again at the
// end.
#include "runtime/session/memory/arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace librt {
namespace {

constexpr size_t kLine = 64;

TEST(Arena, BlocksAreApartAndFreeMemoryBecomesOneAgain) {
  std::mt19937 random(7);
  for (const size_t shift : {0, 1, 63}) {
    std::vector<std::byte> memory(200'000 + shift, std::byte{1});
    std::byte* const begin = memory.data() + shift;
    const size_t size = memory.size() - shift - 3;
    const rt_allocator arena = arena_allocator(begin, size);
    struct Block {
      std::byte* at;
      size_t bytes;
      std::byte mark;
    };
    std::vector<Block> blocks;
    size_t refused = 0;
    const auto free_one = [&](size_t which) {
      const Block block = blocks[which];
      for (size_t i = 0; i < block.bytes; ++i) ASSERT_EQ(block.at[i], block.mark);
      arena.free(arena.user, block.at, block.bytes, kLine);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(which));
    };
    for (int step = 0; step < 20'000; ++step) {
      if (!blocks.empty() && random() % 2 == 0) {
        free_one(random() % blocks.size());
        continue;
      }
      const size_t bytes = kLine * (1 + random() % (step % 5 == 0 ? 500 : 20));
      auto* at = static_cast<std::byte*>(arena.allocate(arena.user, bytes, kLine));
      if (at == nullptr) {
        ++refused;
        continue;
      }
      ASSERT_EQ(reinterpret_cast<uintptr_t>(at) % kLine, 0u);
      ASSERT_GE(at, begin);
      ASSERT_LE(at + bytes, begin + size);
      const auto mark = static_cast<std::byte>(step);
      std::memset(at, std::to_integer<int>(mark), bytes);
      blocks.push_back({at, bytes, mark});
    }
    EXPECT_GT(refused, 0u);
    while (!blocks.empty()) free_one(blocks.size() - 1);
    const size_t whole = (size - 3 * kLine) / kLine * kLine;
    void* all = arena.allocate(arena.user, whole, kLine);
    EXPECT_NE(all, nullptr);
    EXPECT_EQ(arena.allocate(arena.user, 2 * kLine, kLine), nullptr);
    arena.free(arena.user, all, whole, kLine);
    for (size_t i = 0; i < shift; ++i) EXPECT_EQ(memory[i], std::byte{1});
    for (size_t i = memory.size() - 3; i < memory.size(); ++i) EXPECT_EQ(memory[i], std::byte{1});
  }
}

TEST(Arena, TheSmallestHoldsABlockWhereverItBegins) {
  alignas(kLine) std::byte memory[kLeastArena + kLine];
  for (size_t shift = 0; shift < kLine; ++shift) {
    const rt_allocator arena = arena_allocator(memory + shift, kLeastArena);
    EXPECT_NE(arena.allocate(arena.user, kLine, kLine), nullptr) << shift;
    EXPECT_EQ(arena.allocate(arena.user, 2 * kLine, kLine), nullptr) << shift;
  }
}

}  // namespace
}  // namespace librt
