// Priorities of the rows of own kernels that compute what oneDNN's do.
#pragma once

#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn/kernels.h"

namespace librt::cpu {

/// Last resorts beside oneDNN's rows, which are not timed against them.
inline constexpr int kOwnPriority = onednn::kBuilt ? -5 : 5;
/// Next to oneDNN's rows, and timed against them: of rows with timed() only.
inline constexpr int kTimedPriority = 9;

/// `supports` of a row that is timed against oneDNN's: on CPUs without AVX-512, for which most of oneDNN's
/// matmuls and convolutions were written (docs/measurements.md, "Without AVX-512").
template <auto kSupports>
Status timed(const CpuDevice& device, const NodeView& node) {
  if (onednn::kBuilt && std::string_view(device.simd().name) == "avx512")
    return unsupported("not timed against oneDNN's kernels with AVX-512");
  return kSupports(device, node);
}

}  // namespace librt::cpu
