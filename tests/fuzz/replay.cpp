// Runs a fuzz target without libFuzzer: over given files, and over deterministic mutations of them.
//
//   replay [--mutations=N] FILE...
//
// Deterministic: the same arguments give the same inputs everywhere. With RT_REPLAY_TRACE set, each input is
// named on stderr first, so that the last line before a report identifies it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

/// Edge-case values for parsers.
constexpr uint64_t kInteresting[] = {0,          1,      2,          0x7f,       0x80,       0xff,
                                     0x7fff,     0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 40,
                                     1ull << 63, ~0ull,  0xfffffffe, 4,          8,          64};

Bytes mutated(const Bytes& seed, const Bytes& other, std::mt19937_64& random) {
  Bytes bytes = seed;
  const auto below = [&](size_t limit) { return limit == 0 ? 0 : static_cast<size_t>(random() % limit); };
  for (size_t count = 1 + below(4); count > 0 && !bytes.empty(); --count) {
    const size_t at = below(bytes.size());
    const size_t left = bytes.size() - at;
    switch (below(7)) {
      case 0: bytes[at] = static_cast<uint8_t>(bytes[at] ^ (1u << below(8))); break;
      case 1: bytes[at] = static_cast<uint8_t>(random()); break;
      case 2: {
        const uint64_t number = kInteresting[below(std::size(kInteresting))];
        std::memcpy(bytes.data() + at, &number, std::min<size_t>(left, size_t{1} << below(4)));
        break;
      }
      case 3: {  // a small change: offsets and sizes that are slightly wrong
        uint32_t number = 0;
        const size_t size = std::min<size_t>(left, 4);
        std::memcpy(&number, bytes.data() + at, size);
        number += static_cast<uint32_t>(below(33)) - 16u;
        std::memcpy(bytes.data() + at, &number, size);
        break;
      }
      case 4: bytes.resize(at); break;
      case 5: {  // a chunk copied from another position or seed
        const Bytes& from = below(2) == 0 ? seed : other;
        const size_t start = below(from.size());
        const size_t size = std::min<size_t>({left, from.size() - start, 1 + below(64)});
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(start), size,
                    bytes.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      }
      default:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), 1 + below(16),
                     static_cast<uint8_t>(random()));
    }
  }
  return bytes;
}

}  // namespace

int main(int count, char** arguments) {
  long mutations = 0;
  std::vector<std::pair<std::string, Bytes>> seeds;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument.rfind("--mutations=", 0) == 0) {
      mutations = std::strtol(argument.c_str() + 12, nullptr, 10);
      continue;
    }
    std::ifstream in(argument, std::ios::binary);
    if (!in) {
      std::fprintf(stderr, "replay: cannot read %s\n", argument.c_str());
      return 2;
    }
    seeds.emplace_back(argument,
                       Bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>()));
  }
  if (seeds.empty()) {
    std::fprintf(stderr, "usage: replay [--mutations=N] FILE...\n");
    return 2;
  }
  long inputs = 0;
  for (size_t i = 0; i < seeds.size(); ++i) {
    const auto& [name, seed] = seeds[i];
    LLVMFuzzerTestOneInput(seed.data(), seed.size());
    ++inputs;
    std::mt19937_64 random(i);
    for (long m = 0; m < mutations; ++m, ++inputs) {
      const Bytes bytes = mutated(seed, seeds[static_cast<size_t>(random() % seeds.size())].second, random);
      if (std::getenv("RT_REPLAY_TRACE") != nullptr)
        std::fprintf(stderr, "%s, mutation %ld\n", name.c_str(), m);
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
  }
  std::printf("%ld inputs from %zu seeds\n", inputs, seeds.size());
  return 0;
}
