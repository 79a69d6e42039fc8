// Priorities of the rows of own kernels that compute what oneDNN's do.
#pragma once

#include <string_view>

#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// Last resorts beside oneDNN's rows, which are not timed against them.
inline constexpr int kOwnPriority = onednn::kBuilt ? -5 : 5;

/// `timed`, next to oneDNN's rows and so timed against them, on CPUs without AVX-512, for which most of
/// oneDNN's matmuls and convolutions were written (docs/measurements.md, "Without AVX-512"); `last`, a last
/// resort, with it.
inline int own_priority(int last, int timed) noexcept {
  return onednn::kBuilt && std::string_view(best_simd().name) == "avx512" ? last : timed;
}

}  // namespace librt::cpu
