// Build tool: rewrites the cooperative matrices of a SPIR-V file from SPV_NV_cooperative_matrix to
// SPV_KHR_cooperative_matrix.
//
//   rewrite <input.spv> <output.spv>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "tools/shaders/khr_matrices.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: rewrite <input.spv> <output.spv>\n");
    return 2;
  }
  std::ifstream in(argv[1], std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::vector<uint32_t> words(bytes.size() / sizeof(uint32_t));
  std::copy_n(bytes.data(), words.size() * sizeof(uint32_t), reinterpret_cast<char*>(words.data()));
  std::string error;
  words = librt::spirv::khr_matrices(words, error);
  if (words.empty()) {
    std::fprintf(stderr, "rewrite: %s: %s\n", argv[1], error.c_str());
    return 2;
  }
  std::ofstream out(argv[2], std::ios::binary);
  out.write(reinterpret_cast<const char*>(words.data()),
            static_cast<std::streamsize>(words.size() * sizeof(uint32_t)));
  out.close();
  return out.good() ? 0 : 3;
}
