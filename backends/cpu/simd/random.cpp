// Philox4x32-10 of runtime/core/philox.h, sixteen blocks at a time, duplicated here because nothing inline
// may be shared between instruction sets.
#include "backends/cpu/simd/random.h"

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"

namespace librt::cpu::RT_SIMD_ISA {
namespace {

constexpr int kBlocks = RandomLoops::kBlocks;

struct Words {
  uint32_t of[4][kBlocks];
};

RT_INLINE void philox(uint64_t seed, uint64_t counter, uint64_t index, Words& words) {
  uint32_t(&x)[4][kBlocks] = words.of;
  for (int i = 0; i < kBlocks; ++i) {
    const uint64_t number = index + static_cast<uint64_t>(i);
    x[0][i] = static_cast<uint32_t>(number);
    x[1][i] = static_cast<uint32_t>(number >> 32);
    x[2][i] = static_cast<uint32_t>(counter);
    x[3][i] = static_cast<uint32_t>(counter >> 32);
  }
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (int i = 0; i < kBlocks; ++i) {
      const uint64_t a = uint64_t{0xD2511F53u} * x[0][i], b = uint64_t{0xCD9E8D57u} * x[2][i];
      const uint32_t first = static_cast<uint32_t>(b >> 32) ^ x[1][i] ^ key0;
      const uint32_t third = static_cast<uint32_t>(a >> 32) ^ x[3][i] ^ key1;
      x[0][i] = first;
      x[1][i] = static_cast<uint32_t>(b);
      x[2][i] = third;
      x[3][i] = static_cast<uint32_t>(a);
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

RT_INLINE float unit(uint32_t bits) {
  return static_cast<float>(static_cast<int32_t>(bits >> 8)) * 0x1p-24f;
}

void uniform(uint64_t seed, uint64_t counter, uint64_t index, float* y) {
  Words words;
  philox(seed, counter, index, words);
  for (int i = 0; i < kBlocks; ++i)
    for (int k = 0; k < 4; ++k) y[4 * i + k] = unit(words.of[k][i]);
}

/// Box-Muller: sqrt(-2 log(1 - u)) times cosine and sine of 2 pi v.
void normal(uint64_t seed, uint64_t counter, uint64_t index, float* y) {
  Words words;
  philox(seed, counter, index, words);
  float made[4][kBlocks];
  for (int pair = 0; pair < 4; pair += 2) {
#pragma omp simd
    for (int i = 0; i < kBlocks; ++i) {
      const float radius = __builtin_sqrtf(-2.0f * log(1.0f - unit(words.of[pair][i])));
      const float angle = 6.28318531f * unit(words.of[pair + 1][i]);
      made[pair][i] = radius * sine(angle, 1);
      made[pair + 1][i] = radius * sine(angle, 0);
    }
  }
  for (int i = 0; i < kBlocks; ++i)
    for (int k = 0; k < 4; ++k) y[4 * i + k] = made[k][i];
}

constexpr RandomLoops make_loops() {
  RandomLoops table{};
  table.random[0] = &uniform;
  table.random[1] = &normal;
  return table;
}

}  // namespace

}  // namespace librt::cpu::RT_SIMD_ISA

RT_DEFINE_LOOPS(RandomLoops);
