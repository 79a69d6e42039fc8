// Resource limits for reading a file, and when its data is verified. The defaults fit every legitimate model;
// an application that opens untrusted files lowers the limits.
#pragma once

#include <algorithm>
#include <cstdint>

namespace librt {

/// When the checksums of the weights are compared. Those of small segments, which shape rules may read, are
/// compared while reading also AtFirstUse.
enum class Verify : uint8_t {
  AtLoad,      ///< this reads the whole file
  AtFirstUse,  ///< by the sessions: ModelGraph::checks
  Never,
};

struct ReadLimits {
  uint64_t nodes = 1'000'000;         ///< including bodies
  uint64_t values = 4'000'000;        ///< including bodies
  uint64_t graph_bytes = 1ull << 30;  ///< memory of everything except tensors, once unpacked
  /// Bytes of one value of known shape; bytes of all states together.
  uint64_t memory = std::min(uint64_t{64} << 30, uint64_t{PTRDIFF_MAX});
  Verify verify = Verify::AtLoad;
};

}  // namespace librt
