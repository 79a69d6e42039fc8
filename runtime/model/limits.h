// Resource limits for reading a file. The defaults fit every legitimate model; an application that opens
// untrusted files lowers them.
#pragma once

#include <cstdint>

namespace librt {

struct ReadLimits {
  uint64_t nodes = 1'000'000;         ///< including bodies
  uint64_t values = 4'000'000;        ///< including bodies
  uint64_t graph_bytes = 1ull << 30;  ///< memory of everything except tensors, once unpacked
  uint64_t memory = 64ull << 30;      ///< bytes of one value of known shape; bytes of all states together
  bool verify_data = false;           ///< verify the checksums of the weights too; this reads the whole file
};

}  // namespace librt
