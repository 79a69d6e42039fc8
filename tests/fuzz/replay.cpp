// Runs a fuzz target without libFuzzer: over given files, and over deterministic mutations of them, by the
// target's own mutator if it has one.
//
//   replay [--mutations=N] [--from=N] [--keep=FILE] FILE|FOLDER...
//
// Deterministic: the same arguments give the same inputs everywhere; --from is the number of the first
// mutation of each seed. --keep writes each mutation to FILE before it runs, where it is after a crash.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" {
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed);
__attribute__((weak)) size_t LLVMFuzzerCustomCrossOver(const uint8_t* data, size_t size, const uint8_t* other,
                                                       size_t other_size, uint8_t* out, size_t most,
                                                       unsigned seed);
__attribute__((weak)) int LLVMFuzzerInitialize(int* count, char*** arguments);
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);
}

namespace {

using Bytes = std::vector<uint8_t>;

constexpr size_t kMostBytes = 64 << 10;  // of an input that a target's mutator makes

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

/// By the target's own mutator three times out of four, if it has one; one such mutation in eight takes parts
/// of another seed.
Bytes mutated_by_target(const Bytes& seed, const Bytes& other, std::mt19937_64& random) {
  if (LLVMFuzzerCustomMutator == nullptr || random() % 4 == 0) return mutated(seed, other, random);
  Bytes bytes(std::max(seed.size(), kMostBytes));
  size_t size = 0;
  const auto number = static_cast<unsigned>(random());
  if (LLVMFuzzerCustomCrossOver != nullptr && random() % 8 == 0)
    size = LLVMFuzzerCustomCrossOver(seed.data(), seed.size(), other.data(), other.size(), bytes.data(),
                                     bytes.size(), number);
  if (size == 0) {
    std::copy(seed.begin(), seed.end(), bytes.begin());
    size = LLVMFuzzerCustomMutator(bytes.data(), seed.size(), bytes.size(), number);
  }
  bytes.resize(size);
  return bytes;
}

std::vector<std::string> files_of(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::mt19937_64 mutate_random;  ///< of LLVMFuzzerMutate

}  // namespace

/// libFuzzer's, which mutators call for bytes that they do not understand.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most) {
  Bytes bytes(data, data + size);
  if (bytes.empty()) bytes.push_back(0);
  bytes = mutated(bytes, bytes, mutate_random);
  bytes.resize(std::min(bytes.size(), most));
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}

int main(int count, char** arguments) {
  long mutations = 0, from = 0;
  std::string keep;
  std::vector<std::pair<std::string, Bytes>> seeds;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument.rfind("--mutations=", 0) == 0) {
      mutations = std::strtol(argument.c_str() + 12, nullptr, 10);
      continue;
    }
    if (argument.rfind("--from=", 0) == 0) {
      from = std::strtol(argument.c_str() + 7, nullptr, 10);
      continue;
    }
    if (argument.rfind("--keep=", 0) == 0) {
      keep = argument.substr(7);
      continue;
    }
    for (const std::string& path : files_of(argument)) {
      std::ifstream in(path, std::ios::binary);
      if (!in) {
        std::fprintf(stderr, "replay: cannot read %s\n", path.c_str());
        return 2;
      }
      seeds.emplace_back(path, Bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>()));
    }
  }
  if (seeds.empty()) {
    std::fprintf(stderr, "usage: replay [--mutations=N] [--from=N] [--keep=FILE] FILE|FOLDER...\n");
    return 2;
  }
  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&count, &arguments);
  long inputs = 0;
  for (size_t i = 0; i < seeds.size(); ++i) {
    const Bytes& seed = seeds[i].second;
    LLVMFuzzerTestOneInput(seed.data(), seed.size());
    ++inputs;
    for (long m = from; m < from + mutations; ++m, ++inputs) {
      std::mt19937_64 random((static_cast<uint64_t>(m) << 32) + i);
      mutate_random.seed(random());
      const Bytes& other = seeds[static_cast<size_t>(random() % seeds.size())].second;
      const Bytes bytes = mutated_by_target(seed, other, random);
      if (!keep.empty())
        std::ofstream(keep, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
  }
  std::printf("%ld inputs from %zu seeds\n", inputs, seeds.size());
  return 0;
}
