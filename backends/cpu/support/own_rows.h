// Priorities of the rows of own kernels that compute what oneDNN's do.
#pragma once

#include <string_view>

#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/simd/simd.h"

namespace librt::cpu {

/// Last resorts beside oneDNN's rows, which are not timed against them.
inline constexpr int kOwnPriority = onednn::kBuilt ? -5 : 5;

/// Whether own rows are last resorts: beside oneDNN on CPUs with AVX-512, for which most of its matmuls and
/// convolutions were written (docs/measurements.md, "Without AVX-512"). Elsewhere they are timed against its
/// rows.
inline bool own_rows_last() noexcept {
  return onednn::usable().ok() && std::string_view(best_simd().name) == "avx512";
}

}  // namespace librt::cpu
