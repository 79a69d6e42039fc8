// What one run of a benchmark is.
#pragma once

#include <cstdint>

namespace librt::bench {

enum class Mode : uint8_t {
  Infer,  ///< an inference
  Train   ///< a training step: forward, backward, optimizer
};

}  // namespace librt::bench
